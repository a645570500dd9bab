package runtime_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/internal/testenv"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// openRT opens models by key, of the assets unless they are "face".
func openRT(t *testing.T, cfg eyas.Config, models ...string) *eyas.Runtime {
	t.Helper()
	testenv.Library(t)
	cfg.EP, cfg.Models = "cpu", map[string]eyas.ModelConfig{}
	for _, name := range models {
		path := filepath.Join(testenv.Assets(t), "models", name+".onnx")
		if name == "face" {
			path = face(t)
		}
		cfg.Models[name] = eyas.ModelConfig{Path: path, Conf: 0.05}
	}
	rt, err := eyas.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	return rt
}

// Batches on several lanes give each file's frames whole, in order, and with the results of one picture alone.
func TestBatchesOnLanesKeepOrder(t *testing.T) {
	const frames = 25
	type found struct {
		Source     string
		Frame      uint64
		Detections []eyas.Detection
	}
	look := func(cfg eyas.Config) (all []found, batches map[int]int) {
		rt := openRT(t, cfg, "yolox_nano_dynbatch")
		batches = map[int]int{}
		clips := []camera.Source{
			openSource(t, fmt.Sprintf("a=test:pattern?size=320x240&frames=%d", frames)),
			openSource(t, fmt.Sprintf("b=test:pattern?size=64x200&frames=%d", frames)),
		}
		for res, err := range rt.Stream(t.Context(), clips...) {
			if err != nil {
				t.Fatal(err)
			}
			res = res.Clone()
			all = append(all, found{res.Source, res.Frame, res.Detections})
			batches[res.Timing.Batch]++
		}
		return all, batches
	}
	one, _ := look(eyas.Config{Lanes: 1, Threads: 1, Batch: []int{1}})
	many, batches := look(eyas.Config{Lanes: 2, Threads: 1, Batch: []int{1, 2, 4}})
	if len(one) != 2*frames || !slices.IsSortedFunc(one, func(a, b found) int {
		return 1000*int(a.Source[0]-b.Source[0]) + int(a.Frame) - int(b.Frame)
	}) {
		t.Errorf("%d frames, or not in order", len(one))
	}
	if d := cmp.Diff(one, many); d != "" {
		t.Errorf("batches on two lanes differ from one picture at a time:\n%s", d)
	}
	if len(batches) == 1 && batches[1] > 0 {
		t.Error("no batch had more than one frame")
	}
}

// Every frame that a camera captured is delivered or counted as dropped, however slow who reads is, whatever ends the stream,
// and with models that take different times.
func TestEveryLiveFrameIsAccountedFor(t *testing.T) {
	rt := openRT(t, eyas.Config{Lanes: 2, Threads: 1, SLO: eyas.NoSLO}, "face", "yolox_nano_person_192")
	for _, tt := range []struct {
		name string
		end  func(n int, cancel func()) bool // says whether to leave the loop after n results
		slow bool
	}{
		{"left", func(n int, _ func()) bool { return n == 20 }, false},
		{"told to stop", func(n int, cancel func()) bool {
			if n == 20 {
				cancel()
			}
			return false
		}, false},
		{"a slow reader", func(n int, _ func()) bool { return n == 12 }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var sources []camera.Source
			for i := range 3 {
				sources = append(sources, openSource(t, fmt.Sprintf("cam%d=test:pattern?size=320x240&fps=200", i)))
			}
			n := 0
			last := map[string]uint64{}
			for res, err := range rt.Stream(ctx, sources...) {
				if err != nil {
					t.Fatal(err)
				}
				key := res.Source + " " + res.Model
				if before, ok := last[key]; ok && res.Frame <= before {
					t.Errorf("%s: frame %d after %d", key, res.Frame, before)
				}
				last[key] = res.Frame
				n++
				for captured := rt.Status()[0].Captured; tt.slow && rt.Status()[0].Captured < captured+20; {
					waitForFrames(ctx, t)
				}
				if tt.end(n, cancel) {
					break
				}
			}
			for _, s := range rt.Status() {
				if s.Captured == 0 || s.Captured != s.Delivered+s.Dropped.Total() {
					t.Errorf("%s: %d captured, %d delivered, dropped %v", s.Name, s.Captured, s.Delivered, s.Dropped)
				}
				if tt.slow && s.Dropped[camera.Superseded] == 0 {
					t.Errorf("%s: nothing was superseded: %+v", s.Name, s)
				}
			}
		})
	}
}

// waitForFrames lets the sources run for a frame.
func waitForFrames(ctx context.Context, t *testing.T) {
	select {
	case <-time.After(5 * time.Millisecond): // a frame's time: what is waited for is the count
	case <-ctx.Done():
		t.Fatal("no frames come")
	}
}

// With a deadline that hardly any run keeps frames are dropped as late, and what is delivered is young.
func TestLateFramesAreDropped(t *testing.T) {
	rt := openRT(t, eyas.Config{Lanes: 1, Threads: 1, SLO: 10 * time.Second, Batch: []int{1}}, "face")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n := 0
	for res, err := range rt.Stream(ctx, camera.Supervise("old", old{})) {
		if err != nil {
			t.Fatal(err)
		}
		if res.Frame%2 == 0 {
			t.Errorf("frame %d is %v old", res.Frame, res.Age)
		}
		if n++; n == 10 {
			break
		}
	}
	if s := rt.Status()[0]; s.Dropped[camera.Late] < 9 {
		t.Errorf("dropped %v", s.Dropped)
	}
}

// old is a camera whose every other frame was captured an hour ago.
type old struct{}

func (old) Connect(ctx context.Context, out *camera.Output) error {
	if err := out.Format(1, camera.Frame{}.Colour, 64, 64, 100); err != nil {
		return err
	}
	for i := 0; ; i++ {
		captured := time.Now()
		if i%2 == 0 {
			captured = captured.Add(-time.Hour)
		}
		if f := out.Begin(); f != nil {
			if err := out.Publish(ctx, f, captured, 1); err != nil {
				return err
			}
		}
		select {
		case <-time.After(10 * time.Millisecond): // its rate
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

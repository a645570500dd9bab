package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/memplan"
	"github.com/eyas-edge/eyas/models/decode"
	"github.com/eyas-edge/eyas/models/prep"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// detections returns what a plain session finds in a picture that is prepared and read as a model's description says.
func (s *plainSession) detections(t *testing.T, m *eyas.Model, f *camera.Frame) []eyas.Detection {
	t.Helper()
	info := m.Info()
	h, w := info.InputSize(f.Width, f.Height)
	filler, err := prep.NewFiller(info.Recipe, w, h)
	if err != nil {
		t.Fatal(err)
	}
	in, err := tensor.New("in", s.Inputs()[0].Type, info.InputShape(1, h, w)...)
	if err != nil {
		t.Fatal(err)
	}
	at, err := filler.Fill(in, 0, f)
	if err != nil {
		t.Fatal(err)
	}
	d, err := decode.New(info.Head)
	if err != nil {
		t.Fatal(err)
	}
	found, err := d.Decode(nil, s.run(t, in.Shape, in.Data), 0, at, m.Options())
	if err != nil {
		t.Fatal(err)
	}
	var all []eyas.Detection
	for _, o := range found {
		all = append(all, eyas.Detection{Class: info.Label(o.ClassID), ClassID: o.ClassID, Score: o.Score, Box: o.Box})
	}
	return all
}

// crowded returns so many of the asset's photos.
func crowded(t *testing.T, n int) []*camera.Frame {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(testenv.Assets(t), "images", "coco", "*.jpg"))
	if err != nil || len(paths) < n {
		t.Fatalf("%d photos, %v", len(paths), err)
	}
	var all []*camera.Frame
	for _, path := range paths[:n] {
		f, err := camera.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.Release)
		all = append(all, f)
	}
	return all
}

// shaped returns a photo cut to several shapes.
func shaped(t *testing.T) []*camera.Frame {
	t.Helper()
	photo := crowded(t, 1)[0]
	var all []*camera.Frame
	for _, size := range [][2]int{{320, 320}, {320, 64}, {64, 320}, {320, 160}, {320, 200}, {320, 240}, {320, 280}, {100, 320}, {140, 320}, {200, 320}, {240, 320}} {
		f, err := camera.NewFrame(photo.Format, size[0], size[1], photo.Planes, time.Time{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return all
}

// A model that asks for other memory from one picture to the next (in-graph suppression on blank and on crowded
// pictures, open height and width) gives what a plain session gives, in every frame, with what the plan does not
// hold counted, and takes no more memory after 300 frames than after 100.
func TestModelsWhoseMemoryChanges(t *testing.T) {
	for _, c := range []struct {
		model    string
		size     int
		pictures func(t *testing.T) []*camera.Frame
		counted  func(u memplan.Usage) bool
	}{
		{"yolox_nano_end2end", 0, func(t *testing.T) []*camera.Frame {
			var all []*camera.Frame
			for _, photo := range crowded(t, 6) {
				all = append(all, grey(t, 0), photo)
			}
			return all
		}, func(u memplan.Usage) bool { return u.Spill.Count > 0 && u.Mismatches > 0 }},
		{"yolov8n_int8_dynshape_op17", 320, shaped, func(u memplan.Usage) bool { return u.Recordings > 10 }},
	} {
		t.Run(c.model, func(t *testing.T) {
			t.Setenv("EYAS_HOME", t.TempDir())
			path := filepath.Join(testenv.Assets(t), "models", c.model+".onnx")
			plain := newPlainSession(t, testenv.Library(t), path)
			rt := open(t, eyas.Config{Threads: 1, Models: map[string]eyas.ModelConfig{"m": {Path: path, ImgSize: eyas.ImgSize{H: c.size, W: c.size}}}})
			m := rt.Model("m")
			pictures := c.pictures(t)
			var want []string
			for _, f := range pictures {
				want = append(want, fmt.Sprint(plain.detections(t, m, f)))
			}
			if distinct := slices.Compact(slices.Sorted(slices.Values(want))); len(distinct) < 3 {
				t.Fatalf("all pictures look alike: %q", distinct)
			}
			const warm, frames = 100, 300
			var before uint64
			for i := range frames {
				k := i % len(pictures)
				res, err := m.Detect(context.Background(), pictures[k])
				if err != nil {
					t.Fatalf("frame %d: %v", i, err)
				}
				if got := fmt.Sprint(res.Detections); got != want[k] {
					t.Fatalf("frame %d, picture %d: found %s, a plain session finds %s", i, k, got, want[k])
				}
				if i == warm {
					before = resident()
				}
			}
			after, u := resident(), rt.Memory()
			t.Logf("%d KiB after %d frames, %d after %d; %v from the arena, %v from the spill block, %v from the heap, %d mismatches, %d runs recorded",
				before>>10, warm, after>>10, frames, u.Arena, u.Spill, u.Heap, u.Mismatches, u.Recordings)
			if after > before+2<<20 {
				t.Errorf("memory grew from %d to %d bytes", before, after)
			}
			if u.Arena.Count == 0 || !c.counted(u) {
				t.Errorf("what is not in the plan is not counted: %+v", u)
			}
		})
	}
}

// With a budget of exactly the need, a model that wants more fails alone: the one beside it, running at the same
// time, gives the same results in every frame.
func TestHungryModelAtTheEdgeOfTheBudget(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	steady := filepath.Join(testenv.Assets(t), "models", "yolox_nano_person_192.onnx")
	cfg := eyas.Config{ORT: testenv.Library(t), Headroom: 64 << 10, Threads: 1, Models: map[string]eyas.ModelConfig{
		"hungry": {Path: hungryYOLO(t)}, "steady": {Path: steady},
	}}
	photos := crowded(t, 4)
	look := func(rt *eyas.Runtime, i int) *eyas.Result {
		res, err := rt.Model("steady").Detect(context.Background(), photos[i%len(photos)])
		if err != nil {
			t.Fatalf("frame %d of the steady model: %v", i, err)
		}
		return res
	}
	const frames = 200
	run := func(rt *eyas.Runtime) (found []string, times []time.Duration) {
		for i := range frames {
			res := look(rt, i)
			found = append(found, fmt.Sprint(res.Detections))
			times = append(times, res.Timing.Infer)
		}
		slices.Sort(times)
		return found, times
	}
	// The second start measures what engine and Go take, for the budget of the third.
	var want []string
	var alone []time.Duration
	for range 2 {
		rt := open(t, cfg)
		for _, err := range rt.Stream(context.Background(), rawFrames(t, 20)) {
			if err != nil {
				t.Fatal(err)
			}
		}
		want, alone = run(rt)
		rt.Close()
	}
	cfg.Budget = 1
	var shortage *memplan.Shortage
	if _, err := eyas.Open(context.Background(), cfg); !errors.As(err, &shortage) {
		t.Fatal(err)
	}
	cfg.Budget = eyas.Size(shortage.Need)
	rt := open(t, cfg)
	if got := rt.Plan().Total(); got != shortage.Need {
		t.Errorf("%d bytes planned, the budget is %d", got, shortage.Need)
	}
	var content, failing []time.Duration
	for _, c := range []struct {
		levels []byte
		times  *[]time.Duration
	}{{[]byte{dark, dark}, &content}, {[]byte{bright, dark}, &failing}} {
		stop := hungryBeside(t, rt.Model("hungry"), c.levels)
		found, times := run(rt)
		*c.times = times
		if n := stop(); (n > 0) != slices.Contains(c.levels, bright) {
			t.Errorf("levels %v: the hungry model failed %d times", c.levels, n)
		}
		for i := range found {
			if found[i] != want[i] {
				t.Fatalf("levels %v, frame %d: found %s, alone %s", c.levels, i, found[i], want[i])
			}
		}
	}
	p := func(times []time.Duration, q float64) time.Duration { return times[int(q*float64(len(times)-1))] }
	t.Logf("runs of the steady model: alone p50 %v, p99 %v; beside the other p50 %v, p99 %v; while that fails p50 %v, p99 %v",
		p(alone, 0.5), p(alone, 0.99), p(content, 0.5), p(content, 0.99), p(failing, 0.5), p(failing, 0.99))
	for _, r := range rt.Memory().Regions {
		if r.Kind == memplan.Headroom && r.Measured > r.Planned {
			t.Errorf("%d bytes of headroom were used, %d are planned", r.Measured, r.Planned)
		}
	}
}

// The levels of grey at which hungryYOLO does with what was planned, and does not.
const dark, bright = 90, 240

// hungryBeside has a model look at pictures of two levels in turn, until stop is called, which returns how often it
// failed: at the bright level, and at no other.
func hungryBeside(t *testing.T, m *eyas.Model, levels []byte) (stop func() int) {
	var pictures []*camera.Frame
	for _, level := range levels {
		pictures = append(pictures, grey(t, level))
	}
	end, failed := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		defer func() { failed <- n }()
		for i := 0; ; i++ {
			select {
			case <-end:
				return
			default:
			}
			k := i % len(levels)
			_, err := m.Detect(context.Background(), pictures[k])
			switch {
			case levels[k] == bright && errors.Is(err, eyas.ErrBudget):
				n++
			case levels[k] == bright || err != nil:
				t.Errorf("the hungry model, level %d: %v", levels[k], err)
			}
		}
	}()
	return func() int {
		close(end)
		return <-failed
	}
}

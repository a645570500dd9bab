package lane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/memplan"
	"github.com/eyas-edge/eyas/models"
	"github.com/eyas-edge/eyas/models/decode"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// programs opens models on one lane, for batches of the ladder.
func programs(t *testing.T, o Options, ladder []int, size models.Size, names ...string) (*Lane, []*Program) {
	t.Helper()
	return programsFrom(t, o, ladder, size, nil, names...)
}

func programsFrom(t *testing.T, o Options, ladder []int, size models.Size, saved *Saved, names ...string) (*Lane, []*Program) {
	t.Helper()
	library, err := ort.Load(testenv.Library(t))
	if err != nil {
		t.Fatal(err)
	}
	l := New(o)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	var list []*Program
	for _, name := range names {
		m, err := models.Load(filepath.Join(testenv.Assets(t), "models", name+".onnx"), models.Options{ImgSize: size})
		if err != nil {
			t.Fatal(err)
		}
		session, err := library.OpenFile(m.Path, ort.Options{Threads: 1, OwnAllocator: true})
		if err != nil {
			t.Fatal(err)
		}
		p, err := l.Add(m, session, ladder, saved)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	if err := l.Record(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Place(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	return l, list
}

// take fills a set with pictures of a size.
func take(t *testing.T, p *Program, pictures ...*frame.Frame) *Set {
	t.Helper()
	s, err := p.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range pictures {
		if err := s.Fill(f); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func picture(t *testing.T, w, h int) *frame.Frame {
	t.Helper()
	data := make([]byte, w*h*3)
	for i := range data {
		data[i] = byte(i * 7)
	}
	f, err := frame.New(frame.RGB24, w, h, []frame.Plane{{Data: data, Stride: w * 3}}, time.Time{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Pictures of any number of shapes run, each in the smallest rectangle that holds it, from the arena; and what is
// kept for them stays bounded.
func TestDynamicSizesAreBounded(t *testing.T) {
	_, list := programs(t, Options{}, nil, models.Size{128, 128}, "yolov8n_int8_dynshape_op17")
	p := list[0]
	shapes := map[[2]int]bool{}
	var heap [2]int64
	for round := range 2 {
		for side := 32; side <= 128; side += 32 {
			for _, size := range [][2]int{{128, side}, {side, 128}, {256, side}, {side, 512}} {
				s := take(t, p, picture(t, size[0], size[1]))
				if _, err := s.Detect(t.Context(), make([][]decode.Detection, 1), decode.Options{Conf: 0.25, IoU: 0.7}); err != nil {
					t.Fatalf("%dx%d in round %d: %v", size[0], size[1], round, err)
				}
				shapes[[2]int{s.now.h, s.now.w}] = true
				if len(s.variants) > maxVariants {
					t.Fatalf("%d sizes are kept, more than %d", len(s.variants), maxVariants)
				}
				s.Put()
			}
		}
		heap[round] = p.Counts().Heap
	}
	if len(shapes) < 5 {
		t.Errorf("only %d input sizes for pictures of many shapes", len(shapes))
	}
	if heap[1] != heap[0] {
		t.Errorf("%d requests went to the heap in the second round", heap[1]-heap[0])
	}
	if n := p.Recordings(); n < int64(len(shapes)) || n > int64(len(shapes))+1 { // two runs of the first
		t.Errorf("%d recordings for %d sizes", n, len(shapes))
	}
}

func TestTakeEndsWithItsContext(t *testing.T) {
	_, list := programs(t, Options{}, nil, models.Size{}, "yolox_nano_person_192")
	var taken []*Set
	for range Inputs {
		taken = append(taken, take(t, list[0]))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := list[0].Take(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("no buffer is free, and Take says %v", err)
	}
	for _, s := range taken {
		s.Put()
	}
}

// Abort ends a run that is under way and every later one.
func TestAbort(t *testing.T) {
	l, list := programs(t, Options{}, nil, models.Size{}, "yolov8n_qdq_op11_640")
	s := take(t, list[0], picture(t, 640, 640))
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		for {
			if err := s.Run(t.Context()); err != nil {
				ended <- err
				return
			}
		}
	}()
	l.Abort()
	select {
	case err := <-ended:
		if !errors.Is(err, ort.ErrTerminated) {
			t.Errorf("the run ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the run goes on after Abort")
	}
	other := take(t, list[0], picture(t, 640, 640))
	if err := other.Run(t.Context()); !errors.Is(err, ort.ErrTerminated) {
		t.Errorf("a set that did not run when Abort came runs: %v", err)
	}
	other.Put()
	s.Put()
}

// Two models and three batch sizes share an arena that is as large as the largest of them needs, and give what
// they give alone, picture by picture.
func TestModelsAndBatchesShareTheArena(t *testing.T) {
	names := []string{"yolox_nano_dynbatch", "yolov8n_int8_dynshape_op17"}
	ladder := []int{1, 2, 4}
	l, list := programs(t, Options{Check: true}, ladder, models.Size{}, names...)
	var largest, sum int64
	for _, p := range list {
		n := p.Need(4).Slots
		largest, sum = max(largest, n), sum+n
		if small := p.Need(1).Slots; small >= n {
			t.Errorf("%s: batch 1 needs %d bytes, batch 4 %d", p.model.Name, small, n)
		}
	}
	if got := l.Arena().Slots(); got != largest || got >= sum {
		t.Errorf("the arena has %d bytes, the largest need is %d", got, largest)
	}
	pictures := []*frame.Frame{picture(t, 416, 416), picture(t, 640, 640), picture(t, 100, 100), picture(t, 333, 333)}
	want := map[string][]byte{}
	for round := range 3 {
		for _, n := range ladder {
			for _, p := range list {
				s := take(t, p, pictures[:n]...)
				if err := s.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				key := fmt.Sprint(p.model.Name, n)
				got := bytes.Clone(s.Outputs()[0].Data)
				s.Put()
				if round == 0 {
					want[key] = got
				} else if !bytes.Equal(got, want[key]) {
					t.Errorf("%s, batch %d: other outputs in round %d", p.model.Name, n, round)
				}
				if p.model.MixesBatch {
					continue
				}
				if one := want[fmt.Sprint(p.model.Name, 1)]; !bytes.Equal(got[:len(one)], one) {
					t.Errorf("%s: the first picture of a batch of %d gets another answer than alone", p.model.Name, n)
				}
			}
		}
	}
	for _, p := range list {
		if c := p.Counts(); c.Mismatches > 0 || c.Arena == 0 {
			t.Errorf("%s: %+v", p.model.Name, c)
		}
	}
}

// A batch that the ladder does not have runs as the next larger one.
func TestBatchIsFilledUp(t *testing.T) {
	_, list := programs(t, Options{}, []int{1, 4}, models.Size{}, "yolox_nano_dynbatch")
	a, b := picture(t, 416, 300), picture(t, 50, 416)
	alone := take(t, list[0], b)
	if err := alone.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := bytes.Clone(alone.Outputs()[0].Data)
	alone.Put()
	s := take(t, list[0], a, b)
	defer s.Put()
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := s.Outputs()[0]
	if out.Shape[0] != 4 {
		t.Errorf("2 pictures run as %d", out.Shape[0])
	}
	if !bytes.Equal(out.Data[len(want):2*len(want)], want) {
		t.Error("the second picture of a batch gets another answer than alone")
	}
	for range 2 {
		if err := s.Fill(a); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Fill(a); err == nil {
		t.Error("a fifth picture fits a batch of 4")
	}
}

// What was saved is planned for at the next start, without a recorded run; what is damaged is recorded anew.
func TestSavedPlans(t *testing.T) {
	_, list := programs(t, Options{}, []int{1, 2}, models.Size{}, "yolox_nano_dynbatch")
	saved, err := list[0].Saved(t.Context())
	if err != nil || len(saved.Plans) != 2 {
		t.Fatalf("%+v, %v", saved, err)
	}
	text, err := json.Marshal(saved)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*SavedPlan)
		kept   bool
	}{
		{"as it was", func(*SavedPlan) {}, true},
		{"overlapping offsets", func(s *SavedPlan) { clear(s.Solution.Offsets) }, false},
		{"too few offsets", func(s *SavedPlan) { s.Solution.Offsets = s.Solution.Offsets[1:] }, false},
		{"no recording", func(s *SavedPlan) { s.Recordings = nil }, false},
		{"an empty recording", func(s *SavedPlan) {
			s.Recordings, s.Solution = []ort.Recording{{}}, memplan.Solution{Proven: true}
		}, false},
		{"sizes of zero", func(s *SavedPlan) { s.Recordings[0][0].Bytes = 0 }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			again := &Saved{}
			if err := json.Unmarshal(text, again); err != nil {
				t.Fatal(err)
			}
			c.change(&again.Plans[0])
			if got := newPlans(false, again).byShape[again.Plans[0].Shape] != nil; got != c.kept {
				t.Errorf("kept: %v, want %v", got, c.kept)
			}
		})
	}
}

// A saved plan of other runs than those that come does not hold: it is made anew, and nothing of it is left.
func TestSavedPlanOfOtherRuns(t *testing.T) {
	name, ladder := "yolox_nano_person_192", []int{1}
	_, first := programs(t, Options{}, ladder, models.Size{}, name)
	saved, err := first[0].Saved(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := saved.Plans[0].Solution.Height
	for _, c := range []struct {
		name   string
		change func(r ort.Recording) ort.Recording
	}{
		{"smaller sizes", func(r ort.Recording) ort.Recording {
			for i := range r {
				r[i].Bytes = max(r[i].Bytes/2, 1)
			}
			return r
		}},
		{"fewer events", func(r ort.Recording) ort.Recording { return r[:len(r)/2] }},
	} {
		t.Run(c.name, func(t *testing.T) {
			other := &plan{recordings: []ort.Recording{c.change(slices.Clone(saved.Plans[0].Recordings[0]))}}
			if err := other.solve(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			shape := saved.Plans[0].Shape
			l, list := programsFrom(t, Options{}, ladder, models.Size{},
				&Saved{Plans: []SavedPlan{{shape, other.recordings, other.solution}}}, name)
			if n := list[0].Recordings(); n != 1 {
				t.Errorf("%d runs were recorded, want 1", n)
			}
			again, err := list[0].Saved(t.Context())
			if err != nil || len(again.Plans) != 1 || len(again.Plans[0].Recordings) != 1 || again.Plans[0].Solution.Height != want {
				t.Errorf("%d bytes planned, want %d: %v", again.Plans[0].Solution.Height, want, err)
			}
			if l.Arena().Slots() != want {
				t.Errorf("the arena has %d bytes, want %d", l.Arena().Slots(), want)
			}
			before := list[0].Counts()
			s := take(t, list[0], picture(t, 192, 192))
			defer s.Put()
			if err := s.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if c := list[0].Counts().Minus(before); c.Heap+c.Spill+c.Mismatches != 0 || c.Arena == 0 {
				t.Errorf("%+v", c)
			}
		})
	}
}

package ort

import (
	"cmp"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/memplan"
)

// greedy plans by decreasing size at the lowest offset that is free: enough for what is
// tested here.
func greedy(p memplan.Problem) (offsets []int64, height int64) {
	order := make([]int, len(p.Buffers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.Buffers[b].Size, p.Buffers[a].Size) })
	offsets = make([]int64, len(p.Buffers))
	var placed []int
	for _, i := range order {
		b := p.Buffers[i]
		slices.SortFunc(placed, func(x, y int) int { return cmp.Compare(offsets[x], offsets[y]) })
		at := int64(0)
		for _, j := range placed {
			o := p.Buffers[j]
			if o.Upper <= b.Lower || b.Upper <= o.Lower {
				continue
			}
			if offsets[j]-at >= b.Size {
				break
			}
			at = max(at, offsets[j]+o.Size)
		}
		offsets[i] = at
		placed = append(placed, i)
		height = max(height, at+b.Size)
	}
	return offsets, height
}

func record(t testing.TB, b *Binding) Recording {
	t.Helper()
	r, err := b.Record()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func schedule(t testing.TB, check bool, rs ...Recording) *Schedule {
	t.Helper()
	s, err := NewSchedule(check, rs...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func arena(t testing.TB, slots, spill int64) *Arena {
	t.Helper()
	a, err := NewArena(slots, spill, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// planned makes the binding replay s from an arena of its own. Session and binding are
// closed before the arena is.
func planned(t testing.TB, b *Binding, s *Schedule) *Arena {
	t.Helper()
	offsets, height := greedy(s.Problem())
	a := arena(t, height, 2*s.Spill())
	replay(t, b, a, s, offsets)
	return a
}

func replay(t testing.TB, b *Binding, a *Arena, s *Schedule, offsets []int64) {
	t.Helper()
	if err := b.Replay(a, s, offsets); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Plain)
}

// own is how the sessions of these tests run.
var own = Options{Threads: 1, OwnAllocator: true}

// noisy are inputs with pseudo-random values.
func noisy(t testing.TB, s *Session, batch, side int) []*tensor.Tensor {
	in := inputs(t, s, batch, side)
	for _, x := range in {
		noise(x)
	}
	return in
}

// outputsFor binds the outputs whose shapes are fixed at this batch.
func outputsFor(t testing.TB, s *Session, batch int) []*tensor.Tensor {
	var out []*tensor.Tensor
	for _, info := range s.Outputs() {
		shape := slices.Clone(info.Shape)
		if len(shape) > 0 && shape[0] < 0 && !slices.Contains(shape[1:], -1) {
			shape[0] = batch
		}
		if slices.Contains(shape, -1) {
			out = append(out, nil)
			continue
		}
		out = append(out, newTensor(t, info.Name, info.Type, shape...))
	}
	return out
}

var replayed = []struct {
	model       string
	batch, side int
}{
	{"yolox_nano_person_192", 1, 0},
	{"yolox_nano_416", 1, 0},
	{"yolox_nano_dynbatch", 1, 0},
	{"yolox_nano_dynbatch", 4, 0},
	{"yolov8n_int8_dynshape_op17", 1, 320},
	{"yolov8n_int8_dyn_op12_640", 1, 0},
	{"yolov8n_qdq_op11_640", 1, 0},
	{"yolov5n_fp16_io_640", 1, 0},
	{"nanodet_m_416", 1, 0},
	{"yolo26n_int8_e2e_640", 1, 0},
}

// A replayed run gives what the library's own allocator gives, bit by bit, and takes
// nothing from elsewhere.
func TestReplayIsExact(t *testing.T) {
	for _, c := range replayed {
		t.Run(fmt.Sprintf("%s/%d", c.model, c.batch), func(t *testing.T) {
			if testing.Short() && strings.HasSuffix(c.model, "_640") {
				t.Skip("large")
			}
			theirs := open(t, c.model, Options{Threads: 2})
			want := digest(run(t, bind(t, theirs, noisy(t, theirs, c.batch, c.side))))

			s := open(t, c.model, Options{Threads: 2, OwnAllocator: true})
			b := bind(t, s, noisy(t, s, c.batch, c.side), outputsFor(t, s, c.batch)...)
			if digest(run(t, b)) != want {
				t.Fatal("outputs differ without an arena")
			}
			r := record(t, b)
			if digest(b.Outputs()) != want {
				t.Fatal("outputs differ while recording")
			}
			sch := schedule(t, false, r, record(t, b))
			if !sch.Complete() || sch.Events() != len(r) {
				t.Errorf("two runs agree on %d of %d events", sch.Events(), len(r))
			}
			a := planned(t, b, sch)
			before := b.Counts()
			for range 3 {
				if digest(run(t, b)) != want {
					t.Fatal("outputs differ from an arena")
				}
			}
			got := b.Counts()
			if got.Heap != before.Heap || got.Mismatches != 0 || got.Kept != 0 {
				m, _ := b.Mismatch()
				t.Errorf("served outside of the arena: %+v, %+v", got, m)
			}
			if n := int64(len(sch.Problem().Buffers)); got.Arena-before.Arena != 3*n {
				t.Errorf("%d requests from the arena, want 3 x %d", got.Arena-before.Arena, n)
			}
			t.Logf("batch %d: %d events, %d slots, max live %d, greedy %d, spill %d, held %d", c.batch, len(r),
				len(sch.Problem().Buffers), r.Peak(), a.Slots(), sch.Spill(), s.Held())
		})
	}
}

// Every asset model runs from an arena at its lower bound, with guards that stay whole, and
// outputs from the spill block.
func TestReplayOfEveryModel(t *testing.T) {
	if testing.Short() {
		t.Skip("many models")
	}
	paths, err := filepath.Glob(filepath.Join(testenv.Assets(t), "models", "*.onnx"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no models: %v", err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".onnx")
		t.Run(name, func(t *testing.T) {
			s := open(t, name, Options{Threads: 2, OwnAllocator: true})
			b := bind(t, s, inputs(t, s, 1, 320+320*strings.Count(name, "false_dynamic")))
			want := digest(run(t, b))
			sch := schedule(t, true, record(t, b))
			solution, err := memplan.Solve(t.Context(), sch.Problem())
			if err != nil {
				t.Fatal(err)
			}
			replay(t, b, arena(t, solution.Height, 2*sch.Spill()), sch, solution.Offsets)
			before := b.Counts()
			for range 2 {
				if digest(run(t, b)) != want {
					t.Error("outputs differ")
				}
			}
			if got := b.Counts(); got.Heap != before.Heap || got.Mismatches != 0 || !solution.Proven {
				t.Errorf("%+v; height %d, lower bound %d", got, solution.Height, solution.LowerBound)
			}
		})
	}
}

func TestReplayAllocatesNothing(t *testing.T) {
	s := open(t, "yolox_nano_person_192", own)
	b := bound(t, s)
	run(t, b)
	planned(t, b, schedule(t, false, record(t, b)))
	if n := testing.AllocsPerRun(20, func() {
		if err := b.Run(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}

// picture fills a float32 BGR input of 0..255 with a photo, stretched.
func picture(t testing.TB, x *tensor.Tensor, name string) {
	t.Helper()
	f, err := os.Open(filepath.Join(testenv.Assets(t), "images", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, _, err := image.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	h, w := x.Shape[2], x.Shape[3]
	data := x.Float32s()
	for y := range h {
		for i := range w {
			r, g, b, _ := img.At(i*img.Bounds().Dx()/w, y*img.Bounds().Dy()/h).RGBA()
			for c, v := range []uint32{b, g, r} {
				data[c*h*w+y*w+i] = float32(v >> 8)
			}
		}
	}
}

// crowd and blank are pictures with many detections and none.
func crowd(t testing.TB, x *tensor.Tensor) {
	names, err := filepath.Glob(filepath.Join(testenv.Assets(t), "images", "coco", "*.jpg"))
	if err != nil || len(names) < 2 {
		t.Fatalf("no photos: %v", err)
	}
	picture(t, x, filepath.Join("coco", filepath.Base(names[1])))
}

func blank(x *tensor.Tensor) { clear(x.Data) }

// A model with NMS in its graph asks for more the more it finds. Whatever was recorded, the
// results are right, and what does not come from the arena is counted.
func TestReplayOfDynamicRuns(t *testing.T) {
	theirs := open(t, "yolox_nano_end2end", Options{Threads: 1})
	ref := bind(t, theirs, inputs(t, theirs, 1, 0))
	pictures := []func(){func() { blank(ref.in[0]) }, func() { crowd(t, ref.in[0]) }}
	var want []uint64
	for _, p := range pictures {
		p()
		want = append(want, digest(run(t, ref)))
	}
	if n := ref.Outputs()[0].Shape[0]; n < 2 {
		t.Fatalf("only %d boxes on the crowded picture", n)
	}
	for _, c := range []struct {
		name       string
		recorded   []int // which of the pictures
		mismatches bool
		heap       bool
	}{
		{"both recorded", []int{0, 1}, false, false},
		{"only blank recorded", []int{0}, true, true},
		{"only crowded recorded", []int{1}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, "yolox_nano_end2end", own)
			b := bind(t, s, ref.in)
			run(t, b)
			var rs []Recording
			for _, i := range c.recorded {
				pictures[i]()
				rs = append(rs, record(t, b))
			}
			sch := schedule(t, false, rs...)
			a := planned(t, b, sch)
			before := b.Counts()
			for range 3 {
				for i, p := range pictures {
					p()
					if digest(run(t, b)) != want[i] {
						t.Errorf("picture %d: other results", i)
					}
				}
			}
			got := b.Counts()
			if (got.Mismatches > 0) != c.mismatches || (got.Heap > before.Heap) != c.heap {
				t.Errorf("counts %+v before, %+v after", before, got)
			}
			m, ok := b.Mismatch()
			if ok != c.mismatches {
				t.Errorf("mismatch %+v, %v", m, ok)
			}
			t.Logf("%d of %d events planned, slots %d, spill %d: %+v; %+v", sch.Events(), len(rs[0]), a.Slots(), a.Spill(), got, m)
			b.Plain()
		})
	}
}

// Two threads with an arena each run one session at the same time.
func TestReplayInTwoLanes(t *testing.T) {
	for _, model := range []string{"yolox_nano_person_192", "nanodet_m_416"} {
		t.Run(model, func(t *testing.T) {
			s := open(t, model, own)
			runs := 200
			if testing.Short() || model != "yolox_nano_person_192" {
				runs = 20
			}
			var wg sync.WaitGroup
			for range 2 {
				b := bound(t, s)
				want := digest(run(t, b))
				planned(t, b, schedule(t, false, record(t, b)))
				before := b.Counts()
				wg.Go(func() {
					for range runs {
						if err := b.Run(); err != nil || digest(b.Outputs()) != want {
							t.Errorf("%v, or other values", err)
							return
						}
					}
					if got := b.Counts(); got.Heap != before.Heap || got.Spill != 0 || got.Mismatches != 0 {
						t.Errorf("served outside of the arena: %+v", got)
					}
				})
			}
			wg.Wait()
		})
	}
}

// Two models and two batches take turns on one arena as large as the largest needs,
// also when their threads do not wait for each other.
func TestReplayInTurns(t *testing.T) {
	person, dyn := open(t, "yolox_nano_person_192", own), open(t, "yolox_nano_dynbatch", own)
	list := []*Binding{
		bind(t, person, noisy(t, person, 1, 0)), // outputs in the spill block
		bind(t, dyn, noisy(t, dyn, 1, 0)),
		bind(t, dyn, noisy(t, dyn, 2, 0), outputsFor(t, dyn, 2)...),
	}
	var want []uint64
	var schedules []*Schedule
	var offsets [][]int64
	var slots, spill int64
	for _, b := range list {
		run(t, b)
		s := schedule(t, false, record(t, b))
		want = append(want, digest(b.Outputs()))
		o, height := greedy(s.Problem())
		schedules, offsets = append(schedules, s), append(offsets, o)
		slots, spill = max(slots, height), spill+2*s.Spill()
	}
	a := arena(t, slots, spill)
	for i, b := range list {
		replay(t, b, a, schedules[i], offsets[i])
	}
	heap := Totals().Heap
	for range 3 {
		for i, b := range list {
			run(t, b)
			for j, other := range list[:i+1] {
				if digest(other.Outputs()) != want[j] {
					t.Fatalf("outputs of %d differ after a run of %d", j, i)
				}
			}
		}
	}
	var wg sync.WaitGroup
	for i, b := range list {
		wg.Go(func() {
			for range 5 {
				if err := b.Run(); err != nil || digest(b.Outputs()) != want[i] {
					t.Errorf("binding %d: %v, or other values", i, err)
				}
			}
		})
	}
	wg.Wait()
	if n := Totals().Heap - heap; n != 0 {
		t.Errorf("%d requests served from the heap", n)
	}
	if err := a.Close(); err == nil {
		t.Error("an arena in use was closed")
	}
}

// Guards show a run that writes past the end of its slot, and only such a run.
func TestGuards(t *testing.T) {
	s := open(t, "yolox_nano_person_192", own)
	b := bound(t, s)
	want := digest(run(t, b))
	planned(t, b, schedule(t, true, record(t, b)))
	for range 3 {
		if digest(run(t, b)) != want {
			t.Fatal("outputs differ with guards")
		}
	}
	b.call.shrink(7, 64)
	err := b.Run()
	if !errors.Is(err, ErrRun) || !strings.Contains(err.Error(), "slot 7 (") || !strings.Contains(err.Error(), "overwritten") {
		t.Errorf("a slot that is too small: %v", err)
	}
	t.Log(err)
	b.call.shrink(7, 0)
	if digest(run(t, b)) != want {
		t.Error("outputs differ after that")
	}
}

// A run beyond its quota fails by itself.
func TestQuota(t *testing.T) {
	s := open(t, "yolox_nano_end2end", own)
	small, other := bind(t, s, inputs(t, s, 1, 0)), bind(t, s, inputs(t, s, 1, 0))
	fixed := bound(t, open(t, "yolox_nano_person_192", own)) // another model at the edge of its own quota
	wantFixed := digest(run(t, fixed))
	planned(t, fixed, schedule(t, false, record(t, fixed)))
	nothing := NewQuota(0)
	defer nothing.Close()
	if err := fixed.Limit(nothing); err != nil {
		t.Fatal(err)
	}
	run(t, small)
	crowd(t, other.in[0])
	want := digest(run(t, other))
	sch := schedule(t, false, record(t, small)) // blank
	offsets, height := greedy(sch.Problem())
	replay(t, small, arena(t, height, 0), sch, offsets)

	q := NewQuota(256)
	defer q.Close()
	if err := small.Limit(q); err != nil {
		t.Fatal(err)
	}
	crowd(t, small.in[0])
	for range 3 {
		err := small.Run()
		if !errors.Is(err, ErrQuota) || !errors.Is(err, ErrRun) || !strings.Contains(err.Error(), "quota of 256 bytes") {
			t.Fatalf("a run beyond its quota: %v", err)
		}
		if digest(run(t, other)) != want {
			t.Error("another binding's results differ")
		}
		if digest(run(t, fixed)) != wantFixed {
			t.Error("another model's results differ")
		}
	}
	if used, peak := q.Used(); used != 0 || peak > 256 {
		t.Errorf("%d bytes charged, at most %d", used, peak)
	}
	large := NewQuota(64 << 20)
	defer large.Close()
	if err := small.Limit(large); err != nil {
		t.Fatal(err)
	}
	if digest(run(t, small)) != want {
		t.Error("within its quota the results differ")
	}
	if used, peak := large.Used(); used == 0 || peak < used {
		t.Errorf("%d bytes charged, at most %d: the output is alive", used, peak)
	}
}

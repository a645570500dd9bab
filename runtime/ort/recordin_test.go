package ort

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/internal/testenv"
)

func recordIn(t testing.TB, b *Binding, a *Arena) Recording {
	t.Helper()
	r, err := b.RecordIn(a)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newQuota(t testing.TB, b *Binding, bytes int64) *Quota {
	t.Helper()
	q := NewQuota(bytes)
	t.Cleanup(q.Close)
	if err := b.Limit(q); err != nil {
		t.Fatal(err)
	}
	return q
}

// A run recorded in an arena asks for what one recorded on the heap asks for, takes nothing
// from the heap where the arena is large enough, and leaves all slots to others.
func TestRecordIn(t *testing.T) {
	for _, c := range []struct {
		model       string
		batch, side int
		fill        func(testing.TB, *tensor.Tensor)
	}{
		{"yolox_nano_dynbatch", 4, 0, nil},
		{"yolov8n_int8_dynshape_op17", 1, 320, nil},
		{"yolov8n_int8_dynshape_op17", 2, 256, nil},
		{"yolox_nano_end2end", 1, 0, crowd},
		{"yolox_nano_end2end", 1, 0, func(_ testing.TB, x *tensor.Tensor) { blank(x) }},
		{"nanodet_m_416", 1, 0, nil},
	} {
		t.Run(fmt.Sprintf("%s/%d/%d", c.model, c.batch, c.side), func(t *testing.T) {
			person := open(t, "yolox_nano_person_192", own)
			other := bind(t, person, noisy(t, person, 1, 0))
			wantOther := digest(run(t, other))
			otherSchedule := schedule(t, false, record(t, other))
			otherOffsets, _ := greedy(otherSchedule.Problem())

			s := open(t, c.model, own)
			in := noisy(t, s, c.batch, c.side)
			out := outputsFor(t, s, c.batch)
			if c.fill != nil {
				c.fill(t, in[0])
				out = nil // their shape depends on the picture
			}
			b := bind(t, s, in, out...)
			want := digest(run(t, b))
			r := record(t, b)
			sch := schedule(t, false, r)
			offsets, height := greedy(sch.Problem())
			q := newQuota(t, b, 1<<30)

			a := arena(t, 2*height, 4*(sch.Spill()+otherSchedule.Spill()))
			replay(t, other, a, otherSchedule, otherOffsets)
			run(t, other)
			before := b.Counts()
			fresh := bind(t, s, in, out...) // that never ran
			for _, x := range []*Binding{b, fresh} {
				if got := recordIn(t, x, a); !slices.Equal(got, r) {
					t.Fatalf("%d events in an arena, %d on the heap", len(got), len(r))
				}
				if digest(other.Outputs()) != wantOther {
					t.Error("outputs in the spill block were touched")
				}
				for _, i := range x.later {
					if x.Outputs()[i].Data != nil {
						t.Error("an output can still be read")
					}
				}
			}
			got := b.Counts()
			if _, peak := q.Used(); peak != 0 || got.Heap != before.Heap || got.Arena == before.Arena || got.Mismatches != 0 {
				t.Errorf("%d bytes of the quota, counts %+v before, %+v after", peak, before, got)
			}
			replay(t, b, a, sch, offsets)
			for range 2 {
				if digest(run(t, b)) != want || digest(run(t, other)) != wantOther {
					t.Error("other results")
				}
				recordIn(t, b, a) // and goes on replaying
			}
			if n := other.Counts(); n.Mismatches != 0 || n.Kept != 0 {
				t.Errorf("%+v", n)
			}
			if n := b.Counts(); n.Mismatches != 0 || n.Kept != 0 || n.Heap != before.Heap {
				t.Errorf("%+v", n)
			}
		})
	}
}

// What an arena cannot hold is charged to the quota: within it the recording is the same,
// beyond it the run fails, and leaves nothing behind.
func TestRecordInOverflows(t *testing.T) {
	s := open(t, "yolov8n_int8_dynshape_op17", own)
	b := bind(t, s, noisy(t, s, 1, 320), outputsFor(t, s, 1)...)
	want := digest(run(t, b))
	r := record(t, b)
	sch := schedule(t, false, r)
	offsets, height := greedy(sch.Problem())
	small := arena(t, height/2, 2*sch.Spill()) // of another model, say
	q := newQuota(t, b, height)
	before := b.Counts()
	if got := recordIn(t, b, small); !slices.Equal(got, r) {
		t.Errorf("%d events, want %d", len(got), len(r))
	}
	used, peak := q.Used()
	if got := b.Counts(); used != 0 || peak == 0 || got.Heap == before.Heap || got.Arena == before.Arena {
		t.Errorf("%d bytes charged, at most %d: %+v", used, peak, got)
	}
	t.Logf("max live %d, slots %d: %d bytes charged at most, %d of %d requests from the heap",
		r.Peak(), small.Slots(), peak, b.Counts().Heap-before.Heap, len(r)/2)

	tight := newQuota(t, b, peak/2)
	for range 2 {
		if _, err := b.RecordIn(small); !errors.Is(err, ErrQuota) {
			t.Fatalf("beyond its quota: %v", err)
		}
	}
	if used, _ := tight.Used(); used != 0 || small.c.kept() != 0 {
		t.Errorf("%d bytes are charged, %d blocks kept", used, small.c.kept())
	}
	full := arena(t, height, 2*sch.Spill())
	replay(t, b, full, sch, offsets)
	if digest(run(t, b)) != want || b.Counts().Mismatches != 0 {
		t.Errorf("other results, or %+v", b.Counts())
	}
}

// A binding that replays records in an arena with no byte to spare, though the run leaves
// the plan, or is of a smaller input.
func TestRecordInByPlan(t *testing.T) {
	t.Run("more boxes", func(t *testing.T) {
		s := open(t, "yolox_nano_end2end", own)
		b := bind(t, s, inputs(t, s, 1, 0))
		run(t, b)
		planned(t, b, schedule(t, false, record(t, b))) // a blank picture
		crowd(t, b.in[0])
		q := newQuota(t, b, 64<<10)
		got := recordIn(t, b, b.arena)
		_, peak := q.Used()
		if want := record(t, b); !slices.Equal(got, want) {
			t.Errorf("%d events in an arena, %d on the heap", len(got), len(want))
		}
		t.Logf("%d bytes from the heap at most", peak)
	})
	t.Run("a smaller input", func(t *testing.T) {
		s := open(t, "yolov8n_int8_dynshape_op17", own)
		large := bind(t, s, noisy(t, s, 1, 320), outputsFor(t, s, 1)...)
		run(t, large)
		sch := schedule(t, false, record(t, large))
		offsets, height := greedy(sch.Problem())
		a := arena(t, height, 2*sch.Spill())
		small := bind(t, s, noisy(t, s, 1, 256), outputsFor(t, s, 1)...)
		q := newQuota(t, small, 0)
		replay(t, small, a, sch, offsets) // of the large one
		got := recordIn(t, small, a)
		if used, peak := q.Used(); used != 0 || peak != 0 {
			t.Errorf("%d and %d bytes from the heap", used, peak)
		}
		if want := record(t, small); !slices.Equal(got, want) {
			t.Errorf("%d events in an arena, %d on the heap", len(got), len(want))
		}
	})
}

// A recorded run that is terminated leaves the arena to others.
func TestRecordInTerminated(t *testing.T) {
	s := open(t, "yolov8n_int8_dynshape_op17", own)
	b := bind(t, s, noisy(t, s, 1, 320))
	want := digest(run(t, b))
	sch := schedule(t, false, record(t, b))
	a := planned(t, b, sch)
	doomed := bind(t, s, b.in)
	done := make(chan error)
	go func() {
		_, err := doomed.RecordIn(a)
		done <- err
	}()
	doomed.Terminate()
	if err := <-done; err != nil && !errors.Is(err, ErrTerminated) {
		t.Error(err)
	}
	if _, err := doomed.RecordIn(a); !errors.Is(err, ErrTerminated) {
		t.Errorf("after Terminate: %v", err)
	}
	for range 2 {
		if digest(run(t, b)) != want || b.Counts().Mismatches != 0 || a.c.kept() != 0 {
			t.Errorf("other results, or %+v", b.Counts())
		}
	}
}

func TestRecordInRefuses(t *testing.T) {
	closed, err := NewArena(4096, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	b := bound(t, open(t, "yolox_nano_person_192", own))
	run(t, b)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.RecordIn(closed); !errors.Is(err, ErrRun) || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a closed arena: %v", err)
	}
	a := arena(t, 4096, 0)
	theirs := bound(t, open(t, "yolox_nano_person_192", Options{Threads: 1}))
	if _, err := theirs.RecordIn(a); !errors.Is(err, ErrRun) {
		t.Errorf("without our allocator: %v", err)
	}
	b.Close()
	if _, err := b.RecordIn(a); !errors.Is(err, ErrRun) {
		t.Errorf("a closed binding: %v", err)
	}
}

// Every asset model is recorded in an arena of its own size. Where it replays from it, the
// plan has a place for every request; without one the log shows what the first fit wastes.
func TestRecordInOfEveryModel(t *testing.T) {
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
			side := 320 + 320*strings.Count(name, "false_dynamic")
			s := open(t, name, own)
			b := bind(t, s, noisy(t, s, 1, side))
			first, err := b.RecordIn(arena(t, 64<<20, 1<<20))
			if err != nil {
				t.Error(err)
			}
			r := record(t, b)
			if !slices.Equal(first, r) {
				t.Errorf("%d events in the first run, then %d", len(first), len(r))
			}
			sch := schedule(t, false, r)
			q := newQuota(t, b, 1<<30)
			a := planned(t, b, sch)
			if got := recordIn(t, b, a); !slices.Equal(got, r) {
				t.Errorf("%d events in an arena, %d on the heap", len(got), len(r))
			}
			if _, peak := q.Used(); peak != 0 {
				t.Errorf("%d bytes from the heap", peak)
			}
			b.Plain()
			if got := recordIn(t, b, a); !slices.Equal(got, r) {
				t.Errorf("%d events in an arena, %d on the heap", len(got), len(r))
			}
			_, peak := q.Used()
			t.Logf("max live %d, arena %d: %d bytes from the heap at most without a plan", r.Peak(), a.Slots(), peak)
		})
	}
}

// Two lanes of one session and a second session take turns on an arena, each recording now
// and then while outputs of the others lie in its spill block.
func TestRecordInTurns(t *testing.T) {
	dyn, nms := open(t, "yolox_nano_dynbatch", own), open(t, "yolox_nano_end2end", own)
	list := []*Binding{
		bind(t, dyn, noisy(t, dyn, 1, 0)),
		bind(t, dyn, noisy(t, dyn, 2, 0)),
		bind(t, nms, noisy(t, nms, 1, 0)),
	}
	crowd(t, list[2].in[0])
	want, recordings := make([]uint64, len(list)), make([]Recording, len(list))
	schedules, offsets := make([]*Schedule, len(list)), make([][]int64, len(list))
	var slots, spill int64
	for i, b := range list {
		want[i] = digest(run(t, b))
		recordings[i] = record(t, b)
		schedules[i] = schedule(t, false, recordings[i])
		var height int64
		offsets[i], height = greedy(schedules[i].Problem())
		slots, spill = max(slots, height), spill+2*schedules[i].Spill()
	}
	a := arena(t, slots*3/2, spill)
	for i, b := range list {
		replay(t, b, a, schedules[i], offsets[i])
	}
	var wg sync.WaitGroup
	for i, b := range list {
		wg.Go(func() {
			for k := range 6 {
				if k%3 == i {
					if r, err := b.RecordIn(a); err != nil || !slices.Equal(r, recordings[i]) {
						t.Errorf("binding %d: %v, or another recording", i, err)
					}
				}
				if err := b.Run(); err != nil || digest(b.Outputs()) != want[i] {
					t.Errorf("binding %d: %v, or other values", i, err)
				}
			}
			if n := b.Counts(); n.Mismatches != 0 || n.Kept != 0 {
				t.Errorf("binding %d: %+v", i, n)
			}
		})
	}
	wg.Wait()
}

package lane

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/eyas-edge/eyas/internal/machine"
	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/models"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// Plans for larger batches than this start has decide nothing, and are kept for a start that has them.
func TestSavedPlansOfLargerBatches(t *testing.T) {
	const name = "yolox_nano_dynbatch"
	_, list := programs(t, Options{}, []int{1, 2}, models.Size{}, name)
	saved, err := list[0].Saved(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, list := programsFrom(t, Options{}, []int{1}, models.Size{}, saved, name)
	_, decisive, ok := l.Decisive()
	if !ok || decisive.Height != l.Arena().Slots() {
		t.Errorf("an arena of %d bytes owes its size to a plan of %d", l.Arena().Slots(), decisive.Height)
	}
	if again, err := list[0].Saved(t.Context()); err != nil || len(again.Plans) != len(saved.Plans) {
		t.Errorf("%d plans are kept of %d: %v", len(again.Plans), len(saved.Plans), err)
	}
}

// With a saved plan nothing large is taken before Place: whether there is memory for it is checked in between.
func TestRecordWithSavedPlansTouchesNoTensor(t *testing.T) {
	const name = "yolox_nano_person_192"
	_, list := programs(t, Options{}, nil, models.Size{}, name)
	saved, err := list[0].Saved(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	library, err := ort.Load(testenv.Library(t))
	if err != nil {
		t.Fatal(err)
	}
	m, err := models.Load(filepath.Join(testenv.Assets(t), "models", name+".onnx"), models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	session, err := library.OpenFile(m.Path, ort.Options{Threads: 1, OwnAllocator: true})
	if err != nil {
		t.Fatal(err)
	}
	l := New(Options{})
	defer l.Close()
	if _, err := l.Add(m, session, nil, saved); err != nil {
		t.Fatal(err)
	}
	if err := l.Record(t.Context()); err != nil {
		t.Fatal(err)
	}
	tensors := func() (there, all int64) {
		for _, data := range l.Tensors() {
			n, err := machine.Present(data)
			if err != nil {
				t.Fatal(err)
			}
			there, all = there+n, all+int64(len(data))
		}
		return there, all
	}
	if there, all := tensors(); there != 0 || all == 0 {
		t.Errorf("%d of %d bytes of tensors are in memory before Place", there, all)
	}
	if err := l.Place(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if there, all := tensors(); there != all {
		t.Errorf("%d of %d bytes of tensors are in memory after Place", there, all)
	}
}

// A search that was called off leaves no plan behind.
func TestNoPlanOfACancelledSearch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ps := newPlans(false, nil)
	shape := Shape{H: 8, W: 8, Batch: 1}
	r := ort.Recording{{Request: 0, Bytes: 64}, {Request: 0, Free: true, Bytes: 64}}
	if err := ps.add(ctx, shape, r); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
	if p, _ := ps.get(shape); p != nil {
		t.Errorf("a plan was kept: %+v", p)
	}
	if err := ps.add(t.Context(), shape, r); err != nil {
		t.Error(err)
	}
}

// Runs whose plan does not fit the arena come from the heap; they are not recorded again for that.
func TestPlansThatDoNotFitAreNotRecordedAgain(t *testing.T) {
	_, list := programs(t, Options{}, nil, models.Size{}, "yolox_nano_person_192")
	p := list[0]
	p.lane.room = 64 // an arena that holds none of them
	p.plain()
	recorded, before := p.Recordings(), p.Counts()
	s := take(t, p, picture(t, 192, 192))
	defer s.Put()
	for range 2 {
		if err := s.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if c := p.Counts().Minus(before); c.Heap == 0 || c.Runs != 2 || p.Recordings() != recorded {
		t.Errorf("%d requests from the heap in %d runs, %d of them recorded", c.Heap, c.Runs, p.Recordings()-recorded)
	}
}

// A saved plan that holds nothing of a run is made anew though the run may take next to nothing beside it; later runs
// are charged.
func TestSavedPlanOfOtherRunsWithinAQuota(t *testing.T) {
	const name = "yolox_nano_person_192"
	library, err := ort.Load(testenv.Library(t))
	if err != nil {
		t.Fatal(err)
	}
	m, err := models.Load(filepath.Join(testenv.Assets(t), "models", name+".onnx"), models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	session, err := library.OpenFile(m.Path, ort.Options{Threads: 1, OwnAllocator: true})
	if err != nil {
		t.Fatal(err)
	}
	r := ort.Recording{{Request: 0, Bytes: 64}, {Request: 0, Free: true, Bytes: 64}}
	other := &plan{recordings: slices.Repeat([]ort.Recording{r}, maxRecordings)}
	if err := other.solve(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	l := New(Options{})
	defer l.Close()
	p, err := l.Add(m, session, nil, &Saved{Plans: []SavedPlan{{Shape{m.H, m.W, 1}, other.recordings, other.solution}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Record(t.Context()); err != nil {
		t.Fatal(err)
	}
	q := ort.NewQuota(1000)
	defer q.Close()
	p.Limit(q)
	if err := l.Place(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	before := p.Counts()
	s := take(t, p, picture(t, 192, 192))
	defer s.Put()
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := p.Counts().Minus(before); c.Heap+c.Spill+c.Mismatches != 0 || c.Arena == 0 {
		t.Errorf("%+v", c)
	}
	p.lane.room = 64
	p.plain()
	if err := s.Run(t.Context()); !errors.Is(err, ort.ErrQuota) {
		t.Errorf("a run without a place: %v, want %v", err, ort.ErrQuota)
	}
}

// However many input sizes were met, the spill block holds the outputs of those whose bindings are kept.
func TestSpillOfManySizes(t *testing.T) {
	ps := newPlans(false, nil)
	const bytes = 1 << 20
	var one int64
	for i := range maxShapes {
		r := ort.Recording{{Request: 0, Bytes: bytes}} // outlives its run
		if err := ps.add(t.Context(), Shape{H: 32 * (i + 1), W: 32, Batch: 1}, r); err != nil {
			t.Fatal(err)
		}
		if _, spill := ps.need(1); i == 0 {
			one = spill
		}
	}
	if _, spill := ps.need(1); one < Inputs*bytes || spill != maxVariants*one {
		t.Errorf("a spill block of %d bytes for %d sizes, and of %d for one", spill, maxShapes, one)
	}
}

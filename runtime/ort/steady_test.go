package ort

import (
	goruntime "runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// Over many runs from an arena nothing is taken from elsewhere, neither by the library nor by
// Go, and every page of the arena is there before and after.
func TestSteadyState(t *testing.T) {
	s := open(t, "yolox_nano_416", Options{Threads: 2, OwnAllocator: true})
	b := bound(t, s)
	want := digest(run(t, b))
	sch := schedule(t, false, record(t, b))
	a := planned(t, b, sch)
	run(t, b)
	if n := present(t, a.Bytes()); n != a.Mapped() {
		t.Errorf("%d of %d bytes are present before", n, a.Mapped())
	}
	counts, total := b.Counts(), Totals()
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	most, runs := 2000, 0
	if testing.Short() {
		most = 50
	}
	// A slow machine does fewer: the figures are of one run.
	for start := time.Now(); runs < most && (runs < 200 || time.Since(start) < 40*time.Second); runs++ {
		if err := b.Run(); err != nil {
			t.Fatal(err)
		}
	}
	goruntime.ReadMemStats(&after)
	if n := present(t, a.Bytes()); n != a.Mapped() {
		t.Errorf("%d of %d bytes are present after", n, a.Mapped())
	}
	if digest(b.Outputs()) != want {
		t.Error("other results")
	}
	counts.Runs += int64(runs)
	requests := int64(len(sch.Problem().Buffers)) // of a run
	counts.ArenaBytes += int64(runs) * (counts.ArenaBytes * requests / counts.Arena)
	counts.Arena += int64(runs) * requests
	if got := b.Counts(); got != counts {
		t.Errorf("counts %+v, want %+v", got, counts)
	}
	if n := Totals().Heap - total.Heap; n != 0 {
		t.Errorf("%d requests served from the heap", n)
	}
	// Go's own goroutines may allocate now and then; a run must not.
	n := after.Mallocs - before.Mallocs
	if n >= uint64(runs)/4 {
		t.Errorf("%d Go allocations in %d runs", n, runs)
	}
	t.Logf("%d runs: %d Go allocations, %d bytes of the arena present", runs, n, a.Mapped())
}

// Two lanes run one session at the same time, each in its arena. A second session takes turns in
// one of them, where the lane is recorded and planned again in between.
func TestLanesBesideRecording(t *testing.T) {
	runs := 200
	if testing.Short() {
		runs = 40
	}
	s := open(t, "yolox_nano_person_192", own)
	lanes := []*Binding{bound(t, s), bind(t, s, noisy(t, s, 1, 0))} // the second's outputs are in the spill block
	other := open(t, "fastestdet_352", own)
	guest := bind(t, other, noisy(t, other, 1, 0))
	plan := func(b *Binding) (want uint64, r Recording, sch *Schedule, offsets []int64, height int64) {
		want = digest(run(t, b))
		r = record(t, b)
		sch = schedule(t, false, r)
		offsets, height = greedy(sch.Problem())
		return want, r, sch, offsets, height
	}
	want, r, sch, offsets, height := plan(lanes[1])
	wantGuest, _, guestSchedule, guestOffsets, guestHeight := plan(guest)
	shared := arena(t, max(height, guestHeight), 2*(sch.Spill()+guestSchedule.Spill()))
	replay(t, lanes[1], shared, sch, offsets)
	replay(t, guest, shared, guestSchedule, guestOffsets)
	if digest(run(t, lanes[0])) != want {
		t.Fatal("the lanes differ")
	}
	planned(t, lanes[0], schedule(t, false, record(t, lanes[0])))
	heap := Totals().Heap

	var wg sync.WaitGroup
	repeat := func(b *Binding, runs int, want uint64, between func(i int) error) {
		wg.Go(func() {
			for i := range runs {
				if err := between(i); err != nil {
					t.Error(err)
					return
				}
				if err := b.Run(); err != nil || digest(b.Outputs()) != want {
					t.Errorf("run %d: %v, or other values", i, err)
					return
				}
			}
		})
	}
	nothing := func(int) error { return nil }
	repeat(lanes[0], runs, want, nothing)
	repeat(guest, runs/2, wantGuest, nothing)
	repeat(lanes[1], runs, want, func(i int) error {
		if i%10 != 5 {
			return nil
		}
		again, err := lanes[1].RecordIn(shared)
		if err != nil || !slices.Equal(again, r) {
			t.Errorf("run %d: %v, or another recording", i, err)
		}
		return lanes[1].Replay(shared, sch, offsets)
	})
	wg.Wait()
	for i, b := range append(lanes, guest) {
		if n := b.Counts(); n.Mismatches != 0 || n.Kept != 0 {
			t.Errorf("binding %d: %+v", i, n)
		}
	}
	if n := Totals().Heap - heap; n != 0 {
		t.Errorf("%d requests served from the heap", n)
	}
}

package ort

import (
	"context"
	"fmt"
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/memplan"
)

// BenchmarkArena replays asset models and reports what docs/memory.md shows: events of a
// run, the most bytes in use at once, the planned arena, and the peak of the library with
// its own memory pattern: with the outputs bound, and as most programs run it, without.
//
//	go test -run '^$' -bench Arena -benchtime 5x ./runtime/ort
func BenchmarkArena(b *testing.B) {
	for _, c := range replayed {
		b.Run(fmt.Sprintf("%s/batch=%d", c.model, c.batch), func(b *testing.B) {
			pattern := patternPeak(b, c.model, c.batch, c.side, true)
			unbound := patternPeak(b, c.model, c.batch, c.side, false)
			s := open(b, c.model, Options{Threads: 2, OwnAllocator: true})
			x := bind(b, s, noisy(b, s, c.batch, c.side), outputsFor(b, s, c.batch)...)
			run(b, x)
			r := record(b, x)
			sch := schedule(b, false, r)
			solution, err := memplan.Solve(context.Background(), sch.Problem())
			if err != nil {
				b.Fatal(err)
			}
			replay(b, x, arena(b, solution.Height, 2*sch.Spill()), sch, solution.Offsets)
			for b.Loop() {
				run(b, x)
			}
			if n := x.Counts(); n.Mismatches > 0 {
				b.Errorf("%+v", n)
			}
			b.ReportMetric(float64(len(r)), "events")
			b.ReportMetric(float64(solution.LowerBound), "live-B")
			b.ReportMetric(float64(solution.Height), "arena-B")
			b.ReportMetric(float64(sch.Spill()), "spill-B")
			b.ReportMetric(float64(pattern), "pattern-B")
			b.ReportMetric(float64(unbound), "unbound-B")
			b.ReportMetric(float64(s.Held()), "held-B")
		})
	}
}

// patternPeak returns the most bytes that a run takes with the library's own plan.
func patternPeak(t testing.TB, model string, batch, side int, outputs bool) int64 {
	s := open(t, model, Options{Threads: 2, OwnAllocator: true, Pattern: true})
	var out []*tensor.Tensor
	if outputs {
		out = outputsFor(t, s, batch)
	}
	x := bind(t, s, noisy(t, s, batch, side), out...)
	for range 2 { // the first traces, the second has the pattern
		run(t, x)
	}
	peak := record(t, x).Peak()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return peak
}

// The library's own plan needs more than the most bytes in use at once.
func TestPatternPeak(t *testing.T) {
	s := open(t, "nanodet_m_416", own)
	b := bound(t, s)
	run(t, b)
	live, pattern := record(t, b).Peak(), patternPeak(t, "nanodet_m_416", 1, 0, true)
	if pattern <= live {
		t.Errorf("%d bytes with the library's pattern, %d in use", pattern, live)
	}
	t.Logf("%d bytes with the library's pattern, %d in use", pattern, live)
}

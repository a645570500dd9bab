package ort

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
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

// BenchmarkArenas plans every asset model at every batch size of 1, 2, 4 and 8 that it runs, once, and prints
// a table: the most bytes in use at once, the planned arena, the peak of the library with its own memory pattern
// and outputs that it allocates, and the time of the search. Dynamic sizes are 640.
//
//	go test -run '^$' -bench Arenas -benchtime 1x -v ./runtime/ort
func BenchmarkArenas(b *testing.B) {
	files, err := filepath.Glob(model(b, "*"))
	if err != nil || len(files) == 0 {
		b.Fatal(files, err)
	}
	for b.Loop() {
		var table strings.Builder
		var parts []float64
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".onnx")
			for _, batch := range batchesOf(b, name) {
				row, part := planRow(b, name, batch)
				parts = append(parts, part)
				fmt.Fprintf(&table, "| %s | %d | %s |\n", name, batch, row)
			}
		}
		sum := 0.0
		for _, p := range parts {
			sum += p
		}
		b.ReportMetric(sum/float64(len(parts)), "arena/library")
		b.Logf("MB\n| model | batch | live | arena | proven | library | arena / library | search |\n|---|---|---|---|---|---|---|---|\n%s", table.String())
	}
}

// batchesOf returns the batch sizes of 1, 2, 4 and 8 that a model runs.
func batchesOf(b *testing.B, name string) []int {
	s := open(b, name, Options{Threads: 2})
	if fixed := s.Inputs()[0].Shape[0]; fixed > 0 {
		return []int{fixed}
	}
	var able []int
	for _, batch := range []int{1, 2, 4, 8} {
		x, err := s.Bind(noisy(b, s, batch, 640), nil)
		if err == nil {
			err = x.Run()
			x.Close()
		}
		if err != nil {
			break
		}
		able = append(able, batch)
	}
	return able
}

func planRow(b *testing.B, name string, batch int) (row string, part float64) {
	s := open(b, name, Options{Threads: 2, OwnAllocator: true})
	in := noisy(b, s, batch, 640)
	x := bind(b, s, in, outputsFor(b, s, batch)...)
	if x.Run() != nil { // it declares other outputs than it has
		x = bind(b, s, in)
		run(b, x)
	}
	solution, err := memplan.Solve(context.Background(), schedule(b, false, record(b, x)).Problem(), memplan.MaxNodes(50_000))
	if err != nil {
		b.Fatal(err)
	}
	library := patternPeak(b, name, batch, 640, false)
	if err := s.Close(); err != nil {
		b.Error(err)
	}
	part = float64(solution.Height) / float64(library)
	return fmt.Sprintf("%.2f | %.2f | %v | %.2f | %.2f | %.1f ms", float64(solution.LowerBound)/1e6, float64(solution.Height)/1e6,
		solution.Proven, float64(library)/1e6, part, solution.Seconds*1e3), part
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

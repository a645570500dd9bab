package sim

import (
	"cmp"
	"slices"
	"time"
)

// state is a way to have done things so far: frames served in time, and when the lane is free.
type state struct {
	served int
	free   time.Duration
}

// Optimum returns the most frames of a trace that one lane without noise can do within the SLO, for who knows the trace
// beforehand.
//
// All frames have the same time from arrival to deadline, so that batches may be taken to serve frames in their order: if an
// earlier batch serves a later frame, exchanging the two is in time as well. A batch whose last frame is j then may be
// taken to serve the frames just before j (their deadlines are the latest), and starts when the lane is free and j has arrived.
// So the search goes over the last frame, the frames served and the time at which the lane is free. For each last frame only states
// that no other has beaten in both are kept; those that are free before the next frame comes are all the same to it, which
// keeps them few. Batches may be padded, as the batcher's.
func Optimum(trace []Arrival, m *Machine, slo time.Duration) int {
	if len(trace) == 0 {
		return 0
	}
	largest := m.Sizes[len(m.Sizes)-1]
	cost := make([]time.Duration, largest+1) // of so many frames
	for n, i := 1, 0; n <= largest; n++ {
		if n > m.Sizes[i] {
			i++
		}
		cost[n] = m.Nominal(m.Sizes[i])
	}
	// fronts[j%len] holds the states after the first j frames, by time.
	fronts := make([][]state, largest+1)
	fronts[0] = []state{{}}
	var next []state
	for j := 1; j <= len(trace); j++ {
		next = next[:0]
		at := trace[j-1].At
		for n := 1; n <= min(largest, j); n++ {
			end := trace[j-n].At + slo
			for _, s := range fronts[(j-n)%len(fronts)] {
				free := max(s.free, at) + cost[n]
				if free > end {
					break
				}
				next = append(next, state{s.served + n, free})
			}
		}
		next = append(next, fronts[(j-1)%len(fronts)]...)
		then := at
		if j < len(trace) {
			then = trace[j].At
		}
		fronts[j%len(fronts)] = prune(fronts[j%len(fronts)][:0], next, then)
	}
	best := 0
	for _, s := range fronts[len(trace)%len(fronts)] {
		best = max(best, s.served)
	}
	return best
}

// prune appends to kept the states that no other beats, by time. Who is free before then has to wait for it.
func prune(kept, states []state, then time.Duration) []state {
	for i := range states {
		states[i].free = max(states[i].free, then)
	}
	slices.SortFunc(states, func(a, b state) int {
		return cmp.Or(cmp.Compare(a.free, b.free), cmp.Compare(b.served, a.served))
	})
	most := -1
	for _, s := range states {
		if s.served > most {
			most = s.served
			kept = append(kept, s)
		}
	}
	return kept
}

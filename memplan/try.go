package memplan

import (
	"slices"
	"sync"
	"sync/atomic"
)

// trial is one order's search for a plan within a capacity.
type trial struct {
	outcome outcome
	nodes   int64
	plan    []int64
}

// try searches with one order after the other, on several threads, until one ends with a plan or with the
// proof that there is none. That of the least index counts, and those behind it do not count at all: the
// result is that of a single thread.
func (c *climb) try(capacity, limit int64, orders []order) outcome {
	left := c.nodes - c.spent
	limit = min(limit, left)
	orders = orders[:min(int64(len(orders)), left/limit)]
	trials := make([]trial, len(orders))
	var next, winner atomic.Int64
	winner.Store(int64(len(orders)))
	work := func(s *search) {
		for {
			i := next.Add(1) - 1
			if i >= winner.Load() {
				return
			}
			halt := func() bool { return winner.Load() < i || c.ctx.Err() != nil }
			t := trial{outcome: s.run(orders[i], capacity, limit, halt), nodes: s.nodes}
			if t.outcome == found {
				t.plan = slices.Clone(s.at)
			}
			trials[i] = t
			if t.outcome != stopped {
				for w := winner.Load(); i < w && !winner.CompareAndSwap(w, i); w = winner.Load() {
				}
			}
		}
	}
	var others sync.WaitGroup
	for _, s := range c.pool[1:] {
		others.Go(func() { work(s) })
	}
	work(c.pool[0])
	others.Wait()

	w := int(winner.Load())
	for i := range min(w+1, len(trials)) {
		c.spent += trials[i].nodes
	}
	if w == len(trials) {
		return stopped
	}
	if trials[w].outcome == found {
		c.take(trials[w].plan)
		c.parent = orders[w]
	} else {
		c.refuted = max(c.refuted, capacity)
	}
	return trials[w].outcome
}

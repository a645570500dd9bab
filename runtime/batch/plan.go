package batch

import (
	"math"
	"time"
)

// horizon is the number of frames, waiting and expected, that a plan looks at.
const horizon = 64

// unreached is the time of a state that no plan reaches.
const unreached time.Duration = math.MaxInt64

// first is how a plan begins: with a batch of count frames up to the last-th of those looked at.
type first struct {
	last, count int16
	loses       bool // the plan does not serve all frames that wait
}

// plan is the table of a short look-ahead. As in the simulator's Optimum, batches serve frames in their order, and a batch
// that ends with frame j serves the frames just before j; a state is the frames looked at, how many of them are served, and
// the earliest time at which the lane can be free again.
type plan struct {
	at, due [horizon + 1]time.Duration // of the frames: 1-based
	n       int                        // frames
	waiting int                        // the first of them wait already
	cost    [horizon + 1]time.Duration // run time of so many frames, padded
	busy    [horizon + 1]time.Duration // until the next lane is free: with several, a part of that
	tried   []int                      // frames of a batch, ascending
	free    [horizon + 1][horizon + 1]time.Duration
	first   [horizon + 1][horizon + 1]first
	lo, hi  [horizon + 1]int // served: states outside are worse than those inside, or not reached
}

// solve fills the table for a lane that is free at start and returns how the plan begins that serves the most frames. (To charge
// a plan for time that it takes after the last frame made no difference.)
func (p *plan) solve(start time.Duration) first {
	p.free[0][0], p.first[0][0], p.lo[0], p.hi[0] = start, first{}, 0, 0
	for j := 1; j <= p.n; j++ {
		p.step(j)
		if j < p.n {
			p.lo[j] = p.trim(j, p.at[j+1])
		}
	}
	return p.first[p.n][p.hi[p.n]]
}

// step fills the states after j frames.
func (p *plan) step(j int) {
	lo, hi := p.lo[j-1], p.hi[j-1]
	row, label := &p.free[j], &p.first[j]
	for _, n := range p.tried {
		if n <= j {
			hi = max(hi, p.hi[j-n]+n)
		}
	}
	for k := lo; k <= hi; k++ {
		row[k] = unreached
	}
	copy(row[lo:p.hi[j-1]+1], p.free[j-1][lo:p.hi[j-1]+1])
	for k := lo; k <= p.hi[j-1]; k++ {
		label[k] = p.first[j-1][k]
		label[k].loses = label[k].loses || j <= p.waiting
	}
	at := p.at[j]
	for _, n := range p.tried {
		if n > j {
			break
		}
		from, end := j-n, p.due[j-n+1]-p.cost[n]
		if at > end {
			continue // for larger n it may fit again only if deadlines are out of order
		}
		low := max(p.lo[from], lo-n)
		if low > p.hi[from] {
			continue
		}
		cost, labels := p.busy[n], &p.first[from]
		states := p.free[from][low : p.hi[from]+1]
		better := row[low+n:][:len(states)]
		for i, free := range states {
			began := max(free, at)
			if done := began + cost; began <= end && done < better[i] {
				better[i] = done
				f := labels[low+i]
				if f.count == 0 {
					f.last, f.count = int16(j), int16(n)
				}
				label[low+i+n] = f
			}
		}
	}
	for hi > lo && row[hi] == unreached {
		hi--
	}
	p.lo[j], p.hi[j] = lo, hi
}

// trim returns the most frames served by a plan that is free before the next frame comes: those with less are no better.
func (p *plan) trim(j int, next time.Duration) int {
	for k := p.hi[j]; k > p.lo[j]; k-- {
		if p.free[j][k] <= next {
			return k
		}
	}
	return p.lo[j]
}

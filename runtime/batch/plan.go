package batch

import (
	"math"
	"time"
)

// horizon is the number of frames, waiting and expected, that a plan looks at.
const horizon = 48

// unreached is the time of a state that no plan reaches.
const unreached time.Duration = math.MaxInt64

// first is the first batch of a plan: count frames up to the last-th of the frames looked at.
type first struct{ last, count int16 }

// plan is the table of a short look-ahead. As in the simulator's Optimum, batches serve frames in their order, and a batch
// that ends with frame j serves the frames just before j; a state is the frames looked at, how many of them are served, and
// the earliest time at which the lane can be free again.
type plan struct {
	at, due [horizon + 1]time.Duration // of the frames: 1-based
	n       int
	cost    [horizon + 1]time.Duration // of a batch of so many frames, padded
	free    [horizon + 1][horizon + 1]time.Duration
	first   [horizon + 1][horizon + 1]first
	lo, hi  [horizon + 1]int // served: states outside are worse than those inside, or not reached
}

// solve fills the table for a lane that is free at start and returns the first batch of the best plan; worth is the value of
// a second of the lane's time after end, in frames.
func (p *plan) solve(start, end time.Duration, largest int, worth float64) first {
	p.free[0][0], p.first[0][0], p.lo[0], p.hi[0] = start, first{}, 0, 0
	for j := 1; j <= p.n; j++ {
		p.step(j, largest)
		if j < p.n {
			p.lo[j] = p.trim(j, p.at[j+1])
		}
	}
	best, choice := math.Inf(-1), first{}
	for k := p.lo[p.n]; k <= p.hi[p.n]; k++ {
		free := p.free[p.n][k]
		if free == unreached {
			continue
		}
		value := float64(k) - worth*max(free-end, 0).Seconds()
		if value > best {
			best, choice = value, p.first[p.n][k]
		}
	}
	return choice
}

// step fills the states after j frames.
func (p *plan) step(j, largest int) {
	lo, hi := p.lo[j-1], p.hi[j-1]
	row, label := &p.free[j], &p.first[j]
	for n := 1; n <= min(largest, j); n++ {
		hi = max(hi, p.hi[j-n]+n)
	}
	for k := lo; k <= hi; k++ {
		row[k] = unreached
	}
	copy(row[lo:p.hi[j-1]+1], p.free[j-1][lo:p.hi[j-1]+1])
	copy(label[lo:p.hi[j-1]+1], p.first[j-1][lo:p.hi[j-1]+1])
	at := p.at[j]
	for n := 1; n <= min(largest, j); n++ {
		from, end := j-n, p.due[j-n+1]-p.cost[n]
		if at > end {
			continue // for larger n it may fit again only if deadlines are out of order
		}
		for k := max(p.lo[from], lo-n); k <= p.hi[from]; k++ {
			began := max(p.free[from][k], at)
			if began > end {
				continue
			}
			if done := began + p.cost[n]; done < row[k+n] {
				row[k+n] = done
				if label[k+n] = p.first[from][k]; label[k+n].count == 0 {
					label[k+n] = first{int16(j), int16(n)}
				}
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

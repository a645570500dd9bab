package batch

import (
	"math"
	"time"
)

const (
	// horizon is the number of frames, waiting and expected, that a plan looks at.
	horizon = 64
	// spare is the most frames behind those that a plan counts.
	spare = 32
	// fine is for how many frames batches of any size are tried; after those the sizes of the ladder have to do.
	fine = 16
)

const (
	// sooner is what more a frame of the next batch counts than one of a later batch: plans that come to the same would be put
	// off for ever else.
	sooner = 0.002
	// risk is what waiting for a frame that comes at random costs, in frames.
	risk = 0.1
	// hopeful is by how many standard deviations the first frame of a batch may be expected to be late: one in five of those is in
	// time, and costs little where the batch runs anyway.
	hopeful = 0.85
	// scarce is what time behind the plan is worth under overload, as a share of what could be served in it. It is low:
	// a plan that saves up for frames it does not see gives up some that it does.
	scarce = 0.25
	// strained is how far above capacity the load is when that counts in full.
	strained = 0.1
)

// step is a way to go on: give up so many frames, and run the next count once the last of them is there.
type step struct {
	drop, count int
	begin       time.Duration
	loses       bool // not all frames that wait will be served
}

// plan is the table of a short look-ahead. As in the simulator's Optimum, batches serve frames in their order. The table is filled
// from the last frame to the first: it says when the lane has to be free at the latest, after the first j frames, for k of the later
// ones to be served in time. It does not depend on how the plan begins, so that beginnings can be tried against it with
// run times that are not certain.
type plan struct {
	at, due [horizon + 1]time.Duration // of the frames: 1-based
	random  [horizon + 1]int           // of the first frames so many are expected, but not at any known time
	n       int                        // frames
	waiting int                        // the first of them wait already
	start   time.Duration              // when the lane is free
	mean    [horizon + 1]time.Duration // run time of so many frames, padded
	cost    [horizon + 1]time.Duration // the same with the margin, for all but the first batch
	busy    [horizon + 1]time.Duration // until the next lane is free: with several, a part of that
	lanes   time.Duration
	sigma   float64 // standard deviation of a run time, as a share
	worth   float64 // of a nanosecond behind the plan, in frames
	sizes   []int   // the ladder
	tried   []int   // frames of a batch, ascending

	latest [horizon + 1][horizon + spare + 1]time.Duration // descending in k
	lo, hi [horizon + 1]int                                // served: states outside are of no use to any plan
}

// value sets what time behind the plan is worth: nothing while all frames can be served that come, at rate a second. Frames that
// come while a batch runs make up the next.
func (p *plan) value(rate float64, slo time.Duration) {
	rate /= 1e9
	most := 0.0
	for _, n := range p.tried {
		if can := min(float64(n), rate*float64(slo-p.cost[n])); can > 0 {
			most = max(most, can/float64(p.busy[n]))
		}
	}
	p.worth = 0
	if most > 0 && rate > most {
		p.worth = scarce * most * min((rate/most-1)/strained, 1)
	}
}

// fill fills the table.
func (p *plan) fill() {
	p.end()
	for j := p.n - 1; j >= 0; j-- {
		p.row(j)
	}
}

// end fills the last row: where time is worth something, a lane that is free earlier serves frames that come later.
func (p *plan) end() {
	row, due, at := &p.latest[p.n], p.due[p.n], max(p.at[p.n], p.start)
	row[0], p.lo[p.n], p.hi[p.n] = Never, 0, 0
	for k := 1; k <= spare && p.worth > 0; k++ {
		row[k] = due - time.Duration(float64(k)/p.worth)
		if row[k] < at {
			break
		}
		p.hi[p.n] = k
	}
}

// row fills the states after j frames.
func (p *plan) row(j int) {
	row := &p.latest[j]
	lo, hi := p.lo[j+1], p.hi[j+1]
	copy(row[lo:hi+1], p.latest[j+1][lo:hi+1])
	due := p.due[j+1]
	tried := p.tried
	if j >= fine {
		tried = p.sizes
	}
	for _, n := range tried {
		if j+n > p.n {
			break
		}
		end, at := due-p.cost[n], max(p.at[j+n], p.start)
		if end < at {
			continue
		}
		from := &p.latest[j+n]
		low := max(p.lo[j+n], lo-n)
		if low > p.hi[j+n] {
			continue
		}
		for top := p.hi[j+n] + n; hi < top; {
			hi++
			row[hi] = math.MinInt64
		}
		busy := p.busy[n]
		states := from[low : p.hi[j+n]+1]
		better := row[low+n:][:len(states)]
		i := 0
		for i < len(states) && states[i]-busy >= end { // the head's deadline is what limits it
			better[i] = max(better[i], end)
			i++
		}
		for ; i < len(states); i++ {
			s := states[i] - busy
			if s < at {
				break
			}
			better[i] = max(better[i], s)
		}
	}
	for hi > lo && row[hi] < p.start {
		hi--
	}
	// Who can serve k can serve fewer; and those below what is served however late the lane is free are of no use.
	for k, last := hi, max(p.due[j], p.start); k > lo; k-- {
		if row[k] >= last {
			lo = k
			break
		}
		row[k-1] = max(row[k-1], row[k])
	}
	p.lo[j], p.hi[j] = lo, hi
}

// after returns how many of the frames behind the first j can be served when the lane is free at t.
func (p *plan) after(j int, t time.Duration) int {
	k := p.hi[j]
	for row := &p.latest[j]; k > p.lo[j] && row[k] < t; {
		k--
	}
	return k
}

// spread are points of the normal distribution that stand for a fifth of it each.
var spread = [...]float64{-1.2816, -0.5244, 0, 0.5244, 1.2816}

// best returns the beginning that leads to the most frames in time on average: those of its first batch, whose run time is not
// certain, and what the table says of the time after it.
func (p *plan) best() step {
	var best step
	most, slack := 0.0, time.Duration(0)
	largest := p.tried[len(p.tried)-1]
	for d := 0; d < p.waiting; d++ {
		if float64(p.after(d, p.start)+largest) < most {
			break // margins apart the table says what can be had, and that falls with each frame given up
		}
		for _, n := range p.tried {
			j := d + n
			if j > p.n {
				break
			}
			begin := max(p.start, p.at[j])
			done, free := begin+p.mean[n], begin+p.mean[n]/p.lanes
			sd := p.sigma * float64(p.mean[n])
			k := p.after(j, free-time.Duration(3*sd))
			if p.due[d+1] < done-time.Duration(hopeful*sd) || float64(n)*(1+sooner)+float64(k) < most {
				continue
			}
			v := (1+sooner)*p.inTime(d, j, done, sd) + p.behind(j, k, free, sd)
			if j > p.waiting {
				v -= risk * float64(p.random[j])
			}
			// Of equal ones the earlier goes first, then the one that leaves more time.
			left := p.latest[j][p.after(j, free)] - free
			if v > most+1e-3 || v > most-1e-3 && (begin < best.begin || begin == best.begin && left > slack) {
				most, slack, best = max(most, v), left, step{drop: d, count: n, begin: begin}
			}
		}
	}
	if best.count > 0 {
		best.loses = best.drop > 0 || p.loses(best.count, best.begin+p.mean[best.count]/p.lanes)
	}
	return best
}

// inTime returns how many of the frames behind the first d up to the j-th are in time on average when their run ends at done, give or
// take sd.
func (p *plan) inTime(d, j int, done time.Duration, sd float64) (sum float64) {
	for i := j; i > d; i-- {
		c := chance(float64(p.due[i]-done) / sd)
		if c == 1 && p.due[d+1] >= p.due[i] {
			return sum + float64(i-d)
		}
		sum += c
	}
	return sum
}

// behind returns how many frames behind the first j are served on average when the lane is free at t, give or take sd; k are
// if all goes well.
func (p *plan) behind(j, k int, t time.Duration, sd float64) (sum float64) {
	if p.after(j, t+time.Duration(3*sd)) == k {
		return float64(k)
	}
	for _, z := range spread {
		sum += float64(p.after(j, t+time.Duration(z*sd)))
	}
	return sum / float64(len(spread))
}

// loses says whether a plan gives up frames that wait, if the lane is free at t after the first j.
func (p *plan) loses(j int, t time.Duration) bool {
	for k := p.after(j, t); j < p.waiting; {
		n := p.serves(j, k, t)
		if n == 0 {
			return true
		}
		t = max(t, p.at[j+n]) + p.busy[n]
		j, k = j+n, max(k-n, 0)
	}
	return false
}

// serves returns the size of a batch that leaves k frames served behind the first j, or 0.
func (p *plan) serves(j, k int, t time.Duration) int {
	for i := len(p.tried) - 1; i >= 0; i-- {
		n := p.tried[i]
		if j+n > p.n {
			continue
		}
		begin := max(t, p.at[j+n])
		if begin+p.cost[n] <= p.due[j+1] && p.after(j+n, begin+p.busy[n]) >= k-n {
			return n
		}
	}
	return 0
}

// chance is the normal distribution.
func chance(z float64) float64 {
	switch {
	case z >= 3:
		return 1
	case z <= -3:
		return 0
	}
	at := (z + 3) * 16
	i := int(at)
	return normal[i] + (at-float64(i))*(normal[i+1]-normal[i])
}

var normal = func() (table [98]float64) {
	for i := range table {
		table[i] = 0.5 * math.Erfc(-(float64(i)/16-3)/math.Sqrt2)
	}
	return table
}()

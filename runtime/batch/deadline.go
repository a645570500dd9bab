package batch

import (
	"math"
	"time"
)

// Deadline is Eyas' own policy.
func Deadline() Policy { return &deadline{} }

type deadline struct{ plan plan }

func (p *deadline) Choose(v *View) Choice {
	if v.Due[0] == Never {
		i := v.Floor(v.Waiting)
		return Choice{Index: i, Count: min(v.Waiting, v.Sizes[i])}
	}
	t := &p.plan
	largest := min(v.Sizes[len(v.Sizes)-1], horizon)
	waiting := min(len(v.Due), horizon-8)
	for i := range waiting {
		t.at[i+1], t.due[i+1] = v.Start, v.Due[i]
	}
	t.n = waiting
	t.n += v.core.expect(v.Now, t.at[waiting+1:], t.due[waiting+1:])
	for n, i := 1, 0; n <= largest; n++ {
		if n > v.Sizes[i] {
			i++
		}
		t.cost[n] = v.Time[i]
	}
	f := t.solve(v.Start, t.at[t.n], largest, worth*v.Rate)
	if f.count == 0 {
		return Choice{Drop: waiting}
	}
	if int(f.last) > waiting {
		return Choice{Until: t.at[f.last]}
	}
	return Choice{Drop: int(f.last - f.count), Index: v.Fit(int(f.count)), Count: int(f.count)}
}

func (p *deadline) Done(int, bool) {}

var worth = 1.0
var fluid = true

// expect fills in the arrivals that are expected after now.
func (c *core) expect(now time.Duration, at, due []time.Duration) int {
	n := 0
	cams := c.queue.cameras
	sporadic := c.rate.perSecond()
	next := c.exp[:0]
	for i := range cams {
		a := &cams[i].arrivals
		if a.steady() {
			t := a.due
			if late := float64(now-t) - 2*a.stray*a.period; late > 0 {
				t += time.Duration(math.Ceil(late/a.period) * a.period)
			}
			if t <= now {
				t = now + time.Duration(a.stray*a.period/2) + 1
			}
			next = append(next, nextArrival{t, time.Duration(a.period), a.slo})
			sporadic -= 1e9 / a.period
		}
	}
	if sporadic > c.rate.perSecond()/10 && fluid {
		gap := time.Duration(1e9 / sporadic)
		next = append(next, nextArrival{now + gap, gap, cams[0].slo})
	}
	c.exp = next
	for n < len(at) && len(next) > 0 {
		first := 0
		for i := range next {
			if next[i].at < next[first].at {
				first = i
			}
		}
		at[n], due[n] = next[first].at, next[first].at+next[first].slo
		next[first].at += next[first].period
		n++
	}
	return n
}

type nextArrival struct{ at, period, slo time.Duration }

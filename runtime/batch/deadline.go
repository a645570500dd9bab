package batch

import "time"

// Deadline is Eyas' own policy: it plans the next batches for the frames that wait and those that are expected, so that as
// many as possible are in time, and does the first thing of the best plan; at the next occasion it plans anew. Waiting for
// a fuller batch, splitting one, giving up frames to save those behind them all come from that.
//
// What is expected of a camera that keeps a period is its next frames; all others together are expected evenly, at their mean
// rate.
func Deadline() Policy { return &deadline{} }

type deadline struct {
	plan plan
	next []expected
}

func (p *deadline) Choose(v *View) Choice {
	if v.Due[0] == Never {
		i := v.Floor(v.Waiting)
		return Choice{Index: i, Count: v.Sizes[i]}
	}
	t := &p.plan
	p.batches(v)
	look := min(2*v.Sizes[len(v.Sizes)-1]+16, horizon)
	t.waiting = min(len(v.Due), look*3/4)
	for i, due := range v.Due[:t.waiting] {
		t.at[i+1], t.due[i+1] = v.Start, due
	}
	t.n = t.waiting + p.expect(v, t.at[t.waiting+1:look+1], t.due[t.waiting+1:look+1])
	f := t.solve(v.Start)
	switch {
	case f.count == 0:
		return Choice{Drop: t.waiting}
	case int(f.last) > t.waiting:
		return Choice{Until: t.at[f.last]}
	}
	return Choice{Drop: int(f.last - f.count), Index: v.Fit(int(f.count)), Count: int(f.count), Fair: f.loses}
}

// batches sets what a plan tries: any number of frames up to 8, padded to a size of the ladder; beyond that larger steps
// save time.
func (p *deadline) batches(v *View) {
	t := &p.plan
	t.tried = t.tried[:0]
	largest := min(v.Sizes[len(v.Sizes)-1], horizon)
	for n, i := 0, 0; n < largest; {
		if n == v.Sizes[i] {
			i++
		}
		n = min(n+1+n/8, v.Sizes[i], largest)
		t.tried = append(t.tried, n)
		t.cost[n], t.busy[n] = v.Time[i], v.Time[i]/time.Duration(v.Lanes)
	}
}

func (p *deadline) Done(int, bool) {}

// expected is when frames of one source of frames should come: at, and every period from then on.
type expected struct{ at, period, slo time.Duration }

func sooner(a, b expected) bool { return a.at < b.at }

// expect fills in when the next frames should come and when they will be due, in their order, and returns how many.
func (p *deadline) expect(v *View, at, due []time.Duration) int {
	p.next = p.next[:0]
	cameras := v.core.queue.cameras
	others, slo := v.Rate, Never
	for i := range cameras {
		a := &cameras[i].arrivals
		if a.seen == 0 || cameras[i].gone || a.slo == Never {
			continue
		}
		if !a.steady() {
			slo = min(slo, a.slo)
			continue
		}
		others -= 1e9 / a.period
		p.next = append(p.next, expected{a.next(v.Now), time.Duration(a.period), a.slo})
	}
	if others > 0.1*v.Rate && slo != Never {
		gap := max(seconds(1/others), 1)
		p.next = append(p.next, expected{v.Now + gap, gap, slo})
	}
	if len(p.next) == 0 {
		return 0
	}
	heapify(p.next, sooner)
	for n := range at {
		e := &p.next[0]
		at[n], due[n] = e.at, e.at+e.slo
		e.at += max(e.period, 1)
		sink(p.next, 0, sooner)
	}
	return len(at)
}

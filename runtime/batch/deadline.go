package batch

import "time"

// Deadline is Eyas' own policy: it plans the next batches for the frames that wait and those that are expected, so that as
// many as possible are in time, and does the first thing of the best plan; at the next occasion it plans anew. Waiting for
// a fuller batch, splitting one, giving up frames to save those behind them all come from that.
//
// What is expected of a camera that keeps a period is its next frames; all others together are expected evenly, at their mean
// rate.
func Deadline() Policy { return &deadline{} }

// Foreseen is Deadline that is told when frames will come, in order, and what they have until their deadlines, instead of expecting
// them: no better prediction could do more.
func Foreseen(at []time.Duration, slo time.Duration) Policy { return &deadline{known: at, slo: slo} }

type deadline struct {
	plan  plan
	next  []expected
	known []time.Duration // Foreseen's, those still to come
	slo   time.Duration
}

func (p *deadline) Choose(v *View) Choice {
	if v.Due[0] == Never {
		i := v.Floor(v.Waiting)
		return Choice{Index: i, Count: v.Sizes[i]}
	}
	t := &p.plan
	t.start, t.at[0], t.due[0] = v.Start, v.Start, v.Start
	p.batches(v)
	look := min(2*v.Sizes[len(v.Sizes)-1]+32, horizon)
	t.waiting = min(len(v.Due), look*3/4)
	for i, due := range v.Due[:t.waiting] {
		t.at[i+1], t.due[i+1] = v.Start, due
	}
	t.n = t.waiting + p.expect(v, t.at[t.waiting+1:look+1], t.due[t.waiting+1:look+1], t.random[t.waiting:look+1])
	t.value(v.Rate, t.due[t.n]-t.at[t.n])
	t.fill()
	s := t.best()
	switch {
	case s.count == 0:
		return Choice{Drop: t.waiting}
	case s.drop+s.count > t.waiting:
		return Choice{Until: s.begin}
	}
	return Choice{Drop: s.drop, Index: v.Fit(s.count), Count: s.count, Fair: s.loses}
}

// batches sets what a plan tries: any number of frames up to 8, padded to a size of the ladder; beyond that larger steps
// save time.
func (p *deadline) batches(v *View) {
	t := &p.plan
	t.tried = t.tried[:0]
	largest := min(v.Sizes[len(v.Sizes)-1], horizon)
	l := &v.core.learned
	t.sizes, t.sigma, t.lanes = v.Sizes, l.sigma, time.Duration(v.Lanes)
	for n, i := 0, 0; n < largest; {
		if n == v.Sizes[i] {
			i++
		}
		n = min(n+1+n/8, v.Sizes[i], largest)
		t.tried = append(t.tried, n)
		t.mean[n] = seconds(l.mean(i))
		t.cost[n] = v.Time[i]
		t.busy[n] = t.cost[n] / t.lanes
	}
}

func (p *deadline) Done(int, bool) {}

// expected is when frames of one source of frames should come: at, and every period from then on.
type expected struct {
	at, period, slo time.Duration
	random          int
}

func earlier(a, b expected) bool { return a.at < b.at }

// expect fills in when the next frames should come and when they will be due, in their order, and returns how many.
func (p *deadline) expect(v *View, at, due []time.Duration, random []int) int {
	if p.slo > 0 {
		return p.foresee(v.Now, at, due, random)
	}
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
		p.next = append(p.next, expected{a.next(v.Now), time.Duration(a.period), a.slo, 0})
	}
	if others > 0.1*v.Rate && slo != Never {
		gap := max(seconds(1/others), 1)
		p.next = append(p.next, expected{v.Now + gap, gap, slo, 1})
	}
	if len(p.next) == 0 {
		return 0
	}
	heapify(p.next, earlier)
	random[0] = 0
	for n := range at {
		e := &p.next[0]
		at[n], due[n] = e.at, e.at+e.slo
		random[n+1] = random[n] + e.random
		e.at += max(e.period, 1)
		sink(p.next, 0, earlier)
	}
	return len(at)
}

// foresee is expect for known arrivals.
func (p *deadline) foresee(now time.Duration, at, due []time.Duration, random []int) int {
	for len(p.known) > 0 && p.known[0] <= now {
		p.known = p.known[1:]
	}
	n := copy(at, p.known)
	for i := range n {
		due[i] = at[i] + p.slo
	}
	clear(random)
	return n
}

package runtime

import (
	"fmt"
	"time"
)

// progress tells how far a warm-up is, and for about how long it goes on.
type progress struct {
	rt    *Runtime
	turns int // in which settings are still measured
	sure  int // of them those of the first round; others begin as long as there is time
	steps int // batch sizes of all turns, as far as their ladders are known
	must  int // of the first round's
	done  int
	start time.Time
	told  time.Time
}

// tellEvery keeps a warm-up of many short steps from flooding a log; a short one says nothing, nor does one in which
// nothing is to be chosen.
const tellEvery = 500 * time.Millisecond

func (rt *Runtime) newProgress(settings, rounds int) *progress {
	now := time.Now()
	return &progress{rt: rt, turns: settings * rounds, sure: settings, start: now, told: now}
}

// begin starts a turn of so many batch sizes: those that follow are taken to have as many.
func (p *progress) begin(sizes int) {
	p.steps, p.must = p.done+p.turns*sizes, p.done+p.sure*sizes
	p.turns, p.sure = p.turns-1, max(p.sure-1, 0)
}

// step counts one batch size, and leaves out others.
func (p *progress) step(out int) {
	p.done++
	p.steps, p.must = p.steps-out, p.must-out
	now := time.Now()
	if _, asked := p.rt.limit(); !asked || p.done == p.steps || now.Sub(p.told) < tellEvery {
		return
	}
	p.told = now
	left := p.left(now.Sub(p.start))
	text := fmt.Sprintf("warming %d/%d, about %.0f s left", p.done, p.steps, left.Seconds())
	p.rt.note(text)
	p.rt.event(Event{Kind: "warming", Text: text})
}

// left estimates how long it goes on after so long.
func (p *progress) left(after time.Duration) time.Duration {
	each := after / time.Duration(p.done)
	return min(each*time.Duration(p.steps-p.done), max(each*time.Duration(p.must-p.done), roundsWithin-after, 0))
}

// note tells of what takes long because an SLO was asked for.
func (rt *Runtime) note(text string) {
	if _, asked := rt.limit(); asked {
		rt.log.Info(text)
	}
}

package runtime

import (
	"fmt"
	"time"
)

// progress tells how far a warm-up is, and for about how long it goes on.
type progress struct {
	rt    *Runtime
	turns int // in which settings are still measured
	steps int // batch sizes of all turns, as far as their ladders are known
	done  int
	start time.Time
	told  time.Time
}

// tellEvery keeps a warm-up of many short steps from flooding a log; a short one says nothing, nor does one in which
// nothing is to be chosen.
const tellEvery = 500 * time.Millisecond

func (rt *Runtime) newProgress(turns int) *progress {
	now := time.Now()
	return &progress{rt: rt, turns: turns, start: now, told: now}
}

// begin starts a turn of so many batch sizes: those that follow are taken to have as many.
func (p *progress) begin(sizes int) {
	p.steps = p.done + p.turns*sizes
	p.turns--
}

// step counts one batch size, and leaves out others.
func (p *progress) step(out int) {
	p.done++
	p.steps -= out
	now := time.Now()
	if _, asked := p.rt.limit(); !asked || p.done == p.steps || now.Sub(p.told) < tellEvery {
		return
	}
	p.told = now
	left := now.Sub(p.start) / time.Duration(p.done) * time.Duration(p.steps-p.done)
	text := fmt.Sprintf("warming %d/%d, about %.0f s left", p.done, p.steps, left.Seconds())
	p.rt.note(text)
	p.rt.event(Event{Kind: "warming", Text: text})
}

// note tells of what takes long because an SLO was asked for.
func (rt *Runtime) note(text string) {
	if _, asked := rt.limit(); asked {
		rt.log.Info(text)
	}
}

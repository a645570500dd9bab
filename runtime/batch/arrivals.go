package batch

import (
	"math"
	"time"
)

// arrivals follows the frames of one camera: its period, and the instant at which the next frame is due. It is a
// phase-locked loop: a frame that comes early or late moves the grid a little, so that jitter averages out.
type arrivals struct {
	seen   int
	last   time.Duration // when the last frame came
	due    time.Duration // when the next one should
	slo    time.Duration // from arrival to deadline, of the last frame
	period float64       // nanoseconds
	stray  float64       // mean distance of arrivals from where they were due, as a share of the period
}

const (
	phaseGain  = 0.25
	periodGain = 1.0 / 16
	strayGain  = 1.0 / 16
	// regular is the stray below which the next frame is predicted one by one. Frames that come at any time have 0.5
	// and more, jitter by a quarter of a period either way has 0.13.
	regular = 0.3
)

// arrived takes in a frame that came at now, to be done by deadline.
func (a *arrivals) arrived(now, deadline time.Duration) {
	gap := float64(now - a.last)
	a.last, a.slo = now, Never
	if deadline != Never {
		a.slo = deadline - now
	}
	a.seen++
	switch {
	case a.seen == 1:
		a.due, a.stray = Never, 1
		return
	case a.seen == 2 || a.period <= 0:
		a.period, a.due = gap, now+time.Duration(gap)
		return
	}
	off := float64(now - a.due)
	// Frames that never came leave whole periods.
	if missed := math.Floor(off/a.period + 0.5); missed >= 1 && a.stray < regular {
		a.due += time.Duration(missed * a.period)
		off -= missed * a.period
		gap /= missed + 1
	}
	gain := max(strayGain, 1/float64(a.seen-1))
	a.stray += gain * (min(math.Abs(off)/a.period, 1) - a.stray)
	a.period += max(periodGain, 1/float64(a.seen-1)) * (gap - a.period)
	if math.Abs(off) > a.period/2 {
		a.due = now // lost: lock anew
	} else {
		a.due += time.Duration(phaseGain * off)
	}
	a.due += time.Duration(a.period)
}

// steady says that the next frame of the camera can be told.
func (a *arrivals) steady() bool { return a.seen > 3 && a.stray < regular && a.period > 0 }

// next returns when the next frame of a steady camera should come, after now. One that is overdue by no more than usual may
// come any moment; one by more is lost.
func (a *arrivals) next(now time.Duration) time.Duration {
	at := a.due
	if over := float64(now-at) - 2*a.stray*a.period; over > 0 {
		at += time.Duration(math.Ceil(over/a.period) * a.period)
	}
	if at <= now {
		at = now + time.Duration(a.stray*a.period/2) + 1
	}
	return at
}

// rate follows how many frames come from all cameras together.
type rate struct {
	n    int
	last time.Duration
	gap  float64 // mean seconds between two frames
}

// arrived takes in a frame at now. The mean goes back over some sixteen frames a camera, since cameras may all send at once.
func (r *rate) arrived(now time.Duration, cameras int) {
	if r.n > 0 {
		gain := max(1/float64(r.n), 1/float64(16*max(cameras, 4)))
		r.gap += gain * ((now - r.last).Seconds() - r.gap)
	}
	r.n++
	r.last = now
}

// patience is how many mean gaps of silence are nothing unusual.
const patience = 4

// perSecond returns the rate at now, 0 before it is known. After a long silence it falls.
func (r *rate) perSecond(now time.Duration) float64 {
	if r.n < 2 {
		return 0
	}
	gap := max(r.gap, (now-r.last).Seconds()/patience)
	if gap <= 0 {
		return 0
	}
	return 1 / gap
}

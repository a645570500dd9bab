package batch

import "time"

// The baselines are what other servers do, for comparison in the simulator and the benchmark. As every policy they are spared
// frames that cannot be in time even alone.

// Fixed waits for n frames and runs them as one batch.
func Fixed(n int) Policy { return &timeout{size: n, delay: Never} }

// Timeout waits for n frames, but no longer than delay since the first of them came, and runs the largest batch that there
// is: Triton's dynamic batcher with a preferred batch size and a queue delay.
func Timeout(n int, delay time.Duration) Policy { return &timeout{n, delay} }

type timeout struct {
	size  int
	delay time.Duration
}

func (t *timeout) Choose(v *View) Choice {
	i := v.Floor(t.size)
	if v.Waiting >= v.Sizes[i] {
		return Choice{Index: i, Count: v.Sizes[i]}
	}
	if t.delay == Never {
		return Choice{Until: Never}
	}
	if until := v.Oldest + t.delay; until > v.Now {
		return Choice{Until: until}
	}
	i = v.Floor(v.Waiting)
	return Choice{Index: i, Count: v.Sizes[i]}
}

func (t *timeout) Done(int, bool) {}

// AIMD is Clipper's policy: the largest batch allowed grows by one frame after each run in time and shrinks to 0.9 after one
// with a late frame; what waits is run as soon as the lane is free.
func AIMD() Policy { return &aimd{limit: 1} }

type aimd struct{ limit float64 }

func (a *aimd) Choose(v *View) Choice {
	i := v.Floor(min(v.Waiting, int(a.limit)))
	return Choice{Index: i, Count: v.Sizes[i]}
}

func (a *aimd) Done(_ int, late bool) {
	if late {
		a.limit = max(0.9*a.limit, 1)
	} else {
		a.limit = min(a.limit+1, 1<<10)
	}
}

// EarlyDrop is Nexus' policy: a window of so many frames moves over the queue from its head until the run of the window
// is in time for its first frame; the frames before it are given up. Nothing waits.
func EarlyDrop(window int) Policy { return earlyDrop(window) }

type earlyDrop int

func (e earlyDrop) Choose(v *View) Choice {
	for d := 0; d < len(v.Due); d++ {
		i := v.Floor(min(int(e), v.Waiting-d))
		if v.Due[d] >= v.Start+v.Time[i] || i == 0 {
			return Choice{Drop: d, Index: i, Count: v.Sizes[i]}
		}
	}
	return Choice{Drop: len(v.Due)}
}

func (e earlyDrop) Done(int, bool) {}

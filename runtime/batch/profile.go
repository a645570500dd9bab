package batch

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Timing is the measured run time of one batch size, as warm-up saw it: from the moment a lane may start the batch to
// its results.
type Timing struct {
	Batch         int // frames in one run, 1 or more
	P50, P95, P99 time.Duration
}

// Profile is the run time per batch size of the ladder, in ascending order of the sizes.
type Profile []Timing

// maxLadder bounds the sizes of a ladder: each is planned, warmed and looked at in each decision.
const maxLadder = 16

// Check says what is wrong with a profile.
func (p Profile) Check() error {
	if len(p) == 0 {
		return errors.New("profile: no batch size was measured")
	}
	if len(p) > maxLadder {
		return fmt.Errorf("profile: %d batch sizes: at most %d are planned", len(p), maxLadder)
	}
	before := 0
	for _, t := range p {
		switch {
		case t.Batch <= before || t.Batch > math.MaxInt16:
			return fmt.Errorf("profile: batch size %d after %d: sizes ascend from 1", t.Batch, before)
		case t.P50 <= 0 || t.P95 < t.P50 || t.P99 < t.P95:
			return fmt.Errorf("profile: batch %d: p50 %v, p95 %v, p99 %v: times are positive and ascend", t.Batch, t.P50, t.P95, t.P99)
		}
		before = t.Batch
	}
	return nil
}

// Best returns the size with the highest rate of one lane, in frames per second, and that rate.
func (p Profile) Best() (size int, perSecond float64) {
	for _, t := range p {
		if r := float64(t.Batch) / t.P50.Seconds(); r > perSecond {
			size, perSecond = t.Batch, r
		}
	}
	return size, perSecond
}

// margin is what run times are taken longer than their mean, in standard deviations of what was learned. Two would lose more frames
// than they save, by smaller batches and frames given up that would have been in time.
const margin = 0.85

const (
	pace       = 1.0 / 16 // weight of one run in what is learned of the machine's speed and scatter
	sizePace   = 1.0 / 32 // and of one batch size against the others
	snapRuns   = 3        // so many runs in a row that are off the same way are a change of speed
	snapSigmas = 3        // off: farther than this many standard deviations
	leastSigma = 0.005    // scatter below this share of a run time is not told from none
)

// learned is what runs have taught beyond the warm-up's profile: the machine's speed as one factor for all sizes, a small
// correction for each size, and the scatter of single runs around that.
type learned struct {
	size  []float64 // per index of the ladder: nominal seconds
	fix   []float64 // per index of the ladder: factor against the others
	speed float64   // factor of all sizes: 2 is a machine at half its speed
	sigma float64   // relative standard deviation of one run
	off   [snapRuns]float64
	offs  int // how many of them count
}

func learn(p Profile) learned {
	l := learned{speed: 1, sigma: leastSigma}
	for _, t := range p {
		l.size = append(l.size, t.P50.Seconds())
		l.fix = append(l.fix, 1)
		// Of a normal distribution 95 % lie below mean + 1.645 sigma.
		l.sigma = max(l.sigma, (t.P95-t.P50).Seconds()/1.645/t.P50.Seconds())
	}
	return l
}

// mean returns the expected seconds of a run of the i-th size.
func (l *learned) mean(i int) float64 { return l.size[i] * l.fix[i] * l.speed }

// saw learns from one run of the i-th size. One run that is off is an accident and moves little; several in a row, off the
// same way, are the machine at another clock, and are believed at once.
func (l *learned) saw(i int, seconds float64) {
	ratio := seconds / l.mean(i)
	if seconds <= 0 || math.IsInf(ratio, 0) || math.IsNaN(ratio) {
		return
	}
	if far := math.Abs(ratio-1) > snapSigmas*l.sigma+0.02; far {
		if l.offs > 0 && (l.off[0] > 1) != (ratio > 1) {
			l.offs = 0
		}
		l.off[l.offs] = ratio
		if l.offs++; l.offs == snapRuns {
			lo, hi := min(l.off[0], l.off[1], l.off[2]), max(l.off[0], l.off[1], l.off[2])
			l.speed *= l.off[0] + l.off[1] + l.off[2] - lo - hi // the one in the middle
			l.offs = 0
		}
		ratio = 1 + math.Copysign(snapSigmas*l.sigma+0.02, ratio-1)
	} else {
		l.offs = 0
	}
	l.speed *= 1 + pace*(ratio-1)
	l.fix[i] *= 1 + sizePace*(ratio-1)
	l.fix[i] = min(max(l.fix[i], 0.5), 2)
	variance := l.sigma*l.sigma + pace*((ratio-1)*(ratio-1)-l.sigma*l.sigma)
	l.sigma = max(math.Sqrt(variance), leastSigma)
}

package runtime

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The lead settles where as many batches are late as may be, whatever their sizes, and stays within its bounds.
func TestLead(t *testing.T) {
	const slo = 100 * time.Millisecond
	late := func(l *lead, batches, size int, tail time.Duration) (share float64) {
		r := rand.New(rand.NewPCG(1, uint64(size)))
		n := 0
		for range batches {
			// A batch that is planned for the last moment and takes longer than that by a time of an exponential distribution.
			over := time.Duration(r.ExpFloat64()*float64(tail)) > l.now
			for range size {
				l.result(over, size)
			}
			if over {
				n++
			}
		}
		return float64(n) / float64(batches)
	}
	for _, size := range []int{1, 8} {
		l := lead{step: slo / 50, most: slo / 4}
		late(&l, 1000, size, 3*time.Millisecond)
		if share := late(&l, 20_000, size, 3*time.Millisecond); share > 1.2*lateShare || share < 0.8*lateShare {
			t.Errorf("batches of %d: %.4f of them are late, the lead is %v", size, share, l.now)
		}
		if late(&l, 1000, size, time.Second); l.now != l.most {
			t.Errorf("the lead is %v where nothing can be in time", l.now)
		}
		if late(&l, 10_000, size, 0); l.now != 0 {
			t.Errorf("the lead is %v where all are in time", l.now)
		}
	}
}

// A stream begins with a lead that covers the tail which warm-up saw, as far as the SLO leaves room for it.
func TestNewLead(t *testing.T) {
	const ms = time.Millisecond
	profile := func(p50, p99 time.Duration) ModelChoice {
		turn := Spread{p50, p99, p99}
		return ModelChoice{Profiles: []Profile{{Batch: 1, Turn: turn, Busy: turn}}}
	}
	for _, c := range []struct {
		name      string
		slo       time.Duration
		models    []ModelChoice
		now, most time.Duration
	}{
		{"no SLO", 0, []ModelChoice{profile(20*ms, 30*ms)}, 0, 0},
		{"the tail", 100 * ms, []ModelChoice{profile(20*ms, 30*ms)}, 10 * ms, 25 * ms},
		{"the longest of the tails", 100 * ms, []ModelChoice{profile(20*ms, 21*ms), profile(20*ms, 30*ms)}, 10 * ms, 25 * ms},
		{"a tail longer than a quarter of the SLO", 100 * ms, []ModelChoice{profile(10*ms, 40*ms)}, 25 * ms, 25 * ms},
		{"little room", 40 * ms, []ModelChoice{profile(20*ms, 30*ms)}, 5 * ms, 5 * ms},
		{"none", 25 * ms, []ModelChoice{profile(20*ms, 30*ms)}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &flow{slo: c.slo, rt: &Runtime{choice: Choice{Models: c.models}}, fillTime: make([]time.Duration, len(c.models))}
			if l := f.newLead(); l.now != c.now || l.most != c.most {
				t.Errorf("begins with %v, at most %v; want %v, %v", l.now, l.most, c.now, c.most)
			}
		})
	}
}

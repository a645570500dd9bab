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

package batch

import (
	"fmt"
	"testing"
	"time"
)

// steady feeds a batcher cameras of 1000/period frames a second, one of whose batches takes the machine busy of that, and counts
// decisions.
type steady struct {
	b       *Batcher[int]
	cameras int
	period  time.Duration
	now     time.Duration
	next    int
	free    time.Duration
	took    time.Duration
	slo     time.Duration // 3 L(8)
	running bool
}

func newSteady(t testing.TB, cameras int, load float64) *steady {
	// 8 frames take 24 c; that is load of the time in which 8 frames come.
	period := 33 * ms
	c := time.Duration(load * float64(period) / float64(cameras) / 3)
	s := &steady{cameras: cameras, period: period, slo: 72 * c}
	s.b = newTest(t, Config{Profile: linear(16*c, c, 1, 2, 4, 8, 16)}, cameras, Camera{Room: 32})
	return s
}

// decision goes on until one decision was made.
func (s *steady) decision() Action {
	at := s.period / time.Duration(s.cameras) * time.Duration(s.next)
	if s.running && s.free <= at {
		s.now, s.running = s.free, false
		s.b.Finished(0, s.took, s.now)
	} else {
		s.now = at
		s.b.Offer(frame(s.next, s.next%s.cameras, at, s.slo), at)
		s.next++
	}
	if s.running {
		return s.decision()
	}
	d := s.b.Decide(0, s.now)
	if d.Action == Run {
		s.running = true
		s.took = s.b.core.learned.meanOf(d.Size, s.b.core.sizes)
		s.free = s.now + s.took
	}
	return d.Action
}

func (l *learned) meanOf(size int, sizes []int) time.Duration {
	for i := range sizes {
		if sizes[i] == size {
			return seconds(l.size[i])
		}
	}
	return 0
}

func BenchmarkDecide(b *testing.B) {
	for _, cameras := range []int{1, 4, 16, 1000} {
		for _, load := range []float64{0.8, 1.5} {
			b.Run(fmt.Sprintf("cameras=%d/load=%g", cameras, load), func(b *testing.B) {
				s := newSteady(b, cameras, load)
				for range 20 * cameras {
					s.decision()
				}
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N { // an offer and a decision, mostly
					s.decision()
				}
			})
		}
	}
}

// Deciding takes no memory once queues have grown.
func TestDecidesWithoutAllocation(t *testing.T) {
	for _, load := range []float64{0.8, 1.5} {
		s := newSteady(t, 16, load)
		for range 2000 {
			s.decision()
		}
		if n := testing.AllocsPerRun(2000, func() { s.decision() }); n != 0 {
			t.Errorf("load %g: %v allocations a decision", load, n)
		}
	}
}

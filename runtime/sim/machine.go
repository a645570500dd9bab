package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/eyas-edge/eyas/runtime/batch"
)

// Machine gives run times: A + C*batch, times noise, a cold start and slow-downs.
type Machine struct {
	A, C  time.Duration
	Sizes []int                          // the ladder
	Noise float64                        // relative standard deviation of a run
	Cold  float64                        // factor of the first run of each size; 0: no cold starts
	Speed func(at time.Duration) float64 // factor of runs that start at an instant; nil: 1
}

// Nominal returns the run time of a batch without noise.
func (m *Machine) Nominal(batch int) time.Duration { return m.A + time.Duration(batch)*m.C }

// widest is where noise is cut off, in standard deviations.
const widest = 3

// Profile is what a warm-up would have measured.
func (m *Machine) Profile() batch.Profile {
	var p batch.Profile
	for _, b := range m.Sizes {
		l := m.Nominal(b)
		// The quantiles of the normal distribution.
		p = append(p, batch.Timing{Batch: b, P50: l, P95: scale(l, 1+1.645*m.Noise), P99: scale(l, 1+2.326*m.Noise)})
	}
	return p
}

func scale(d time.Duration, by float64) time.Duration {
	return time.Duration(math.Round(float64(d) * by))
}

// Best returns the highest rate of one lane in frames a second, over the sizes up to most.
func (m *Machine) Best(most int) float64 {
	best := 0.0
	for _, b := range m.Sizes {
		if b <= most {
			best = max(best, float64(b)/m.Nominal(b).Seconds())
		}
	}
	return best
}

// took draws a run time.
func (m *Machine) took(size int, at time.Duration, first bool, rng *rand.Rand) time.Duration {
	f := 1.0
	if m.Noise > 0 {
		f += m.Noise * min(max(rng.NormFloat64(), -widest), widest)
	}
	if m.Speed != nil {
		f *= m.Speed(at)
	}
	if first && m.Cold > 0 {
		f *= m.Cold
	}
	return max(scale(m.Nominal(size), f), 1)
}

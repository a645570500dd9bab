// Package sim runs the batcher of runtime/batch in virtual time: cameras of several habits, a machine whose run times come from a
// formula with noise, and the best that anybody could have done who knows the whole trace beforehand. It has no clocks and no
// goroutines; the same seed gives the same figures everywhere.
package sim

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Arrival is one captured frame.
type Arrival struct {
	At     time.Duration
	Camera int
}

// Habit is how frames come.
type Habit uint8

// The habits. All have the same mean rate.
const (
	InPhase   Habit = iota // all cameras at the same instants
	Staggered              // periodic, spread evenly over the period
	Jittered               // periodic at random phases, each frame up to a quarter of a period early or late
	Bursty                 // each camera sends groups of frames at once, geometric with a mean of 4, at exponential intervals
	Poisson                // frames at any time
)

// Habits lists all.
var Habits = []Habit{InPhase, Staggered, Jittered, Bursty, Poisson}

func (h Habit) String() string {
	if int(h) < len(habitNames) {
		return habitNames[h]
	}
	return fmt.Sprintf("habit %d", uint8(h))
}

var habitNames = [...]string{"in phase", "staggered", "jittered", "bursty", "poisson"}

// Random says that the habit has no period.
func (h Habit) Random() bool { return h == Bursty || h == Poisson }

// burst is the mean number of frames in a group.
const burst = 4

// Arrivals returns n frames of some cameras, by time, perSecond of them on average.
func Arrivals(h Habit, cameras, n int, perSecond float64, rng *rand.Rand) []Arrival {
	period := float64(cameras) / perSecond // seconds, of one camera
	each := (n + cameras - 1) / cameras
	list := make([]Arrival, 0, cameras*each)
	for c := range cameras {
		phase := 0.0
		switch h {
		case Staggered:
			phase = period * float64(c) / float64(cameras)
		case Jittered:
			phase = period * rng.Float64()
		}
		at := 0.0
		for i := range each {
			switch h {
			case Jittered:
				at = phase + period*(float64(i)+0.5*(rng.Float64()-0.5)+0.25)
			case Bursty:
				if i == 0 || rng.Float64() < 1.0/burst {
					at += burst * period * rng.ExpFloat64()
				}
			case Poisson:
				at += period * rng.ExpFloat64()
			default:
				at = phase + period*float64(i)
			}
			list = append(list, Arrival{time.Duration(math.Round(at * 1e9)), c})
		}
	}
	slices.SortStableFunc(list, func(a, b Arrival) int { return cmp.Compare(a.At, b.At) })
	return list
}

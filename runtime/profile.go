package runtime

import (
	"math"
	"slices"
	"time"

	"github.com/eyas-edge/eyas/runtime/batch"
	"github.com/eyas-edge/eyas/runtime/lane"
)

// Spread says how a time spreads over a number of measurements: half of them, 95 and 99 of a hundred took no longer.
// Of few measurements P99 is the longest.
type Spread struct {
	P50 time.Duration `json:"p50_ns"`
	P95 time.Duration `json:"p95_ns"`
	P99 time.Duration `json:"p99_ns"`
}

// Profile is what batches of one size were measured to take. Times are of the whole batch.
type Profile struct {
	Batch int `json:"batch"`
	// Alone is a run with nothing beside it, Latency its filling and reading included.
	Alone   Spread `json:"alone"`
	Latency Spread `json:"latency"`
	// Busy is a run while every lane runs and the next batches are filled; Fill and Read are the steps around it then.
	Busy Spread `json:"busy"`
	Fill Spread `json:"fill"`
	Read Spread `json:"read"`
	// Turn is how long a busy batch holds its lane: from the start of its run until it is read.
	Turn Spread `json:"turn"`
	// FPS are pictures a second of all lanes together, without a pause, when turns take their usual time (p50): the few that a
	// busy machine lets wait are chance, and would decide between settings.
	FPS  float64 `json:"fps"`
	Runs int     `json:"runs"` // measured, those alone and those of all lanes
}

// Timings returns the model's profiles as the batcher takes them: how long a batch that is filled holds a lane.
func (c *ModelChoice) Timings() batch.Profile {
	timings := make(batch.Profile, len(c.Profiles))
	for i, p := range c.Profiles {
		timings[i] = batch.Timing{Batch: p.Batch, P50: p.Turn.P50, P95: p.Turn.P95, P99: p.Turn.P99}
	}
	return timings
}

// busy returns how long a busy batch takes from the first picture's filling on, p99.
func (p *Profile) busy() time.Duration { return p.Fill.P99 + p.Busy.P99 + p.Read.P99 }

// newSpread sorts times, of which there is at least one.
func newSpread(times []time.Duration) Spread {
	slices.Sort(times)
	at := func(share float64) time.Duration {
		return times[max(int(math.Ceil(share*float64(len(times))))-1, 0)]
	}
	return Spread{at(0.5), at(0.95), at(0.99)}
}

// spreadOf returns the spread of one figure of measured batches.
func spreadOf(batches []lane.Times, figure func(lane.Times) time.Duration) Spread {
	times := make([]time.Duration, len(batches))
	for i, b := range batches {
		times[i] = figure(b)
	}
	return newSpread(times)
}

func fillTime(t lane.Times) time.Duration { return t.Fill }
func runTime(t lane.Times) time.Duration  { return t.Run }
func readTime(t lane.Times) time.Duration { return t.Read }
func turnTime(t lane.Times) time.Duration { return t.Run + t.Read }
func allTime(t lane.Times) time.Duration  { return t.Fill + t.Run + t.Read }

// settled is how much longer than the shortest run one may take that counts as steady.
const settled = 1.1

// steady says whether runs have come down to their usual time: the last two took hardly longer than the shortest.
func steady(runs []time.Duration) bool {
	if len(runs) < 2 {
		return false
	}
	limit := time.Duration(settled * float64(slices.Min(runs)))
	return max(runs[len(runs)-1], runs[len(runs)-2]) <= limit
}

// How far the shortest of a few runs may lie from the median of an earlier start for that to be trusted. A machine
// that has become faster is measured anew, too: its profile would drop frames that could be served.
const (
	slower = 1.3
	faster = 0.6
)

// trusts says whether a few runs agree with the profile of an earlier start.
func (s Spread) trusts(runs []time.Duration) bool {
	if len(runs) == 0 {
		return false
	}
	shortest := float64(slices.Min(runs))
	return shortest <= slower*float64(s.P50) && shortest >= faster*float64(s.P50)
}

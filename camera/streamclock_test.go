package camera

import (
	"testing"
	"time"
	"unsafe"

	"github.com/eyas-edge/eyas/camera/frame"
)

// step is one frame: its time in the stream, when it arrived, and how old it has to be said to be.
type step struct {
	pts, arrival, age time.Duration
}

// every makes n frames from a start on, interval apart in both clocks.
func (s step) every(interval time.Duration, n int) (steps []step) {
	for i := range n {
		d := time.Duration(i) * interval
		steps = append(steps, step{s.pts + d, s.arrival + d, s.age})
	}
	return steps
}

func join(parts ...[]step) (all []step) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

const ms = time.Millisecond

func TestStreamClock(t *testing.T) {
	steady := step{0, 5 * time.Second, 0}
	tests := []struct {
		name  string
		steps []step
	}{
		{"steady", steady.every(40*ms, 200)},
		{"stream counts from far off", step{1 << 61, 0, 0}.every(40*ms, 50)},
		{"jitter", []step{{0, 0, 0}, {40 * ms, 70 * ms, 30 * ms}, {80 * ms, 80 * ms, 0}, {120 * ms, 135 * ms, 15 * ms}}},
		{"a first frame that came late", []step{{0, 300 * ms, 0}, {40 * ms, 310 * ms, 0}, {80 * ms, 320 * ms, 0}, {120 * ms, 120*ms + 240*ms, 0}, {160 * ms, 420 * ms, 20 * ms}}},
		{"silence and then a burst", join(steady.every(40*ms, 10),
			[]step{{400 * ms, 7400 * ms, 2 * time.Second}, {440 * ms, 7410 * ms, 1970 * ms}, {480 * ms, 7420 * ms, 1940 * ms}, {2440 * ms, 7440 * ms, 0}})},
		{"stream starts again", join(steady.every(40*ms, 10), step{0, 5400 * ms, 0}.every(40*ms, 10))},
		{"stream jumps ahead", join(steady.every(40*ms, 10), step{time.Hour, 5400 * ms, 0}.every(40*ms, 10))},
		{"stream goes slow", []step{{0, 0, 0}, {1 * ms, 3 * time.Second, 2999 * ms}, {2 * ms, 6 * time.Second, 0}, {3 * ms, 6001 * ms, 0}}},
		{"a delay that stays counts no more", join(steady.every(time.Second, 5),
			step{5 * time.Second, 10100 * ms, 100 * ms}.every(time.Second, 29), step{34 * time.Second, 39100 * ms, 0}.every(time.Second, 5))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c streamClock
			start := time.Now()
			var last time.Time
			for i, s := range tt.steps {
				arrival := start.Add(s.arrival)
				got, by := c.at(s.pts, true, arrival)
				if age := arrival.Sub(got); age != s.age || by != frame.ByStream {
					t.Fatalf("frame %d is %v old by %v, want %v", i, age, by, s.age)
				}
				if got.Before(last) {
					t.Fatalf("frame %d was captured before the one before", i)
				}
				last = got
			}
		})
	}
}

// TestStreamClockDrift has a camera whose crystal is off by 100 millionths, for a day.
func TestStreamClockDrift(t *testing.T) {
	for name, drift := range map[string]int64{"fast": -10_000, "slow": 10_000} {
		t.Run(name, func(t *testing.T) {
			var c streamClock
			start := time.Now()
			for i := range time.Duration(24 * 3600) {
				pts := i * time.Second
				arrival := start.Add(pts + pts/time.Duration(drift))
				if got, _ := c.at(pts, true, arrival); arrival.Sub(got) > 4*ms {
					t.Fatalf("after %v a frame is said to be %v old", pts, arrival.Sub(got))
				}
			}
		})
	}
}

// TestStreamClockArrival has frames whose time tells nothing.
func TestStreamClockArrival(t *testing.T) {
	var c streamClock
	now := time.Now()
	c.at(time.Second, true, now)
	for name, known := range map[string]bool{"no time": false, "the same time": true} {
		if got, by := c.at(time.Second, known, now.Add(40*ms)); by != frame.ByArrival || !got.Equal(now.Add(40*ms)) {
			t.Errorf("%s: %v by %v", name, got.Sub(now), by)
		}
	}
}

// jumped returns t with its wall clock set years ahead, and the same monotonic reading: what time.Now returns after somebody
// set the clock. It knows the layout of time.Time, in which bits 30 to 62 of the first word are seconds of the wall clock.
func jumped(t *testing.T, at time.Time, years int) time.Time {
	t.Helper()
	after := at
	wall := (*uint64)(unsafe.Pointer(&after))
	*wall += uint64(int64(years)*365*24*3600) << 30
	if after.Sub(at) != 0 || after.Year()-at.Year() < years-1 || after.Year()-at.Year() > years {
		t.Skipf("this Go lays out time.Time in another way: %v", after)
	}
	return after
}

// TestStreamClockWallClock sets the wall clock fifty years ahead between two frames, and back: ages and order stay.
func TestStreamClockWallClock(t *testing.T) {
	var c streamClock
	start := time.Now()
	var last time.Time
	for i := range 100 {
		now := start.Add(time.Duration(i) * 40 * ms)
		arrival := now
		if i/10%2 == 1 {
			arrival = jumped(t, now, 50)
		}
		late := time.Duration(i%2) * 7 * ms
		got, by := c.at(time.Duration(i)*40*ms-late, true, arrival)
		if age := now.Sub(got); age != late || by != frame.ByStream {
			t.Fatalf("frame %d is %v old, want %v", i, age, late)
		}
		if i > 0 && !got.After(last) {
			t.Fatalf("frame %d was captured before the one before", i)
		}
		last = got
	}
}

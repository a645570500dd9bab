package pressure

import (
	"strings"
	"testing"
	"time"
)

const mib = 1 << 20

func TestMeter(t *testing.T) {
	type step struct {
		after   int // seconds since the step before
		stalled int // milliseconds since then
		left    int // MiB of 1024
		limited int // events since then
		killed  int
		want    Level
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"plenty", []step{{0, 0, 900, 0, 0, None}, {1, 0, 500, 0, 0, None}, {1, 10, 100, 0, 0, None}}},
		{"counters of before do not count", []step{{0, 5000, 900, 9, 9, None}, {1, 0, 900, 0, 0, None}}},
		{"little is left, then less, then all", []step{{0, 0, 900, 0, 0, None}, {1, 0, 63, 0, 0, Some}, {1, 0, 31, 0, 0, High}, {1, 0, 900, 0, 0, High},
			{9, 0, 900, 0, 0, Some}, {9, 0, 900, 0, 0, Some}, {1, 0, 900, 0, 0, None}}},
		{"at once high", []step{{0, 0, 900, 0, 0, None}, {1, 0, 10, 0, 0, High}}},
		{"short of calm", []step{{0, 0, 900, 0, 0, None}, {1, 0, 60, 0, 0, Some}, {8, 0, 900, 0, 0, Some}, {1, 0, 80, 0, 0, Some}, {9, 0, 97, 0, 0, Some}, {1, 0, 97, 0, 0, None}}},
		{"a plan that leaves little", []step{{0, 0, 20, 0, 0, None}, {1, 0, 11, 0, 0, None}, {1, 0, 9, 0, 0, Some}, {10, 0, 16, 0, 0, None}}},
		{"stalls", []step{{0, 0, 900, 0, 0, None}, {1, 49, 900, 0, 0, None}, {1, 50, 900, 0, 0, Some}, {10, 400, 900, 0, 0, Some}, {10, 300, 900, 0, 0, None}, {1, 200, 900, 0, 0, High}}},
		{"more waits than time", []step{{0, 0, 900, 0, 0, None}, {1, 5000, 900, 0, 0, High}}},
		{"a group full of files", []step{{0, 0, 900, 0, 0, None}, {1, 0, 900, 1000, 0, None}}},
		{"a group that is nearly full", []step{{0, 0, 900, 0, 0, None}, {1, 0, 127, 1, 0, Some}, {1, 0, 127, 0, 0, Some}}},
		{"a kill", []step{{0, 0, 900, 0, 0, None}, {1, 0, 900, 0, 1, High}, {10, 0, 900, 0, 0, Some}, {10, 0, 900, 0, 0, None}}},
		{"no time between", []step{{0, 0, 900, 0, 0, None}, {0, 500, 900, 0, 0, None}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m Meter
			s := Sample{Of: 1024 * mib}
			for i, step := range c.steps {
				s.At += time.Duration(step.after) * time.Second
				s.Stalled += time.Duration(step.stalled) * time.Millisecond
				s.Left = uint64(step.left) * mib
				s.Limited += uint64(step.limited)
				s.Killed += uint64(step.killed)
				got, why := m.Observe(s)
				if got != step.want || got != None && why == "" {
					t.Fatalf("step %d: %v (%s), want %v", i, got, why, step.want)
				}
			}
		})
	}
}

// On a large machine a share is much: with 256 MiB left nothing is short.
func TestALargeMachine(t *testing.T) {
	var m Meter
	for i, c := range []struct {
		left uint64
		want Level
	}{{100 << 30, None}, {256 * mib, None}, {255 * mib, Some}, {127 * mib, High}} {
		if got, _ := m.Observe(Sample{At: time.Duration(i) * time.Second, Left: c.left, Of: 128 << 30}); got != c.want {
			t.Errorf("%d left: %v, want %v", c.left, got, c.want)
		}
	}
}

// What had the least left at first need not be what is full later, and a limit may be lowered.
func TestAnotherLimit(t *testing.T) {
	var m Meter
	m.Observe(Sample{Left: 20 << 30, Of: 24 << 30})
	if got, _ := m.Observe(Sample{At: time.Second, Left: 1 * mib, Of: 128 * mib}); got != High {
		t.Errorf("got %v", got)
	}
}

// What comes back whenever it is over stays longer each time, and what was over for long does not.
func TestWhatComesBack(t *testing.T) {
	var m Meter
	var now time.Duration
	observe := func(left uint64) Level {
		now += time.Second
		level, _ := m.Observe(Sample{At: now, Left: left * mib, Of: 1024 * mib})
		return level
	}
	observe(900)
	// lasted returns for how many seconds pressure lasts that is over at once.
	lasted := func() (n int) {
		if observe(50) != Some {
			t.Fatal("no pressure")
		}
		for observe(900) == Some {
			if n++; n > 1000 {
				t.Fatal("it never falls")
			}
		}
		return n + 1
	}
	for i, want := range []int{10, 20, 40, 80, 160, 300, 300} {
		if got := lasted(); got != want {
			t.Errorf("time %d: %d s, want %d", i, got, want)
		}
	}
	for range 600 {
		observe(900)
	}
	if got := lasted(); got != 10 {
		t.Errorf("after a long calm: %d s", got)
	}
}

func TestWhy(t *testing.T) {
	for _, c := range []struct {
		s    Sample
		want string
	}{
		{Sample{At: time.Second, Stalled: 100 * time.Millisecond, Left: 900 * mib, Of: 1024 * mib}, "tasks waited for memory 10 % of the time"},
		{Sample{At: time.Second, Left: 3*mib + mib/2, Of: 1024 * mib}, "3.5 MiB of 1024.0 MiB are left"},
		{Sample{At: time.Second, Left: 100 * mib, Of: 1024 * mib, Limited: 3}, "the control group was at a limit, 100.0 MiB of 1024.0 MiB are left"},
		{Sample{At: time.Second, Killed: 1}, "the control group ran out of memory"},
	} {
		var m Meter
		m.Observe(Sample{Left: 900 * mib, Of: 1024 * mib})
		if _, why := m.Observe(c.s); why != c.want {
			t.Errorf("got %q, want %q", why, c.want)
		}
	}
	if None.String() != "none" || Some.String() != "some" || High.String() != "high" || !strings.Contains(Level(7).String(), "7") {
		t.Error("a level's name")
	}
}

package runtime

import (
	"strings"
	"testing"
	"time"
)

// An overload is told once, in figures, and not for how a stream begins.
func TestLoad(t *testing.T) {
	start := time.Now()
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	l := load{}
	for i, step := range []struct {
		at              float64
		offered, inTime uint64
		want            string
	}{
		{0, 40, 0, ""}, // what was taken in while the lanes began
		{1, 160, 90, ""},
		{5, 640, 600, ""}, // 600 of 600
		{10, 1240, 1175, ""},
		{12, 1480, 1200, ""},
		{15, 1840, 1655, "overload: needs 120 fps, this machine does 96 in time: use fewer"},
		{20, 2440, 1655, ""},
	} {
		got := l.over(at(step.at), step.offered, step.inTime, 400*time.Millisecond)
		if step.want == "" && got != "" || !strings.HasPrefix(got, step.want) {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}

// Who does not take the results is told so, and not to buy a faster machine.
func TestLoadOfConsumer(t *testing.T) {
	start := time.Now()
	l := load{}
	l.over(start, 0, 0, time.Second)
	if got, want := l.over(start.Add(loadSpan), 600, 100, 2*time.Second), "results are taken too slowly"; !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	f := &flow{}
	for i, c := range []struct {
		full bool
		held time.Duration
	}{{false, 0}, {true, 0}, {true, 1}, {true, 2}, {false, 3}, {false, 3}, {true, 3}, {false, 4}} {
		if f.hold(c.full, time.Duration(i)*time.Second); f.held != c.held*time.Second {
			t.Errorf("after %d s lanes were held up for %v, want %d s", i, f.held, c.held)
		}
	}
}

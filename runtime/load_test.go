package runtime

import (
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
		{15, 1840, 1655, "needs 120 fps, this machine does 96 in time"},
		{20, 2440, 1655, ""},
	} {
		o, is := l.over(at(step.at), step.offered, step.inTime)
		if is != (step.want != "") || is && o.String() != step.want {
			t.Errorf("step %d: %v %v, want %q", i, is, o, step.want)
		}
	}
}

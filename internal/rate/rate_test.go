package rate

import (
	"math"
	"testing"
	"time"
)

func TestPerSecond(t *testing.T) {
	start := time.Unix(1000, 0)
	after := func(ms ...int) (times []time.Time) {
		for _, each := range ms {
			times = append(times, start.Add(time.Duration(each)*time.Millisecond))
		}
		return times
	}
	every := func(ms, n int) (times []time.Time) {
		for i := range n {
			times = append(times, after(i*ms)...)
		}
		return times
	}
	tests := []struct {
		name   string
		events []time.Time
		now    int // milliseconds
		want   float64
	}{
		{"nothing", nil, 100, 0},
		{"one event is no rate", after(0), 10, 0},
		{"25 a second", every(40, 100), 3980, 25},
		{"a second of silence counts", every(40, 26), 2000, 12.5},
		{"five seconds of silence are none", every(40, 26), 6001, 0},
		{"slow", every(1000, 10), 9000, 1},
		{"at one moment", after(0, 0, 0), 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var m Meter
			for _, at := range tt.events {
				m.Add(at)
			}
			if got := m.PerSecond(start.Add(time.Duration(tt.now) * time.Millisecond)); math.Abs(got-tt.want) > 1e-9 {
				t.Errorf("%v a second, want %v", got, tt.want)
			}
		})
	}
	var m Meter
	if n := testing.AllocsPerRun(100, func() { m.Add(start); m.PerSecond(start) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

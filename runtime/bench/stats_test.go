package bench

import (
	"math"
	"testing"
)

func TestPercentile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for _, c := range []struct {
		name      string
		samples   []float64
		p50, p99  float64
		theMedian float64
	}{
		{"none", nil, 0, 0, 0},
		{"one", []float64{7}, 7, 7, 7},
		{"two", []float64{2, 1}, 1, 2, 1.5},
		{"three", []float64{3, 1, 2}, 2, 3, 2},
		{"a hundred", hundred, 50, 99, 50.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := median(c.samples); got != c.theMedian {
				t.Errorf("median %v, want %v", got, c.theMedian)
			}
			if p50, p99 := percentile(c.samples, 0.5), percentile(c.samples, 0.99); p50 != c.p50 || p99 != c.p99 {
				t.Errorf("p50 %v, p99 %v, want %v and %v", p50, p99, c.p50, c.p99)
			}
		})
	}
}

func TestSlope(t *testing.T) {
	for _, c := range []struct {
		name string
		x, y []float64
		want float64
	}{
		{"none", nil, nil, 0},
		{"one point", []float64{1}, []float64{5}, 0},
		{"one place", []float64{1, 1}, []float64{5, 6}, 0},
		{"flat", []float64{0, 10, 20}, []float64{4, 4, 4}, 0},
		{"a line", []float64{0, 10, 20}, []float64{1, 21, 41}, 2},
		{"around a line", []float64{0, 1, 2, 3}, []float64{0, 2, 1, 3}, 0.8},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := slope(c.x, c.y); math.Abs(got-c.want) > 1e-9 {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

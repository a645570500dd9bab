package bench

import (
	"math"
	"slices"
)

// percentile returns the smallest sample that at least a share p of the samples does not exceed (nearest rank); 0 of
// none. It sorts them.
func percentile(samples []float64, p float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	slices.Sort(samples)
	rank := int(math.Ceil(p*float64(len(samples)))) - 1
	return samples[min(max(rank, 0), len(samples)-1)]
}

// median returns the middle of the samples, the mean of the two in the middle of an even number.
func median(samples []float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	s := slices.Clone(samples)
	slices.Sort(s)
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// ratio returns a/b, 0 where there is none.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// slope returns the incline of the line through the points by least squares; 0 where they do not give one.
func slope(x, y []float64) float64 {
	n := float64(len(x))
	if len(x) < 2 {
		return 0
	}
	var mx, my float64
	for i := range x {
		mx += x[i] / n
		my += y[i] / n
	}
	var xy, xx float64
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
	}
	return ratio(xy, xx)
}

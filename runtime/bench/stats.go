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

// Distribution is how a time spreads over its samples, in milliseconds. The percentiles are exact (nearest rank): of a
// hundred samples p99.9 is the longest.
type Distribution struct {
	Samples int     `json:"samples"`
	Min     float64 `json:"min_ms"`
	Mean    float64 `json:"mean_ms"`
	Std     float64 `json:"std_ms"` // standard deviation
	P50     float64 `json:"p50_ms"`
	P90     float64 `json:"p90_ms"`
	P95     float64 `json:"p95_ms"`
	P99     float64 `json:"p99_ms"`
	P999    float64 `json:"p999_ms"`
	Max     float64 `json:"max_ms"`
}

// distribution sums samples up; it sorts them.
func distribution(samples []float64) Distribution {
	n := float64(len(samples))
	if n == 0 {
		return Distribution{}
	}
	d := Distribution{
		Samples: len(samples),
		P50:     percentile(samples, 0.5), P90: percentile(samples, 0.9), P95: percentile(samples, 0.95),
		P99: percentile(samples, 0.99), P999: percentile(samples, 0.999),
		Min: samples[0], Max: samples[len(samples)-1],
	}
	for _, v := range samples {
		d.Mean += v / n
	}
	for _, v := range samples {
		d.Std += (v - d.Mean) * (v - d.Mean) / n
	}
	d.Std = math.Sqrt(d.Std)
	return d
}

// medianOf returns the median of a figure of each.
func medianOf[T any](all []T, figure func(T) float64) float64 {
	values := make([]float64, len(all))
	for i, v := range all {
		values[i] = figure(v)
	}
	return median(values)
}

package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	eyas "github.com/eyas-edge/eyas/runtime"
)

// BenchmarkFourCameras runs four 720p cameras of 30 frames a second through the smallest model. An operation is a delivered frame. The bound is
// one frame interval and the 99th percentile of the time that a frame itself takes (pre-processing, run, boxes).
func BenchmarkFourCameras(b *testing.B) {
	const warm = 120
	for _, c := range []struct {
		name string
		cfg  eyas.Config
	}{
		{"default", eyas.Config{}},
		{"1lane1thread", eyas.Config{Lanes: 1, Threads: 1, SLO: eyas.NoSLO}},
	} {
		b.Run(c.name, func(b *testing.B) {
			cfg := c.cfg
			cfg.Models = map[string]eyas.ModelConfig{"person": {Path: modelFile(b, "yolox_nano_person_192")}}
			for i := range 4 {
				cfg.Sources = append(cfg.Sources, eyas.SourceConfig{Name: fmt.Sprint("camera", i), URL: "test:pattern?size=1280x720&fps=30"})
			}
			rt, err := eyas.Open(b.Context(), cfg)
			if err != nil {
				b.Fatal(err)
			}
			defer rt.Close()
			sources, err := cfg.OpenSources()
			if err != nil {
				b.Fatal(err)
			}
			ages, runs := make([]time.Duration, 0, b.N), make([]time.Duration, 0, b.N)
			b.ReportAllocs()
			n := 0
			for res, err := range rt.Stream(b.Context(), sources...) {
				if err != nil {
					b.Fatal(err)
				}
				if n++; n <= warm {
					b.ResetTimer()
					continue
				}
				ages, runs = append(ages, res.Age), append(runs, res.Timing.Pre+res.Timing.Infer+res.Timing.Post)
				if len(ages) == b.N {
					b.StopTimer()
					break
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "fps")
			for _, p := range []int{50, 99} {
				b.ReportMetric(percentile(ages, p), fmt.Sprintf("age-p%d-ms", p))
				b.ReportMetric(percentile(runs, p), fmt.Sprintf("frame-p%d-ms", p))
			}
			b.ReportMetric(1000.0/30+percentile(runs, 99), "bound-ms")
		})
	}
}

// percentile returns the pth percentile in milliseconds.
func percentile(of []time.Duration, p int) float64 {
	slices.Sort(of)
	return of[(len(of)-1)*p/100].Seconds() * 1000
}

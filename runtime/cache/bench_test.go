package cache

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/models/onnx"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// BenchmarkReady compares, for every asset model, the time until a session is ready: with a warm
// cache (hash the model, read and check the kept one, make the session) and without one (make it from
// the model's file). Both take turns; reported are the medians, the parts of the warm one, and the
// time that the first start takes, which optimises and keeps the model.
//
//	go test -run '^$' -bench Ready -benchtime 11x ./runtime/cache
func BenchmarkReady(b *testing.B) {
	l := library(b)
	paths, err := filepath.Glob(filepath.Join(testenv.Assets(b), "models", "*.onnx"))
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range paths {
		b.Run(strings.TrimSuffix(filepath.Base(path), ".onnx"), func(b *testing.B) {
			m := readModel(b, path)
			c := open(b, b.TempDir())
			begin := time.Now()
			w, s := ready(b, c, l, m, nil)
			first := time.Since(begin)
			done(b, w, s)
			var cold, warm []time.Duration
			parts := make(map[string][]time.Duration)
			for b.Loop() {
				begin := time.Now()
				s, err := l.OpenFile(m.Path, own)
				if err != nil {
					b.Fatal(err)
				}
				cold = append(cold, time.Since(begin))
				s.Close()
				begin = time.Now()
				w, s := ready(b, c, l, m, parts)
				warm = append(warm, time.Since(begin))
				done(b, w, s)
			}
			report := func(list []time.Duration, unit string) float64 {
				slices.Sort(list)
				ms := float64(list[len(list)/2]) / 1e6
				b.ReportMetric(ms, unit)
				return ms
			}
			b.ReportMetric(report(warm, "warm-ms")/report(cold, "cold-ms"), "ratio")
			for part, list := range parts {
				report(list, part+"-ms")
			}
			b.ReportMetric(float64(first)/1e6, "first-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// ready makes a session on weights of the cache and notes how long each part took.
func ready(b *testing.B, c *Cache, l *ort.Library, m *onnx.Model, parts map[string][]time.Duration) (*ort.Weights, *ort.Session) {
	begin := time.Now()
	lap := func(part string) {
		if parts != nil {
			parts[part] = append(parts[part], time.Since(begin))
		}
		begin = time.Now()
	}
	sum := sumOf(b, m)
	lap("hash")
	w, _, err := c.Weights(context.Background(), WeightsKey(l, sum), SaveWeights(l, m, sum, own))
	if err != nil {
		b.Fatal(err)
	}
	lap("read")
	s, err := l.OpenORT(m.Path, w.Bytes(), own)
	if err != nil {
		b.Fatal(err)
	}
	lap("open")
	return w, s
}

func done(b *testing.B, w *ort.Weights, s *ort.Session) {
	if err := s.Close(); err != nil {
		b.Error(err)
	}
	if err := w.Close(); err != nil {
		b.Error(err)
	}
}

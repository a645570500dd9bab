package cache

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/models"
	"github.com/eyas-edge/eyas/runtime/lane"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// BenchmarkReady compares, for every asset model, the time until a session is ready: with a warm
// cache (hash the model, read and check the kept one, make the session) and without one (make it from
// the model's file). Both take turns; reported are the medians, the parts of the warm one, and the
// time that the first start takes, which optimises and keeps the model. The dimensions are fixed that the runtime
// fixes for a batch of 1. What ends in cpu-ms is the processor time of the whole process, which says more
// than the clock where others use the machine, too.
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
			m, err := models.Load(path, models.Options{})
			if err != nil {
				b.Skip(err)
			}
			c := open(b, b.TempDir())
			begin := time.Now()
			w, s := ready(b, c, l, m, nil)
			first := time.Since(begin)
			done(b, w, s)
			var cold, warm, coldCPU, warmCPU []time.Duration
			parts := make(map[string][]time.Duration)
			for b.Loop() {
				begin, used := time.Now(), processorTime(b)
				s, err := l.OpenFile(m.Path, own)
				if err != nil {
					b.Fatal(err)
				}
				cold = append(cold, time.Since(begin))
				coldCPU = append(coldCPU, processorTime(b)-used)
				s.Close()
				begin, used = time.Now(), processorTime(b)
				w, s := ready(b, c, l, m, parts)
				warm = append(warm, time.Since(begin))
				warmCPU = append(warmCPU, processorTime(b)-used)
				done(b, w, s)
			}
			report := func(list []time.Duration, unit string) float64 {
				slices.Sort(list)
				ms := float64(list[len(list)/2]) / 1e6
				b.ReportMetric(ms, unit)
				return ms
			}
			b.ReportMetric(report(warm, "warm-ms")/report(cold, "cold-ms"), "ratio")
			report(warmCPU, "warm-cpu-ms")
			report(coldCPU, "cold-cpu-ms")
			for part, list := range parts {
				report(list, part+"-ms")
			}
			b.ReportMetric(float64(first)/1e6, "first-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// ready makes a session on weights of the cache and notes how long each part took.
func ready(b *testing.B, c *Cache, l *ort.Library, m *models.Model, parts map[string][]time.Duration) (*ort.Weights, *ort.Session) {
	begin := time.Now()
	lap := func(part string) {
		if parts != nil {
			parts[part] = append(parts[part], time.Since(begin))
		}
		begin = time.Now()
	}
	sum := sumOf(b, m.ONNX)
	lap("hash")
	o := own
	o.Fixed = lane.Fixed(m, nil)
	w, _, err := c.Weights(context.Background(), WeightsKey(l, sum, Dimensions(o.Fixed)...), SaveWeights(l, m.ONNX, sum, o))
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

// processorTime returns what the process has used of the processors.
func processorTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func done(b *testing.B, w *ort.Weights, s *ort.Session) {
	if err := s.Close(); err != nil {
		b.Error(err)
	}
	if err := w.Close(); err != nil {
		b.Error(err)
	}
}

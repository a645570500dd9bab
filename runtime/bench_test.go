package runtime_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/internal/testenv"
	eyas "github.com/eyas-edge/eyas/runtime"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// BenchmarkClip measures a whole run over a 1280x720 clip of 500 frames (decode, pre-process, infer,
// decode boxes) against a bare loop that only runs the session on a prepared tensor, with as many
// threads. Each iteration does both, one after the other; the metrics are medians over the iterations. Run
// it with -benchtime 5x.
func BenchmarkClip(b *testing.B) {
	model := filepath.Join(testenv.Assets(b), "models", "yolox_nano_416.onnx")
	clip := loopedClip(b, 500)
	for _, threads := range []int{1, 0} {
		name := fmt.Sprintf("threads=%d", threads)
		if threads == 0 {
			name = "threads=default"
		}
		b.Run(name, func(b *testing.B) {
			bare := newBareLoop(b, model, threads)
			rt := open(b, eyas.Config{Threads: threads, Models: map[string]eyas.ModelConfig{"m": {Path: model}}})
			var bareFPS, clipFPS, ratio []float64
			for b.Loop() {
				start := time.Now()
				for range 500 {
					if err := bare.Run(); err != nil {
						b.Fatal(err)
					}
				}
				bareFPS = append(bareFPS, 500/time.Since(start).Seconds())
				start = time.Now()
				clipFPS = append(clipFPS, float64(stream(b, rt, clip))/time.Since(start).Seconds())
				ratio = append(ratio, clipFPS[len(clipFPS)-1]/bareFPS[len(bareFPS)-1])
			}
			b.ReportMetric(median(bareFPS), "bare-fps")
			b.ReportMetric(median(clipFPS), "clip-fps")
			b.ReportMetric(median(ratio), "clip/bare")
		})
	}
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

func loopedClip(b *testing.B, frames int) string {
	b.Helper()
	source := filepath.Join(testenv.Assets(b), "videos", "udacity-vehicles.mp4")
	path := filepath.Join(b.TempDir(), "looped.mp4")
	out, err := exec.Command(testenv.FFmpeg(b), "-v", "error", "-nostdin", "-stream_loop", "-1", "-i", source,
		"-frames:v", fmt.Sprint(frames), "-an", "-c:v", "libx264", "-preset", "veryfast", "-crf", "20", path).CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return path
}

func newBareLoop(b *testing.B, model string, threads int) *ort.Binding {
	b.Helper()
	library, err := ort.Load(testenv.Library(b))
	if err != nil {
		b.Fatal(err)
	}
	s, err := library.OpenFile(model, ort.Options{Threads: threads})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	var in, out []*tensor.Tensor
	for _, list := range []struct {
		infos   []ort.Info
		tensors *[]*tensor.Tensor
	}{{s.Inputs(), &in}, {s.Outputs(), &out}} {
		for _, info := range list.infos {
			t, err := ort.NewTensor(info.Name, info.Type, info.Shape...)
			if err != nil {
				b.Fatal(err)
			}
			*list.tensors = append(*list.tensors, t)
		}
	}
	run, err := s.Bind(in, out)
	if err != nil {
		b.Fatal(err)
	}
	return run
}

func stream(b *testing.B, rt *eyas.Runtime, path string) int {
	b.Helper()
	source, err := camera.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for _, err := range rt.Stream(context.Background(), source) {
		if err != nil {
			b.Fatal(err)
		}
		n++
	}
	return n
}

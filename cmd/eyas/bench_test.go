package main

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/internal/testenv"
)

// BenchmarkStart measures whole processes, alternating: the median time of eyas version, and from the
// start of eyas run to its first line of results on a picture. Run it with -benchtime 15x.
func BenchmarkStart(b *testing.B) {
	assets := testenv.Assets(b)
	binary := filepath.Join(b.TempDir(), "eyas")
	build := exec.Command("go", "build", "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	var versions, detections []time.Duration
	for b.Loop() {
		versions = append(versions, untilLine(b, binary, "version"))
		detections = append(detections, untilLine(b, binary, "run", "--ort", testenv.Library(b),
			"-m", filepath.Join(assets, "models", "yolox_nano_416.onnx"), filepath.Join(assets, "images", "classic", "bus.jpg")))
	}
	b.ReportMetric(middle(versions), "version-ms")
	b.ReportMetric(middle(detections), "first-detection-ms")
}

// untilLine returns the time from the start of a process to its first line of output.
func untilLine(b *testing.B, binary string, args ...string) time.Duration {
	b.Helper()
	cmd := exec.Command(binary, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	_, err = bufio.NewReader(out).ReadString('\n')
	took := time.Since(start)
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	if err != nil {
		b.Fatal(err)
	}
	return took
}

func middle(times []time.Duration) float64 {
	slices.Sort(times)
	return times[len(times)/2].Seconds() * 1000
}

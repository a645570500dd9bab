package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// cameraArgs returns arguments for n patterns of a rate.
func cameraArgs(n int, fps int) (args []string) {
	for i := range n {
		args = append(args, fmt.Sprintf("cam%d=test:pattern?size=64x64&fps=%d", i, fps))
	}
	return args
}

// underSLO returns the arguments of a run of the model with a dynamic batch under an SLO that a busy machine keeps, too.
func underSLO(t *testing.T, args ...string) []string {
	return append([]string{"run", "--slo", "5s", "-m", modelFile(t, "yolox_nano_dynbatch"), "--events"}, args...)
}

// states are those of n cameras.
func states(n int, state string) map[string]string {
	all := map[string]string{}
	for i := range n {
		all[fmt.Sprint("cam", i)] = state
	}
	return all
}

// wholeAccount checks that each captured frame is among those delivered or dropped.
func wholeAccount(t *testing.T, all map[string]sourceSummary) {
	t.Helper()
	for name, s := range all {
		sum := s.Delivered
		for _, n := range s.Dropped {
			sum += n
		}
		if s.Captured == 0 || s.Captured != sum {
			t.Errorf("%s: %d captured, %d delivered or dropped: %+v", name, s.Captured, sum, s)
		}
	}
}

// A run under an SLO says what it chose and why, what became of the frames and how old the results were.
func TestRunUnderAnSLO(t *testing.T) {
	const cameras = 4
	o := call(t, underSLO(t, append(cameraArgs(cameras, 5), "--duration", "4s")...)...)
	if o.code != 0 {
		t.Fatalf("exit code %d: %s", o.code, o.stderr)
	}
	all := summary(t, o.stdout, states(cameras, "open"))
	wholeAccount(t, all)
	for name, s := range all {
		if s.Missed > 0 || s.Delivered < 5 {
			t.Errorf("%s: %+v", name, s)
		}
	}
	want := []string{
		`(\d lanes? of \d threads?).*SLO of 5000 ms`,
		`model yolox_nano_dynbatch: batches of \[1( \d+)*\], all of them warm before the first frame`,
	}
	for i := range cameras {
		want = append(want, fmt.Sprintf(`cam%d: \d+ frames captured, \d+ delivered, 0 of them late, age p50 [\d.]+, p95 [\d.]+, p99 [\d.]+ ms, \d+ dropped`, i))
	}
	for _, line := range want {
		if !regexp.MustCompile(`(?i)` + line).MatchString(o.stderr) {
			t.Fatalf("no line like %s in\n%s", line, o.stderr)
		}
	}
	// "batch" counts the frames of a run. One of a larger size may have had fewer, padded: that none is run that was not
	// warm is a property of the batcher, tested there.
	ladder := regexp.MustCompile(`batches of \[(?:\d+ )*(\d+)\]`).FindStringSubmatch(o.stderr)
	largest, err := strconv.Atoi(ladder[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`"batch":(\d+)`).FindAllStringSubmatch(o.stdout, -1) {
		if n, err := strconv.Atoi(m[1]); err != nil || n < 1 || n > largest {
			t.Fatalf("%s frames ran together, of batches of at most %d", m[1], largest)
		}
	}
}

// Told to end under an overload, in the steady state and while it warms up, a run ends cleanly, and what was in flight is
// delivered or counted.
func TestSignalsUnderAnSLO(t *testing.T) {
	const cameras = 3
	for _, c := range []struct {
		name     string
		fps      int
		overload bool
	}{{"steady", 2, false}, {"overload", 1000, true}} {
		t.Run(c.name, func(t *testing.T) {
			f := follow(t, underSLO(t, append([]string{"--lanes", "1", "--batch", "1,2,4"}, cameraArgs(cameras, c.fps)...)...)...)
			f.says(`"event":"ready"`)
			for i := range cameras {
				f.results(fmt.Sprint("cam", i), 2)
			}
			if c.overload {
				f.until(f.errs, "overload", func(line string) bool {
					return regexp.MustCompile(`overload: needs \d+ fps, this machine does \d+ in time`).MatchString(line)
				})
			}
			told := time.Now()
			if code := f.end(syscall.SIGTERM); code != 0 {
				t.Errorf("exit code %d", code)
			}
			t.Logf("ended %v after the signal", time.Since(told).Round(time.Millisecond))
			wholeAccount(t, summary(t, f.out.String(), states(cameras, "open")))
		})
	}
	t.Run("warm-up", func(t *testing.T) {
		f := follow(t, underSLO(t, append([]string{"--no-cache"}, cameraArgs(cameras, 2)...)...)...)
		untilItRuns(t, f.Process.Pid)
		told := time.Now()
		if code := f.end(syscall.SIGTERM); code != 0 {
			t.Errorf("exit code %d", code)
		}
		t.Logf("ended %v after the signal, having said %q", time.Since(told).Round(time.Millisecond), f.out.String())
	})
}

// A model with an SLO is in time beside one that never rests, which gets what is left.
func TestHeavyAndLight(t *testing.T) {
	config := filepath.Join(t.TempDir(), "eyas.yaml")
	write(t, config, fmt.Sprintf(`version: 1
slo: 5s
lanes: 1
batch: [1]
models:
  heavy: {path: %q, max_hold: 4s}
  light: {path: %q, priority: 1}
sources:
  film: {url: "test:pattern?size=64x64&frames=1000000", models: [heavy]}
  door: {url: "test:pattern?size=64x64&fps=4", models: [light]}
`, modelFile(t, "nanodet_m_416"), modelFile(t, "yolox_nano_person_192")))
	f := follow(t, "run", "-c", config, "--events")
	f.results("door", 10)
	f.results("film", 10)
	f.results("door", 5)
	if code := f.end(syscall.SIGTERM); code != 143 { // a film that was not seen to its end
		t.Errorf("exit code %d", code)
	}
	s := summary(t, f.out.String(), map[string]string{"door": "open"})["door"]
	if s.Missed+s.Dropped["late"] > 0 || s.Delivered < 15 {
		t.Errorf("the light model's camera: %+v", s)
	}
}

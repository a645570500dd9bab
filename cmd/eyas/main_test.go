package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/internal/testenv"
)

// The test binary is also eyas itself, for what only a process of its own shows: exit by signals,
// peak memory, closed pipes.
const (
	actAs    = "EYAS_TEST_ACT_AS"    // "eyas", or "deaf" for one that does not end on the first signal
	peakFile = "EYAS_TEST_PEAK_FILE" // takes the line VmHWM of the process's status at its end
	quick    = "EYAS_TEST_QUICK"     // if set, cameras are given up and tried again sooner
)

// quickTimes are for cameras in trouble.
var quickTimes = camera.Times(camera.Timing{Stall: 2 * time.Second, MinBackoff: 20 * time.Millisecond, MaxBackoff: 200 * time.Millisecond})

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == benchChild { // a child has no environment of ours
		os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	switch os.Getenv(actAs) {
	case "eyas":
		if os.Getenv(quick) != "" {
			sourceOptions = append(sourceOptions, quickTimes)
		}
		code := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
		if path := os.Getenv(peakFile); path != "" {
			status, _ := os.ReadFile("/proc/self/status")
			_ = os.WriteFile(path, regexp.MustCompile(`VmHWM:.*`).Find(status), 0o600)
		}
		os.Exit(code)
	case "deaf":
		s := watchSignals()
		fmt.Println("ready")
		<-s.ctx.Done()
		fmt.Println("told", int(s.received()))
		select {}
	}
	if os.Getenv("EYAS_ORT_LIB") == "" {
		os.Setenv("EYAS_ORT_LIB", filepath.Join(testenv.Root(), ".deps", "onnxruntime"))
	}
	dir, err := os.MkdirTemp("", "eyas-cache")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CACHE_HOME", dir) // not the developer's
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// assets returns the root of the assets, and skips where they, or the library, are not there.
func assets(t testing.TB) string {
	t.Helper()
	testenv.Library(t)
	return testenv.Assets(t)
}

// picture and clip return the path of an asset, model that of one with the flags that choose it.
func picture(t testing.TB, name string) string { return filepath.Join(assets(t), "images", name) }
func clip(t testing.TB, name string) string    { return filepath.Join(assets(t), "videos", name) }
func modelFile(t testing.TB, name string) string {
	return filepath.Join(assets(t), "models", name+".onnx")
}

// fast returns the arguments of a run with the smallest model, without a latency that a busy machine may not keep.
func fast(t testing.TB, args ...string) []string {
	return append([]string{"run", "--threads", "2", "--slo", "none", "-m", modelFile(t, "yolox_nano_person_192"), "--labels", labels(t)}, args...)
}

// labels returns a file that names the class of the smallest model, which says nothing about it.
func labels(t testing.TB) string {
	path := filepath.Join(t.TempDir(), "person.txt")
	write(t, path, "person\n")
	return path
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// outcome is what a command left behind.
type outcome struct {
	code   int
	stdout string
	stderr string
}

// call runs a command in this process.
func call(t testing.TB, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(args, strings.NewReader(""), &out, &errs)
	for _, s := range []string{out.String(), errs.String()} {
		if strings.Contains(s, "panic:") || strings.Contains(s, "goroutine ") {
			t.Errorf("%v panicked: %s", args, s)
		}
	}
	return outcome{code, out.String(), errs.String()}
}

// command returns eyas as a process of its own.
func command(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), actAs+"=eyas")
	return c
}

// ends waits for a process that has to end by itself, and returns its exit code, 128+n for one that died of a
// signal. The limit is far above what is right: it only keeps the tests from hanging.
func ends(t testing.TB, c *exec.Cmd) int {
	t.Helper()
	limit := time.AfterFunc(20*time.Second, func() {
		t.Error("the process does not end")
		_ = c.Process.Kill()
	})
	defer limit.Stop()
	_ = c.Wait() // the state says it better
	status := c.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// memoryReport is what a run of some length ends with.
var memoryReport = regexp.MustCompile(`eyas: memory over (?s:.*)\neyas: per frame .*\n`)

// want checks the exit code, and that standard error holds one line with each of the texts and no others, but for
// the report of a run's memory.
func (o outcome) want(t testing.TB, code int, stderr ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit code %d, want %d", o.code, code)
	}
	text := memoryReport.ReplaceAllString(o.stderr, "")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if text == "" {
		lines = nil
	}
	if len(lines) != len(stderr) {
		t.Errorf("%d lines on standard error, want %d:\n%s", len(lines), len(stderr), o.stderr)
		return
	}
	for i, text := range stderr {
		if !strings.Contains(lines[i], text) {
			t.Errorf("standard error says %q, want %q in it", lines[i], text)
		}
		if !strings.HasPrefix(lines[i], "eyas: ") {
			t.Errorf("%q does not say who speaks", lines[i])
		}
		saysOnce(t, lines[i])
	}
}

// saysOnce checks that a message does not repeat one of its parts.
func saysOnce(t testing.TB, line string) {
	t.Helper()
	var seen []string
	for part := range strings.SplitSeq(line, ": ") {
		if len(part) > 3 && slices.Contains(seen, part) {
			t.Errorf("%q says %q twice", line, part)
		}
		seen = append(seen, part)
	}
}

// object and result are the lines of docs/results.md.
type object struct {
	Class   string     `json:"class"`
	ClassID int        `json:"class_id"`
	Score   float64    `json:"score"`
	Box     [4]float64 `json:"box"`
}

type result struct {
	Source     string   `json:"source"`
	Model      string   `json:"model"`
	Frame      int      `json:"frame"`
	Captured   string   `json:"captured"`
	CapturedBy string   `json:"captured_by"`
	PTS        *float64 `json:"pts_ms"`
	Width      int      `json:"width"`
	Height     int      `json:"height"`
	Age        *float64 `json:"age_ms"`
	Detections []object `json:"detections"`
	Timing     struct {
		Queue float64 `json:"queue_ms"`
		Pre   float64 `json:"pre_ms"`
		Infer float64 `json:"infer_ms"`
		Post  float64 `json:"post_ms"`
		Batch int     `json:"batch"`
		Lane  int     `json:"lane"`
	} `json:"timing"`
}

// results reads result lines, none of which may be incomplete or break the contract.
func results(t testing.TB, text string) []result {
	t.Helper()
	if text != "" && !strings.HasSuffix(text, "\n") {
		t.Errorf("the last line is not complete: %q", text[strings.LastIndexByte(text, '\n')+1:])
	}
	var all []result
	for line := range strings.Lines(text) {
		var r result
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&r); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if r.Source == "" || r.Model == "" || r.Width < 1 || r.Height < 1 || r.Detections == nil || r.Timing.Batch != 1 {
			t.Errorf("a field is missing: %s", line)
		}
		for i, d := range r.Detections {
			b := d.Box
			if d.Class == "" || d.Score < 0 || d.Score > 1 || i > 0 && d.Score > r.Detections[i-1].Score ||
				b[0] < 0 || b[1] < 0 || b[0] >= b[2] || b[1] >= b[3] || b[2] > float64(r.Width) || b[3] > float64(r.Height) {
				t.Errorf("%s: detection %d breaks the contract: %+v", r.Source, i, d)
			}
		}
		all = append(all, r)
	}
	return all
}

// classes returns how many objects of each class there are.
func (r result) classes() map[string]int {
	n := map[string]int{}
	for _, d := range r.Detections {
		n[d.Class]++
	}
	return n
}

package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/runtime/bench"
)

// A short measurement prints a table or one document, and two documents can be compared.
func TestBench(t *testing.T) {
	args := []string{"bench", "-q", "--threads=1", "--duration=1ms", "--frames=10", "-m", modelFile(t, "yolox_nano_person_192")}
	o := call(t, append(args, "--json")...)
	o.want(t, 0)
	var r bench.Report
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil {
		t.Fatalf("%v in %s", err, o.stdout)
	}
	if len(r.Models) != 1 || r.Models[0].Key != "yolox_nano_person_192" || r.Resident == nil || len(r.Time) != 1 {
		t.Errorf("%s", o.stdout)
	}
	a := filepath.Join(t.TempDir(), "a.json")
	write(t, a, o.stdout)
	both := call(t, "bench", "--compare", a, a)
	both.want(t, 0)
	if !strings.Contains(both.stdout, "resident planned / default") {
		t.Errorf("%s", both.stdout)
	}
	o = call(t, "bench", "-q", "--suite=latency", "--slo=30s", "--cameras=2", "--fps=50", "--frames=5", "--duration=100ms", modelFile(t, "yolox_nano_person_192"))
	o.want(t, 0)
	if !strings.Contains(o.stdout, "2 cameras of 50 fps") || !strings.Contains(o.stdout, "--slo 30s picks") {
		t.Errorf("%s", o.stdout)
	}
	o = call(t, "bench", "-q", "--suite=soak", "--frames=10", "--threads=1", modelFile(t, "yolox_nano_person_192"))
	o.want(t, 0)
	if !strings.Contains(o.stdout, "soak") {
		t.Errorf("%s", o.stdout)
	}
}

func TestBenchUsage(t *testing.T) {
	model := modelFile(t, "yolox_nano_person_192")
	damaged := filepath.Join(t.TempDir(), "damaged.json")
	write(t, damaged, "{")
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"an unknown suite", []string{"--suite=speed", model}, 2, `bench: suite "speed" is not known`},
		{"one of several", []string{"--suite=memory,speed", model}, 2, `bench: suite "speed" is not known`},
		{"no limit to keep", []string{"--suite=policies", "--slo=none", model}, 2, "bench: slo none"},
		{"cameras without end", []string{"--cameras=100000", model}, 2, "100000 cameras: use 1 to 1024"},
		{"cameras that are none", []string{"--cameras=-1", model}, 2, "-1 cameras"},
		{"a rate that is none", []string{"--fps=NaN", model}, 2, "NaN frames a second"},
		{"an endless rest", []string{"--idle=1000h", model}, 2, "at most 24h"},
		{"an SLO that nobody keeps", []string{"-q", "--suite=latency", "--slo=1us", model}, 4, "slo: "},
		{"no frames", []string{"--frames=-1", model}, 2, "below zero"},
		{"a duration without unit", []string{"--duration=10", model}, 2, `time "10" is not understood`},
		{"an unknown flag", []string{"--nonsense"}, 2, "unknown flag --nonsense"},
		{"a batch of none", []string{"--batch=0", model}, 2, "batch 0: batch sizes are 1 or more"},
		{"an unknown model", []string{"-m", "nonsense"}, 3, "model nonsense is neither a file nor a known model"},
		{"no such file", []string{"missing.onnx"}, 3, "model missing.onnx: no such file"},
		{"no library", []string{"--ort=/nowhere", model}, 4, "--ort /nowhere: no libonnxruntime.so there"},
		{"no such configuration", []string{"-c", "missing.yaml"}, 2, "read configuration: open missing.yaml"},
		{"one report", []string{"--compare", damaged}, 2, "--compare takes two reports"},
		{"a report that is none", []string{"--compare", damaged, damaged}, 2, "not a report of eyas bench --json"},
		{"a report that is missing", []string{"--compare", "a.json", "b.json"}, 2, "bench: open a.json: no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := call(t, append([]string{"bench"}, c.args...)...)
			o.want(t, c.code, c.want)
			if o.stdout != "" {
				t.Errorf("standard output: %s", o.stdout)
			}
		})
	}
}

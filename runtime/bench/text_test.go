package bench

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/memplan"
)

// sample is a report with everything in it.
func sample() *Report {
	incline := 0.25
	return &Report{
		Version: ReportVersion, Suites: []string{Memory, Soak}, Libc: "counted",
		Machine: Machine{OS: "linux", Arch: "arm64", CPU: "Cortex-A78AE", CPUs: 6, Memory: 8e9, Features: []string{"neon"}},
		Engine:  Engine{ONNXRuntime: "1.30.0", Library: "/usr/lib/libonnxruntime.so", EP: "cpu", Threads: 6},
		Models:  []ModelInfo{{"people", "people.onnx", []int{1, 2}}, {"cars", "cars.onnx", []int{1}}},
		Resident: &Resident{
			Default: Usage{Status{40e6, 8e6, 32e6, 0, 5e6}, Status{100e6, 63e6, 37e6, 0, 6e6}, 60e6},
			Planned: Usage{Status{40e6, 8e6, 32e6, 0, 5e6}, Status{65e6, 28e6, 36e6, 1e6, 6e6}, 25e6}, Ratio: 25. / 60,
			Memory: &memplan.Usage{Regions: []memplan.RegionUsage{{Kind: memplan.Arena, Planned: 12e6, Measured: 12e6}}, Fragmentation: 0.001, BestFit: 0.15},
		},
		Time: []Time{
			{"people", 1, 5, 40, Latency{10, 12, 1.01}, Latency{9.9, 11.5, 1.002}, 0.99, 0.96, Latency{10, 11.6, 1.003}, 1.01},
			{"people", 2, 5, 40, Latency{19, 22, 1.02}, Latency{18.9, 21.5, 1.001}, 0.99, 0.97, Latency{19, 21.6, 1.004}, 1.005},
			{"cars", 1, 5, 20, Latency{30, 31, 0}, Latency{30, 31, 0}, 1, 1, Latency{30, 31, 0}, 1},
		},
		Steady: []Steady{
			{Model: "people", Candidate: standard, Batch: 1, Runs: 300, Libc: &LibcCount{1879, 1879, 1880, false, 3, 0}, FaultsPerRun: 0.01, SlopeKiB: &incline, Resident: 70e6},
			{Model: "people", Candidate: planned, Batch: 1, Runs: 300, Requests: &Requests{17400, 0, 0}, Libc: &LibcCount{1871, 1871, 1871, true, 0, 0},
				Regions: &Pages{20e6, 20e6, 20e6}, SlopeKiB: &incline, Resident: 60e6},
			{Model: "cars", Candidate: planned, Batch: 1, Runs: 3, Requests: &Requests{300, 6, 1}, GoAllocations: 2, Resident: 60e6},
		},
		Start: []Start{{"people", 90, &ColdWarm{130, 20, 20. / 130}, ColdWarm{300, 90, 0.3}}, {"cars", 90, nil, ColdWarm{Cold: 300}}},
		Soak:  []Steady{{Model: "people", Candidate: planned, Batch: 1, Runs: 100000, Requests: &Requests{Arena: 5800000}, Resident: 60e6}},
	}
}

// The tables are as the golden files have them.
func TestText(t *testing.T) {
	other := sample()
	other.Machine.CPU = "another"
	other.Time[0].Planned.P50 = 5
	for name, write := range map[string]func(*bytes.Buffer) error{
		"report.txt":  func(b *bytes.Buffer) error { return sample().Text(b) },
		"report.json": func(b *bytes.Buffer) error { return sample().JSON(b) },
		"compare.txt": func(b *bytes.Buffer) error { return Compare(sample(), other).Text(b) },
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := write(&got); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got.String(), want)
			}
		})
	}
}

// A report is read from a file; what is none is refused in one line.
func TestReadReport(t *testing.T) {
	if r, err := ReadReport(filepath.Join("testdata", "report.json")); err != nil || r.Engine.ONNXRuntime != "1.30.0" {
		t.Errorf("%+v, %v", r, err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"none.json": "", "old.json": `{"version":0}`, "list.json": "[]", "text.json": "hello"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadReport(path); err == nil || bytes.ContainsRune([]byte(err.Error()), '\n') {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "missing.json")} {
		if _, err := ReadReport(path); err == nil {
			t.Errorf("%s: read", path)
		}
	}
}

// answer is a runner with nothing but outputs.
type answer struct{ out []*tensor.Tensor }

func (a answer) Run() error { return nil }

func (a answer) Fill(context.Context, []byte) error { return nil }
func (a answer) Outputs() []*tensor.Tensor          { return a.out }
func (a answer) Close() error                       { return nil }

// Outputs that differ are said with their place.
func TestSame(t *testing.T) {
	boxes := func(shape []int, data ...byte) *tensor.Tensor {
		return &tensor.Tensor{Name: "boxes", Type: tensor.Uint8, Shape: shape, Data: data}
	}
	of := func(out ...*tensor.Tensor) answer { return answer{out} }
	one := of(boxes([]int{2}, 1, 2))
	for _, c := range []struct {
		name  string
		other answer
		want  string
	}{
		{"equal", of(boxes([]int{2}, 1, 2)), ""},
		{"a byte", of(boxes([]int{2}, 1, 3)), "model m at batch 2: output boxes differs between default and planned memory from byte 1 on"},
		{"a shape", of(boxes([]int{1, 2}, 1, 2)), "output boxes is [2] by default and [1 2] planned"},
		{"their number", of(), "1 outputs by default, 0 planned"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := same("m", 2, one, c.other)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

package bench

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/memplan"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// sample is a report with everything in it.
func sample() *Report {
	incline := 0.25
	return &Report{
		Version: ReportVersion, Suites: []string{SuiteMemory, SuiteSoak}, Libc: "counted",
		Machine: Machine{
			OS: "linux", Arch: "arm64", CPU: "Cortex-A78AE", CPUs: 6, Memory: 8e9, Features: []string{"neon"},
			MemoryLimit: 4e9, LockedLimit: 8e6, Clocks: "schedutil 1984000", Load: 0.2,
		},
		Engine: Engine{ONNXRuntime: "1.30.0", Library: "/usr/lib/libonnxruntime.so", EP: "cpu", Threads: 6},
		Models: []ModelInfo{{"people", "people.onnx", []int{1, 2}}, {"cars", "cars.onnx", []int{1}}},
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
			{Model: "people", Candidate: planned, Batch: 1, Runs: 300, Drift: &Drift{11, 11.2, 1.018}, Requests: &Requests{17400, 0, 0}, Libc: &LibcCount{1871, 1871, 1871, true, 0, 0},
				Regions: &Pages{20e6, 20e6, 20e6}, SlopeKiB: &incline, Resident: 60e6},
			{Model: "cars", Candidate: planned, Batch: 1, Runs: 3, Requests: &Requests{300, 6, 1}, GoAllocations: 2, Resident: 60e6},
		},
		Touch: []Touch{
			{Kind: "heap", Bytes: 32 << 20, Take: 10, First: 8000, Rate: 4.2, Again: 12},
			{Kind: "cuda device", Bytes: 0, Missing: "not here"},
		},
		Start: []Start{
			{"people", 35, 12, 90, &ColdWarm{130, 20, 20. / 130}, ColdWarm{250, 60, 0.24}, ColdWarm{300, 90, 0.3}},
			{"cars", 35, 12, 90, nil, ColdWarm{Cold: 250}, ColdWarm{Cold: 300}},
		},
		FirstFrames: []FirstFrame{{"people", 2, 19, 19.5, 10, 20, 1.03, 1.06, 1.05, 1.15}},
		Latency: []Frontier{{
			Model: "people", Took: 4000,
			Choice: eyas.Choice{
				Setting: eyas.Setting{Lanes: 2, Threads: 1}, SLO: 50 * time.Millisecond, FPS: 130, P99: 33 * time.Millisecond,
				Why:    "2 lanes of 1 thread: 130 fps against 105 with 1 lane of 2 threads, p99 33 ms within the SLO of 50 ms",
				Models: []eyas.ModelChoice{{Model: "people", Ladder: []int{1, 2}}},
			},
			Points: []Point{
				{eyas.Setting{Lanes: 1, Threads: 2}, 1, 105, spread(9), spread(9), 0.97, ""},
				{eyas.Setting{Lanes: 2, Threads: 1}, 1, 128, spread(15), spread(14), 0.98, inLadder},
				{eyas.Setting{Lanes: 2, Threads: 1}, 2, 130, spread(30), spread(27), 0.99, picked},
			},
		}},
		Capture: []Capture{{"people", served(98.5), served(60)}},
		Policies: []PolicyResult{
			{"people", planned, ownPolicy, []Served{served(110), served(112), served(111)}},
			{"people", standard, fixedPolicy, []Served{served(80), served(82)}},
			{"cars", planned, ownPolicy, nil},
		},
		Contention: []Contention{
			{Model: "people", Candidate: planned, Beside: alone, Rounds: []Served{served(29)}, Group: "limit 200.0 MB"},
			{Model: "people", Candidate: planned, Beside: bursts, Rounds: []Served{served(28)}, Refused: 1, Killed: 1, Corun: []Corun{{12, 3e9}}, CoKilled: 1, Reclaim: 99},
		},
		Placement: []Placement{
			{Model: "people", Layout: "as planned", Load: 90, First: 10, FPS: 100, P50: 9.9, P99: 11, Std: 0.3, Above: 25e6, Fragmentation: 0.01, Largest: 16},
			{Model: "people", Layout: "dedicated", Missing: "not here: no memory may be locked"},
		},
		Soak: []Steady{{Model: "people", Candidate: planned, Batch: 1, Runs: 100000, Requests: &Requests{Arena: 5800000}, Resident: 60e6}},
	}
}

// spread is a distribution around ms.
func spread(ms float64) Distribution {
	return Distribution{100, 0.9 * ms, ms, 0.1 * ms, ms, 1.1 * ms, 1.2 * ms, 1.3 * ms, 1.4 * ms, 1.4 * ms}
}

// served is four cameras of which fps frames a second are in time.
func served(fps float64) Served {
	return Served{
		Lanes: 2, Threads: 1, Ladder: []int{1, 2}, Cameras: 4, FPS: 30, SLO: 50, Seconds: 10,
		Offered: 1200, Delivered: int(10 * fps), InTime: int(10*fps) - 3, InTimeFPS: fps, Missed: 0.003,
		Dropped: map[string]uint64{"late": 20, "superseded": 1},
		Capture: spread(30), Queue: spread(12), Pre: spread(1), Infer: spread(16), Post: spread(0.5),
		Batch: 1.5, Busy: 0.9, Resident: 90e6,
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

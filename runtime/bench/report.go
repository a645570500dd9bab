package bench

import (
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/eyas-edge/eyas/internal/machine"
	"github.com/eyas-edge/eyas/memplan"
)

// ReportVersion is the version of the report's format, and of what parent and child say to each other.
const ReportVersion = 1

// Report is what `eyas bench --json` prints. Sizes are bytes, times milliseconds; what was not measured is absent.
type Report struct {
	Version int         `json:"version"`
	Suites  []string    `json:"suites"`
	Stopped bool        `json:"stopped,omitempty"` // a signal came: the last of the suites are missing
	Machine Machine     `json:"machine"`
	Engine  Engine      `json:"engine"`
	Models  []ModelInfo `json:"models"`
	Libc    string      `json:"libc"` // whether the C library's allocations were counted, and why not

	Resident *Resident `json:"resident,omitempty"`
	Time     []Time    `json:"time,omitempty"`
	Steady   []Steady  `json:"steady,omitempty"`
	Touch    []Touch   `json:"touch,omitempty"`
	Start    []Start   `json:"start,omitempty"`
	Soak     []Steady  `json:"soak,omitempty"`

	FirstFrames []FirstFrame   `json:"first_frames,omitempty"`
	Latency     []Frontier     `json:"latency,omitempty"`
	Capture     []Capture      `json:"capture,omitempty"`
	Policies    []PolicyResult `json:"policies,omitempty"`
	Placement   []Placement    `json:"placement,omitempty"`
	Contention  []Contention   `json:"contention,omitempty"`
}

// Machine is where it was measured.
type Machine struct {
	OS       string   `json:"os"`
	Arch     string   `json:"arch"`
	Kernel   string   `json:"kernel"`
	Board    string   `json:"board,omitempty"`
	CPU      string   `json:"cpu"`
	Features []string `json:"features"`
	CPUs     int      `json:"cpus"`
	Memory   uint64   `json:"memory_bytes"`
	// Limits and clocks, where there are any or the system tells.
	MemoryLimit uint64  `json:"memory_limit_bytes,omitempty"` // of the control group
	LockedLimit uint64  `json:"locked_limit_bytes,omitempty"` // absent: none
	Clocks      string  `json:"clocks,omitempty"`             // governor and highest frequency in kHz
	Load        float64 `json:"load"`                         // mean of a minute, before anything was measured: a busy machine has 1 or more
}

// Engine is what ran the models.
type Engine struct {
	ONNXRuntime string `json:"onnxruntime"` // version
	Library     string `json:"library"`     // path
	EP          string `json:"ep"`
	Threads     int    `json:"threads"`
}

// ModelInfo is a model with the batch sizes that were run.
type ModelInfo struct {
	Key     string `json:"model"`
	Path    string `json:"path"`
	Batches []int  `json:"batches"`
}

// Resident compares the memory of two processes that ran all models and batch sizes.
type Resident struct {
	Default Usage   `json:"default"`
	Planned Usage   `json:"planned"`
	Ratio   float64 `json:"ratio"` // of what lies above idle, planned / default
	// Memory is what the planned runtime says of itself, region by region.
	Memory *memplan.Usage `json:"memory,omitempty"`
}

// Usage is the memory of one process.
type Usage struct {
	Idle  Status `json:"idle"`        // the library is loaded, nothing is open
	After Status `json:"after"`       // all models have run, the tensors of the last run still there
	Above int64  `json:"above_bytes"` // resident after, less resident idle
}

// Time compares the run time of one model at one batch size, all candidates alternating in one process.
type Time struct {
	Model    string  `json:"model"`
	Batch    int     `json:"batch"`
	Rounds   int     `json:"rounds"`
	Runs     int     `json:"runs"` // of each candidate in a round
	Default  Latency `json:"default"`
	Planned  Latency `json:"planned"`
	RatioP50 float64 `json:"ratio_p50"` // planned / default, the median of the rounds' ratios
	RatioP99 float64 `json:"ratio_p99"`
	// Shared is the planned runtime with weights and arena in shared memory, RatioShared its p50 against Planned's.
	Shared      Latency `json:"shared"`
	RatioShared float64 `json:"ratio_shared"`
}

// Latency is of one candidate; each figure is the median of the rounds' figures.
type Latency struct {
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`
	// Alternating is the p50 where the batch sizes of the ladder take turns, against P50 of the same round; 0 where
	// there is one size.
	Alternating float64 `json:"alternating,omitempty"`
}

// Steady is one candidate that ran one model again and again.
type Steady struct {
	Model     string `json:"model"`
	Candidate string `json:"candidate"` // default or planned
	Batch     int    `json:"batch"`
	Runs      int    `json:"runs"`

	Requests      *Requests  `json:"requests,omitempty"` // of all runs; planned only: the library does not say
	GoAllocations uint64     `json:"go_allocations"`     // of all runs
	Libc          *LibcCount `json:"libc,omitempty"`
	FaultsPerRun  float64    `json:"page_faults_per_run"`
	Regions       *Pages     `json:"regions,omitempty"` // planned only
	// SlopeKiB is how much the resident memory grows in 1,000 runs, in KiB, by least squares after the first twentieth
	// of the runs. A few hundred runs say little, less than 200 nothing: absent.
	SlopeKiB *float64 `json:"rss_slope_kib_per_1000_runs,omitempty"`
	// Drift is absent where fewer than 400 runs were made.
	Drift    *Drift `json:"drift,omitempty"`
	Resident int64  `json:"resident_bytes"` // at the end
}

// Drift compares the run times of the first quarter and of the last.
type Drift struct {
	First float64 `json:"first_p99_ms"`
	Last  float64 `json:"last_p99_ms"`
	Ratio float64 `json:"ratio"` // last / first
}

// Requests says where the memory of the runs' tensors came from.
type Requests struct {
	Arena int64 `json:"arena"`
	Spill int64 `json:"spill"`
	Heap  int64 `json:"heap"`
}

// LibcCount is the allocations of the C library in one run.
type LibcCount struct {
	Least    uint64 `json:"least"`
	Median   uint64 `json:"median"`
	Most     uint64 `json:"most"`
	Constant bool   `json:"constant"` // least equals most
	Others   int    `json:"others"`   // runs that are not as the median
	Leaked   int64  `json:"leaked"`   // allocations less frees, over all runs
}

// Pages is the runtime's own regions: weights, arena, spill block and tensors.
type Pages struct {
	Bytes  int64 `json:"bytes"`
	Before int64 `json:"present_before_bytes"` // in memory before the runs
	After  int64 `json:"present_after_bytes"`
}

// Start is the time until a model is ready.
type Start struct {
	Model   string  `json:"model"`
	Library float64 `json:"library_ms"` // until ONNX Runtime is loaded
	Read    float64 `json:"read_ms"`    // until it is known what the model is
	Default float64 `json:"default_ms"` // a plain session, before its first run
	// Session is one with its weights in place, before its first run: the model's hash is taken and the cache looked into.
	// Absent where the provider keeps no optimised model.
	Session *ColdWarm `json:"session,omitempty"`
	// Plan is the model read, its session made, its runs recorded and placed.
	Plan ColdWarm `json:"plan"`
	// Open is the whole runtime: the model read, its memory planned, every batch size run.
	Open ColdWarm `json:"open"`
}

// ColdWarm is the medians of starts with nothing in the cache, and with everything in it.
type ColdWarm struct {
	Cold  float64 `json:"cold_ms"`
	Warm  float64 `json:"warm_ms,omitempty"`
	Ratio float64 `json:"ratio,omitempty"` // warm / cold
}

// facts fills in where and with what it is measured.
func (b *bench) facts(ctx context.Context) error {
	system, cpu, memory, locked := machine.ReadSystem("/"), machine.ReadCPU("/"), machine.ReadMemory("/"), machine.ReadLocked()
	b.report.Machine = Machine{
		OS: system.OS, Arch: system.Arch, Kernel: system.Kernel, Board: system.Board,
		CPU: cpu.Model, Features: cpu.Features, CPUs: cpu.Allowed, Memory: memory.Total,
		MemoryLimit: memory.Limit, Clocks: machine.Clocks("/"), Load: load1(),
	}
	if locked.Known && !locked.Unlimited {
		b.report.Machine.LockedLimit = locked.Soft
	}
	rep, err := b.ask(ctx, request{Job: jobFacts})
	if err != nil {
		return err
	}
	b.report.Engine = *rep.Facts
	return nil
}

// load1 returns how many processes have wanted to run over the last minute, 0 where the system does not tell.
func load1() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	load, failed := strconv.ParseFloat(first, 64)
	if err != nil || failed != nil {
		return 0
	}
	return load
}

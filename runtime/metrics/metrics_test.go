package metrics

import (
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.uber.org/goleak"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/memplan"
	eyas "github.com/eyas-edge/eyas/runtime"
)

var update = flag.Bool("update", false, "write docs/metrics.md anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeRuntime says what a test wants.
type fakeRuntime struct {
	sources []eyas.SourceStatus
	usage   memplan.Usage
	plan    memplan.Plan
}

func (f *fakeRuntime) Status() []eyas.SourceStatus     { return f.sources }
func (f *fakeRuntime) Memory() memplan.Usage           { return f.usage }
func (f *fakeRuntime) Plan() *memplan.Plan             { return &f.plan }
func (f *fakeRuntime) EP() string                      { return "cpu" }
func (f *fakeRuntime) BatchLimits() uint64             { return 1 }
func (f *fakeRuntime) Library() (path, version string) { return "/lib/libonnxruntime.so", "1.30.0" }

// example is a runtime of which everything there is can be told.
func example() *fakeRuntime {
	door := eyas.SourceStatus{
		Name: "door", Live: true, State: "lost", Error: "rtsp://viewer:secret@10.0.0.7/: no answer", Format: "nv12", Width: 1280, Height: 720,
		Captured: 100, Delivered: 90, Connects: 2, FPSIn: 30, FPSOut: 27.5, Age: 42 * time.Millisecond,
	}
	door.Dropped[camera.Superseded], door.Dropped[camera.NoSlot] = 9, 1
	rt := &fakeRuntime{
		sources: []eyas.SourceStatus{door, {Name: "clip.mp4", State: "open", Delivered: 7}},
		usage: memplan.Usage{
			Regions:       []memplan.RegionUsage{{Kind: memplan.Weights, Planned: 3000, Measured: 2900}, {Kind: memplan.Engine, Measured: -1}},
			Arena:         memplan.Served{Count: 580, Bytes: 9000},
			Spill:         memplan.Served{Count: 2, Bytes: 10},
			Mismatches:    1,
			Recordings:    3,
			Fragmentation: 0.25, GoAllocs: 0.5, MinorFaults: 0.1,
		},
	}
	rt.plan.Add(memplan.Weights, "ppe", 3000)
	rt.plan.Add(memplan.Arena, "", 5000)
	return rt
}

func exampleResult() *eyas.Result {
	return &eyas.Result{
		Source: "door", Model: "ppe", Captured: time.Now(), Age: 42 * time.Millisecond,
		Timing:     eyas.Timing{Queue: time.Millisecond, Pre: 2 * time.Millisecond, Infer: 30 * time.Millisecond, Post: time.Microsecond, Batch: 2},
		Detections: []eyas.Detection{{Class: "person"}, {Class: "person"}, {Class: "helmet", ClassID: 1}},
	}
}

// told returns a run of which everything there is can be told.
func told() *Metrics {
	m := New("v1.2.3")
	m.Follow(example())
	m.Observe(exampleResult())
	return m
}

// scrape returns what Prometheus gets.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	var log strings.Builder
	to := httptest.NewRecorder()
	m.Handler(slog.New(slog.NewTextHandler(&log, nil))).ServeHTTP(to, httptest.NewRequest("GET", "/metrics", nil))
	if to.Code != 200 || log.Len() > 0 {
		t.Fatalf("status %d, log %q: %s", to.Code, log.String(), to.Body)
	}
	return to.Body.String()
}

func TestFigures(t *testing.T) {
	got := scrape(t, told())
	for _, want := range []string{
		`eyas_build_info{ep="cpu",go="go1.`, `onnxruntime="1.30.0",version="v1.2.3"} 1`,
		`eyas_ready 1`,
		`eyas_source_info{format="nv12",height="720",live="true",source="door",width="1280"} 1`,
		`eyas_source_state{source="door",state="lost"} 1`, `eyas_source_state{source="door",state="open"} 0`,
		`eyas_source_state{source="clip.mp4",state="open"} 1`,
		`eyas_source_connects_total{source="door"} 2`,
		`eyas_frames_captured_total{source="door"} 100`, `eyas_frames_delivered_total{source="door"} 90`,
		`eyas_frames_dropped_total{cause="superseded",source="door"} 9`, `eyas_frames_dropped_total{cause="no slot",source="door"} 1`,
		`eyas_frames_dropped_total{cause="late",source="door"} 0`,
		`eyas_source_captured_frames_per_second{source="door"} 30`, `eyas_source_delivered_frames_per_second{source="door"} 27.5`,
		`eyas_source_age_seconds{source="door"} 0.042`,
		`eyas_plan_bytes{owner="ppe",placement="",region="weights"} 3000`, `eyas_plan_bytes{owner="",placement="",region="arena"} 5000`,
		`eyas_memory_bytes{region="weights"} 2900`,
		`eyas_tensor_requests_total{from="arena"} 580`, `eyas_tensor_requested_bytes_total{from="spill"} 10`,
		`eyas_run_mismatches_total 1`, `eyas_run_recordings_total 3`, `eyas_arena_fragmentation_ratio 0.25`,
		`eyas_go_allocations_per_frame 0.5`, `eyas_page_faults_per_frame{kind="minor"} 0.1`,
		`eyas_latency_seconds_bucket{model="ppe",source="door",le="0.05"} 1`, `eyas_latency_seconds_bucket{model="ppe",source="door",le="0.033"} 0`,
		`eyas_stage_seconds_sum{model="ppe",stage="infer"} 0.03`, `eyas_stage_seconds_sum{model="ppe",stage="queue"} 0.001`,
		`eyas_results_total{model="ppe"} 1`, `eyas_batch_frames_total{model="ppe",size="2"} 1`,
		`eyas_detections_total{class="person",model="ppe"} 2`, `eyas_detections_total{class="helmet",model="ppe"} 1`,
		"go_memstats_heap_alloc_bytes ", "process_open_fds ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %s", want)
		}
	}
	for _, bad := range []string{"secret", "viewer", `eyas_memory_bytes{region="engine"}`, `eyas_source_age_seconds{source="clip.mp4"}`} {
		if strings.Contains(got, bad) {
			t.Errorf("there is %s", bad)
		}
	}
}

func TestBeforeReady(t *testing.T) {
	got := scrape(t, New("dev"))
	for _, want := range []string{"eyas_ready 0\n", `version="dev"} 1`, "process_start_time_seconds "} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %s", want)
		}
	}
	if strings.Contains(got, "eyas_frames") {
		t.Error("there are frames before there are sources")
	}
}

// Whatever users name their sources and models, and however often, there is an answer.
func TestNames(t *testing.T) {
	rt := example()
	rt.sources = nil
	for _, name := range []string{"a", "a", "a-2", "", "\xff\xfe.mp4", "\xff\xfd.mp4", "quote\" back\\slash\nline", "é"} {
		rt.sources = append(rt.sources, eyas.SourceStatus{Name: name, State: "open", Live: true})
	}
	rt.plan.Add(memplan.Weights, "\xff", 1)
	m := New("v1")
	m.Follow(rt)
	for _, name := range []string{"\xff", "\xfe", "x\n"} {
		res := exampleResult()
		res.Source, res.Model, res.Detections[0].Class = name, name, name
		m.Observe(res)
	}
	got := scrape(t, m)
	for _, want := range []string{`{source="a"}`, `{source="a-2"}`, `{source="a-2-2"}`, `{source="quote\" back\\slash\nline"}`, `{model="x\n"}`} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %s", want)
		}
	}
	if n := strings.Count(got, "\neyas_source_connects_total{"); n != len(rt.sources) {
		t.Errorf("%d of %d sources", n, len(rt.sources))
	}
}

// What comes from files, of which there may be any number, makes no series of its own.
func TestSeriesAreBounded(t *testing.T) {
	m := New("v1")
	res := exampleResult()
	res.Captured = time.Time{}
	for i := range 2000 {
		res.Source = fmt.Sprintf("photos/%d.jpg", i)
		res.Detections[0].ClassID, res.Detections[0].Class = i, fmt.Sprint("class ", i)
		m.Observe(res)
	}
	got := scrape(t, m)
	if strings.Contains(got, "photos/") {
		t.Error("pictures have series of their own")
	}
	if n := strings.Count(got, "\neyas_detections_total{"); n != maxClasses+1 {
		t.Errorf("%d series of classes, want %d", n, maxClasses+1)
	}
	if !strings.Contains(got, `{class="other",model="ppe"}`) {
		t.Error("the classes that have no series are not counted together")
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	m, res := New("v1"), exampleResult()
	m.Observe(res)
	if got := testing.AllocsPerRun(100, func() { m.Observe(res) }); got != 0 {
		t.Errorf("%v allocations a result", got)
	}
}

func TestNamesFollowTheConventions(t *testing.T) {
	families, err := told().registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

const docHead = `# Metrics

` + "`eyas run --http ADDR`" + ` serves them at ` + "`/metrics`" + `, in the text format of Prometheus; a program of your own uses package ` + "`runtime/metrics`" + `. ADDR without a
host, such as ` + "`:8090`" + `, is 127.0.0.1: other machines are let in only where that was written (` + "`0.0.0.0:8090`" + `), and whoever is let in may look.

` + "```yaml" + `
scrape_configs:
  - job_name: eyas
    static_configs: [{targets: ["127.0.0.1:8090"]}]
` + "```" + `

Labels hold names as results show them. The latency of a source is there for live sources only; pictures of folders have no series of their own.

| to see | query |
|---|---|
| p99 from capture to result | ` + "`histogram_quantile(0.99, sum by (source, le) (rate(eyas_latency_seconds_bucket[5m])))`" + ` |
| share of frames dropped | ` + "`sum by (source) (rate(eyas_frames_dropped_total[5m])) / sum by (source) (rate(eyas_frames_captured_total[5m]))`" + ` |
| a camera that is away | ` + "`eyas_source_state{state=\"open\"} == 0`" + ` |
| runs a second | ` + "`sum by (model) (rate(eyas_batch_frames_total{size=\"1\"}[5m]))`" + `, and for a larger size divided by it |
| memory beside the plan | ` + "`rate(eyas_tensor_requests_total{from!=\"arena\"}[5m]) > 0`" + ` |

| metric | type | labels | meaning |
|---|---|---|---|
`

const docTail = `
This table is written by ` + "`go test ./runtime/metrics -run TestMetricsAreDocumented -update`" + `.

Beside these there are the usual ones of Prometheus' Go library: ` + "`go_`" + ` about the Go heap, goroutines and collections, and ` + "`process_`" + ` about CPU time, resident
memory, descriptors and the start of the process.
`

// The table of the documentation is what a run tells.
func TestMetricsAreDocumented(t *testing.T) {
	families, err := told().registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	got.WriteString(docHead)
	for _, f := range families {
		if name := f.GetName(); strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue // which there are is up to the version of Go
		}
		labels := map[string]bool{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels["`"+l.GetName()+"`"] = true
			}
		}
		fmt.Fprintf(&got, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()),
			strings.Join(slices.Sorted(maps.Keys(labels)), ", "), strings.ReplaceAll(f.GetHelp(), "|", `\|`))
	}
	got.WriteString(docTail)
	path := filepath.Join(testenv.Root(), "docs", "metrics.md")
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("%s is not what a run tells: run this test with -update", path)
	}
}

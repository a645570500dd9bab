package metrics

import (
	"fmt"
	goruntime "runtime"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eyas-edge/eyas/memplan"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// Runtime is what is asked each time somebody collects.
type Runtime interface {
	Status() []eyas.SourceStatus
	Memory() memplan.Usage
	Plan() *memplan.Plan
	EP() string
	Library() (path, version string)
	BatchLimits() uint64
}

// states are those of eyas.SourceStatus.
var states = []string{"connecting", "open", "lost", "ended", "failed"}

// run collects from a runtime.
type run struct {
	version string
	runtime atomic.Pointer[Runtime] // nil until it is ready
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// What a run collects. The comments of docs/metrics.md are these texts.
var (
	buildInfo = desc("eyas_build_info", "1; the labels say what runs.", "version", "go", "ep", "onnxruntime")
	ready     = desc("eyas_ready", "1 once the models are warmed, else 0.")

	sourceInfo   = desc("eyas_source_info", "1; the labels say what the frames of a source are.", "source", "live", "format", "width", "height")
	sourceState  = desc("eyas_source_state", "1 for the state that a source is in, 0 for the others: connecting, open, lost, ended, failed.", "source", "state")
	connects     = desc("eyas_source_connects_total", "Connections of a live source that gave a frame.", "source")
	captured     = desc("eyas_frames_captured_total", "Frames captured, whatever became of them.", "source")
	delivered    = desc("eyas_frames_delivered_total", "Frames that became results.", "source")
	dropped      = desc("eyas_frames_dropped_total", "Frames that became no result, by cause: late, superseded, corrupt, stalled, no slot, unfinished.", "source", "cause")
	capturedRate = desc("eyas_source_captured_frames_per_second", "Frames captured a second, over the last few.", "source")
	yieldedRate  = desc("eyas_source_delivered_frames_per_second", "Frames delivered a second, over the last few.", "source")
	sourceAge    = desc("eyas_source_age_seconds", "Time from capture to result of the last delivered frame of a live source.", "source")

	planned       = desc("eyas_plan_bytes", "Memory planned before the first frame, by kind of region, who it is for, and where it lies.", "region", "owner", "placement")
	measured      = desc("eyas_memory_bytes", "Memory that is in use of each kind of region; missing where it cannot be measured.", "region")
	requests      = desc("eyas_tensor_requests_total", "Requests for tensors since the start, by what served them: arena, spill, heap. The last two are fall-backs.", "from")
	requested     = desc("eyas_tensor_requested_bytes_total", "Bytes of these requests.", "from")
	mismatches    = desc("eyas_run_mismatches_total", "Runs that left their schedule of memory.")
	recordings    = desc("eyas_run_recordings_total", "Runs that were recorded, those before the first frame included.")
	batchLimits   = desc("eyas_batch_limits_total", "How often the largest batches were taken out because memory was short.")
	missed        = desc("eyas_frames_missed_total", "Delivered frames whose results came after the SLO.", "source")
	fragmentation = desc("eyas_arena_fragmentation_ratio", "1 - most bytes alive at once / bytes reserved for them.")
	allocations   = desc("eyas_go_allocations_per_frame", "Go allocations of the process a frame, after warm-up. Looking at metrics and views allocates, too.")
	faults        = desc("eyas_page_faults_per_frame", "Page faults of the process a frame, after warm-up: minor ones were answered from memory, major ones from a disk.", "kind")
)

// Describe is prometheus.Collector's.
func (r *run) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		buildInfo, ready,
		sourceInfo, sourceState, connects, captured, delivered, missed, dropped, capturedRate, yieldedRate, sourceAge,
		planned, measured, requests, requested, mismatches, recordings, batchLimits, fragmentation, allocations, faults,
	} {
		to <- d
	}
}

// out is where one collection goes.
type out chan<- prometheus.Metric

func (o out) gauge(d *prometheus.Desc, v float64, labels ...string) {
	o <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (o out) count(d *prometheus.Desc, n uint64, labels ...string) {
	o <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

// Collect is prometheus.Collector's.
func (r *run) Collect(to chan<- prometheus.Metric) {
	o := out(to)
	rt := r.runtime.Load()
	if rt == nil {
		o.gauge(ready, 0)
		o.gauge(buildInfo, 1, label(r.version), goruntime.Version(), "", "")
		return
	}
	o.gauge(ready, 1)
	_, library := (*rt).Library()
	o.gauge(buildInfo, 1, label(r.version), goruntime.Version(), label((*rt).EP()), label(library))
	names := map[string]bool{}
	for _, st := range (*rt).Status() {
		o.source(unique(label(st.Name), names), &st)
	}
	o.plan((*rt).Plan())
	o.count(batchLimits, (*rt).BatchLimits())
	usage := (*rt).Memory()
	o.memory(&usage)
}

// unique returns the name, with a number if there was one like it: the same text may be given as two sources, and the
// registry refuses all when two metrics look the same.
func unique(name string, seen map[string]bool) string {
	free := name
	for i := 2; seen[free]; i++ {
		free = fmt.Sprintf("%s-%d", name, i)
	}
	seen[free] = true
	return free
}

func (o out) source(name string, st *eyas.SourceStatus) {
	o.gauge(sourceInfo, 1, name, strconv.FormatBool(st.Live), st.Format, strconv.Itoa(st.Width), strconv.Itoa(st.Height))
	for _, state := range states {
		var in float64
		if state == st.State {
			in = 1
		}
		o.gauge(sourceState, in, name, state)
	}
	o.count(connects, st.Connects, name)
	o.count(missed, st.Missed, name)
	o.count(captured, st.Captured, name)
	o.count(delivered, st.Delivered, name)
	st.Dropped.Each(func(cause string, n uint64) { o.count(dropped, n, name, cause) })
	o.gauge(capturedRate, st.FPSIn, name)
	o.gauge(yieldedRate, st.FPSOut, name)
	if st.Live {
		o.gauge(sourceAge, st.Age.Seconds(), name)
	}
}

// plan tells the regions; several of a kind for the same owner are told together.
func (o out) plan(p *memplan.Plan) {
	if p == nil {
		return
	}
	type key struct{ kind, owner, placement string }
	bytes := map[key]int64{}
	for _, r := range p.Regions {
		bytes[key{string(r.Kind), label(r.Owner), string(r.Placement)}] += r.Bytes
	}
	for k, n := range bytes {
		o.gauge(planned, float64(n), k.kind, k.owner, k.placement)
	}
}

func (o out) memory(u *memplan.Usage) {
	for _, r := range u.Regions {
		if r.Measured >= 0 {
			o.gauge(measured, float64(r.Measured), string(r.Kind))
		}
	}
	for _, s := range []struct {
		from string
		memplan.Served
	}{{"arena", u.Arena}, {"spill", u.Spill}, {"heap", u.Heap}} {
		o.count(requests, uint64(max(s.Count, 0)), s.from)
		o.count(requested, uint64(max(s.Bytes, 0)), s.from)
	}
	o.count(mismatches, uint64(max(u.Mismatches, 0)))
	o.count(recordings, uint64(max(u.Recordings, 0)))
	o.gauge(fragmentation, u.Fragmentation)
	o.gauge(allocations, u.GoAllocs)
	o.gauge(faults, u.MinorFaults, "minor")
	o.gauge(faults, u.MajorFaults, "major")
}

package metrics

import (
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	eyas "github.com/eyas-edge/eyas/runtime"
)

// maxClasses is the most classes of a model that are counted by name; the others are counted together as
// "other". Models of some thousand classes exist, and each class is a series.
const maxClasses = 256

// The buckets of the histograms, in seconds: those from capture to result hold the usual limits and frame
// intervals, those of the stages begin where a fast machine is.
var (
	latencyBuckets = []float64{.005, .01, .02, .033, .05, .066, .1, .15, .2, .3, .5, 1, 2, 5}
	stageBuckets   = []float64{.00025, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2}
)

// Metrics is what one run tells, in a registry of its own.
type Metrics struct {
	registry *prometheus.Registry
	run      run

	latency    *prometheus.HistogramVec
	stages     *prometheus.HistogramVec
	results    *prometheus.CounterVec
	batches    *prometheus.CounterVec
	detections *prometheus.CounterVec

	mu      sync.Mutex
	models  map[string]*model
	sources map[string]map[string]prometheus.Observer // latency by source and model
}

// model holds the series of one model, found once.
type model struct {
	results                 prometheus.Counter
	queue, pre, infer, post prometheus.Observer
	batches                 map[int]prometheus.Counter
	classes                 map[int]prometheus.Counter // by ClassID
	other                   prometheus.Counter
}

// New returns the metrics of a run of this build; version is Eyas' own. Before Follow they tell of the process.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		run:      run{version: version},
		models:   map[string]*model{},
		sources:  map[string]map[string]prometheus.Observer{},

		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "eyas_latency_seconds", Help: "Time from capture to result, of live sources.", Buckets: latencyBuckets,
		}, []string{"source", "model"}),
		stages: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "eyas_stage_seconds", Buckets: stageBuckets,
			Help: "Time of a frame in each stage: queue (waiting), pre (picture to tensor), infer (the model), post (boxes).",
		}, []string{"model", "stage"}),
		results: counters("eyas_results_total", "Results: one for each frame and model.", "model"),
		batches: counters("eyas_batch_frames_total", "Frames by the size of the batch that they ran in; divided by the size these are runs.", "model", "size"),
		detections: counters("eyas_detections_total", "Detections by class; beyond "+strconv.Itoa(maxClasses)+
			` classes of a model the rest counts as "other".`, "model", "class"),
	}
	m.registry.MustRegister(m.latency, m.stages, m.results, m.batches, m.detections, &m.run,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// Follow has the metrics tell of a runtime that is ready.
func (m *Metrics) Follow(rt Runtime) { m.run.runtime.Store(&rt) }

// Handler answers with all metrics, for a few who ask at the same time. log takes what cannot be collected; the rest
// is answered all the same.
func (m *Metrics) Handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: 4, // each measures the memory, which takes a moment
		Timeout:             5 * time.Second,
	})
}

// Observe counts a result. It may be called from several goroutines.
func (m *Metrics) Observe(res *eyas.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.models[res.Model]
	if s == nil {
		s = m.newModel(res.Model)
	}
	s.results.Inc()
	if !res.Captured.IsZero() {
		m.latencyOf(res.Source, res.Model).Observe(res.Age.Seconds())
	}
	s.queue.Observe(res.Timing.Queue.Seconds())
	s.pre.Observe(res.Timing.Pre.Seconds())
	s.infer.Observe(res.Timing.Infer.Seconds())
	s.post.Observe(res.Timing.Post.Seconds())
	m.batch(s, res).Inc()
	for i := range res.Detections {
		m.class(s, res.Model, &res.Detections[i]).Inc()
	}
}

func (m *Metrics) newModel(key string) *model {
	name := label(key)
	stage := func(s string) prometheus.Observer { return m.stages.WithLabelValues(name, s) }
	s := &model{
		results: m.results.WithLabelValues(name),
		queue:   stage("queue"), pre: stage("pre"), infer: stage("infer"), post: stage("post"),
		batches: map[int]prometheus.Counter{}, classes: map[int]prometheus.Counter{},
	}
	m.models[key] = s
	return s
}

func (m *Metrics) latencyOf(source, model string) prometheus.Observer {
	byModel := m.sources[source]
	if byModel == nil {
		byModel = map[string]prometheus.Observer{}
		m.sources[source] = byModel
	}
	o := byModel[model]
	if o == nil {
		o = m.latency.WithLabelValues(label(source), label(model))
		byModel[model] = o
	}
	return o
}

func (m *Metrics) batch(s *model, res *eyas.Result) prometheus.Counter {
	c := s.batches[res.Timing.Batch]
	if c == nil {
		c = m.batches.WithLabelValues(label(res.Model), strconv.Itoa(res.Timing.Batch))
		s.batches[res.Timing.Batch] = c
	}
	return c
}

func (m *Metrics) class(s *model, key string, d *eyas.Detection) prometheus.Counter {
	if c := s.classes[d.ClassID]; c != nil {
		return c
	}
	if len(s.classes) == maxClasses {
		if s.other == nil {
			s.other = m.detections.WithLabelValues(label(key), "other")
		}
		return s.other
	}
	c := m.detections.WithLabelValues(label(key), label(d.Class))
	s.classes[d.ClassID] = c
	return c
}

// label makes a name one that Prometheus takes: names of files need not be UTF-8.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eyas-edge/eyas/internal/testenv"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// options returns a short measurement of some asset models.
func options(t *testing.T, batch []int, models ...string) Options {
	t.Helper()
	lib, assets := testenv.Library(t), testenv.Assets(t)
	o := Options{
		Config:   eyas.Config{ORT: lib, Threads: 1, Batch: batch, Models: map[string]eyas.ModelConfig{}},
		Duration: time.Millisecond, Runs: 30, Self: self("child"),
	}
	for _, m := range models {
		o.Config.Models[m] = eyas.ModelConfig{Path: filepath.Join(assets, "models", m+".onnx")}
	}
	return o
}

// Two models and a ladder: every figure is there, and what can be known is right.
func TestMemorySuite(t *testing.T) {
	o := options(t, []int{2, 1}, "yolox_nano_dynbatch", "yolox_nano_person_192")
	var said []string
	o.Progress = func(text string) { said = append(said, text) }
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(said) < 5 {
		t.Errorf("progress: %q", said)
	}
	checkHead(t, r)
	if m := r.Resident; m == nil || m.Default.Above <= 0 || m.Planned.Above <= 0 || m.Ratio <= 0 ||
		m.Planned.After.Resident-m.Planned.Idle.Resident != m.Planned.Above {
		t.Errorf("resident memory: %+v", m)
	}
	var sizes []int
	for _, m := range r.Time {
		sizes = append(sizes, m.Batch)
		alternates := m.Model == "yolox_nano_dynbatch"
		if m.Rounds != rounds || m.Runs < leastRuns || m.Default.P50 <= 0 || m.Planned.P99 < m.Planned.P50 || m.RatioP50 <= 0 ||
			m.Planned.Alternating > 0 != alternates {
			t.Errorf("time: %+v", m)
		}
	}
	if d := cmp.Diff([]int{1, 2, 1}, sizes); d != "" {
		t.Errorf("batch sizes: %s", d)
	}
	if len(r.Steady) != 4 {
		t.Fatalf("steady states: %+v", r.Steady)
	}
	for _, s := range r.Steady {
		checkSteady(t, s, r.Libc == "counted")
	}
	for _, m := range r.Touch {
		if (m.Missing == "") != (m.First > 0 && m.Again > 0) {
			t.Errorf("first touch: %+v", m)
		}
	}
	checkDocuments(t, r, 20, "planned / default", "bit-identical", "first touch")
}

func checkHead(t *testing.T, r *Report) {
	t.Helper()
	if r.Version != ReportVersion || r.Machine.CPUs < 1 || r.Engine.EP != "cpu" || r.Engine.Threads != 1 || r.Engine.ONNXRuntime == "" {
		t.Errorf("head: %+v", r)
	}
	if len(r.Models) != 2 || len(r.Models[0].Batches) != 2 || len(r.Models[1].Batches) != 1 {
		t.Errorf("models: %+v", r.Models)
	}
}

func checkSteady(t *testing.T, s Steady, libc bool) {
	t.Helper()
	if s.Runs < 1 || s.Resident == 0 {
		t.Errorf("steady: %+v", s)
	}
	if s.Candidate == planned && (s.Requests == nil || s.Requests.Arena < int64(s.Runs) || s.Requests.Heap != 0) {
		t.Errorf("steady: requests %+v", s.Requests)
	}
	if libc != (s.Libc != nil) || libc && (s.Libc.Least == 0 || s.Libc.Most < s.Libc.Least) {
		t.Errorf("steady: libc %+v", s.Libc)
	}
	if p := s.Regions; p != nil && (p.Bytes == 0 || p.Before > p.Bytes || p.After > p.Bytes) {
		t.Errorf("steady: %+v", p)
	}
}

// checkDocuments writes the report in both forms and reads it again.
func checkDocuments(t *testing.T, r *Report, figures int, parts ...string) {
	t.Helper()
	var doc, text bytes.Buffer
	if err := errors.Join(r.JSON(&doc), r.Text(&text)); err != nil {
		t.Fatal(err)
	}
	back, err := parseReport(doc.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r, back); d != "" {
		t.Errorf("read again: %s", d)
	}
	if c := Compare(r, back); !c.SameMachine || len(c.Figures) < figures {
		t.Errorf("compared with itself: %+v", c)
	}
	for _, part := range parts {
		if !strings.Contains(text.String(), part) {
			t.Errorf("no %q in:\n%s", part, text.String())
		}
	}
}

func TestSoakSuite(t *testing.T) {
	o := options(t, nil, "yolox_nano_person_192")
	o.Suites, o.Runs, o.Duration = []string{SuiteSoak}, 220, 0
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Soak) != 1 || r.Soak[0].Runs != 220 || r.Soak[0].SlopeKiB == nil || r.Resident != nil || r.Steady != nil {
		t.Errorf("%+v", r)
	}
	checkSteady(t, r.Soak[0], r.Libc == "counted")
}

// quick returns a suite on the smallest model, with seconds of measuring.
func quick(t *testing.T, suite string) Options {
	t.Helper()
	o := options(t, nil, "yolox_nano_person_192")
	o.Config.SLO = 30 * time.Second // nothing is refused, however busy the machine is
	o.Suites, o.Runs, o.Duration = []string{suite}, 5, 100*time.Millisecond
	o.Cameras, o.FPS, o.Idle = 2, 50, time.Millisecond
	return o
}

// runSuite runs one.
func runSuite(t *testing.T, o Options) *Report {
	t.Helper()
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func checkServed(t *testing.T, s *Served) {
	t.Helper()
	if s.Offered != 5*s.Cameras || s.Delivered < 1 || s.InTime != s.Delivered || s.Offered != s.Delivered+int(s.dropped()) {
		t.Errorf("%d offered, %d delivered, %d in time, %v dropped", s.Offered, s.Delivered, s.InTime, s.Dropped)
	}
	if c := s.Capture; c.Samples != s.Delivered || c.Min <= 0 || c.P50 > c.P99 || c.P99 > c.Max || s.Infer.Min <= 0 || s.Busy <= 0 || s.Batch < 1 {
		t.Errorf("%+v", s)
	}
}

func TestLatencySuite(t *testing.T) {
	r := runSuite(t, quick(t, SuiteLatency))
	if len(r.Latency) != 1 || len(r.Latency[0].Points) == 0 || len(r.Capture) != 1 {
		t.Fatalf("%+v", r)
	}
	marked := 0
	for _, p := range r.Latency[0].Points {
		if p.FPS <= 0 || p.Run.P50 <= 0 || p.Alone.P99 < p.Alone.P50 || p.Busy <= 0 || p.Busy > 1 {
			t.Errorf("%+v", p)
		}
		if p.Mark == picked {
			marked++
		}
	}
	if marked != 1 || r.Latency[0].Choice.Why == "" {
		t.Errorf("%d points are picked, because %q", marked, r.Latency[0].Choice.Why)
	}
	checkServed(t, &r.Capture[0].Served)
	checkServed(t, &r.Capture[0].Overload)
	checkDocuments(t, r, 10, "--slo 30s picks", "Throughput:", "picked")
}

func TestStartSuite(t *testing.T) {
	r := runSuite(t, quick(t, SuiteStart))
	for _, s := range r.Start {
		if s.Library <= 0 || s.Read <= 0 || s.Default <= 0 || s.Session == nil || s.Session.Ratio <= 0 || s.Plan.Ratio <= 0 || s.Open.Ratio <= 0 {
			t.Errorf("start: %+v", s)
		}
	}
	if len(r.Start) != 1 || len(r.FirstFrames) != 1 || r.FirstFrames[0].FirstRatio <= 0 || r.FirstFrames[0].IdleWorst < r.FirstFrames[0].IdleRatio {
		t.Errorf("%+v", r.FirstFrames)
	}
	checkDocuments(t, r, 8, "default session", "after idling")
}

func TestPoliciesSuite(t *testing.T) {
	r := runSuite(t, quick(t, SuitePolicies))
	if len(r.Policies) != len(contest) {
		t.Fatalf("%+v", r.Policies)
	}
	for _, p := range r.Policies {
		if len(p.Rounds) != policyRounds {
			t.Errorf("%s: %d rounds", p.Policy, len(p.Rounds))
		}
		for i := range p.Rounds {
			checkServed(t, &p.Rounds[i])
		}
	}
	checkDocuments(t, r, 3*len(contest), "early drop 8", "fixed 4")
}

func TestPlacementSuite(t *testing.T) {
	r := runSuite(t, quick(t, SuitePlacement))
	if len(r.Placement) != len(layouts) {
		t.Fatalf("%+v", r.Placement)
	}
	for _, p := range r.Placement {
		if (p.Missing == "") != (p.Load > 0 && p.First > 0 && p.FPS > 0 && p.P50 > 0) {
			t.Errorf("%+v", p)
		}
	}
	checkDocuments(t, r, 12, "as planned", "default session")
}

func TestContentionSuite(t *testing.T) {
	r := runSuite(t, quick(t, SuiteContention))
	if len(r.Contention) != 6 {
		t.Fatalf("%+v", r.Contention)
	}
	for _, c := range r.Contention {
		if len(c.Rounds)+c.Refused+c.Killed != contentionRounds || c.Group == "" {
			t.Errorf("%+v", c)
		}
		if others := len(c.Corun) + c.CoKilled; c.Beside == alone && others != 0 || c.Beside != alone && others != contentionRounds {
			t.Errorf("%s: %d co-runners", c.Beside, others)
		}
		for i := range c.Rounds {
			checkServed(t, &c.Rounds[i])
		}
	}
	checkDocuments(t, r, 12, "Control group", "bursts")
}

// A signal ends a measurement with what there is.
func TestStopped(t *testing.T) {
	o := quick(t, SuiteMemory)
	o.Suites = []string{SuiteStart, SuiteSoak}
	ctx, cancel := context.WithCancel(t.Context())
	o.Progress = func(text string) {
		if strings.HasPrefix(text, "soak") {
			cancel()
		}
	}
	r, err := Run(ctx, o)
	if !errors.Is(err, context.Canceled) || r == nil || !r.Stopped || len(r.Start) != 1 || r.Soak != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	checkDocuments(t, r, 4, "stopped before the end")
}

// What is wrong is said before anything is measured, with its kind.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		want string
		is   error
	}{
		{"unknown suite", Options{Suites: []string{"memory", "speed"}}, `suite "speed" is not known: use latency, start, policies`, eyas.ErrConfig},
		{"no SLO", Options{Suites: []string{"policies"}, Config: eyas.Config{SLO: eyas.NoSLO}}, "slo none", eyas.ErrConfig},
		{"too many cameras", Options{Cameras: 1 << 20}, "1048576 cameras: use 1 to 1024", eyas.ErrConfig},
		{"cameras below zero", Options{Cameras: -1}, "-1 cameras", eyas.ErrConfig},
		{"no rate", Options{FPS: math.NaN()}, "NaN frames a second", eyas.ErrConfig},
		{"a rate below zero", Options{FPS: -5}, "-5 frames a second", eyas.ErrConfig},
		{"too long", Options{Duration: 48 * time.Hour}, "at most 24h", eyas.ErrConfig},
		{"idle below zero", Options{Idle: -1}, "below zero", eyas.ErrConfig},
		{"negative", Options{Runs: -1}, "below zero", eyas.ErrConfig},
		{"no model", Options{}, "no model", eyas.ErrConfig},
		{"bad configuration", Options{Config: eyas.Config{EP: "gpu"}}, `ep "gpu" is not known`, eyas.ErrConfig},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Run(t.Context(), c.o)
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	o := options(t, nil, "no_such_model")
	if _, err := Run(t.Context(), o); !errors.Is(err, eyas.ErrModel) {
		t.Errorf("unknown model: %v", err)
	}
	o = options(t, []int{0}, "yolox_nano_person_192")
	if _, err := Run(t.Context(), o); !errors.Is(err, eyas.ErrConfig) {
		t.Errorf("batch 0: %v", err)
	}
}

// FuzzReport: no document, however strange, does more than fail to be read.
func FuzzReport(f *testing.F) {
	doc, err := json.Marshal(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(doc)
	f.Add([]byte(`{"version":1}`))
	f.Add([]byte(`{"version":1,"steady":[{"runs":-1,"requests":{},"regions":{}}],"time":[{}],"resident":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseReport(data)
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := errors.Join(r.Text(&out), Compare(r, r).Text(&out), Compare(r, sample()).JSON(&out)); err != nil {
			t.Error(err)
		}
	})
}

package bench

import (
	"bytes"
	"encoding/json"
	"errors"
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
	for _, s := range r.Start {
		if s.Default <= 0 || s.Session == nil || s.Session.Ratio <= 0 || s.Open.Ratio <= 0 {
			t.Errorf("start: %+v", s)
		}
	}
	checkDocuments(t, r)
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
func checkDocuments(t *testing.T, r *Report) {
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
	if c := Compare(r, back); !c.SameMachine || len(c.Figures) < 20 {
		t.Errorf("compared with itself: %+v", c)
	}
	for _, part := range []string{"planned / default", "bit-identical", "default session"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("no %q in:\n%s", part, text.String())
		}
	}
}

func TestSoakSuite(t *testing.T) {
	o := options(t, nil, "yolox_nano_person_192")
	o.Suites, o.Runs, o.Duration = []string{Soak}, 220, 0
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Soak) != 1 || r.Soak[0].Runs != 220 || r.Soak[0].SlopeKiB == nil || r.Resident != nil || r.Steady != nil {
		t.Errorf("%+v", r)
	}
	checkSteady(t, r.Soak[0], r.Libc == "counted")
}

// What is wrong is said before anything is measured, with its kind.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		want string
		is   error
	}{
		{"suite of later", Options{Suites: []string{"memory", "latency"}}, "suite latency: not yet in this version", eyas.ErrNotYet},
		{"unknown suite", Options{Suites: []string{"speed"}}, `suite "speed" is not known: use memory or soak`, eyas.ErrConfig},
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

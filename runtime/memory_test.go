package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/internal/machine"
	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/memplan"
	eyas "github.com/eyas-edge/eyas/runtime"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// rawFrames is a file of so many grey frames: every one is looked at.
func rawFrames(t *testing.T, frames int) camera.Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "grey.raw")
	if err := os.WriteFile(path, bytes.Repeat([]byte{114}, 320*240*frames), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := camera.Open("raw:" + path + "?format=gray&size=320x240&fps=30")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What is planned before the first frame is what is there after many: every page of it, nothing from the heap.
func TestRunsKeepToThePlan(t *testing.T) {
	home := t.TempDir()
	t.Setenv("EYAS_HOME", home)
	cfg := eyas.Config{ORT: testenv.Library(t), Batch: []int{1, 2}, Models: map[string]eyas.ModelConfig{
		"a": {Path: filepath.Join(testenv.Assets(t), "models", "yolox_nano_dynbatch.onnx")},
		"b": {Path: filepath.Join(testenv.Assets(t), "models", "yolox_nano_person_192.onnx")},
	}}
	for _, c := range []struct {
		name     string
		recorded int64
	}{{"first start", 2 * 4}, {"second start", 0}} {
		t.Run(c.name, func(t *testing.T) {
			rt, err := eyas.Open(context.Background(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer rt.Close()
			for _, err := range rt.Stream(context.Background(), rawFrames(t, 40)) {
				if err != nil {
					t.Fatal(err)
				}
			}
			u := rt.Memory()
			t.Logf("%+v\n%v", u, rt.Plan())
			if u.Frames != 40 || u.Arena.Count == 0 || u.Heap.Count != 0 || u.Spill.Count != 0 || u.Mismatches != 0 {
				t.Errorf("%d frames; requests served: %v from the arena, %v from the spill block, %v from the heap; %d mismatches",
					u.Frames, u.Arena, u.Spill, u.Heap, u.Mismatches)
			}
			if u.Recordings != c.recorded {
				t.Errorf("%d runs were recorded, want %d", u.Recordings, c.recorded)
			}
			for _, r := range u.Regions {
				switch r.Kind {
				case memplan.Weights, memplan.Arena, memplan.Spill, memplan.Tensors:
					if r.Measured != r.Planned {
						t.Errorf("%s: %d bytes planned, %d in memory", r.Kind, r.Planned, r.Measured)
					}
				case memplan.Headroom:
					if r.Measured != 0 {
						t.Errorf("%d bytes of headroom were used", r.Measured)
					}
				}
			}
		})
	}
}

// A budget and a quota just above the need run, just below are refused with both numbers.
func TestBudgetAndQuota(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	cfg := func(budget, quota int64) eyas.Config {
		return eyas.Config{ORT: testenv.Library(t), Budget: eyas.Size(budget), Models: map[string]eyas.ModelConfig{
			"m": {Path: filepath.Join(testenv.Assets(t), "models", "yolox_nano_person_192.onnx"), Quota: eyas.Size(quota)},
		}}
	}
	// Three starts: the first optimises the model, the second measures what engine and Go take.
	for range 2 {
		rt := open(t, cfg(0, 0))
		for _, err := range rt.Stream(context.Background(), rawFrames(t, 20)) {
			if err != nil {
				t.Fatal(err)
			}
		}
		rt.Close()
	}
	need := func(budget, quota int64) int64 {
		rt, err := eyas.Open(context.Background(), cfg(budget, quota))
		var shortage *memplan.Shortage
		if !errors.As(err, &shortage) {
			rt.Close()
			t.Fatalf("one byte is enough: %v", err)
		}
		return shortage.Need
	}
	total, quota := need(1, 0), need(0, 1)
	if quota < 5<<20 || total < quota+10<<20 {
		t.Errorf("%d bytes needed of the budget, %d of the quota: too little", total, quota)
	}
	for _, c := range []struct {
		name          string
		budget, quota int64
		fits          bool
	}{
		{"budget above", total, 0, true}, {"budget below", total - 1, 0, false},
		{"quota above", 0, quota, true}, {"quota below", 0, quota - 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			rt, err := eyas.Open(context.Background(), cfg(c.budget, c.quota))
			if err == nil {
				rt.Close()
			}
			if c.fits && err != nil || !c.fits && !errors.Is(err, eyas.ErrBudget) {
				t.Error(err)
			} else if err != nil {
				t.Log(err)
			}
		})
	}
}

// What is too large by far is refused before it is run.
func TestBudgetIsCheckedFirst(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	before := ort.Totals()
	_, err := eyas.Open(context.Background(), eyas.Config{ORT: testenv.Library(t), Budget: 16 << 20, Models: map[string]eyas.ModelConfig{
		"m": {Path: filepath.Join(testenv.Assets(t), "models", "yolov8n_qdq_op11_640.onnx")},
	}})
	var shortage *memplan.Shortage
	if !errors.Is(err, eyas.ErrBudget) || !errors.As(err, &shortage) || shortage.Have != 16<<20 {
		t.Fatal(err)
	}
	if n := ort.Totals().Minus(before).Runs; n != 0 {
		t.Errorf("the model has run %d times", n)
	}
}

// A runner runs each batch of the ladder on the bytes that it is given.
func TestRunner(t *testing.T) {
	rt := open(t, eyas.Config{Batch: []int{1, 2}, Models: map[string]eyas.ModelConfig{
		"m": {Path: filepath.Join(testenv.Assets(t), "models", "yolox_nano_dynbatch.onnx")},
	}})
	m := rt.Model("m")
	if r, err := m.Runner(context.Background(), 3); err == nil {
		r.Close()
		t.Error("a batch of 3 is not in the ladder, and runs")
	}
	var one []byte
	for _, n := range []int{1, 2} {
		r, err := m.Runner(context.Background(), n)
		if err != nil {
			t.Fatal(err)
		}
		in := r.Input()
		for i := range in {
			in[i] = byte(i % (len(in) / n) & 0x3f) // the same picture n times; float32 of small numbers
		}
		if err := r.Run(); err != nil {
			t.Fatal(err)
		}
		out := r.Outputs()[0].Data
		if n == 1 {
			one = bytes.Clone(out)
		} else if !bytes.Equal(out[len(one):], one) || len(out) != 2*len(one) {
			t.Error("the second of two equal pictures gets another answer than one alone")
		}
		if allocs := testing.AllocsPerRun(5, func() {
			if err := r.Run(); err != nil {
				t.Error(err)
			}
		}); allocs != 0 {
			t.Errorf("batch %d: %v Go allocations a run", n, allocs)
		}
		r.Close()
	}
}

// Every kind of placement gives the same results; shared memory shows as that of the process.
func TestPlacements(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	var want []byte
	for _, placement := range []string{"", "dedicated", "shared"} {
		rt := open(t, eyas.Config{Placement: placement, Models: map[string]eyas.ModelConfig{
			"m": {Path: filepath.Join(testenv.Assets(t), "models", "yolox_nano_416.onnx")},
		}})
		p := rt.Plan()
		kind := memplan.Dedicated
		if placement == "shared" {
			kind = memplan.Shared
		}
		for _, of := range []memplan.Kind{memplan.Weights, memplan.Arena} {
			if got := p.In(of); got != kind {
				t.Errorf("placement %q: %s lies in %s memory", placement, of, got)
			}
		}
		least := p.Of(memplan.Tensors)
		if kind == memplan.Shared {
			least += p.Of(memplan.Arena)
		}
		if got := int64(machine.ReadProcess("/").RSSShmem); got < least || kind == memplan.Dedicated && got > least+1<<20 {
			t.Errorf("placement %q: the process has %d bytes of shared memory, %d are planned", placement, got, least)
		}
		r, err := rt.Model("m").Runner(context.Background(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Run(); err != nil {
			t.Fatal(err)
		}
		if got := r.Outputs()[0].Data; want == nil {
			want = bytes.Clone(got)
		} else if !bytes.Equal(got, want) {
			t.Errorf("placement %q: other outputs", placement)
		}
		r.Close()
		rt.Close()
	}
}

package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/memplan"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// lanesConfig is a model with an open batch and one whose requests depend on the picture, on several lanes.
func lanesConfig(t *testing.T, lanes, threads int, check bool) eyas.Config {
	t.Helper()
	dir := filepath.Join(testenv.Assets(t), "models")
	return eyas.Config{ORT: testenv.Library(t), Lanes: lanes, Threads: threads, Batch: []int{1, 2}, CheckArena: check, Models: map[string]eyas.ModelConfig{
		"batch":    {Path: filepath.Join(dir, "yolox_nano_dynbatch.onnx")},
		"changing": {Path: filepath.Join(dir, "yolox_nano_end2end.onnx")},
	}}
}

// Runs on several lanes at the same time give on each lane, bit for bit, what a lane alone gives, and their memory comes
// from the plan that the first one was recorded for.
func TestLanesAtOnce(t *testing.T) {
	for _, c := range []struct {
		lanes, threads int
		check          bool
	}{{2, 1, false}, {2, 1, true}, {3, 2, false}} {
		t.Run(fmt.Sprint(c.lanes, " lanes of ", c.threads, ", check ", c.check), func(t *testing.T) {
			t.Setenv("EYAS_HOME", t.TempDir())
			rt := open(t, lanesConfig(t, c.lanes, c.threads, c.check))
			if got := rt.Choice(); got.Lanes != c.lanes || got.Threads != c.threads || len(got.Models) != 2 {
				t.Fatalf("%+v", got)
			}
			type job struct {
				model *eyas.Model
				batch int
				seed  uint64
			}
			var jobs []job
			for _, m := range rt.Models() {
				for _, n := range rt.Choice().Models[slices.Index(rt.Models(), m)].Ladder {
					for seed := range uint64(3) {
						jobs = append(jobs, job{m, n, seed})
					}
				}
			}
			run := func(lane int, j job) ([]byte, error) {
				r, err := j.model.RunnerOn(context.Background(), lane, j.batch)
				if err != nil {
					return nil, err
				}
				defer r.Close()
				disturb(r.Input(), j.model.Info().Input.Type, j.seed)
				if err := r.Run(); err != nil {
					return nil, err
				}
				var all []byte
				for _, o := range r.Outputs() {
					all = append(all, o.Data...)
				}
				return all, nil
			}
			want := map[job][]byte{}
			for _, j := range jobs {
				var err error
				if want[j], err = run(0, j); err != nil {
					t.Fatal(err)
				}
			}
			var wg sync.WaitGroup
			for lane := range c.lanes {
				wg.Go(func() {
					for i := range 2 * len(jobs) {
						j := jobs[(i+lane)%len(jobs)]
						if got, err := run(lane, j); err != nil || !bytes.Equal(got, want[j]) {
							t.Errorf("lane %d: %s, batch %d, input %d: other outputs than on the first lane alone, %v", lane, j.model.Key(), j.batch, j.seed, err)
						}
					}
				})
			}
			wg.Wait()
			if u := rt.Memory(); u.Heap.Count != 0 || u.Arena.Count == 0 {
				t.Errorf("%v from the arenas, %v from the spill blocks, %v from the heap, %d mismatches", u.Arena, u.Spill, u.Heap, u.Mismatches)
			}
		})
	}
}

// Every lane has its arena and tensors in the plan, all of them in memory and none recorded twice.
func TestLanesKeepToThePlan(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	var one int64
	for _, c := range []struct {
		lanes    int
		recorded int64
	}{{1, 2 * 3}, {2, 0}, {3, 0}} {
		cfg := lanesConfig(t, c.lanes, 1, false)
		rt := open(t, cfg)
		p, u := rt.Plan(), rt.Memory()
		own := p.Of(memplan.Arena) + p.Of(memplan.Spill) + p.Of(memplan.Tensors)
		if one == 0 {
			one = own
		}
		if own != int64(c.lanes)*one {
			t.Errorf("%d lanes have %d bytes, one has %d", c.lanes, own, one)
		}
		for _, r := range u.Regions {
			if (r.Kind == memplan.Arena || r.Kind == memplan.Spill || r.Kind == memplan.Tensors) && r.Measured != r.Planned {
				t.Errorf("%d lanes: %s: %d bytes planned, %d in memory", c.lanes, r.Kind, r.Planned, r.Measured)
			}
		}
		if u.Recordings != c.recorded {
			t.Errorf("%d lanes: %d runs recorded, want %d", c.lanes, u.Recordings, c.recorded)
		}
		doc, err := eyas.Plan(t.Context(), cfg, eyas.PlanOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if last := doc.Batches[len(doc.Batches)-1]; last.ArenaBytes != p.Of(memplan.Arena) || last.Spill != p.Of(memplan.Spill) || last.Tensors != p.Of(memplan.Tensors) {
			t.Errorf("%d lanes: the document says %+v", c.lanes, last)
		}
		rt.Close()
	}
}

// Two lanes need a budget, and a model's quota, that one lane does not.
func TestBudgetOfTwoLanes(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	cfg := func(lanes int, budget, quota int64) eyas.Config {
		return eyas.Config{ORT: testenv.Library(t), Lanes: lanes, Threads: 1, Budget: eyas.Size(budget), Models: map[string]eyas.ModelConfig{
			"m": {Path: filepath.Join(testenv.Assets(t), "models", "yolox_nano_person_192.onnx"), Quota: eyas.Size(quota)},
		}}
	}
	for _, lanes := range []int{1, 2} { // the second start measures what engine and Go take
		for range 2 {
			rt := open(t, cfg(lanes, 0, 0))
			for _, err := range rt.Stream(context.Background(), rawFrames(t, 20)) {
				if err != nil {
					t.Fatal(err)
				}
			}
			rt.Close()
		}
	}
	need := func(lanes int, budget, quota int64) int64 {
		rt, err := eyas.Open(context.Background(), cfg(lanes, budget, quota))
		var shortage *memplan.Shortage
		if !errors.As(err, &shortage) {
			rt.Close()
			t.Fatalf("one byte is enough: %v", err)
		}
		return shortage.Need
	}
	total, quota := need(2, 1, 0), need(2, 0, 1)
	if one := need(1, 0, 1); quota < one+1<<20 {
		t.Errorf("the model needs %d bytes on two lanes, %d on one", quota, one)
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
			rt, err := eyas.Open(context.Background(), cfg(2, c.budget, c.quota))
			if err == nil {
				rt.Close()
			}
			if c.fits && err != nil || !c.fits && !errors.Is(err, eyas.ErrBudget) {
				t.Error(err)
			}
		})
	}
}

// Under an SLO that leaves time for everything lanes and ladder are chosen, with a reason; the next start goes by that.
func TestChoiceUnderAnSLO(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	cfg := eyas.Config{ORT: testenv.Library(t), SLO: 10 * time.Second, Models: map[string]eyas.ModelConfig{
		"m": {Path: filepath.Join(testenv.Assets(t), "models", "yolox_nano_dynbatch.onnx")},
	}}
	var ready string
	cfg.OnEvent = func(e eyas.Event) {
		if e.Kind == "ready" {
			ready = e.Text
		}
	}
	rt := open(t, cfg)
	first := *rt.Choice()
	rt.Close()
	t.Log(first.Why)
	if err := first.Models[0].Timings().Check(); err != nil {
		t.Error(err)
	}
	if first.Why == "" || ready != first.Why || first.Saved || first.FPS <= 0 || first.P99 <= 0 || len(first.Models) != 1 || len(first.Trials) == 0 {
		t.Fatalf("%q, %+v", ready, first)
	}
	for i, p := range first.Models[0].Profiles {
		t.Logf("%+v", p)
		if p.Batch != first.Models[0].Ladder[i] || p.Runs == 0 || p.FPS <= 0 || p.Alone.P50 <= 0 || p.Busy.P99 < p.Busy.P50 || p.Fill.P50 <= 0 || p.Latency.P50 < p.Alone.P50 {
			t.Errorf("%+v", p)
		}
	}
}

// An SLO that no run can keep is refused with both numbers.
func TestSLOThatCannotBe(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	rt, err := eyas.Open(t.Context(), eyas.Config{ORT: testenv.Library(t), SLO: time.Microsecond, Models: map[string]eyas.ModelConfig{
		"m": {Path: filepath.Join(testenv.Assets(t), "models", "yolox_nano_person_192.onnx")},
	}})
	if err == nil {
		rt.Close()
	}
	if !errors.Is(err, eyas.ErrSLO) {
		t.Fatal(err)
	}
	t.Log(err)
}

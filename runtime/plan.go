package runtime

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/eyas-edge/eyas/memplan"
	"github.com/eyas-edge/eyas/runtime/lane"
)

// PlanOptions say what a plan is made for beside the configuration.
type PlanOptions struct {
	// Estimate plans from the models' graphs alone: ONNX Runtime is not loaded and nothing is run.
	Estimate bool
	// CPU is the kind of processor that an estimate is for, one of CPUKinds. It defaults to this machine's.
	CPU string
	// Cameras are planned for beside the models.
	Cameras []CameraPlan
}

// Plan says what memory a configuration takes, as Open plans it, and frees everything again. Its sources are left
// alone: cameras are those of the options, whose frames may wait for as long as the SLO lets them.
//
// If the plan does not fit the error wraps ErrBudget, and the document is there all the same, unless the machine has no
// memory to record such runs: an estimate has the figures then. Other errors are
// those of Open, without a document.
func Plan(ctx context.Context, cfg Config, o PlanOptions) (*memplan.Document, error) {
	slo := max(cfg.SLO, 0)
	cfg.SLO, cfg.Sources = 0, nil
	rt, err := newRuntime(cfg)
	if err != nil {
		return nil, err
	}
	defer rt.Close()
	if o.Estimate {
		return rt.planEstimated(ctx, slo, o)
	}
	if o.CPU != "" {
		return nil, as(ErrConfig, errors.New("cpu is for estimates: a plan of recorded runs is for this machine's"))
	}
	return rt.planRecorded(ctx, slo, o.Cameras)
}

// planRecorded plans from what the models' runs were recorded to need, now or by an earlier start.
func (rt *Runtime) planRecorded(ctx context.Context, slo time.Duration, cameras []CameraPlan) (*memplan.Document, error) {
	rt.planning = true
	err := rt.open(ctx)
	if err == nil {
		err = rt.learn(ctx)
	}
	if err != nil {
		return nil, err
	}
	rt.foresee()
	doc, err := rt.recorded(slo, cameras).document()
	if err != nil {
		rt.save() // the next try, with another budget, need not record anew
		return doc, err
	}
	// With the memory that is there the plan is tried: one that an earlier start has saved may not hold.
	if err := rt.settle(ctx); err != nil && !errors.Is(err, ErrBudget) {
		return nil, err
	}
	return rt.recorded(slo, cameras).document()
}

// recorded returns what is known once every model was recorded.
func (rt *Runtime) recorded(slo time.Duration, cameras []CameraPlan) *forecast {
	f := &forecast{rt: rt, slo: slo, cameras: cameras, others: rt.others, capacity: rt.capacity()}
	for _, m := range rt.models {
		runs := modelRuns{weights: m.weightBytes(), ladder: m.program.Ladder()}
		for _, n := range runs.ladder {
			r := modelRun{need: m.program.Need(n)}
			r.problem, r.solution, _ = m.program.Decisive(n)
			runs.runs = append(runs.runs, r)
		}
		f.models = append(f.models, runs)
	}
	return f
}

// forecast is all that a plan is made of.
type forecast struct {
	rt       *Runtime
	models   []modelRuns // in the order of the runtime's
	basis    string      // where the figures of models come from, "" for exact ones
	cameras  []CameraPlan
	slo      time.Duration    // 0 for none
	others   []memplan.Region // what the library and Go take
	capacity memplan.Capacity
}

// modelRuns is what a model needs.
type modelRuns struct {
	weights int64
	ladder  []int      // batch sizes, ascending
	runs    []modelRun // of each
	notes   []string   // what an estimate assumes
}

// modelRun is what runs of batches up to one size need of a lane, and the plan that needs the most of the arena.
type modelRun struct {
	need     lane.Need
	problem  memplan.Problem
	solution memplan.Solution
}

// at returns what runs when n pictures wait: the smallest batch that holds them, else the largest.
func (m *modelRuns) at(n int) *modelRun {
	for i, size := range m.ladder {
		if size >= n {
			return &m.runs[i]
		}
	}
	return &m.runs[len(m.runs)-1]
}

// document lays everything out for each batch size that one of the models runs.
func (f *forecast) document() (*memplan.Document, error) {
	var batches []int
	for _, m := range f.models {
		batches = append(batches, m.ladder...)
	}
	slices.Sort(batches)
	batches = slices.Compact(batches)
	rungs := make([]memplan.Rung, len(batches))
	rest := int64(math.MaxInt64)
	for i := len(rungs) - 1; i >= 0; i-- {
		rungs[i] = f.rung(batches[i], rest)
		rest = rungs[i].Plan.Of(memplan.Spill) / int64(f.rt.setting.Lanes)
	}
	var list []memplan.ModelPlan
	for _, m := range f.rt.models {
		list = append(list, memplan.ModelPlan{Name: m.key, Path: m.info.Path, Quota: int64(m.cfg.Quota)})
	}
	doc, err := memplan.NewDocument(list, rungs, f.capacity, f.rt.force())
	return doc, as(ErrBudget, err)
}

// rung plans for one batch size. Its spill block takes no more than that of a lane of larger ones: both end with the
// arena's last page, and what is left of that counts as spill.
func (f *forecast) rung(n int, mostSpill int64) memplan.Rung {
	r := memplan.Rung{Batch: n}
	weights := map[*Model]int64{}
	needs := make([]lane.Need, len(f.models))
	for i, m := range f.rt.models {
		weights[m] = f.models[i].weights
		run := f.models[i].at(n)
		needs[i] = run.need
		if run.need.Slots > 0 {
			arena := memplan.NewSolvedArena(m.key, run.problem, run.solution, run.need.Spill)
			arena.Tensors = run.need.Inputs + run.need.Outputs
			if lanes := f.rt.setting.Lanes; lanes > 1 {
				arena.Lanes = lanes
			}
			r.Arenas = append(r.Arenas, arena)
		}
	}
	need := lane.Together(needs...)
	need.Spill = min(need.Spill, mostSpill)
	r.Plan = f.rt.layOut(need, func(m *Model) int64 { return weights[m] })
	for i := range r.Plan.Regions {
		r.Plan.Regions[i].Basis = f.basis
	}
	for _, c := range f.cameras {
		r.Plan.Add(memplan.Frames, c.String(), c.frameBytes(f.slo, n))
	}
	for _, c := range f.cameras {
		r.Plan.Add(memplan.Children, c.String(), c.childBytes())
	}
	for i, region := range r.Plan.Regions {
		if region.Kind == memplan.Children {
			r.Plan.Regions[i].Basis = childBasis
		}
	}
	r.Plan.Regions = append(r.Plan.Regions, f.others...)
	return r
}

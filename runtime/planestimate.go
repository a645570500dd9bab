package runtime

import (
	"cmp"
	"context"
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/memplan"
	"github.com/eyas-edge/eyas/models/estimate"
	"github.com/eyas-edge/eyas/runtime/lane"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// cpuKinds are the processors that an estimate can be for. What they differ in is how convolutions lay out
// their channels.
var cpuKinds = []struct {
	name, says string
	block      int
}{
	{"x86", "x86 with AVX", 8},
	{"x86-avx512", "x86 with AVX-512", 16},
	{"arm64", "arm64", 0},
}

// CPUKinds returns the names of the processors that an estimate can be for.
func CPUKinds() []string {
	var names []string
	for _, k := range cpuKinds {
		names = append(names, k.name)
	}
	return names
}

// estimateCPU returns the processor of a name, this machine's for "", and what to call it.
func (rt *Runtime) estimateCPU(name string) (estimate.CPU, string, error) {
	cpu := estimate.Host()
	cpu.Threads = rt.setting.pool()
	for _, k := range cpuKinds {
		if k.name == name || name == "" && k.block == cpu.Block && (k.block > 0 || k.name == goruntime.GOARCH) {
			cpu.Block = k.block
			return cpu, k.says, nil
		}
	}
	if name == "" {
		return cpu, goruntime.GOARCH + " without blocked convolutions", nil
	}
	return cpu, "", as(ErrConfig, fmt.Errorf("cpu %q is not known: use %s", name, strings.Join(CPUKinds(), ", ")))
}

// planEstimated plans from what the models' graphs say of their runs.
func (rt *Runtime) planEstimated(ctx context.Context, slo time.Duration, o PlanOptions) (*memplan.Document, error) {
	cpu, says, err := rt.estimateCPU(o.CPU)
	if err != nil {
		return nil, err
	}
	if err := rt.readAll(); err != nil {
		return nil, err
	}
	rt.ep = ort.EPCPU
	for _, m := range rt.models {
		m.identify(ctx)
	}
	basis := fmt.Sprintf("%s for %s from the graph, nothing was run", memplan.Estimated, says)
	if ep := rt.cfg.EP; ep == ort.EPCUDA || ep == ort.EPTensorRT {
		rt.ep = ep
		basis = fmt.Sprintf("allowance for %s, no promise: %s as the CPU provider would run the graph", ep, memplan.Estimated)
		cpu.Block = 0
	}
	f := &forecast{
		rt: rt, slo: slo, cameras: o.Cameras, basis: basis,
		others: allowances(rt.ep, len(rt.models)), capacity: rt.estimatedCapacity(),
	}
	for _, m := range rt.models {
		runs, err := m.estimate(ctx, cpu)
		if err != nil {
			return nil, err
		}
		for _, note := range runs.notes {
			rt.warn(m.key, "", note)
		}
		f.models = append(f.models, *runs)
	}
	return f.document()
}

// precheck refuses what is too large by far before anything is run: first runs take their memory from the heap, whether
// or not the plan that they lead to will fit. Weights and tensors are known by then, arenas are estimated where no
// earlier run tells. Engine and Go heap count, as allowances, only against what the machine has: who has less is killed
// and not refused.
func (rt *Runtime) precheck(ctx context.Context) error {
	cpu, _, err := rt.estimateCPU("")
	if err != nil || rt.prechecked || !slices.ContainsFunc(rt.models, func(m *Model) bool { return !m.program.Known() }) {
		return err // without a run nothing large is taken before the whole plan is checked
	}
	f := rt.recorded(0, nil)
	for i, m := range rt.models {
		if m.program.Known() {
			continue
		}
		runs, err := m.estimate(ctx, cpu)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil { // else the runs will tell what the arena takes
			runs.weights = f.models[i].weights
			f.models[i] = *runs
		}
	}
	for n := f.largest(); ; n /= 2 {
		plan := f.rung(n, math.MaxInt64).Plan
		plan.Regions = append(plan.Regions, allowances(rt.ep, len(rt.models))...)
		err = plan.Place(memplan.Capacity{Machine: f.capacity.Machine, Dedicated: memplan.Unlimited}, "")
		if err == nil || !rt.free() || n == 1 {
			break
		}
		rt.lanes[0].Cut(n / 2)
	}
	if err != nil || rt.planning { // what exceeds a budget or quota can be recorded, and is printed
		return as(ErrBudget, err)
	}
	doc, err := f.document()
	if doc != nil && doc.LargestBatch > 0 && rt.free() {
		rt.lanes[0].Cut(doc.LargestBatch)
		return nil
	}
	return err
}

// largest returns the largest batch size of all models.
func (f *forecast) largest() int {
	n := 1
	for _, m := range f.models {
		n = max(n, m.ladder[len(m.ladder)-1])
	}
	return n
}

// estimatedCapacity returns the memory that an estimated plan may take. A budget in bytes stands for the machine
// that it is for, which need not be this one.
func (rt *Runtime) estimatedCapacity() memplan.Capacity {
	c := memplan.Capacity{Budget: int64(rt.cfg.Budget), Dedicated: memplan.Unlimited}
	if rt.cfg.Budget <= 0 {
		c = rt.capacity()
	}
	if rt.ep != ort.EPCPU {
		c.Name = "device memory"
	}
	return c
}

// estimate returns what the model's runs are expected to need, for each batch size of the ladder.
func (m *Model) estimate(ctx context.Context, cpu estimate.CPU) (*modelRuns, error) {
	runs := &modelRuns{}
	graph := m.info.ONNX
	if m.rt.ep == ort.EPCPU { // whose sessions are made for what is the same in every run
		graph = graph.WithDims(lane.Fixed(m.info, m.asked))
	}
	for _, n := range lane.Batches(m.info, m.asked) {
		e, err := estimate.Of(graph, m.info.InputShapes(n, m.info.H, m.info.W), cpu)
		if err != nil && len(runs.ladder) > 0 {
			runs.notes = append(runs.notes, fmt.Sprintf("does not take %d pictures at once: batches end at %d", n, runs.ladder[len(runs.ladder)-1]))
			break
		}
		var run *modelRun
		if err == nil {
			run, err = m.estimatedRun(ctx, n, e)
		}
		if err != nil {
			return nil, cmp.Or(ctx.Err(), as(ErrModel, fmt.Errorf("model %s, batch %d: %w", m.key, n, err)))
		}
		runs.weights = max(runs.weights, e.Weights+e.Prepacked)
		runs.ladder, runs.runs = append(runs.ladder, n), append(runs.runs, *run)
		for _, note := range e.Notes {
			if !slices.Contains(runs.notes, note) {
				runs.notes = append(runs.notes, note)
			}
		}
	}
	return runs, nil
}

// estimatedRun plans the arena of one batch size.
func (m *Model) estimatedRun(ctx context.Context, n int, e *estimate.Estimate) (*modelRun, error) {
	solution, err := memplan.Solve(ctx, e.Problem, memplan.MaxNodes(lane.MaxNodes))
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	pictures := m.info.Input.Type.Bytes(tensor.Elements(m.info.InputShape(n, m.info.H, m.info.W)))
	return &modelRun{
		need:    lane.NeedOf(solution.Height, pictures, int(e.Outputs)),
		problem: e.Problem, solution: solution,
	}, nil
}

// Package estimate predicts, from an ONNX graph alone, the memory that ONNX Runtime's CPU provider takes
// for a run: every buffer with its size and lifetime, as a problem for the planner. It neither loads the
// library nor reads weights, but for a few of up to eight elements.
//
// It does in small what the library does when it loads a model: it folds constants, fuses operators,
// moves values to other types and layouts (graph.go, fold.go, half.go, quantized.go, fusions.go,
// blocked.go), puts the operators in the library's order (order.go), and lets values share buffers by the
// library's rules (reuse.go). What an operator needs for itself stands in kernels.go.
//
// Limits: the operators inside of If, Loop and Scan are not followed; shapes that depend on data are taken
// at their largest; and a new version of the library may fuse what this one does not. docs/planner.md
// compares the estimates with recorded runs.
package estimate

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"

	"github.com/eyas-edge/eyas/internal/machine"
	"github.com/eyas-edge/eyas/memplan"
	"github.com/eyas-edge/eyas/models/onnx"
)

// CPU is what of a processor decides about buffers.
type CPU struct {
	// Block is the number of channels in a block of the NCHWc layout that float convolutions run in:
	// 16 on x86 with AVX-512, 8 on other x86, 0 on arm64, which has no such layout.
	Block int
	// Threads that run one operator; some take scratch for each. It defaults to 1.
	Threads int
}

// Host returns this machine's processor, with as many threads as the process may use.
func Host() CPU {
	c := machine.ReadCPU("/")
	cpu := CPU{Threads: c.Allowed}
	switch {
	case goruntime.GOARCH != "amd64":
	case slices.Contains(c.Features, "avx512f"):
		cpu.Block = 16
	default:
		cpu.Block = 8
	}
	return cpu
}

// String says what the CPU is, for tables.
func (c CPU) String() string {
	if c.Block == 0 {
		return "no blocked convolutions"
	}
	return fmt.Sprintf("convolutions in blocks of %d channels", c.Block)
}

// Estimate is what a run of a model is expected to take.
type Estimate struct {
	// Problem has the buffers of the arena. Time counts operators in the order in which they run.
	Problem memplan.Problem
	// Weights are the bytes of the optimised model in ONNX Runtime's own format; Prepacked those of the
	// copies that operators make of their weights in an order of their own.
	Weights, Prepacked int64
	// Inputs and Outputs are the bytes of one set of them. Outputs whose shape depends on data count at
	// their largest.
	Inputs, Outputs int64
	// Notes say, one line each, what had to be assumed.
	Notes []string
}

// Of estimates a run of m with inputs of the given shapes. An input that is absent takes its declared
// shape. Errors are those of shape inference, and one line for a shape that is not known.
func Of(m *onnx.Model, inputs map[string][]int, cpu CPU) (*Estimate, error) {
	if cpu.Threads < 1 {
		cpu.Threads = 1
	}
	if cpu.Block != 0 && cpu.Block != 8 && cpu.Block != 16 {
		return nil, fmt.Errorf("estimate: blocks of %d channels: they have 8 or 16, or 0 for none", cpu.Block)
	}
	g, err := newGraph(m, inputs)
	if err != nil {
		return nil, err
	}
	e := &Estimate{}
	for _, v := range g.inputs {
		if v.size() < 0 {
			return nil, errors.New("estimate: the size of input " + v.name + " is not known: say the shape of every input")
		}
		e.Inputs += v.size()
	}
	g.optimise(cpu)
	for _, v := range g.outputs {
		e.Outputs += max(v.size(), 0)
	}
	e.Weights, e.Prepacked = g.weights(cpu)
	e.Problem = g.buffers(cpu)
	e.Notes = g.notes
	return e, nil
}

// optimise rewrites the graph as the library does, in its order.
func (g *graph) optimise(cpu CPU) {
	g.fold()
	g.quantize()
	g.widenHalf()
	g.fuse()
	if cpu.Block > 0 {
		g.block(cpu.Block)
	}
	g.addToConvs()
}

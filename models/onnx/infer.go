package onnx

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// Inference is what is known of the values of a model for given input shapes.
type Inference struct {
	Shapes  map[string][]int       // by value name; -1 where a dimension depends on data; absent when the rank is unknown
	Types   map[string]tensor.Type // by value name; absent when unknown
	Missing []string               // one line for each node with an output whose rank could not be inferred
}

// ShapeError says that the graph does not run at the input shapes given.
type ShapeError struct {
	Node, Op string
	Why      string
}

// Error names the node and what does not fit.
func (e *ShapeError) Error() string {
	return fmt.Sprintf("the model does not run at this input size: node %.60q (%.60s): %s", e.Node, e.Op, e.Why)
}

// Infer returns the shapes of all values of the model, initialisers and the values of inner graphs
// included, for the shapes of inputs. An input that is absent takes its declared shape, -1 for
// dynamic axes. What cannot be inferred is absent, a dimension that depends on data is -1. It
// fails when an input is unknown or its shape contradicts the declared one, and with a *ShapeError
// when the graph does not run at these shapes.
func (m *Model) Infer(inputs map[string][]int) (map[string][]int, error) {
	inf, err := m.InferAll(inputs)
	if err != nil {
		return nil, err
	}
	return inf.Shapes, nil
}

// InferAll is Infer with the types, and with what could not be inferred.
func (m *Model) InferAll(inputs map[string][]int) (*Inference, error) { return m.infer(inputs, false) }

// InferLargest is InferAll for the planning of memory: a dimension that depends on data is as large as
// it can become, where the operator has a bound (the boxes that NonMaxSuppression may keep, all elements
// for NonZero, Unique and Compress).
func (m *Model) InferLargest(inputs map[string][]int) (*Inference, error) {
	return m.infer(inputs, true)
}

func (m *Model) infer(inputs map[string][]int, largest bool) (*Inference, error) {
	s, err := m.values(inputs, largest)
	if err != nil {
		return nil, err
	}
	inf := &Inference{Shapes: make(map[string][]int), Types: make(map[string]tensor.Type), Missing: s.missing}
	for name, v := range s.vals {
		if v.shape != nil {
			inf.Shapes[name] = v.shape
		}
		if v.typ != tensor.Undefined {
			inf.Types[name] = v.typ
		}
	}
	return inf, nil
}

// values goes through the model for the shapes of inputs.
func (m *Model) values(inputs map[string][]int, largest bool) (*inferrer, error) {
	s := &inferrer{model: m, vals: make(map[string]*value), declared: make(map[string]ValueInfo), budget: foldBudget, largest: largest}
	if err := s.inputs(inputs); err != nil {
		return nil, err
	}
	return s, s.graph(m.Graph)
}

// Limits of the folding of constants. Shapes have few elements; the position grids that some
// exporters compute stay unknown in value, which no shape depends on.
const (
	maxFold    = 4096    // elements of one value
	foldBudget = 1 << 22 // elements of all
	maxElems   = 1 << 44 // elements of one tensor; a real one is far below
)

// inferrer goes through a model once. Names are unique across inner graphs in valid files, so one
// map serves all.
type inferrer struct {
	model    *Model
	vals     map[string]*value
	declared map[string]ValueInfo // what the exporter noted on the outputs of graphs
	missing  []string
	budget   int  // elements that may still be folded
	largest  bool // what depends on data is as large as it can become
}

// inputs sets the values of the graph's inputs.
func (s *inferrer) inputs(given map[string][]int) error {
	known := make(map[string]bool)
	for _, in := range s.model.Graph.Inputs {
		known[in.Name] = true
		v := &value{typ: in.Type, shape: in.Sizes()}
		if shape, ok := given[in.Name]; ok {
			if !fits(shape, v.shape) || !plausible(shape) || slices.Contains(shape, -1) {
				return fmt.Errorf("input %.60q takes shape %s, got %s", in.Name, showShape(v.shape), showShape(shape))
			}
			v.shape = append([]int{}, shape...)
		}
		s.vals[in.Name] = v
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !known[name] {
			return fmt.Errorf("the model has no input %.60q: its inputs are %.60q", name, slices.Sorted(maps.Keys(known)))
		}
	}
	return nil
}

// fits says whether shape can be fed where declared is declared.
func fits(shape, declared []int) bool {
	if declared == nil {
		return true
	}
	if len(shape) != len(declared) {
		return false
	}
	for i, d := range declared {
		if d >= 0 && d != shape[i] {
			return false
		}
	}
	return true
}

// graph infers the values of a graph whose inputs are set.
func (s *inferrer) graph(g *Graph) error {
	for _, v := range g.Outputs {
		s.declared[v.Name] = v
	}
	for i := range g.Initializers {
		t := &g.Initializers[i]
		if !plausible(t.Dims) {
			return fmt.Errorf("tensor %.60q has an impossible shape %s", t.Name, showShape(t.Dims))
		}
		s.vals[t.Name] = constant(t)
	}
	for i := range g.Nodes {
		if err := s.node(g, &g.Nodes[i]); err != nil {
			return err
		}
	}
	return nil
}

// node infers the outputs of one node. An operator that is not known keeps what the exporter
// declared for its outputs.
func (s *inferrer) node(g *Graph, n *Node) error {
	c := &call{Node: n, s: s, opset: s.model.Opsets[""], out: make([]value, len(n.Outputs))}
	f, known := operators[key(n.Domain, n.Op)]
	if known {
		if err := f(c); err != nil {
			return &ShapeError{Node: n.Name, Op: n.Op, Why: err.Error()}
		}
	}
	complete := true
	for i, name := range n.Outputs {
		v := &c.out[i]
		if name == "" {
			continue
		}
		if v.shape == nil && !known {
			d, ok := g.Values[name]
			if !ok {
				d = s.declared[name]
			}
			v.typ, v.shape = d.Type, d.Sizes()
		}
		if !plausible(v.shape) {
			return &ShapeError{Node: n.Name, Op: n.Op, Why: fmt.Sprintf("output shape %s is impossible", showShape(v.shape))}
		}
		complete = complete && v.shape != nil
		s.vals[name] = v
	}
	if !complete {
		s.missing = append(s.missing, fmt.Sprintf("node %.60q (%.60s): shape of its output is not known", n.Name, key(n.Domain, n.Op)))
	}
	return nil
}

// key is an operator's name in the table: ai.onnx operators have no domain in front.
func key(domain, op string) string {
	if domain == "" {
		return op
	}
	return domain + "." + op
}

// plausible says whether a shape can be that of a real tensor.
func plausible(shape []int) bool {
	n := 1
	for _, d := range shape {
		if d < -1 || d > maxElems {
			return false
		}
		if d > 0 {
			if n > maxElems/d {
				return false
			}
			n *= d
		}
	}
	return len(shape) <= maxRank
}

// showShape prints a shape as 1x3x640x640, ? for what is not known.
func showShape(shape []int) string {
	switch {
	case shape == nil:
		return "of unknown rank"
	case len(shape) == 0:
		return "scalar"
	}
	var b strings.Builder
	for i, d := range shape {
		if i > 0 {
			b.WriteByte('x')
		}
		if d < 0 {
			b.WriteByte('?')
		} else {
			fmt.Fprint(&b, d)
		}
	}
	return b.String()
}

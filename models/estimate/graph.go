package estimate

import (
	"fmt"
	"slices"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/models/onnx"
)

// value is a tensor of the graph.
type value struct {
	name     string
	typ      tensor.Type
	shape    []int    // in this run; a dimension is -1 where it is not known at all
	dims     []string // the shape as known when a model is loaded: sizes, names of dynamic axes, "" where neither
	constant bool     // an initialiser, or computed from such when the model is loaded
	listed   bool     // an initialiser that a run may replace: it takes part in no fusion
	data     *onnx.Initializer
	input    bool
	output   bool
	from     *node   // who makes it; nil for inputs and constants
	to       []*node // who takes it, once for each of its inputs
}

// size returns the value's bytes, -1 if it is not known.
func (v *value) size() int64 {
	n := tensor.Elements(v.shape)
	if v.shape == nil || n < 0 || n > maxElements {
		return -1
	}
	return int64(v.typ.Bytes(n))
}

// maxElements of a tensor keep sums of sizes far from overflowing.
const maxElements = 1 << 40

// only returns the one node that takes v, nil if there are more, or if v leaves the graph.
func (v *value) only() *node {
	if v.output || len(v.to) != 1 {
		return nil
	}
	return v.to[0]
}

// node is an operator of the graph. Its place in graph.nodes is its index, which the order of a run
// depends on; one that is rewritten in place keeps it, a new one comes last.
type node struct {
	op       string // with the domain in front if it is not ai.onnx's
	src      *onnx.Node
	in       []*value // nil for one left out
	out      []*value
	index    int
	dead     bool
	activity string // the activation that a convolution has taken over
	sum      bool   // a convolution that adds its last input, in place
}

// graph is a model's graph while it is rewritten.
type graph struct {
	model   *onnx.Model
	opset   int64
	nodes   []*node
	values  map[string]*value
	inputs  []*value
	outputs []*value
	notes   []string
}

// maxEdges bounds the time that a hostile graph takes. Detectors have up to 10,000.
const maxEdges = 1 << 15

// newGraph makes the graph of a model, with the shapes of a run and those that are known without one.
func newGraph(m *onnx.Model, inputs map[string][]int) (*graph, error) {
	edges := 0
	for i := range m.Graph.Nodes {
		edges += 1 + len(m.Graph.Nodes[i].Inputs) + len(m.Graph.Nodes[i].Outputs)
	}
	if edges > maxEdges {
		return nil, fmt.Errorf("estimate: the graph has %d operators, inputs and outputs of such, at most %d can be estimated", edges, maxEdges)
	}
	run, err := m.InferLargest(inputs)
	if err != nil {
		return nil, err
	}
	g := &graph{model: m, opset: m.Opsets[""], values: map[string]*value{}}
	for i := range m.Graph.Initializers {
		t := &m.Graph.Initializers[i]
		listed := t.Listed && m.IRVersion >= 4
		g.values[t.Name] = &value{name: t.Name, typ: t.Type, shape: t.Dims, constant: true, listed: listed, data: t}
	}
	for _, in := range m.Graph.Inputs {
		v := g.value(in.Name, run)
		v.input = true
		g.inputs = append(g.inputs, v)
	}
	for i := range m.Graph.Nodes {
		n := &m.Graph.Nodes[i]
		var in, out []*value
		for _, name := range n.Inputs {
			in = append(in, g.value(name, run))
		}
		for _, name := range n.Outputs {
			out = append(out, g.value(name, run))
		}
		g.add(opName(n, in, out), n, in, out)
		if inner := captured(n, nil); inner != nil {
			last := g.nodes[len(g.nodes)-1]
			for _, name := range inner {
				if v := g.values[name]; v != nil {
					last.in = append(last.in, v)
				}
			}
			g.notes = append(g.notes, fmt.Sprintf("operators inside of node %.60q (%.60s) are not counted", n.Name, n.Op))
		}
	}
	for _, o := range m.Graph.Outputs {
		v := g.value(o.Name, run)
		v.output = true
		g.outputs = append(g.outputs, v)
	}
	g.knownDims()
	g.link()
	return g, nil
}

// needs has the number of inputs that operators of this package's rules cannot be without, where it is not one.
var needs = map[string]int{
	"Constant": 0, "Conv": 2, contrib + "FusedConv": 2, "ConvInteger": 2, "ConvTranspose": 2, "QLinearConv": 8,
	contrib + "QLinearConv": 8, "Add": 2, "Sub": 2, "Mul": 2, "Div": 2, "MatMul": 2, "Gemm": 2, "BatchNormalization": 5,
	"QuantizeLinear": 2, "DequantizeLinear": 2,
}

// opName returns the operator's name, "" for one that lacks inputs or outputs: no rule is for it then.
func opName(n *onnx.Node, in, out []*value) string {
	name := n.Op
	if n.Domain != "" {
		name = n.Domain + "." + n.Op
	}
	least, ok := needs[name]
	if !ok {
		least = 1
	}
	if len(in) < least || slices.Contains(in[:least], nil) || len(out) == 0 || out[0] == nil {
		return ""
	}
	return name
}

// captured adds to list the names that the graphs inside of the node take, from outside or from each other; nil
// when it has no graphs.
func captured(n *onnx.Node, list []string) []string {
	for _, a := range n.Attrs {
		graphs := a.Graphs
		if a.G != nil {
			graphs = append([]*onnx.Graph{a.G}, graphs...)
		}
		for _, inner := range graphs {
			list = append(list, "")
			for i := range inner.Nodes {
				list = captured(&inner.Nodes[i], append(list, inner.Nodes[i].Inputs...))
			}
			for _, o := range inner.Outputs {
				list = append(list, o.Name)
			}
		}
	}
	return list
}

// value returns the value of that name, nil for "".
func (g *graph) value(name string, inf *onnx.Inference) *value {
	if name == "" {
		return nil
	}
	v := g.values[name]
	if v == nil {
		v = &value{name: name, typ: inf.Types[name], shape: inf.Shapes[name]}
		g.values[name] = v
	}
	return v
}

// add appends a node.
func (g *graph) add(op string, src *onnx.Node, in, out []*value) *node {
	n := &node{op: op, src: src, in: in, out: out, index: len(g.nodes)}
	g.nodes = append(g.nodes, n)
	return n
}

// link sets who makes and takes each value. Every pass begins with it, after what others changed.
func (g *graph) link() {
	for _, n := range g.nodes {
		for _, v := range slices.Concat(n.in, n.out) {
			if v != nil {
				v.from, v.to = nil, nil
			}
		}
	}
	for _, n := range g.nodes {
		if n.dead {
			continue
		}
		for _, v := range n.in {
			if v != nil {
				v.to = append(v.to, n)
			}
		}
		for _, v := range n.out {
			if v != nil {
				v.from = n
			}
		}
	}
}

// replace makes all who take v take w instead.
func (v *value) replace(w *value) {
	for _, n := range slices.Clone(v.to) {
		n.take(v, w)
	}
}

// take makes the node take w where it took v, and keeps both values' users right.
func (n *node) take(v, w *value) {
	for i := range n.in {
		if n.in[i] == v {
			n.in[i] = w
			w.to = append(w.to, n)
		}
	}
	v.to = slices.DeleteFunc(v.to, func(u *node) bool { return u == n })
}

// link makes the node's values know it.
func (n *node) link() {
	for _, v := range n.in {
		if v != nil && !slices.Contains(v.to, n) {
			v.to = append(v.to, n)
		}
	}
	for _, v := range n.out {
		if v != nil {
			v.from = n
		}
	}
}

// remove takes a node out of the graph.
func (n *node) remove() {
	n.dead = true
	for _, v := range n.in {
		if v != nil {
			v.to = slices.DeleteFunc(v.to, func(u *node) bool { return u == n })
		}
	}
}

// input returns input i, nil if it is left out.
func (n *node) input(i int) *value {
	if i < len(n.in) {
		return n.in[i]
	}
	return nil
}

// needed says whether anybody takes v.
func (v *value) needed() bool { return v != nil && (v.output || len(v.to) > 0) }

// prune removes nodes whose outputs nobody takes. Backwards one pass does for a graph in the order of its file; only
// nodes that were added behind it take more.
func (g *graph) prune() {
	g.link()
	for removed := true; removed; {
		removed = false
		for _, n := range slices.Backward(g.nodes) {
			if !n.dead && !slices.ContainsFunc(n.out, (*value).needed) {
				n.remove()
				removed = true
			}
		}
	}
}

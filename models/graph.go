package models

import (
	"slices"
	"strings"

	"github.com/eyas-edge/eyas/models/onnx"
)

// graph answers questions on where a value comes from.
type graph struct {
	*onnx.Graph
	producer map[string]*onnx.Node
	initial  map[string]*onnx.Initializer
}

func newGraph(g *onnx.Graph) *graph {
	out := &graph{Graph: g, producer: map[string]*onnx.Node{}, initial: map[string]*onnx.Initializer{}}
	for i := range g.Nodes {
		for _, v := range g.Nodes[i].Outputs {
			out.producer[v] = &g.Nodes[i]
		}
	}
	for i := range g.Initializers {
		out.initial[g.Initializers[i].Name] = &g.Initializers[i]
	}
	return out
}

// has says whether the graph holds an operator.
func (g *graph) has(op string) bool { return g.find(op) != nil }

func (g *graph) find(op string) *onnx.Node {
	i := slices.IndexFunc(g.Nodes, func(n onnx.Node) bool { return n.Op == op })
	if i < 0 {
		return nil
	}
	return &g.Nodes[i]
}

// moves are the operators that only move, select or re-code values.
var moves = map[string]bool{"Transpose": true, "Reshape": true, "Concat": true, "Flatten": true, "Squeeze": true, "Unsqueeze": true,
	"Identity": true, "Cast": true, "Slice": true, "Split": true, "Gather": true, "QuantizeLinear": true, "DequantizeLinear": true}

// maxTrace bounds a search through a graph.
const maxTrace = 200

// sources returns the operators that compute a value, found by walking back over those in moves. A
// convolution that dynamic quantisation took apart (ConvInteger, Cast, Mul, Add) counts as Conv.
func (g *graph) sources(value string) map[string]bool {
	ops := map[string]bool{}
	seen := map[string]bool{}
	for queue := []string{value}; len(queue) > 0 && len(seen) < maxTrace; queue = queue[1:] {
		v := queue[0]
		n := g.producer[v]
		if seen[v] || n == nil {
			continue
		}
		seen[v] = true
		switch {
		case n.Op == "Concat":
			queue = append(queue, n.Inputs...)
		case n.Op == "QLinearConcat": // output scale and zero, then input, scale and zero of each
			for i := 2; i < len(n.Inputs); i += 3 {
				queue = append(queue, n.Inputs[i])
			}
		case moves[n.Op] && len(n.Inputs) > 0:
			queue = append(queue, n.Inputs[0])
		case g.dequantised(n, 3):
			ops["Conv"] = true
		case n.Op != "Constant":
			ops[strings.TrimPrefix(n.Op, "QLinear")] = true
		}
	}
	return ops
}

// dequantised says whether n scales or shifts the result of an integer convolution.
func (g *graph) dequantised(n *onnx.Node, depth int) bool {
	if n == nil || depth == 0 {
		return false
	}
	switch n.Op {
	case "ConvInteger", "MatMulInteger":
		return true
	case "Add", "Mul", "Cast":
		return slices.ContainsFunc(n.Inputs, func(v string) bool { return g.dequantised(g.producer[v], depth-1) })
	}
	return false
}

// logits says whether a value comes straight out of a convolution: nothing has squashed it.
func (g *graph) logits(value string) bool {
	ops := g.sources(value)
	for op := range ops {
		switch op {
		case "Conv", "MatMul", "Gemm", "Add", "BatchNormalization":
		default:
			return false
		}
	}
	return len(ops) > 0
}

// undecoded says whether boxes and scores lie side by side as the network gave them: raw boxes,
// squashed scores. That is what YOLOX exports.
func (g *graph) undecoded(value string) bool {
	ops := g.sources(value)
	return ops["Conv"] && ops["Sigmoid"] && len(ops) == 2
}

// classDivisor finds the class count of a model that picks the best of candidates x classes:
// class = index mod C. It is the constant of the Mod or Div nearest before value; -1 if there is none.
func (g *graph) classDivisor(value string) int {
	seen := map[string]bool{}
	for queue := []string{value}; len(queue) > 0 && len(seen) < maxTrace; queue = queue[1:] {
		v := queue[0]
		n := g.producer[v]
		if seen[v] || n == nil || n.Op == "TopK" { // before TopK, indices are not classes yet
			continue
		}
		seen[v] = true
		if (n.Op == "Mod" || n.Op == "Div") && len(n.Inputs) == 2 {
			if c := g.constant(n.Inputs[1]); c > 0 && c <= maxLabels {
				return c
			}
		}
		queue = append(queue, n.Inputs...)
	}
	return -1
}

// constant returns the value of an integer scalar that is part of the model, -1 for anything else.
func (g *graph) constant(value string) int {
	t := g.initial[value]
	if n := g.producer[value]; t == nil && n != nil && n.Op == "Constant" {
		if t = n.Tensor("value"); t == nil {
			return int(n.Int("value_int", -1))
		}
	}
	if t == nil || t.Elements() != 1 {
		return -1
	}
	v, err := t.Int64s()
	if err != nil || len(v) != 1 || v[0] < 0 || v[0] > maxLabels {
		return -1
	}
	return int(v[0])
}

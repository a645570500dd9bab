package estimate

import (
	"slices"
	"strconv"

	"github.com/eyas-edge/eyas/models/onnx"
)

// keepShape are operators whose outputs have the shape of their first input.
var keepShape = map[string]bool{
	"Abs": true, "Neg": true, "Floor": true, "Ceil": true, "Round": true, "Sqrt": true, "Exp": true, "Log": true, "Erf": true,
	"Relu": true, "LeakyRelu": true, "PRelu": true, "Sigmoid": true, "HardSigmoid": true, "HardSwish": true, "Tanh": true,
	"Clip": true, "Elu": true, "Selu": true, "Celu": true, "Gelu": true, "Mish": true, "Softplus": true, "Softsign": true,
	"Reciprocal": true, "Sign": true, "Not": true, "Softmax": true, "LogSoftmax": true, "BatchNormalization": true,
	"InstanceNormalization": true, "LayerNormalization": true, "Identity": true, "Dropout": true, "Cast": true,
	"QuantizeLinear": true, "DequantizeLinear": true, "DynamicQuantizeLinear": true, "CumSum": true,
}

// keepBatch are operators whose outputs have the first dimension of their first input.
var keepBatch = map[string]bool{
	"Conv": true, "ConvInteger": true, "QLinearConv": true, "ConvTranspose": true, "MaxPool": true, "AveragePool": true,
	"GlobalAveragePool": true, "GlobalMaxPool": true,
}

var broadcast = map[string]bool{
	"Add": true, "Sub": true, "Mul": true, "Div": true, "Pow": true, "Min": true, "Max": true, "Sum": true, "Mean": true,
	"Equal": true, "Greater": true, "Less": true, "GreaterOrEqual": true, "LessOrEqual": true, "And": true, "Or": true, "Where": true,
}

// knownDims sets what is known of each value's shape when the model is loaded: the library lets values share
// memory only where they are then known to be equally large, be it by the name of a dynamic axis.
func (g *graph) knownDims() {
	inf, err := g.model.InferAll(nil)
	if err != nil {
		return // the declared shapes contradict each other: nothing is shared, which is on the safe side
	}
	set := func(v *value, named func(i int) string) {
		shape, ok := inf.Shapes[v.name]
		if !ok || shape == nil {
			return
		}
		v.dims = make([]string, len(shape))
		for i, d := range shape {
			switch noted := g.model.Graph.Values[v.name].Shape; {
			case d >= 0:
				v.dims[i] = strconv.Itoa(d)
			case len(noted) == len(shape) && noted[i].Param != "":
				v.dims[i] = noted[i].Param // by the exporter
			default:
				v.dims[i] = named(i)
			}
		}
	}
	for _, in := range g.model.Graph.Inputs {
		set(g.values[in.Name], func(i int) string { return in.Shape[i].Param })
	}
	for _, v := range g.values {
		if v.constant {
			set(v, func(int) string { return "" })
		}
	}
	for _, n := range g.nodes {
		for _, v := range n.out {
			if v != nil {
				set(v, func(i int) string { return n.dimName(i, len(inf.Shapes[v.name])) })
			}
		}
	}
}

// dimName returns the name of the dynamic axis that dimension i of the node's outputs, of that rank, keeps
// from an input, "" if there is none.
func (n *node) dimName(i, rank int) string {
	x := n.input(0)
	if x == nil {
		return ""
	}
	switch {
	case keepBatch[n.op] && i == 0, n.op == "Split" && i != splitAxis(n.src, rank):
		return dim(x, i)
	case n.op == "Slice" && i == 0 && !n.slices(0, rank):
		return dim(x, i)
	case keepShape[n.op] && len(x.dims) == rank:
		return dim(x, i)
	case n.op == "Transpose":
		if perm := n.src.Ints("perm"); i < len(perm) {
			return dim(x, int(perm[i]))
		}
		return dim(x, rank-1-i)
	case n.op == "Concat":
		for _, v := range n.in {
			if name := dim(v, i); name != "" && i != splitAxis(n.src, rank) {
				return name
			}
		}
	case broadcast[n.op]:
		return n.broadcastName(i, rank)
	}
	return ""
}

// slices says whether a Slice may cut along an axis: unless its axes are known and others, it may.
func (n *node) slices(axis, rank int) bool {
	axes := n.src.Ints("axes")
	if a := n.input(3); a != nil && a.data != nil {
		axes, _ = a.data.Int64s()
	}
	return len(axes) == 0 || slices.ContainsFunc(axes, func(a int64) bool { return int(a) == axis || int(a)+rank == axis })
}

// broadcastName is the one size that inputs have along dimension i, apart from 1.
func (n *node) broadcastName(i, rank int) string {
	name := ""
	for _, v := range n.in {
		if v == nil || v.dims == nil {
			return ""
		}
		k := i - rank + len(v.dims)
		switch {
		case k < 0 || v.dims[k] == "1":
		case v.dims[k] == "" || name != "" && name != v.dims[k]:
			return ""
		default:
			name = v.dims[k]
		}
	}
	return name
}

func splitAxis(n *onnx.Node, rank int) int {
	axis := int(n.Int("axis", 0))
	if axis < 0 {
		axis += rank
	}
	return axis
}

func dim(v *value, i int) string {
	if v == nil || i < 0 || i >= len(v.dims) {
		return ""
	}
	return v.dims[i]
}

// static says whether the whole shape is known when the model is loaded.
func (v *value) static() bool {
	return v.dims != nil && !slices.ContainsFunc(v.dims, func(d string) bool { return d == "" || d[0] < '0' || d[0] > '9' })
}

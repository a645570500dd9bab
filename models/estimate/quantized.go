package estimate

import (
	"slices"
)

// quantize makes operators that work on float between a DequantizeLinear and a QuantizeLinear work on the
// quantised values, where the library has kernels for that.
func (g *graph) quantize() {
	g.splitDequantize()
	fused := false
	for _, n := range g.order() {
		if kernel := n.quantizedKernel(g.opset); kernel != "" {
			fused = n.fuseQuantized(g, kernel) || fused
		}
	}
	g.prune()
	if fused || slices.ContainsFunc(g.nodes, func(n *node) bool { return !n.dead && n.op == "QLinearConv" }) {
		g.channelsLast()
	}
}

// splitDequantize gives every operator a DequantizeLinear of its own.
func (g *graph) splitDequantize() {
	for _, n := range g.order() {
		if n.op != "DequantizeLinear" || n.out[0].output || n.in[0].constant {
			continue
		}
		v := n.out[0]
		for _, user := range slices.Clone(v.to[min(1, len(v.to)):]) {
			w := *v
			w.name += " again"
			w.to = nil
			g.add(n.op, n.src, n.in, []*value{&w})
			user.take(v, &w)
		}
	}
	g.link()
}

// quantizedKernel returns the operator that does the node's work on quantised values, "" if there is none.
func (n *node) quantizedKernel(opset int64) string {
	switch n.op {
	case "Conv":
		return contrib + "QLinearConv"
	case "Add", "Mul", "Concat", "Sigmoid", "LeakyRelu", "Softmax", "GlobalAveragePool", "AveragePool":
		return contrib + "QLinear" + n.op
	case "MatMul":
		return "QLinearMatMul"
	case "Gemm":
		return contrib + "QGemm"
	case "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Gather", "Slice", "Expand", "Tile", "Resize", "Split":
		return n.op // it only moves elements
	case "MaxPool":
		if opset >= 12 {
			return n.op
		}
	}
	return ""
}

// fuseQuantized puts the kernel in place of the node and the quantisations around it, if they are there.
func (n *node) fuseQuantized(g *graph, kernel string) bool {
	scaled := kernel != n.op
	in, ok := n.dequantized(scaled)
	if !ok {
		return false
	}
	var out []*value
	for _, v := range n.out {
		if v == nil || v.output || len(v.to) != 1 || v.to[0].op != "QuantizeLinear" {
			return false
		}
		out = append(out, v.to[0].out[0])
	}
	if q := n.out[0].to[0]; scaled {
		at := len(in)
		if n.op == "Conv" && len(n.in) > 2 {
			at-- // the bias comes last
		}
		in = slices.Insert(in, at, q.in[1:]...)
	}
	for _, v := range n.out {
		v.to[0].remove()
	}
	n.remove()
	g.add(kernel, n.src, in, out).link()
	return true
}

// dequantized returns the quantised values behind the node's inputs, with their scales and zero points if the
// kernel takes them; false if one that has to be is not dequantised for it. Shapes, indices and scales need
// not be, nor the bias of a convolution.
func (n *node) dequantized(scaled bool) ([]*value, bool) {
	var in []*value
	for i, v := range n.in {
		bias := n.op == "Conv" && i == 2
		switch {
		case v != nil && v.from != nil && v.from.op == "DequantizeLinear" && scaled && !bias:
			in = append(in, v.from.in...)
		case v != nil && v.from != nil && v.from.op == "DequantizeLinear":
			in = append(in, v.from.in[0])
		case i == 0, scaled && !bias && i < 2, n.op == "Concat":
			return nil, false
		default:
			in = append(in, v)
		}
	}
	return in, len(in) > 0
}

// transparent are operators that work in any layout of their inputs.
var transparent = map[string]bool{
	"QuantizeLinear": true, "DequantizeLinear": true, "Sigmoid": true, "Relu": true, "LeakyRelu": true, "Clip": true, "Tanh": true,
	"Add": true, "Sub": true, "Mul": true, "Div": true, "Concat": true, "Split": true, "Resize": true, "Cast": true,
	contrib + "QLinearAdd": true, contrib + "QLinearMul": true, contrib + "QLinearConcat": true, contrib + "QLinearSigmoid": true,
	contrib + "QLinearLeakyRelu": true,
}

// layouts moves a graph with quantised convolutions, which work on NHWC, to that layout as far as it goes.
type layouts struct {
	g     *graph
	last  map[*value]bool   // values in NHWC
	other map[*value]*value // the same value in the other layout
}

// channelsLast lets quantised convolutions and what can go with them work on NHWC, with transpositions at the borders.
func (g *graph) channelsLast() {
	l := &layouts{g: g, last: map[*value]bool{}, other: map[*value]*value{}}
	for _, n := range g.order() {
		switch {
		case n.op == contrib+"QLinearConv" || n.op == "QLinearConv":
			if x := n.in[0]; len(x.shape) == 4 {
				n.in[0] = l.in(x, true)
				l.toLast(n)
			}
		case transparent[n.op] && l.allLast(n) && !slices.ContainsFunc(n.out, func(v *value) bool { return v != nil && v.output }):
			l.toLast(n)
		default:
			for i, v := range n.in {
				if v != nil {
					n.in[i] = l.in(v, false)
				}
			}
		}
	}
	g.prune()
}

// allLast says whether all inputs of four dimensions that the node gets in a run are in NHWC, and there is one.
func (l *layouts) allLast(n *node) bool {
	any := false
	for _, v := range n.in {
		if v == nil || v.constant || len(v.shape) != 4 {
			continue
		}
		if !l.last[v] {
			return false
		}
		any = true
	}
	return any
}

// in returns v in the wanted layout.
func (l *layouts) in(v *value, last bool) *value {
	if l.last[v] == last {
		return v
	}
	w := l.other[v]
	if w == nil {
		copied := *v
		w = &copied
		w.name, w.output = v.name+" transposed", false
		w.dims = turned(v.dims, last)
		l.other[v] = w
		l.last[w] = last
		l.g.add("Transpose", nil, []*value{v}, []*value{w})
	}
	return w
}

// toLast makes the node's outputs NHWC. An output of the graph is turned back.
func (l *layouts) toLast(n *node) {
	for i, v := range n.out {
		if v == nil {
			continue
		}
		if v.output {
			copied := *v
			w := &copied
			w.name, w.output = v.name+" in NHWC", false
			n.out[i] = w
			l.g.add("Transpose", nil, []*value{w}, []*value{v})
			v = w
		}
		l.last[v] = true
		v.dims = turned(v.dims, true)
	}
}

// turned moves the channels of known dimensions to the end, or back.
func turned(d []string, last bool) []string {
	if len(d) != 4 {
		return nil
	}
	if last {
		return []string{d[0], d[2], d[3], d[1]}
	}
	return []string{d[0], d[3], d[1], d[2]}
}

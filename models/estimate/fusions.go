package estimate

import (
	"slices"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// fuse makes one operator of several.
func (g *graph) fuse() {
	g.foldIntoConvs()
	g.quickGelu()
	g.activations()
	g.products()
}

// constantInput returns the index of the input of a node of two that is a constant no run replaces, -1 if there is none.
func (n *node) constantInput() int {
	for i, v := range n.in {
		if v != nil && v.constant && !v.listed {
			return i
		}
	}
	return -1
}

// foldIntoConvs takes scaling and shifting by constants, and batch normalisation, into the weights of the
// convolution in front of them.
func (g *graph) foldIntoConvs() {
	for _, n := range g.order() {
		x := 0
		switch n.op {
		case "Add", "Mul":
			if len(n.in) != 2 || n.constantInput() < 0 {
				continue
			}
			x = 1 - n.constantInput()
		case "BatchNormalization":
			if !perChannel(n.in[1:]) {
				continue
			}
		default:
			continue
		}
		v := n.in[x]
		if v == nil || v.from == nil || v.from.op != "Conv" || v.only() != n || !constantWeights(v.from) {
			continue
		}
		if n.op != "BatchNormalization" && !channelwise(n.in[1-x], v) {
			continue
		}
		conv := v.from
		if len(conv.in) == 2 && n.op != "Mul" {
			conv.in = append(conv.in, n.in[1-x])
		}
		n.remove()
		conv.out[0] = n.out[0]
	}
	g.prune()
}

func constantWeights(n *node) bool {
	for _, v := range n.in[1:] {
		if v != nil && (!v.constant || v.listed) {
			return false
		}
	}
	return true
}

func perChannel(list []*value) bool {
	for _, v := range list {
		if v == nil || !v.constant || v.listed {
			return false
		}
	}
	return true
}

// channelwise says whether a constant has one element, or one for each channel of x.
func channelwise(c, x *value) bool {
	if len(x.shape) < 3 {
		return false
	}
	if len(c.shape) == len(x.shape) || len(c.shape) == len(x.shape)-1 {
		for i, d := range c.shape {
			if axis := i + len(x.shape) - len(c.shape); d != 1 && (axis != 1 || d != x.shape[1]) {
				return false
			}
		}
		return true
	}
	return false
}

// quickGelu makes one operator of x * sigmoid(x).
func (g *graph) quickGelu() {
	for _, n := range g.order() {
		if n.op != "Sigmoid" {
			continue
		}
		mul := n.out[0].only()
		if mul == nil || mul.op != "Mul" || len(mul.in) != 2 {
			continue
		}
		if x := n.in[0]; mul.in[0] == x && mul.in[1] == n.out[0] || mul.in[1] == x && mul.in[0] == n.out[0] {
			n.remove()
			mul.remove()
			g.add(contrib+"QuickGelu", nil, []*value{x}, []*value{mul.out[0]})
		}
	}
	g.prune()
}

// convActivations are what a convolution may do to its result by itself.
var convActivations = map[string]bool{
	"Relu": true, "Sigmoid": true, "Tanh": true, "LeakyRelu": true, "Clip": true, "HardSigmoid": true,
}

// activations gives convolutions the activation behind them.
func (g *graph) activations() {
	for _, n := range g.order() {
		if n.op != "Conv" {
			continue
		}
		act := n.out[0].only()
		if act == nil || !convActivations[act.op] || !perChannel(act.in[1:]) {
			continue
		}
		n.remove()
		act.remove()
		f := g.add(contrib+"FusedConv", n.src, n.in, act.out)
		f.activity = act.op
	}
	g.prune()
}

// addToConvs lets a convolution add its result to the other summand, in place, and do the activation that
// follows.
func (g *graph) addToConvs() {
	for _, n := range g.order() {
		if n.op != "Conv" || n.out[0].typ != tensor.Float32 || len(n.out[0].shape) != 4 {
			continue
		}
		add := n.out[0].only()
		if add == nil || add.op != "Add" {
			continue
		}
		other := add.in[0]
		if other == n.out[0] {
			other = add.in[1]
		}
		if other.constant || !slices.Equal(other.shape, n.out[0].shape) || other.dims == nil || !slices.Equal(other.dims, n.out[0].dims) {
			continue
		}
		n.remove()
		add.remove()
		f := g.add(contrib+"FusedConv", n.src, append(slices.Clone(n.in), other), add.out)
		f.sum = true
		f.link()
		if act := f.out[0].only(); act != nil && act.op == "Relu" {
			act.remove()
			f.out = act.out
			f.link()
		}
	}
	g.prune()
}

// products takes a transposition of the last two axes into the matrix product behind it, and a scale
// behind it as well.
func (g *graph) products() {
	for _, n := range g.order() {
		if n.op != "MatMul" || n.out[0].typ != tensor.Float32 {
			continue
		}
		if m := n.out[0].only(); m != nil && (m.op == "Mul" || m.op == "Div") && len(m.in) == 2 {
			if k := m.constantInput(); k >= 0 && (k == 1 || m.op == "Mul") && tensor.Elements(m.in[k].shape) == 1 {
				n.op = contrib + "FusedMatMul"
				m.remove()
				n.out = m.out
			}
		}
		for i, v := range n.in {
			if v == nil {
				continue
			}
			if t := v.from; t != nil && t.op == "Transpose" && t.src != nil && v.only() == n && swapsLast(t.src.Ints("perm")) {
				n.op = contrib + "FusedMatMul"
				t.remove()
				n.in[i] = t.in[0]
			}
		}
		n.link()
	}
	g.prune()
}

// swapsLast says whether a permutation changes nothing but the order of the last two axes.
func swapsLast(perm []int64) bool {
	last := len(perm) - 1
	for i, p := range perm {
		want := i
		switch i {
		case last:
			want = last - 1
		case last - 1:
			want = last
		}
		if int(p) != want {
			return false
		}
	}
	return last > 0
}

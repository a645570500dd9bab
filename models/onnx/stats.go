package onnx

import (
	"math"
	"math/bits"
	"strings"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// Stats is what a model holds and what one run of it computes.
//
// Weights are the initialisers and the tensors of Constant nodes of at least 64 elements, inner graphs
// included; int64, bool and string tensors are left out: they are shapes, indices and names. Quantised
// weights count with their scales and zero points.
//
// MACs are the multiply-adds of matrix products and convolutions, also of integers: for each element of
// the result the length of the sum behind it (of ConvTranspose: for each element of the input the number of
// weights that it meets). Bias, activation, pooling, resizing and element-wise operators do not
// count. FLOPs as the models' authors print them are twice that.
type Stats struct {
	Params       int64                 // elements of the weights
	WeightBytes  map[tensor.Type]int64 // bytes of the weights by type
	Float32Bytes int64                 // bytes if every weight were float32
	Ops          map[string]int        // nodes by operator type, "domain.type" outside of ai.onnx
	MACs         int64                 // multiply-adds of one run at the shapes given
	MACsComplete bool                  // false when an operator is not known, or the shapes of one that counts
}

// Stats counts the model's weights and operators and, at shapes (the result of Infer), the
// multiply-adds. Of an If the dearer branch counts, of a Loop one iteration, which is not complete.
func (m *Model) Stats(shapes map[string][]int) Stats {
	st := Stats{WeightBytes: make(map[tensor.Type]int64), Ops: make(map[string]int), MACsComplete: true}
	st.graph(m.Graph)
	for i := range m.Functions {
		st.nodes(m.Functions[i].Nodes)
	}
	st.MACs = st.macs(m.Graph.Nodes, shapes)
	return st
}

// minConstant is the least number of elements of a Constant node that counts as a weight.
const minConstant = 64

func (st *Stats) graph(g *Graph) {
	for i := range g.Initializers {
		st.weight(&g.Initializers[i])
	}
	st.nodes(g.Nodes)
}

func (st *Stats) nodes(nodes []Node) {
	for i := range nodes {
		n := &nodes[i]
		st.Ops[key(n.Domain, n.Op)]++
		if t := n.Tensor("value"); n.Op == "Constant" && t != nil && t.Elements() >= minConstant {
			st.weight(t)
		}
		for _, g := range n.graphs() {
			st.graph(g)
		}
	}
}

func (st *Stats) weight(t *Initializer) {
	switch t.Type {
	case tensor.Int64, tensor.Bool, tensor.String:
		return
	}
	n := int64(t.Elements())
	st.Params = addSat(st.Params, n)
	st.WeightBytes[t.Type] = addSat(st.WeightBytes[t.Type], t.weightBytes())
	st.Float32Bytes = addSat(st.Float32Bytes, mulSat(n, 4))
}

// macs returns the multiply-adds of nodes and notes when they are not complete.
func (st *Stats) macs(nodes []Node, shapes map[string][]int) int64 {
	total := int64(0)
	for i := range nodes {
		n := &nodes[i]
		if list := n.graphs(); len(list) > 0 {
			inner := int64(0)
			for _, g := range list {
				inner = max(inner, st.macs(g.Nodes, shapes))
			}
			if n.Op != "If" && inner > 0 {
				st.MACsComplete = false
			}
			total = addSat(total, inner)
			continue
		}
		if _, known := operators[key(n.Domain, n.Op)]; !known {
			st.MACsComplete = false
			continue
		}
		macs := nodeMACs(n, shapes)
		if macs < 0 {
			st.MACsComplete = false
			continue
		}
		total = addSat(total, macs)
	}
	return total
}

// nodeMACs returns the multiply-adds of one node, 0 for an operator that does not count and -1 when a
// shape is not known.
func nodeMACs(n *Node, shapes map[string][]int) int64 {
	shape := func(names []string, i int) []int {
		if i >= len(names) {
			return nil
		}
		return shapes[names[i]]
	}
	x, y, second := shape(n.Inputs, 0), shape(n.Outputs, 0), 1
	if strings.HasPrefix(n.Op, "QLinear") {
		second = 3
	}
	w := shape(n.Inputs, second)
	switch n.Op {
	case "Conv", "ConvInteger", "QLinearConv", "DeformConv", "FusedConv":
		if y == nil || len(w) < 3 {
			return -1
		}
		return macsOf(y, w[1:])
	case "ConvTranspose":
		if x == nil || len(w) < 3 {
			return -1
		}
		return macsOf(x, w[1:])
	case "MatMul", "MatMulInteger", "QLinearMatMul", "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "Gemm", "FusedMatMul":
		if len(x) == 0 || y == nil {
			return -1
		}
		x = swapped(x, n.Int("transA", 0))
		return macsOf(y, x[len(x)-1:])
	case "Einsum":
		return einsumMACs(n, shapes)
	}
	return 0
}

// einsumMACs is the product of all its letters' sizes.
func einsumMACs(n *Node, shapes map[string][]int) int64 {
	terms, _, ok := einsumTerms(n.String("equation", ""))
	if !ok || len(terms) != len(n.Inputs) {
		return -1
	}
	sizes := map[rune]int{}
	for i, term := range terms {
		s := shapes[n.Inputs[i]]
		if len(s) != len(term) {
			return -1
		}
		for d, letter := range term {
			sizes[letter] = max(sizes[letter], s[d])
		}
	}
	dims := []int{}
	for _, d := range sizes {
		dims = append(dims, d)
	}
	return macsOf(dims, nil)
}

// macsOf multiplies all dimensions, -1 when one is not known.
func macsOf(a, b []int) int64 {
	n := int64(1)
	for _, list := range [][]int{a, b} {
		for _, d := range list {
			if d < 0 {
				return -1
			}
			n = mulSat(n, int64(d))
		}
	}
	return n
}

// addSat and mulSat stay at the largest int64 instead of overflowing; a and b are not negative.
func addSat(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func mulSat(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

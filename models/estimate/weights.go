package estimate

import (
	"slices"
	"strings"
)

// Bytes that a file in ONNX Runtime's own format takes beside the weights, for each operator and for each
// constant: names, types, attributes. Fitted to the 21 asset models, whose files (1.1 to 8.2 MB) come out
// within 6 %.
const (
	perNode     = 100
	perConstant = 770
)

// weights returns the bytes of the optimised model, and of the copies that kernels make of their weights.
func (g *graph) weights(cpu CPU) (file, prepacked int64) {
	seen := map[*value]bool{}
	for _, n := range g.order() {
		file += perNode
		for i, v := range n.in {
			if v != nil && v.constant && !seen[v] {
				seen[v] = true
				file += n.stored(i, v, cpu) + perConstant
			}
		}
		prepacked += n.prepacked()
	}
	return file, prepacked
}

// stored returns the bytes of a constant that is input i of the node. Filters and biases of blocked
// convolutions have their channels padded to whole blocks.
func (n *node) stored(i int, v *value, cpu CPU) int64 {
	if n.op != blocked+"Conv" || i > 2 || len(v.shape) == 0 || i == 1 && len(v.shape) < 2 {
		return max(v.size(), 0)
	}
	padded := slices.Clone(v.shape)
	padded[0] = roundTo(padded[0], cpu.Block)
	if i == 1 && padded[1] >= cpu.Block {
		padded[1] = roundTo(padded[1], cpu.Block)
	}
	return int64(v.typ.Bytes(int(count(padded))))
}

// What kernels of matrix products pack their second factor to.
const (
	packColumns = 16
	packRows    = 4 // of int8
)

// prepacked returns the bytes of the node's own copy of its weights.
func (n *node) prepacked() int64 {
	at := 1
	switch n.op {
	case contrib + "QLinearConv", "QLinearConv", "QLinearMatMul":
		at = 3
	case "MatMul", contrib + "FusedMatMul", "Gemm", "MatMulInteger", "ConvTranspose",
		contrib + "DynamicQuantizeMatMul", contrib + "MatMulIntegerToFloat":
	default:
		return 0
	}
	w := n.input(at)
	if w == nil || !w.constant || len(w.shape) < 2 {
		return 0
	}
	if n.op == "ConvTranspose" {
		return max(w.size(), 0) // turned, not packed
	}
	last := w.shape[len(w.shape)-1]
	rows := int(count(w.shape[:len(w.shape)-1]))
	if strings.HasSuffix(n.op, "QLinearConv") {
		last, rows = w.shape[0], int(count(w.shape[1:]))
	}
	columns := int64(roundTo(last, packColumns))
	if w.typ.Bits() == 8 {
		return times(columns, int64(roundTo(rows, packRows))+4) // with the sum of each column
	}
	return times(columns, int64(rows), int64(w.typ.Bits()/8))
}

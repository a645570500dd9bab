package estimate

import (
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/memplan"
	"github.com/eyas-edge/eyas/models/onnx"
)

// Files may name operators' inputs and outputs as no exporter does. An estimate of such a graph may be wrong, but is one.
func TestOddGraphs(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(n *net)
	}{
		{"a Dropout with an output left out", func(n *net) {
			n.Add(onnx.Node{Op: "Dropout", Inputs: []string{n.Input("x", tensor.Float32, 4)}, Outputs: []string{"y", ""}})
			n.Output(n.Node("Exp", []string{"y"}), tensor.Float32, 4)
		}},
		{"a product with an input left out", func(n *net) {
			n.Output(n.Node("MatMul", []string{n.Input("x", tensor.Float32, 4, 4), n.w(4, 4), ""}), tensor.Float32, 4, 4)
		}},
		{"a convolution whose bias has no axis", func(n *net) {
			x := n.Input("x", tensor.Float32, 1, 8, 4, 4)
			n.Output(n.Node("Conv", []string{x, n.w(8, 8, 1, 1), n.w()}), tensor.Float32, 1, 8, 4, 4)
		}},
		{"a convolution of a constant without axes", func(n *net) {
			n.Output(n.Node("Conv", []string{n.w(), n.w(8, 3, 1, 1), n.Input("b", tensor.Float32, 8)}), tensor.Float32, 1, 8, 4, 4)
		}},
		{"a convolution of more groups than filters", func(n *net) {
			x := n.Input("x", tensor.Float32, 1, 8, 4, 4)
			n.Output(n.Node("Conv", []string{x, n.w(8, 8, 1, 1)}, onnx.Int("group", 1<<62)), tensor.Float32, 1, 8, 4, 4)
		}},
		{"a long chain that nobody needs", func(n *net) {
			x := n.Input("x", tensor.Float32, 4)
			y := x
			for range 10000 {
				y = n.Node("Exp", []string{y})
			}
			n.Output(n.Node("Exp", []string{x}), tensor.Float32, 4)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, block := range []int{0, 8} {
				n := &net{Builder: onnx.NewBuilder("test", 13)}
				c.build(n)
				e, err := Of(n.model(t), nil, CPU{Block: block, Threads: 2})
				if err != nil {
					t.Log(err)
					continue
				}
				if _, err := memplan.Greedy(e.Problem); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

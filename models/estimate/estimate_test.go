package estimate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/models/onnx"
)

// net builds small graphs.
type net struct {
	*onnx.Builder
	weights int
}

// w adds weights of a shape.
func (n *net) w(dims ...int) string {
	n.weights++
	return n.Float32(fmt.Sprintf("w%d", n.weights), dims, make([]float32, tensor.Elements(dims)))
}

// raw adds weights of any type.
func (n *net) raw(name string, t tensor.Type, dims ...int) string {
	return n.Tensor(name, t, dims, make([]byte, t.Bytes(tensor.Elements(dims))))
}

// conv adds a 3x3 convolution that keeps the size.
func (n *net) conv(x string, out, in int) string {
	return n.Node("Conv", []string{x, n.w(out, in, 3, 3), n.w(out)}, onnx.Ints("pads", 1, 1, 1, 1))
}

func (n *net) silu(x string) string {
	return n.Node("Mul", []string{x, n.Node("Sigmoid", []string{x})})
}

// qdq quantises and dequantises x.
func (n *net) qdq(x, scale, zero string) string {
	q := n.Node("QuantizeLinear", []string{x, scale, zero})
	return n.Node("DequantizeLinear", []string{q, scale, zero})
}

func silu(n *net) {
	x := n.conv(n.Input("x", tensor.Float32, 1, 3, 32, 32), 12, 3)
	n.Output(n.conv(n.silu(x), 8, 12), tensor.Float32, 1, 8, 32, 32)
}

func sum(n *net) {
	x := n.Input("x", tensor.Float32, 1, 8, 16, 16)
	y := n.Node("Add", []string{n.conv(x, 8, 8), n.conv(x, 8, 8)})
	n.Output(n.Node("Exp", []string{y}), tensor.Float32, 1, 8, 16, 16)
}

// chain has a first axis of that name, or an unnamed one.
func chain(name string) func(n *net) {
	return func(n *net) {
		x := n.Input("x", tensor.Float32, -1, 4, 8)
		n.Graph().Inputs[0].Shape[0].Param = name
		for range 4 {
			x = n.Node("Exp", []string{x})
		}
		n.Output(x, tensor.Float32, -1, 4, 8)
	}
}

// ofCases were compared with recordings of ONNX Runtime 1.30. Buffers are written as bytes[lower,upper).
var ofCases = []struct {
	name   string
	cpu    CPU
	inputs map[string][]int
	build  func(n *net)
	want   string
	held   int64 // prepacked
	note   string
}{
	{name: "activations are fused, channels padded", cpu: CPU{Block: 8}, build: silu,
		want: "65536[0,2) 65536[1,3) 32768[2,4)"},
	{name: "wider blocks", cpu: CPU{Block: 16}, build: silu,
		want: "65536[0,2) 65536[1,5) 49152[2,4)"}, // 12 channels are less than a block: the second convolution takes them as they are
	{name: "no blocks", build: silu,
		want: "49152[0,2) 65536[0,1) 49152[1,3) 65536[2,3)"},
	{name: "scratch of every thread", cpu: CPU{Threads: 2}, build: silu,
		want: "49152[0,2) 131072[0,1) 49152[1,3) 131072[2,3)"},
	{name: "residual", cpu: CPU{Block: 8}, want: "8192[0,4) 8192[1,4) 16384[3,5) 4096[4,6)", build: func(n *net) {
		y := n.Node("Relu", []string{n.conv(n.Input("x", tensor.Float32, 1, 8, 16, 16), 8, 8)})
		z := n.Node("Relu", []string{n.Node("Add", []string{y, n.conv(y, 8, 8)})})
		c := n.Node("Concat", []string{y, z}, onnx.Int("axis", 1))
		n.Output(n.Node("MaxPool", []string{c}, onnx.Ints("kernel_shape", 2, 2), onnx.Ints("strides", 2, 2)), tensor.Float32, 1, 16, 8, 8)
	}},
	{name: "a sum in place", want: "8192[0,3) 65536[0,1) 65536[1,2)", build: sum},
	{name: "a sum in place in blocks", cpu: CPU{Block: 8}, want: "8192[0,5) 8192[1,4)", build: sum},
	{name: "normalisation is folded, views share", want: "4096[0,3) 4096[2,4)", build: func(n *net) {
		x := n.Node("Conv", []string{n.Input("x", tensor.Float32, 1, 8, 16, 16), n.w(4, 8, 1, 1)})
		y := n.Node("Relu", []string{n.Node("BatchNormalization", []string{x, n.w(4), n.w(4), n.w(4), n.w(4)})})
		y = n.Node("Identity", []string{n.Node("Reshape", []string{y, n.Int64("shape", 1, -1)})})
		n.Output(n.Node("Abs", []string{n.Node("Exp", []string{y})}), tensor.Float32, 1, 1024)
	}},
	{name: "shared by the name of an axis", inputs: map[string][]int{"x": {2, 4, 8}}, build: chain("batch"),
		want: "256[0,4) 256[1,3)"},
	{name: "nothing is shared without one", inputs: map[string][]int{"x": {2, 4, 8}}, build: chain(""),
		want: "256[0,2) 256[1,3) 256[2,4)"},
	{name: "quantised", cpu: CPU{Block: 8}, held: 1216,
		want: "2048[0,7) 2048[1,5) 2048[2,5) 8192[2,3) 18432[2,3) 2048[4,6)", build: func(n *net) {
			s, z := n.w(), n.raw("zero", tensor.Uint8)
			x := n.qdq(n.Input("x", tensor.Float32, 1, 8, 16, 16), s, z)
			w := n.Node("DequantizeLinear", []string{n.raw("filters", tensor.Uint8, 8, 8, 3, 3), s, z})
			y := n.qdq(n.Node("Conv", []string{x, w}, onnx.Ints("pads", 1, 1, 1, 1)), s, z)
			y = n.Node("Mul", []string{y, n.qdq(n.Node("Sigmoid", []string{y}), s, z)})
			n.Output(n.qdq(y, s, z), tensor.Float32, 1, 8, 16, 16)
		}},
	{name: "dynamically quantised", cpu: CPU{Block: 8},
		want: "2048[0,3) 64[0,2) 64[0,3) 64[1,5) 8192[2,5) 18432[2,3)", build: func(n *net) {
			d := n.Nodes("DynamicQuantizeLinear", 3, []string{n.Input("x", tensor.Float32, 1, 8, 16, 16)})
			y := n.Node("ConvInteger", []string{d[0], n.raw("filters", tensor.Uint8, 8, 8, 3, 3), d[2]}, onnx.Ints("pads", 1, 1, 1, 1))
			y = n.Node("Mul", []string{n.Node("Cast", []string{y}, onnx.Int("to", 1)), n.Node("Mul", []string{d[1], n.w()})})
			n.Output(y, tensor.Float32, 1, 8, 16, 16)
		}},
	{name: "float16", cpu: CPU{Block: 8}, want: "8192[0,6) 8192[1,7) 16384[3,5) 4096[6,8)", build: func(n *net) {
		y := n.Node("Conv", []string{n.Input("x", tensor.Float16, 1, 8, 16, 16), n.raw("f", tensor.Float16, 8, 8, 1, 1)})
		y = n.Node("Concat", []string{y, y}, onnx.Int("axis", 1))
		y = n.Node("Conv", []string{y, n.raw("g", tensor.Float16, 8, 16, 1, 1)})
		n.Output(n.Node("Transpose", []string{y}, onnx.Ints("perm", 0, 2, 3, 1)), tensor.Float16, 1, 16, 16, 8)
	}},
	{name: "boxes that NMS may keep", want: "1216[0,2)", build: func(n *net) {
		b, s := n.Input("boxes", tensor.Float32, 1, 100, 4), n.Input("scores", tensor.Float32, 1, 5, 100)
		k := n.Node("NonMaxSuppression", []string{b, s, n.Int64("most", 10)})
		n.Output(n.Node("Cast", []string{k}, onnx.Int("to", 1)), tensor.Float32, -1, 3)
	}},
	{name: "softmax over another axis", want: "6400[0,3) 6400[1,2) 6400[1,2)", build: func(n *net) {
		y := n.Node("Softmax", []string{n.Node("Exp", []string{n.Input("x", tensor.Float32, 1, 16, 100)})}, onnx.Int("axis", 1))
		n.Output(n.Node("Exp", []string{y}), tensor.Float32, 1, 16, 100)
	}},
	{name: "attention", held: 12800, want: "80000[0,3)", build: func(n *net) {
		x, y := n.Input("x", tensor.Float32, 2, 16, 100), n.Input("y", tensor.Float32, 2, 16, 100)
		p := n.Node("MatMul", []string{n.Node("Transpose", []string{x}, onnx.Ints("perm", 0, 2, 1)), y})
		p = n.Node("Softmax", []string{n.Node("Mul", []string{p, n.w()})}, onnx.Int("axis", -1))
		n.Output(n.Node("MatMul", []string{p, n.w(100, 20)}), tensor.Float32, 2, 100, 20)
	}},
	{name: "twice the same is done once", want: "512[0,2)", build: func(n *net) {
		x := n.Input("x", tensor.Float32, 1, 8, 16)
		a, b := n.Node("Exp", []string{x}), n.Node("Exp", []string{x})
		n.Output(n.Node("Concat", []string{a, b}, onnx.Int("axis", 1)), tensor.Float32, 1, 16, 16)
	}},
	{name: "constants are computed before", want: "", build: func(n *net) {
		x := n.Input("x", tensor.Float32, 1, 8)
		n.Output(n.Node("Mul", []string{x, n.Node("Exp", []string{n.w(1, 8)})}), tensor.Float32, 1, 8)
	}},
	{name: "an inner graph keeps what it takes", want: "64[0,2) 64[1,3)", note: "are not counted", build: func(n *net) {
		x, c := n.Input("x", tensor.Float32, 4), n.Input("c", tensor.Bool)
		y := n.Node("Exp", []string{x})
		branch := func(op string) *onnx.Graph {
			return &onnx.Graph{Name: op, Nodes: []onnx.Node{{Op: op, Inputs: []string{y}, Outputs: []string{op}}},
				Outputs: []onnx.ValueInfo{{Name: op, Type: tensor.Float32, HasShape: true, Shape: []onnx.Dim{{Size: 4}}}}}
		}
		z := n.Node("If", []string{c}, onnx.Subgraph("then_branch", branch("Neg")), onnx.Subgraph("else_branch", branch("Abs")))
		n.Output(n.Node("Exp", []string{z}), tensor.Float32, 4)
	}},
	{name: "an operator that is not known", want: "", note: "not known before a run", build: func(n *net) {
		y := n.Node("NoSuchOperator", []string{n.Input("x", tensor.Float32, 4)})
		n.Output(n.Node("Exp", []string{y}), tensor.Float32, 4)
	}},
}

func (n *net) model(t testing.TB) *onnx.Model {
	t.Helper()
	m, err := n.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestOf(t *testing.T) {
	for _, c := range ofCases {
		t.Run(c.name, func(t *testing.T) {
			n := &net{Builder: onnx.NewBuilder("test", 13)}
			c.build(n)
			e, err := Of(n.model(t), c.inputs, c.cpu)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, b := range e.Problem.Buffers {
				got = append(got, fmt.Sprintf("%d[%d,%d)", b.Size, b.Lower, b.Upper))
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("buffers %s\nwant %s\n%v", s, c.want, e.Problem.Buffers)
			}
			again, err := Of(n.model(t), c.inputs, c.cpu)
			if err != nil || !slices.Equal(again.Problem.Buffers, e.Problem.Buffers) {
				t.Errorf("another estimate the second time: %v, %v", again, err)
			}
			if e.Prepacked != c.held {
				t.Errorf("%d bytes are prepacked, want %d", e.Prepacked, c.held)
			}
			if notes := strings.Join(e.Notes, "; "); c.note == "" && notes != "" || !strings.Contains(notes, c.note) {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
		})
	}
}

func TestOfCountsTensorsAndWeights(t *testing.T) {
	n := &net{Builder: onnx.NewBuilder("test", 13)}
	silu(n)
	e, err := Of(n.model(t), nil, CPU{Block: 8})
	if err != nil {
		t.Fatal(err)
	}
	if e.Inputs != 4*3*32*32 || e.Outputs != 4*8*32*32 {
		t.Errorf("inputs %d, outputs %d", e.Inputs, e.Outputs)
	}
	// 12 filters are padded to 16, and the 12 channels that the second convolution takes; its 4 operators
	// and 4 constants take the rest.
	if want := int64(4*(16*3*9+16+8*16*9+8) + 4*perNode + 4*perConstant); e.Weights != want {
		t.Errorf("weights %d, want %d", e.Weights, want)
	}
}

// What a run may replace is no constant.
func TestListedWeights(t *testing.T) {
	for ir, blocks := range map[int64]bool{3: true, 8: false} {
		n := &net{Builder: onnx.NewBuilder("test", 11)}
		silu(n)
		m := n.model(t)
		m.IRVersion = ir
		for i := range m.Graph.Initializers {
			m.Graph.Initializers[i].Listed = true
		}
		e, err := Of(m, nil, CPU{Block: 8})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(fmt.Sprint(e.Problem.Buffers), "in blocks"); got != blocks {
			t.Errorf("IR %d: in blocks %v, want %v", ir, got, blocks)
		}
	}
}

func TestOfRefuses(t *testing.T) {
	open := &net{Builder: onnx.NewBuilder("test", 13)}
	chain("n")(open)
	large := &net{Builder: onnx.NewBuilder("test", 13)}
	x := large.Input("x", tensor.Float32, 4)
	for range maxEdges / 3 {
		x = large.Node("Exp", []string{x})
	}
	large.Output(large.Node("Exp", []string{x}), tensor.Float32, 4)
	for _, c := range []struct {
		name   string
		net    *net
		inputs map[string][]int
		cpu    CPU
		want   string
	}{
		{"open axis", open, nil, CPU{}, "say the shape of every input"},
		{"other rank", open, map[string][]int{"x": {1}}, CPU{}, "takes shape"},
		{"no such input", open, map[string][]int{"y": {1}}, CPU{}, "no input"},
		{"no such block", open, map[string][]int{"x": {1, 4, 8}}, CPU{Block: 7}, "8 or 16"},
		{"too large", large, nil, CPU{}, "can be estimated"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Of(c.net.model(t), c.inputs, c.cpu); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

package onnx

import (
	"slices"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// opCase is one node: inputs by shape or as constants, and what has to come out.
type opCase struct {
	name  string
	op    string
	opset int64 // 0: 17
	in    []arg
	attrs []Attr
	outs  int     // 0: 1
	want  [][]int // shape of each output; nil: not known
	fails string  // part of the error
	typ   tensor.Type
}

// arg is one input.
type arg struct {
	typ   tensor.Type
	shape []int
	ints  []int64   // an int64 constant
	flts  []float32 // a float32 constant
	none  bool      // left out
}

func f(shape ...int) arg      { return arg{typ: tensor.Float32, shape: shape} }
func i64(shape ...int) arg    { return arg{typ: tensor.Int64, shape: shape} }
func ints(v ...int64) arg     { return arg{ints: v} }
func floats(v ...float32) arg { return arg{flts: v} }

var none = arg{none: true}

var opCases = []opCase{
	{name: "conv same size", op: "Conv", in: []arg{f(1, 3, 32, 40), f(8, 3, 3, 3)}, attrs: []Attr{Ints("pads", 1, 1, 1, 1)}, want: [][]int{{1, 8, 32, 40}}},
	{name: "conv stride and dilation", op: "Conv", in: []arg{f(2, 4, 33, 33), f(8, 2, 3, 3)}, attrs: []Attr{Int("group", 2), Ints("strides", 2, 2), Ints("dilations", 2, 2)}, want: [][]int{{2, 8, 15, 15}}},
	{name: "conv same upper", op: "Conv", in: []arg{f(1, 3, 31, 31), f(8, 3, 3, 3)}, attrs: []Attr{String("auto_pad", "SAME_UPPER"), Ints("strides", 2, 2)}, want: [][]int{{1, 8, 16, 16}}},
	{name: "conv of unknown size", op: "Conv", in: []arg{f(-1, 3, -1, 32), f(8, 3, 3, 3)}, want: [][]int{{-1, 8, -1, 30}}},
	{name: "conv wrong channels", op: "Conv", in: []arg{f(1, 4, 32, 32), f(8, 3, 3, 3)}, fails: "channels"},
	{name: "conv too small", op: "Conv", in: []arg{f(1, 3, 2, 2), f(8, 3, 3, 3)}, fails: "does not fit"},
	{name: "transposed conv", op: "ConvTranspose", in: []arg{f(1, 8, 20, 20), f(8, 4, 2, 2)}, attrs: []Attr{Ints("strides", 2, 2)}, want: [][]int{{1, 4, 40, 40}}},
	{name: "transposed conv output padding", op: "ConvTranspose", in: []arg{f(1, 8, 20, 20), f(8, 4, 3, 3)}, attrs: []Attr{Ints("strides", 2, 2), Ints("pads", 1, 1, 1, 1), Ints("output_padding", 1, 1)}, want: [][]int{{1, 4, 40, 40}}},
	{name: "integer conv", op: "ConvInteger", in: []arg{{typ: tensor.Uint8, shape: []int{1, 3, 8, 8}}, {typ: tensor.Uint8, shape: []int{4, 3, 1, 1}}}, want: [][]int{{1, 4, 8, 8}}, typ: tensor.Int32},
	{name: "max pool floor", op: "MaxPool", in: []arg{f(1, 3, 13, 13)}, attrs: []Attr{Ints("kernel_shape", 2, 2), Ints("strides", 2, 2)}, want: [][]int{{1, 3, 6, 6}}},
	{name: "max pool ceil", op: "MaxPool", in: []arg{f(1, 3, 13, 13)}, attrs: []Attr{Ints("kernel_shape", 2, 2), Ints("strides", 2, 2), Int("ceil_mode", 1)}, want: [][]int{{1, 3, 7, 7}}},
	{name: "max pool ceil window outside", op: "MaxPool", in: []arg{f(1, 1, 2, 2)}, attrs: []Attr{Ints("kernel_shape", 1, 1), Ints("strides", 2, 2), Int("ceil_mode", 1)}, want: [][]int{{1, 1, 1, 1}}},
	{name: "max pool stride 1 same", op: "MaxPool", in: []arg{f(1, 3, 13, 13)}, attrs: []Attr{Ints("kernel_shape", 2, 2), String("auto_pad", "SAME_UPPER")}, outs: 2, want: [][]int{{1, 3, 13, 13}, {1, 3, 13, 13}}},
	{name: "global pool", op: "GlobalAveragePool", in: []arg{f(2, 8, 7, 9)}, want: [][]int{{2, 8, 1, 1}}},

	{name: "broadcast", op: "Add", in: []arg{f(8, 1, 5), f(7, 1)}, want: [][]int{{8, 7, 5}}},
	{name: "broadcast unknown", op: "Mul", in: []arg{f(-1, 3), f(4, 1)}, want: [][]int{{4, 3}}},
	{name: "broadcast misfit", op: "Sub", in: []arg{f(3, 5), f(4, 5)}, fails: "do not fit together"},
	{name: "compare", op: "Greater", in: []arg{f(3, 5), f()}, want: [][]int{{3, 5}}, typ: tensor.Bool},
	{name: "where", op: "Where", in: []arg{{typ: tensor.Bool, shape: []int{3, 1}}, f(5), f(1, 1)}, want: [][]int{{3, 5}}},
	{name: "variadic", op: "Max", in: []arg{f(3, 1), f(1, 4), f(2, 1, 1)}, want: [][]int{{2, 3, 4}}},
	{name: "cast", op: "Cast", in: []arg{f(3)}, attrs: []Attr{Int("to", int64(tensor.Float16))}, want: [][]int{{3}}, typ: tensor.Float16},

	{name: "matmul", op: "MatMul", in: []arg{f(2, 1, 5, 7), f(3, 7, 4)}, want: [][]int{{2, 3, 5, 4}}},
	{name: "matmul vectors", op: "MatMul", in: []arg{f(7), f(7)}, want: [][]int{{}}},
	{name: "matmul misfit", op: "MatMul", in: []arg{f(5, 7), f(6, 4)}, fails: "do not fit"},
	{name: "gemm", op: "Gemm", in: []arg{f(7, 5), f(4, 7)}, attrs: []Attr{Int("transA", 1), Int("transB", 1)}, want: [][]int{{5, 4}}},
	{name: "einsum", op: "Einsum", in: []arg{f(2, 3, 8, 9), f(2, 5, 3)}, attrs: []Attr{String("equation", "bchw,bkc->bkhw")}, want: [][]int{{2, 5, 8, 9}}},

	{name: "reshape", op: "Reshape", in: []arg{f(2, 255, 80, 80), ints(0, 3, 85, -1, 80)}, want: [][]int{{2, 3, 85, 80, 80}}},
	{name: "reshape misfit", op: "Reshape", in: []arg{f(1, 255, 40, 52), ints(1, 3, 85, 80, 80)}, fails: "cannot become"},
	{name: "reshape to unknown", op: "Reshape", in: []arg{f(2, 6), i64(3)}, want: [][]int{{-1, -1, -1}}},
	{name: "flatten", op: "Flatten", in: []arg{f(2, 3, 4)}, attrs: []Attr{Int("axis", 2)}, want: [][]int{{6, 4}}},
	{name: "squeeze attribute", op: "Squeeze", opset: 11, in: []arg{f(1, 3, 1)}, attrs: []Attr{Ints("axes", -1)}, want: [][]int{{1, 3}}},
	{name: "squeeze input", op: "Squeeze", in: []arg{f(1, 3, 1), ints(0)}, want: [][]int{{3, 1}}},
	{name: "squeeze all", op: "Squeeze", in: []arg{f(1, 3, 1)}, want: [][]int{{3}}},
	{name: "unsqueeze", op: "Unsqueeze", in: []arg{f(3), ints(0, -1)}, want: [][]int{{1, 3, 1}}},
	{name: "transpose", op: "Transpose", in: []arg{f(1, 2, 3)}, attrs: []Attr{Ints("perm", 0, 2, 1)}, want: [][]int{{1, 3, 2}}},
	{name: "transpose all", op: "Transpose", in: []arg{f(1, 2, 3)}, want: [][]int{{3, 2, 1}}},
	{name: "concat", op: "Concat", in: []arg{f(1, 2, 8), f(1, 3, -1)}, attrs: []Attr{Int("axis", 1)}, want: [][]int{{1, 5, 8}}},
	{name: "concat misfit", op: "Concat", in: []arg{f(1, 2, 8), f(1, 3, 9)}, attrs: []Attr{Int("axis", 1)}, fails: "cannot be joined"},
	{name: "split equally", op: "Split", in: []arg{f(1, 9)}, attrs: []Attr{Int("axis", 1)}, outs: 3, want: [][]int{{1, 3}, {1, 3}, {1, 3}}},
	{name: "split attribute", op: "Split", opset: 11, in: []arg{f(1, 9)}, attrs: []Attr{Int("axis", 1), Ints("split", 4, 5)}, outs: 2, want: [][]int{{1, 4}, {1, 5}}},
	{name: "split input", op: "Split", in: []arg{f(9, 1), ints(4, 5)}, outs: 2, want: [][]int{{4, 1}, {5, 1}}},
	{name: "split misfit", op: "Split", in: []arg{f(9, 1), ints(4, 4)}, outs: 2, fails: "do not add up"},
	{name: "slice", op: "Slice", in: []arg{f(1, 10, 8), ints(2, 0), ints(1<<62, -1), ints(1, 2), ints(3, 2)}, want: [][]int{{1, 3, 4}}},
	{name: "slice backwards", op: "Slice", in: []arg{f(10), ints(-1), ints(-1 << 62), ints(0), ints(-1)}, want: [][]int{{10}}},
	{name: "slice attribute", op: "Slice", opset: 9, in: []arg{f(1, 10)}, attrs: []Attr{Ints("starts", 1), Ints("ends", 3), Ints("axes", 1)}, want: [][]int{{1, 2}}},
	{name: "slice step 0", op: "Slice", in: []arg{f(10), ints(0), ints(5), ints(0), ints(0)}, fails: "step of 0"},
	{name: "slice unknown", op: "Slice", in: []arg{f(4, 10), i64(1), ints(5), ints(1)}, want: [][]int{{4, -1}}},
	{name: "gather", op: "Gather", in: []arg{f(4, 10, 3), i64(2, 2)}, attrs: []Attr{Int("axis", 1)}, want: [][]int{{4, 2, 2, 3}}},
	{name: "gather elements", op: "GatherElements", in: []arg{f(4, 10), i64(4, 3)}, want: [][]int{{4, 3}}},
	{name: "gather nd", op: "GatherND", in: []arg{f(4, 10, 3), i64(5, 2)}, want: [][]int{{5, 3}}},
	{name: "expand", op: "Expand", in: []arg{f(3, 1), ints(2, 1, 6)}, want: [][]int{{2, 3, 6}}},
	{name: "tile", op: "Tile", in: []arg{f(3, 2), ints(2, 3)}, want: [][]int{{6, 6}}},
	{name: "pad", op: "Pad", in: []arg{f(1, 3, 8, 8), ints(0, 0, 1, 2, 0, 0, 3, 4)}, want: [][]int{{1, 3, 12, 14}}},
	{name: "pad attribute", op: "Pad", opset: 10, in: []arg{f(8)}, attrs: []Attr{Ints("pads", 1, -2)}, want: [][]int{{7}}},
	{name: "range", op: "Range", in: []arg{{ints: []int64{2}, shape: []int{}}, {ints: []int64{9}, shape: []int{}}, {ints: []int64{3}, shape: []int{}}}, want: [][]int{{3}}},
	{name: "constant of shape", op: "ConstantOfShape", in: []arg{ints(2, 3)}, want: [][]int{{2, 3}}},
	{name: "one hot", op: "OneHot", in: []arg{i64(2, 3), {ints: []int64{10}, shape: []int{}}, f(2)}, want: [][]int{{2, 3, 10}}},
	{name: "non zero", op: "NonZero", in: []arg{f(2, 3)}, want: [][]int{{2, -1}}},

	{name: "resize scales", op: "Resize", in: []arg{f(1, 3, 13, 20), none, floats(1, 1, 2, 2.5)}, want: [][]int{{1, 3, 26, 50}}},
	{name: "resize sizes", op: "Resize", in: []arg{f(1, 3, 13, 20), none, none, ints(1, 3, 7, 9)}, want: [][]int{{1, 3, 7, 9}}},
	{name: "resize axes", op: "Resize", opset: 18, in: []arg{f(1, 3, 13, 20), none, none, ints(26, 30)}, attrs: []Attr{Ints("axes", 2, 3), String("keep_aspect_ratio_policy", "not_larger")}, want: [][]int{{1, 3, 20, 30}}},
	{name: "resize opset 10", op: "Resize", opset: 10, in: []arg{f(1, 3, 13, 20), floats(1, 1, 2, 2)}, want: [][]int{{1, 3, 26, 40}}},
	{name: "upsample", op: "Upsample", opset: 9, in: []arg{f(1, 3, 13, 20), floats(1, 1, 2, 2)}, want: [][]int{{1, 3, 26, 40}}},
	{name: "grid sample", op: "GridSample", in: []arg{f(2, 8, 20, 20), f(2, 5, 4, 2)}, want: [][]int{{2, 8, 5, 4}}},
	{name: "space to depth", op: "SpaceToDepth", in: []arg{f(1, 3, 8, 8)}, attrs: []Attr{Int("blocksize", 2)}, want: [][]int{{1, 12, 4, 4}}},
	{name: "depth to space", op: "DepthToSpace", in: []arg{f(1, 12, 4, 4)}, attrs: []Attr{Int("blocksize", 2)}, want: [][]int{{1, 3, 8, 8}}},

	{name: "reduce all", op: "ReduceMean", in: []arg{f(2, 3)}, want: [][]int{{1, 1}}},
	{name: "reduce axes", op: "ReduceMax", in: []arg{f(2, 3, 4)}, attrs: []Attr{Ints("axes", -1), Int("keepdims", 0)}, want: [][]int{{2, 3}}},
	{name: "reduce axes input", op: "ReduceSum", in: []arg{f(2, 3, 4), ints(1)}, want: [][]int{{2, 1, 4}}},
	{name: "arg max", op: "ArgMax", in: []arg{f(2, 3, 4)}, attrs: []Attr{Int("axis", 2), Int("keepdims", 0)}, want: [][]int{{2, 3}}, typ: tensor.Int64},
	{name: "top k", op: "TopK", in: []arg{f(1, 8400), ints(300)}, outs: 2, want: [][]int{{1, 300}, {1, 300}}},
	{name: "top k of too few", op: "TopK", in: []arg{f(1, 84), ints(300)}, outs: 2, fails: "best 300 of 84"},
	{name: "non max suppression", op: "NonMaxSuppression", in: []arg{f(1, 100, 4), f(1, 80, 100)}, want: [][]int{{-1, 3}}, typ: tensor.Int64},
	{name: "dynamic quantize", op: "DynamicQuantizeLinear", in: []arg{f(1, 3)}, outs: 3, want: [][]int{{1, 3}, {}, {}}, typ: tensor.Uint8},
	{name: "dequantize", op: "DequantizeLinear", in: []arg{{typ: tensor.Int8, shape: []int{4, 3}}, f()}, want: [][]int{{4, 3}}, typ: tensor.Float32},
	{name: "unknown operator", op: "NoSuchOperator", in: []arg{f(1, 3)}, want: [][]int{nil}},
}

func TestOperators(t *testing.T) {
	for _, c := range opCases {
		t.Run(c.name, func(t *testing.T) {
			m, names := c.build(t)
			inf, err := m.InferAll(nil)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("error %v, want %q", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range c.want {
				got := inf.Shapes[names[i]]
				if !slices.Equal(got, want) || (got == nil) != (want == nil) {
					t.Errorf("output %d is %v, want %v", i, got, want)
				}
			}
			if got := inf.Types[names[0]]; c.typ != 0 && got != c.typ {
				t.Errorf("type %s, want %s", got, c.typ)
			}
		})
	}
}

// What depends on data is as large as it can become.
func TestInferLargest(t *testing.T) {
	keep, none := ints(7), arg{none: true}
	for _, c := range []struct {
		opCase
		want []int
	}{
		{opCase{name: "boxes of all classes", op: "NonMaxSuppression", in: []arg{f(2, 100, 4), f(2, 80, 100), keep}}, []int{2 * 80 * 7, 3}},
		{opCase{name: "no limit on boxes", op: "NonMaxSuppression", in: []arg{f(1, 100, 4), f(1, 80, 100), none}}, []int{80 * 100, 3}},
		{opCase{name: "more than there are", op: "NonMaxSuppression", in: []arg{f(1, 5, 4), f(1, 1, 5), keep}}, []int{5, 3}},
		{opCase{name: "non zero", op: "NonZero", in: []arg{f(2, 3)}}, []int{2, 6}},
		{opCase{name: "non zero of a constant", op: "NonZero", in: []arg{ints(0, 4, 5)}}, []int{1, 2}},
		{opCase{name: "unique", op: "Unique", in: []arg{f(2, 3)}}, []int{6}},
		{opCase{name: "compress", op: "Compress", in: []arg{f(2, 3), f(2)}, attrs: []Attr{Int("axis", 0)}}, []int{2, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, names := c.build(t)
			inf, err := m.InferLargest(nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := inf.Shapes[names[0]]; !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// build makes a model of the one node.
func (c *opCase) build(t testing.TB) (*Model, []string) {
	t.Helper()
	opset := c.opset
	if opset == 0 {
		opset = 17
	}
	b := NewBuilder("op", opset)
	b.Input("anchor", tensor.Float32, 1) // so that nodes of constants only make a model, too
	var in []string
	for i, a := range c.in {
		name := string(rune('a' + i))
		switch {
		case a.none:
			name = ""
		case a.ints != nil:
			b.Int64(name, a.ints...)
			if a.shape != nil { // a scalar
				last := len(b.Graph().Initializers) - 1
				b.Graph().Initializers[last].Dims = a.shape
			}
		case a.flts != nil:
			b.Float32(name, []int{len(a.flts)}, a.flts)
		default:
			b.Input(name, a.typ, a.shape...)
		}
		in = append(in, name)
	}
	outs := b.Nodes(c.op, max(c.outs, 1), in, c.attrs...)
	b.Graph().Outputs = []ValueInfo{{Name: outs[0]}}
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m, outs
}

// TestFoldsShapes goes through what exporters write to compute a target from the input's shape.
func TestFoldsShapes(t *testing.T) {
	b := NewBuilder("fold", 13)
	x := b.Input("x", tensor.Float32, -1, 12, -1, -1)
	shape := b.Node("Shape", []string{x})
	one := func(i int64) string {
		index := b.Tensor("i"+string(rune('0'+i)), tensor.Int64, nil, []byte{byte(i), 0, 0, 0, 0, 0, 0, 0})
		return b.Node("Unsqueeze", []string{b.Node("Gather", []string{shape, index}), b.Int64("ax"+string(rune('0'+i)), 0)})
	}
	batch, h, w := one(0), one(2), one(3)
	two, minus := b.Int64("two", 2), b.Int64("minus", -1)
	half := b.Node("Div", []string{b.Node("Add", []string{h, b.Int64("three", 3)}), two}) // integer division
	target := b.Node("Concat", []string{batch, two, minus, half}, Int("axis", 0))
	b.Node("Identity", []string{w})
	y := b.Node("Reshape", []string{x, target})
	b.Output(y, tensor.Float32, -1, 2, -1, -1)

	// Slice the spatial part off the shape, double it as float, resize to it.
	tail := b.Node("Slice", []string{shape, two, b.Int64("four", 4), b.Int64("axes", 0)})
	twice := b.Node("Cast", []string{b.Node("Floor", []string{b.Node("Mul", []string{
		b.Node("Cast", []string{tail}, Int("to", int64(tensor.Float32))), b.Float32("f", []int{1}, []float32{2})})})}, Int("to", int64(tensor.Int64)))
	sizes := b.Node("Concat", []string{b.Node("Slice", []string{shape, b.Int64("zero", 0), two}), twice}, Int("axis", 0))
	z := b.Node("Resize", []string{x, "", "", sizes})
	b.Output(z, tensor.Float32, -1, -1, -1, -1)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Infer(map[string][]int{"x": {5, 12, 7, 10}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{5, 2, 84, 5}; !slices.Equal(got[y], want) {
		t.Errorf("reshaped to %v, want %v", got[y], want)
	}
	if want := []int{5, 12, 14, 20}; !slices.Equal(got[z], want) {
		t.Errorf("resized to %v, want %v", got[z], want)
	}
}

func TestInferChecksInputs(t *testing.T) {
	m, err := tiny().Model()
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name string
		in   map[string][]int
		want string
	}{
		{"good", map[string][]int{"x": {1, 3, 32, 48}}, ""},
		{"declared", nil, ""},
		{"unknown name", map[string][]int{"images": {1, 3, 8, 8}}, "no input \"images\""},
		{"static dimension", map[string][]int{"x": {2, 3, 8, 8}}, "takes shape 1x3x?x?, got 2x3x8x8"},
		{"rank", map[string][]int{"x": {1, 3, 8}}, "got 1x3x8"},
		{"negative", map[string][]int{"x": {1, 3, -5, 8}}, "takes shape"},
		{"too large", map[string][]int{"x": {1, 3, 1 << 40, 1 << 40}}, "takes shape"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := m.Infer(c.in)
			if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestInnerGraphs(t *testing.T) {
	branch := func(name string, op string, attrs ...Attr) *Graph {
		return &Graph{Nodes: []Node{{Op: op, Inputs: []string{"x"}, Outputs: []string{name}, Attrs: attrs}}, Outputs: []ValueInfo{{Name: name}}}
	}
	b := NewBuilder("if", 17)
	b.Input("x", tensor.Float32, 4, 6)
	cond := b.Input("cond", tensor.Bool)
	same := b.Node("If", []string{cond}, Subgraph("then_branch", branch("a", "Relu")), Subgraph("else_branch", branch("b", "Sigmoid")))
	differ := b.Node("If", []string{cond}, Subgraph("then_branch", branch("c", "Relu")),
		Subgraph("else_branch", branch("d", "ReduceMax", Ints("axes", 1))))
	no := b.Tensor("no", tensor.Bool, nil, []byte{0})
	fixed := b.Node("If", []string{no}, Subgraph("then_branch", branch("e", "Relu")),
		Subgraph("else_branch", branch("f", "ReduceMax", Ints("axes", 1))))
	body := &Graph{
		Inputs:  []ValueInfo{{Name: "iter"}, {Name: "go"}, {Name: "acc"}},
		Nodes:   []Node{{Op: "Relu", Inputs: []string{"acc"}, Outputs: []string{"next"}}, {Op: "Identity", Inputs: []string{"go"}, Outputs: []string{"on"}}},
		Outputs: []ValueInfo{{Name: "on"}, {Name: "next"}, {Name: "next"}},
	}
	loop := b.Nodes("Loop", 2, []string{"", "", "x"}, Subgraph("body", body))
	b.Output(same, tensor.Float32, 4, 6)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Infer(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]int{same: {4, 6}, differ: {4, -1}, fixed: {4, 1}, loop[0]: {4, 6}, loop[1]: {-1, 4, 6}} {
		if !slices.Equal(got[name], want) {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}

func TestMACs(t *testing.T) {
	cases := []struct {
		name string
		op   opCase
		want int64
	}{
		{"conv", opCase{op: "Conv", in: []arg{f(2, 3, 8, 8), f(16, 3, 3, 3)}, attrs: []Attr{Ints("pads", 1, 1, 1, 1)}}, 2 * 16 * 8 * 8 * 27},
		{"depthwise", opCase{op: "Conv", in: []arg{f(1, 16, 8, 8), f(16, 1, 3, 3)}, attrs: []Attr{Int("group", 16)}}, 16 * 6 * 6 * 9},
		{"transposed", opCase{op: "ConvTranspose", in: []arg{f(1, 8, 5, 5), f(8, 4, 2, 2)}, attrs: []Attr{Ints("strides", 2, 2)}}, 8 * 5 * 5 * 4 * 4},
		{"matmul", opCase{op: "MatMul", in: []arg{f(2, 5, 7), f(7, 4)}}, 2 * 5 * 7 * 4},
		{"gemm", opCase{op: "Gemm", in: []arg{f(7, 5), f(7, 4)}, attrs: []Attr{Int("transA", 1)}}, 5 * 7 * 4},
		{"einsum", opCase{op: "Einsum", in: []arg{f(2, 3, 8, 9), f(2, 5, 3)}, attrs: []Attr{String("equation", "bchw,bkc->bkhw")}}, 2 * 5 * 3 * 8 * 9},
		{"element-wise", opCase{op: "Mul", in: []arg{f(2, 3), f(2, 3)}}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, _ := c.op.build(t)
			shapes, err := m.Infer(nil)
			if err != nil {
				t.Fatal(err)
			}
			if st := m.Stats(shapes); st.MACs != c.want || !st.MACsComplete {
				t.Errorf("%d multiply-adds, complete %v; want %d", st.MACs, st.MACsComplete, c.want)
			}
		})
	}
	m, _ := (&opCase{op: "NoSuchOperator", in: []arg{f(1)}}).build(t)
	if m.Stats(nil).MACsComplete {
		t.Error("an unknown operator leaves the count complete")
	}
}

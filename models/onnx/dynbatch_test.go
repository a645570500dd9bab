package onnx

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/internal/testenv"
)

var update = flag.Bool("update", false, "write the golden files")

// ramp returns n weights of which no two are equal.
func ramp(n int) []float32 {
	w := make([]float32, n)
	for i := range w {
		w[i] = 0.5 + float32(i)/float32(n)
	}
	return w
}

// batchCase is a graph for one picture x of [1,4,6].
type batchCase struct {
	name  string
	opset int64 // 0: 17
	build func(b *Builder) string
	want  []int  // the shape of the output for three
	fails string // part of the error
}

// model returns the graph and the name of its output.
func (c *batchCase) model(t *testing.T) (m *Model, y string) {
	t.Helper()
	b := NewBuilder("g", cmp.Or(c.opset, 17))
	b.Input("x", tensor.Float32, 1, 4, 6)
	y = c.build(b)
	b.Output(y, tensor.Float32)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m, y
}

var batchCases = []batchCase{
	{name: "element by element", build: func(b *Builder) string { return b.Node("Sigmoid", []string{"x"}) }, want: []int{3, 4, 6}},
	{name: "a constant of one entry", build: func(b *Builder) string {
		return b.Node("Mul", []string{"x", b.Float32("w", []int{1, 4, 1}, ramp(4))})
	}, want: []int{3, 4, 6}},
	{name: "a constant with more axes", build: func(b *Builder) string {
		y := b.Node("Mul", []string{"x", b.Float32("w", []int{2, 1, 1, 1}, ramp(2))})
		return b.Node("Transpose", []string{y}, Ints("perm", 1, 0, 2, 3))
	}, want: []int{3, 2, 4, 6}},
	{name: "a constant of several entries", build: func(b *Builder) string {
		return b.Node("Mul", []string{"x", b.Float32("w", []int{2, 1, 1}, ramp(2))})
	}, fails: `node "Mul_0" (Mul): its input 1, 2x1x1, has entries of its own`},
	{name: "pictures on two axes", build: func(b *Builder) string {
		return b.Node("Add", []string{"x", b.Node("Transpose", []string{"x"}, Ints("perm", 1, 0, 2))})
	}, fails: "on different axes"},

	{name: "reshape", build: func(b *Builder) string {
		return b.Node("Reshape", []string{"x", b.Int64("to", 1, 2, -1)})
	}, want: []int{3, 2, 12}},
	{name: "reshape that copies", build: func(b *Builder) string {
		return b.Node("Reshape", []string{"x", b.Int64("to", 0, -1)})
	}, want: []int{3, 24}},
	{name: "channel shuffle", build: func(b *Builder) string {
		y := b.Node("Reshape", []string{"x", b.Int64("to", 2, 2, 6)})
		y = b.Node("Transpose", []string{y}, Ints("perm", 1, 0, 2))
		y = b.Node("Reshape", []string{y, b.Int64("back", 2, -1, 2, 6)})
		return b.Node("Gather", []string{y, b.Tensor("i", tensor.Int64, nil, make([]byte, 8))}, Int("axis", 0))
	}, want: []int{3, 2, 6}},
	{name: "reshape that puts pictures together", build: func(b *Builder) string {
		y := b.Node("Transpose", []string{"x"}, Ints("perm", 1, 0, 2))
		return b.Node("Reshape", []string{y, b.Int64("to", 1, -1)})
	}, fails: "puts pictures together"},
	{name: "target from the shape", build: func(b *Builder) string {
		n := b.Node("Gather", []string{b.Node("Shape", []string{"x"}), b.Int64("first", 0)})
		to := b.Node("Concat", []string{n, b.Int64("rest", -1)}, Int("axis", 0))
		return b.Node("Reshape", []string{"x", to})
	}, want: []int{3, 24}},
	{name: "flatten", build: func(b *Builder) string { return b.Node("Flatten", []string{"x"}) }, want: []int{3, 24}},
	{name: "flatten of all", build: func(b *Builder) string {
		return b.Node("Flatten", []string{b.Node("Transpose", []string{"x"}, Ints("perm", 1, 0, 2))})
	}, want: nil, fails: "not one entry for each picture"},
	{name: "flatten that puts pictures together", build: func(b *Builder) string {
		return b.Node("Flatten", []string{b.Node("Transpose", []string{"x"}, Ints("perm", 1, 0, 2))}, Int("axis", 2))
	}, fails: "puts pictures together"},
	{name: "squeeze of another axis", opset: 11, build: func(b *Builder) string {
		return b.Node("Squeeze", []string{b.Node("Unsqueeze", []string{"x"}, Ints("axes", 0))}, Ints("axes", 0))
	}, want: []int{3, 4, 6}},
	{name: "squeeze of the batch", build: func(b *Builder) string {
		return b.Node("Squeeze", []string{"x", b.Int64("axes", -3)})
	}, fails: "drops the axis"},
	{name: "squeeze of whatever is one", build: func(b *Builder) string { return b.Node("Squeeze", []string{"x"}) }, fails: "drops the axis"},
	{name: "expand", build: func(b *Builder) string {
		y := b.Node("Unsqueeze", []string{"x", b.Int64("axes", 2)})
		return b.Node("Expand", []string{y, b.Int64("to", 1, 4, 5, 6)})
	}, want: []int{3, 4, 5, 6}},
	{name: "expand of merged axes", build: func(b *Builder) string {
		y := b.Node("Reshape", []string{"x", b.Int64("to", 4, 1, 6)})
		y = b.Node("Expand", []string{y, b.Int64("wide", 4, 5, 6)})
		return b.Node("Reshape", []string{y, b.Int64("back", 1, -1)})
	}, want: []int{3, 120}},
	{name: "expand of the batch", build: func(b *Builder) string {
		return b.Node("Expand", []string{"x", b.Int64("to", 2, 4, 6)})
	}, fails: "repeats the pictures"},
	{name: "tile", build: func(b *Builder) string { return b.Node("Tile", []string{"x", b.Int64("by", 1, 2, 1)}) }, want: []int{3, 8, 6}},
	{name: "tile of the batch", build: func(b *Builder) string { return b.Node("Tile", []string{"x", b.Int64("by", 2, 1, 1)}) }, fails: "repeats"},

	{name: "slice of everything", build: func(b *Builder) string {
		return b.Node("Slice", []string{"x", b.Int64("from", 0, 1), b.Int64("to", 1, 3), b.Int64("axes", 0, 1)})
	}, want: []int{3, 2, 6}},
	{name: "slice of everything in attributes", opset: 9, build: func(b *Builder) string {
		return b.Node("Slice", []string{"x"}, Ints("starts", 0, 1), Ints("ends", 1<<40, 3))
	}, want: []int{3, 2, 6}},
	{name: "slice of one in attributes", opset: 9, build: func(b *Builder) string {
		return b.Node("Slice", []string{"x"}, Ints("starts", 0, 1), Ints("ends", 1, 3))
	}, fails: "end at 1 pictures"},
	{name: "slice of the batch backwards", build: func(b *Builder) string {
		return b.Node("Slice", []string{"x", b.Int64("from", -1), b.Int64("to", -9), b.Int64("axes", 0), b.Int64("by", -1)})
	}, fails: "cuts along axis 0"},
	{name: "concat", build: func(b *Builder) string { return b.Node("Concat", []string{"x", "x"}, Int("axis", -1)) }, want: []int{3, 4, 12}},
	{name: "concat of pictures", build: func(b *Builder) string { return b.Node("Concat", []string{"x", "x"}, Int("axis", 0)) }, fails: "works along axis 0"},
	{name: "concat with a constant", build: func(b *Builder) string {
		return b.Node("Concat", []string{"x", b.Float32("w", []int{1, 1, 6}, ramp(6))}, Int("axis", 1))
	}, fails: "the same for all pictures"},
	{name: "split", opset: 11, build: func(b *Builder) string {
		return b.Nodes("Split", 2, []string{"x"}, Int("axis", 1), Ints("split", 1, 3))[1]
	}, want: []int{3, 3, 6}},
	{name: "pad", build: func(b *Builder) string { return b.Node("Pad", []string{"x", b.Int64("by", 0, 1, 0, 0, 1, 2)}) }, want: []int{3, 6, 8}},
	{name: "pad of the batch", build: func(b *Builder) string { return b.Node("Pad", []string{"x", b.Int64("by", 0, 1, 0, 1, 1, 2)}) }, fails: "works along axis 0"},

	{name: "resize by sizes", build: func(b *Builder) string {
		return b.Node("Resize", []string{"x", "", "", b.Int64("to", 1, 8, 6)})
	}, want: []int{3, 8, 6}},
	{name: "resize of some axes", opset: 18, build: func(b *Builder) string {
		return b.Node("Resize", []string{"x", "", "", b.Int64("to", 8)}, Ints("axes", -2))
	}, want: []int{3, 8, 6}},
	{name: "resize by scales", build: func(b *Builder) string {
		return b.Node("Resize", []string{"x", "", b.Float32("by", []int{3}, []float32{1, 2, 2})})
	}, want: []int{3, 8, 12}},
	{name: "resize of the batch", build: func(b *Builder) string { // which shows at six pictures first
		return b.Node("Resize", []string{"x", "", b.Float32("by", []int{3}, []float32{1.2, 2, 2})})
	}, fails: "works along axis 0"},

	{name: "softmax", build: func(b *Builder) string { return b.Node("Softmax", []string{"x"}, Int("axis", 1)) }, want: []int{3, 4, 6}},
	{name: "softmax over all", opset: 11, build: func(b *Builder) string { return b.Node("Softmax", []string{"x"}, Int("axis", 0)) }, fails: "works along"},
	{name: "softmax over the batch", build: func(b *Builder) string { return b.Node("Softmax", []string{"x"}, Int("axis", 0)) }, fails: "works along"},
	{name: "mean", build: func(b *Builder) string {
		return b.Node("ReduceMean", []string{"x"}, Ints("axes", -1), Int("keepdims", 0))
	}, want: []int{3, 4}},
	{name: "mean in front", build: func(b *Builder) string {
		y := b.Node("Transpose", []string{"x"}, Ints("perm", 1, 0, 2))
		return b.Node("ReduceMean", []string{y}, Ints("axes", 0), Int("keepdims", 0))
	}, want: []int{3, 6}},
	{name: "mean of all", build: func(b *Builder) string { return b.Node("ReduceMean", []string{"x"}) }, fails: "works along"},
	{name: "the best boxes", build: func(b *Builder) string {
		best := b.Nodes("TopK", 2, []string{b.Node("ReduceMax", []string{"x"}, Ints("axes", -1), Int("keepdims", 0)), b.Int64("k", 2)})[1]
		at := b.Node("Tile", []string{b.Node("Unsqueeze", []string{best, b.Int64("axes", 2)}), b.Int64("by", 1, 1, 6)})
		return b.Node("GatherElements", []string{"x", at}, Int("axis", 1))
	}, want: []int{3, 2, 6}},
	{name: "boxes by indices of each picture", build: func(b *Builder) string {
		best := b.Nodes("TopK", 2, []string{b.Node("Flatten", []string{"x"}), b.Int64("k", 3)})[1]
		rows := b.Node("Flatten", []string{"x"}, Int("axis", 2))
		return b.Node("Gather", []string{rows, b.Node("Mod", []string{best, b.Int64("four", 4)})}, Int("axis", 0))
	}, want: []int{3, 3, 6}},
	{name: "the first picture", build: func(b *Builder) string {
		return b.Node("Gather", []string{"x", b.Tensor("i", tensor.Int64, nil, make([]byte, 8))})
	}, fails: "drops the axis"},

	{name: "matrices", build: func(b *Builder) string {
		return b.Node("MatMul", []string{"x", b.Node("Transpose", []string{"x"}, Ints("perm", 0, 2, 1))})
	}, want: []int{3, 4, 4}},
	{name: "heads of attention", build: func(b *Builder) string {
		y := b.Node("Reshape", []string{"x", b.Int64("to", 2, 2, 6)})
		y = b.Node("MatMul", []string{y, b.Node("Transpose", []string{y}, Ints("perm", 0, 2, 1))})
		return b.Node("Reshape", []string{y, b.Int64("back", 1, 2, 4)})
	}, want: []int{3, 2, 4}},
	{name: "rows", build: func(b *Builder) string {
		return b.Node("MatMul", []string{b.Node("Flatten", []string{"x"}), b.Float32("w", []int{24, 5}, ramp(120))})
	}, want: []int{3, 5}},
	{name: "sum over pictures", build: func(b *Builder) string {
		y := b.Node("Transpose", []string{"x"}, Ints("perm", 1, 2, 0))
		return b.Node("MatMul", []string{y, b.Float32("w", []int{1, 5}, ramp(5))})
	}, fails: "works along axis 2"},
	{name: "gemm", build: func(b *Builder) string {
		return b.Node("Gemm", []string{b.Node("Flatten", []string{"x"}), b.Float32("w", []int{5, 24}, ramp(120)), b.Float32("c", []int{5}, ramp(5))}, Int("transB", 1))
	}, want: []int{3, 5}},
	{name: "gemm over pictures", build: func(b *Builder) string {
		return b.Node("Gemm", []string{b.Node("Flatten", []string{"x"}), b.Float32("w", []int{1, 5}, ramp(5))}, Int("transA", 1))
	}, fails: "works along axis 0"},
	{name: "convolution", build: func(b *Builder) string {
		return b.Node("Conv", []string{"x", b.Float32("w", []int{5, 4, 3}, ramp(60))})
	}, want: []int{3, 5, 4}},
	{name: "a filter of each picture", build: func(b *Builder) string { return b.Node("Conv", []string{"x", "x"}) }, fails: "its input 1 differs"},
	{name: "statistics of the batch", build: func(b *Builder) string {
		c := b.Float32("c", []int{4}, ramp(4))
		return b.Nodes("BatchNormalization", 3, []string{"x", c, c, c, c}, Int("training_mode", 1))[0]
	}, fails: "statistics"},
	{name: "dynamic quantisation", build: func(b *Builder) string { return b.Nodes("DynamicQuantizeLinear", 3, []string{"x"})[0] }, fails: "scale from all pictures"},
	{name: "scales of channels", build: func(b *Builder) string {
		return b.Node("QuantizeLinear", []string{"x", b.Float32("s", []int{4}, ramp(4)), b.Tensor("z", tensor.Uint8, []int{4}, make([]byte, 4))}, Int("axis", 1))
	}, want: []int{3, 4, 6}},
	{name: "scales of pictures", build: func(b *Builder) string {
		y := b.Node("Reshape", []string{"x", b.Int64("to", 4, 6)})
		return b.Node("QuantizeLinear", []string{y, b.Float32("s", []int{4}, ramp(4)), b.Tensor("z", tensor.Uint8, []int{4}, make([]byte, 4))}, Int("axis", 0))
	}, fails: "scales of shape 4"},

	{name: "the same for all", build: func(b *Builder) string { return b.Node("Shape", []string{"x"}) }, fails: "the same for all pictures"},
	{name: "chance", build: func(b *Builder) string {
		return b.Node("Add", []string{"x", b.Node("RandomNormal", nil, Ints("shape", 1, 4, 6))})
	}, fails: "something else each time"},
	{name: "an unknown operator", build: func(b *Builder) string { return b.Node("NoSuchOperator", []string{"x"}) }, fails: `node "NoSuchOperator_0" (NoSuchOperator): it is not known`},
	{name: "an inner graph", build: func(b *Builder) string {
		yes := b.Tensor("yes", tensor.Bool, nil, []byte{1})
		g := &Graph{Nodes: []Node{{Op: "Relu", Inputs: []string{"x"}, Outputs: []string{"in"}}}, Outputs: []ValueInfo{{Name: "in"}}}
		return b.Node("If", []string{yes}, Subgraph("then_branch", g), Subgraph("else_branch", g))
	}, fails: "inner graph"},
	{name: "an output that nobody knows", build: func(b *Builder) string {
		return b.Nodes("Add", 2, []string{"x", "x"})[0]
	}, fails: `nothing is known of its output "Add_0_out1"`},
	{name: "out of order", build: func(b *Builder) string {
		b.Add(Node{Op: "Add", Inputs: []string{"x", "later"}, Outputs: []string{"y"}})
		b.Add(Node{Op: "Relu", Inputs: []string{"x"}, Outputs: []string{"later"}})
		return "y"
	}, fails: `node "y" (Add): its input "later" comes later or from nowhere`},
	{name: "written twice", build: func(b *Builder) string {
		b.Add(Node{Op: "Relu", Inputs: []string{"x"}, Outputs: []string{"y"}})
		b.Add(Node{Op: "Relu", Inputs: []string{"x"}, Outputs: []string{"y"}})
		return "y"
	}, fails: "there already"},
}

func TestDynamicBatch(t *testing.T) {
	for _, c := range batchCases {
		t.Run(c.name, func(t *testing.T) {
			m, y := c.model(t)
			before, err := m.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			out, err := m.DynamicBatch("x")
			if after, _ := m.Marshal(); !slices.Equal(before, after) {
				t.Error("it changed the model itself")
			}
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("error %v, want one with %q", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			data, err := out.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			if out, err = Parse(data, ""); err != nil {
				t.Fatal(err)
			}
			shapes, err := out.Infer(map[string][]int{"x": {3, 4, 6}})
			if err != nil || !slices.Equal(shapes[y], c.want) {
				t.Errorf("three pictures give %v, %v; want %v", shapes[y], err, c.want)
			}
		})
	}
}

// What is not for one picture is refused, and a dynamic axis that has the usual name already keeps it for itself.
func TestDynamicBatchInputs(t *testing.T) {
	build := func(opset int64, dims ...int) *Model {
		b := NewBuilder("g", opset)
		b.Input("x", tensor.Float32, dims...)
		b.Input("other", tensor.Float32, -1, 1)
		b.Output(b.Node("Mul", []string{"x", "other"}), tensor.Float32, dims...)
		b.Graph().Inputs[1].Shape = []Dim{{Size: -1, Param: "batch"}, {Size: 1}}
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, c := range []struct {
		name   string
		m      *Model
		inputs []string
		fails  string
	}{
		{"several pictures", build(17, 2, 3), []string{"x"}, `its input "x" is 2x3, not of one picture`},
		{"any number", build(17, -1, 3), []string{"x"}, "?x3"},
		{"a scalar", build(17), []string{"x"}, "scalar"},
		{"no such input", build(17, 1, 3), []string{"z"}, `no input "z"`},
		{"no input", build(17, 1, 3), nil, "no input of pictures"},
		{"an old model", build(6, 1, 3), []string{"x"}, "version 6"},
		{"another input of unknown size", build(17, 1, 3), []string{"x"}, "its input 1, ?x1, has entries"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := c.m.DynamicBatch(c.inputs...); err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("error %v, want one with %q", err, c.fails)
			}
		})
	}
	m := build(17, 1, 3)
	m.Graph.Inputs[1].Shape = nil // a scalar
	m.Graph.Outputs[0].Shape[1] = Dim{Size: -1, Param: "batch"}
	out, err := m.DynamicBatch("x")
	if err != nil {
		t.Fatal(err)
	}
	if d := out.Graph.Inputs[0].Shape[0]; d != (Dim{Size: -1, Param: "batch_1"}) {
		t.Errorf("the axis of the batch is %+v", d)
	}
}

// What becomes of the asset models, with their outputs for three pictures and every node that is changed.
func TestDynamicBatchOfAssets(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testenv.Assets(t), "models", "*.onnx"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var text strings.Builder
	for _, file := range files {
		m, err := Open(file)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s\n", strings.TrimSuffix(filepath.Base(file), ".onnx"))
		in := m.Graph.Inputs[0]
		out, err := m.DynamicBatch(in.Name)
		if err != nil {
			fmt.Fprintf(&text, "  no: %v\n", err)
			continue
		}
		describeRewrite(t, &text, m, out)
	}
	golden := filepath.Join("testdata", "dynbatch.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if text.String() != string(want) {
		t.Errorf("got\n%s\nwant what is in %s", text.String(), golden)
	}
}

func describeRewrite(t *testing.T, text *strings.Builder, m, out *Model) {
	t.Helper()
	in := out.Graph.Inputs[0]
	shape := in.Sizes()
	shape[0] = 3
	shapes, err := out.Infer(map[string][]int{in.Name: shape})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range out.Graph.Outputs {
		fmt.Fprintf(text, "  %s declared %s, for three %s\n", o.Name, showShape(o.Sizes()), showShape(shapes[o.Name]))
	}
	targets := map[string]string{}
	for i := range out.Graph.Initializers {
		if c := &out.Graph.Initializers[i]; strings.HasPrefix(c.Name, "batch_value_") {
			v, err := c.Int64s()
			if err != nil {
				t.Fatal(err)
			}
			targets[c.Name] = fmt.Sprint(v)
		}
	}
	for i := range out.Graph.Nodes {
		for k, name := range out.Graph.Nodes[i].Inputs {
			if now, ok := targets[name]; ok {
				was := m.Graph.Nodes[i].Inputs[k]
				fmt.Fprintf(text, "    %s %s: %s to %s\n", out.Graph.Nodes[i].Op, out.Graph.Nodes[i].Outputs[0], valueOf(m, was), now)
			}
		}
	}
}

// valueOf returns what an integer constant holds, as text.
func valueOf(m *Model, name string) string {
	for i := range m.Graph.Initializers {
		if c := &m.Graph.Initializers[i]; c.Name == name {
			v, _ := c.Int64s()
			return fmt.Sprint(v)
		}
	}
	for i := range m.Graph.Nodes {
		if n := &m.Graph.Nodes[i]; slices.Contains(n.Outputs, name) && n.Tensor("value") != nil {
			v, _ := n.Tensor("value").Int64s()
			return fmt.Sprint(v)
		}
	}
	return name
}

// FuzzDynamicBatch feeds models that may be anything: none may do harm, and what is rewritten holds together for any
// number of pictures.
func FuzzDynamicBatch(fz *testing.F) {
	for _, c := range batchCases {
		b := NewBuilder("g", cmp.Or(c.opset, 17))
		b.Input("x", tensor.Float32, 1, 4, 6)
		b.Output(c.build(b), tensor.Float32)
		fz.Add(mustBytes(fz, b))
	}
	fz.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse(data, "")
		if err != nil {
			return
		}
		// That three pictures fit has been checked by then.
		out, err := m.DynamicBatch(m.Graph.Inputs[0].Name)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
			return
		}
		if again, err := out.Marshal(); err == nil {
			if _, err := Parse(again, ""); err != nil {
				t.Fatalf("what was written does not parse: %v", err)
			}
		}
		for _, n := range []int{1, 2} {
			shape := m.Graph.Inputs[0].Sizes()
			shape[0] = n
			shapes, err := out.Infer(map[string][]int{m.Graph.Inputs[0].Name: shape})
			if err != nil {
				t.Fatalf("%d pictures: %v", n, err)
			}
			for _, o := range out.Graph.Outputs {
				if s := shapes[o.Name]; len(s) == 0 || s[0] != n {
					t.Errorf("%d pictures: output %q is %v, of %v", n, o.Name, s, slices.Sorted(maps.Keys(shapes)))
				}
			}
		}
	})
}

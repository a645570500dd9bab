package onnx

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// Builder makes a model from code: the converter of the built-in model and tests use it.
//
//	b := onnx.NewBuilder("tiny", 17)
//	x := b.Input("images", tensor.Float32, 1, 3, 32, 32)
//	w := b.Float32("w", []int{8, 3, 3, 3}, weights)
//	y := b.Node("Conv", []string{x, w}, onnx.Ints("strides", 2, 2), onnx.Ints("pads", 1, 1, 1, 1))
//	b.Output(y, tensor.Float32, 1, 8, 16, 16)
//	data, err := b.Bytes()
//
// Nothing is checked until Bytes or Model.
type Builder struct {
	m    Model
	next int
	err  error
}

// NewBuilder starts a model with a graph of that name, for a version of the ai.onnx operators.
func NewBuilder(name string, opset int64) *Builder {
	return &Builder{m: Model{
		IRVersion: 8, // what opset 15 to 18 came with; every engine that we can load reads it
		Producer:  "eyas",
		Opsets:    map[string]int64{"": opset},
		Metadata:  map[string]string{},
		Graph:     &Graph{Name: name, Values: map[string]ValueInfo{}},
	}}
}

// Meta sets an entry of metadata_props.
func (b *Builder) Meta(key, value string) { b.m.Metadata[key] = value }

// Domain declares the opset version of another domain than ai.onnx.
func (b *Builder) Domain(domain string, version int64) { b.m.Opsets[domain] = version }

// Input adds an input and returns its name. A dimension of -1 is dynamic.
func (b *Builder) Input(name string, t tensor.Type, dims ...int) string {
	b.m.Graph.Inputs = append(b.m.Graph.Inputs, declare(name, t, dims))
	return name
}

// Output makes the value of that name an output. A dimension of -1 is dynamic.
func (b *Builder) Output(name string, t tensor.Type, dims ...int) {
	b.m.Graph.Outputs = append(b.m.Graph.Outputs, declare(name, t, dims))
}

func declare(name string, t tensor.Type, dims []int) ValueInfo {
	v := ValueInfo{Name: name, Type: t, HasShape: true, Shape: make([]Dim, len(dims))}
	for i, d := range dims {
		v.Shape[i] = Dim{Size: d}
		if d < 0 {
			v.Shape[i] = Dim{Size: -1, Param: fmt.Sprintf("%s_%d", name, i)}
		}
	}
	return v
}

// Node adds an ai.onnx operator with one output, whose new name it returns. An input of "" is
// an optional one left out.
func (b *Builder) Node(op string, inputs []string, attrs ...Attr) string {
	return b.Nodes(op, 1, inputs, attrs...)[0]
}

// Nodes is Node for an operator with several outputs.
func (b *Builder) Nodes(op string, outputs int, inputs []string, attrs ...Attr) []string {
	n := Node{Op: op, Name: fmt.Sprintf("%s_%d", op, b.next), Inputs: inputs, Attrs: attrs}
	b.next++
	for i := range outputs {
		n.Outputs = append(n.Outputs, fmt.Sprintf("%s_out%d", n.Name, i))
	}
	b.Add(n)
	return n.Outputs
}

// Add adds a node as it is: for other domains, or to choose the names.
func (b *Builder) Add(n Node) { b.m.Graph.Nodes = append(b.m.Graph.Nodes, n) }

// Tensor adds an initialiser of any type from its little-endian bytes and returns its name.
func (b *Builder) Tensor(name string, t tensor.Type, dims []int, data []byte) string {
	init, err := NewTensor(name, t, dims, data)
	if err != nil {
		b.fail(err)
		return name
	}
	b.m.Graph.Initializers = append(b.m.Graph.Initializers, *init)
	return name
}

// Float32 adds a float32 initialiser and returns its name.
func (b *Builder) Float32(name string, dims []int, data []float32) string {
	raw := make([]byte, 0, 4*len(data))
	for _, v := range data {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return b.Tensor(name, tensor.Float32, dims, raw)
}

// Int64 adds an int64 initialiser of one dimension, what shapes and axes are, and returns its name.
func (b *Builder) Int64(name string, data ...int64) string {
	raw := make([]byte, 0, 8*len(data))
	for _, v := range data {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	return b.Tensor(name, tensor.Int64, []int{len(data)}, raw)
}

// Graph returns the graph so far: for what the methods do not cover.
func (b *Builder) Graph() *Graph { return b.m.Graph }

func (b *Builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Bytes returns the model as an ONNX file. It fails on the first thing that was wrong in a call
// before, and on what Parse would refuse.
func (b *Builder) Bytes() ([]byte, error) {
	if b.err != nil {
		return nil, b.err
	}
	data, err := b.m.Marshal()
	if err != nil {
		return nil, err
	}
	if _, err := Parse(data, ""); err != nil {
		return nil, fmt.Errorf("write onnx: %w", err)
	}
	return data, nil
}

// Model returns the model as Parse reads it.
func (b *Builder) Model() (*Model, error) {
	data, err := b.Bytes()
	if err != nil {
		return nil, err
	}
	return Parse(data, "")
}

// NewTensor makes a tensor from its little-endian bytes, which it keeps. It fails when data is not as
// long as the type and the dimensions say.
func NewTensor(name string, t tensor.Type, dims []int, data []byte) (*Initializer, error) {
	n := tensor.Elements(dims)
	if n < 0 || n > math.MaxInt/16 || t.Bits() == 0 || t.Bytes(n) != len(data) {
		return nil, fmt.Errorf("write onnx: tensor %q of %s%v does not fit its %d bytes", name, t, dims, len(data))
	}
	return &Initializer{Name: name, Type: t, Dims: dims, raw: data}, nil
}

// Int is an integer attribute.
func Int(name string, v int64) Attr { return Attr{Name: name, Type: AttrInt, I: v} }

// Ints is an attribute that is a list of integers.
func Ints(name string, v ...int64) Attr { return Attr{Name: name, Type: AttrInts, Ints: v} }

// Float is a float attribute.
func Float(name string, v float32) Attr { return Attr{Name: name, Type: AttrFloat, F: v} }

// String is a string attribute.
func String(name, v string) Attr { return Attr{Name: name, Type: AttrString, S: v} }

// Tensor is a tensor attribute.
func Tensor(name string, t *Initializer) Attr { return Attr{Name: name, Type: AttrTensor, T: t} }

// Subgraph is a graph attribute, for example the then_branch of an If node.
func Subgraph(name string, g *Graph) Attr { return Attr{Name: name, Type: AttrGraph, G: g} }

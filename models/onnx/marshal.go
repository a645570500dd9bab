package onnx

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// message is a protobuf message that grows.
type message []byte

func (b *message) int(num protowire.Number, v int64) {
	*b = protowire.AppendVarint(protowire.AppendTag(*b, num, protowire.VarintType), uint64(v))
}

func (b *message) float(num protowire.Number, v float32) {
	*b = protowire.AppendFixed32(protowire.AppendTag(*b, num, protowire.Fixed32Type), math.Float32bits(v))
}

func (b *message) bytes(num protowire.Number, v []byte) {
	*b = protowire.AppendBytes(protowire.AppendTag(*b, num, protowire.BytesType), v)
}

// text leaves an empty string out, as protobuf writers do.
func (b *message) text(num protowire.Number, s string) {
	if s != "" {
		b.bytes(num, []byte(s))
	}
}

// Marshal returns m as the bytes of an ONNX file. The same model always gives the same bytes.
// Weights that lie in external files stay references to them. It fails on an attribute of a kind
// that the package does not read.
func (m *Model) Marshal() ([]byte, error) {
	var b message
	b.int(1, m.IRVersion)
	b.text(2, m.Producer)
	b.text(3, m.ProducerVersion)
	g, err := m.Graph.marshal()
	if err != nil {
		return nil, err
	}
	b.bytes(7, g)
	for _, domain := range slices.Sorted(maps.Keys(m.Opsets)) {
		var o message
		o.text(1, domain)
		o.int(2, m.Opsets[domain])
		b.bytes(8, o)
	}
	for _, key := range slices.Sorted(maps.Keys(m.Metadata)) {
		b.entry(14, key, m.Metadata[key])
	}
	if len(m.Functions) > 0 {
		return nil, fmt.Errorf("write onnx: model-local functions are not written")
	}
	return b, nil
}

func (b *message) entry(num protowire.Number, key, value string) {
	var e message
	e.text(1, key)
	e.text(2, value)
	b.bytes(num, e)
}

func (g *Graph) marshal() (message, error) {
	var b message
	for i := range g.Nodes {
		n, err := g.Nodes[i].marshal()
		if err != nil {
			return nil, err
		}
		b.bytes(1, n)
	}
	b.text(2, g.Name)
	for i := range g.Initializers {
		t, err := g.Initializers[i].marshal()
		if err != nil {
			return nil, err
		}
		b.bytes(5, t)
	}
	for _, v := range g.Inputs {
		b.bytes(11, v.marshal())
	}
	for _, v := range g.Outputs {
		b.bytes(12, v.marshal())
	}
	for _, name := range slices.Sorted(maps.Keys(g.Values)) {
		b.bytes(13, g.Values[name].marshal())
	}
	return b, nil
}

func (n *Node) marshal() (message, error) {
	var b message
	for _, in := range n.Inputs {
		b.bytes(1, []byte(in)) // an empty name holds the place of an optional input
	}
	for _, out := range n.Outputs {
		b.bytes(2, []byte(out))
	}
	b.text(3, n.Name)
	b.text(4, n.Op)
	for i := range n.Attrs {
		a, err := n.Attrs[i].marshal()
		if err != nil {
			return nil, fmt.Errorf("write onnx: node %q: %w", n.Name, err)
		}
		b.bytes(5, a)
	}
	b.text(7, n.Domain)
	return b, nil
}

func (a *Attr) marshal() (message, error) {
	var b message
	b.text(1, a.Name)
	switch a.Type {
	case AttrFloat:
		b.float(2, a.F)
	case AttrInt:
		b.int(3, a.I)
	case AttrString:
		b.bytes(4, []byte(a.S))
	case AttrTensor:
		t, err := a.T.marshal()
		if err != nil {
			return nil, err
		}
		b.bytes(5, t)
	case AttrFloats:
		for _, v := range a.Floats {
			b.float(7, v)
		}
	case AttrInts:
		for _, v := range a.Ints {
			b.int(8, v)
		}
	case AttrStrings:
		for _, s := range a.Strings {
			b.bytes(9, []byte(s))
		}
	case AttrGraph, AttrGraphs:
		num, list := protowire.Number(6), []*Graph{a.G}
		if a.Type == AttrGraphs {
			num, list = 11, a.Graphs
		}
		for _, g := range list {
			m, err := g.marshal()
			if err != nil {
				return nil, err
			}
			b.bytes(num, m)
		}
	default:
		return nil, fmt.Errorf("attribute %q of kind %d is not written", a.Name, a.Type)
	}
	b.int(20, int64(a.Type))
	return b, nil
}

func (v ValueInfo) marshal() message {
	var shape, tt, typ, b message
	for _, d := range v.Shape {
		var dim message
		if d.Size >= 0 {
			dim.int(1, int64(d.Size))
		} else {
			dim.text(2, d.Param)
		}
		shape.bytes(1, dim)
	}
	tt.int(1, int64(v.Type))
	if v.HasShape {
		tt.bytes(2, shape)
	}
	typ.bytes(1, tt)
	b.text(1, v.Name)
	if v.Type != tensor.Undefined {
		b.bytes(2, typ)
	}
	return b
}

// marshal writes the tensor's data as raw bytes, or refers to its external file.
func (t *Initializer) marshal() (message, error) {
	var b message
	for _, d := range t.Dims {
		b.int(1, int64(d))
	}
	b.int(2, int64(t.Type))
	b.text(8, t.Name)
	switch {
	case t.External != nil:
		b.entry(13, "location", t.External.Location)
		b.entry(13, "offset", strconv.FormatInt(t.External.Offset, 10))
		b.entry(13, "length", strconv.FormatInt(t.External.Length, 10))
		b.int(14, 1)
	case t.Type == tensor.String:
		_ = each(t.msg, func(f field) error { // parsed before
			if f.is(stringData) {
				b.bytes(stringData, f.val)
			}
			return nil
		})
	default:
		data, err := t.Bytes()
		if err != nil {
			return nil, fmt.Errorf("write onnx: %w", err)
		}
		b.bytes(9, data)
	}
	return b, nil
}

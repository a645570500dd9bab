package face

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// The numbers are fields of onnx.proto3; only what this one graph needs is here.
const (
	irVersion = 6
	opset     = 11

	typeFloat32 = 1 // TensorProto.FLOAT

	attrFloat, attrInt, attrString, attrInts = 1, 2, 3, 7 // AttributeProto.AttributeType
)

// message is a protocol buffer under construction.
type message []byte

func (m message) integer(field protowire.Number, v int64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), uint64(v))
}

func (m message) bytes(field protowire.Number, v []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), v)
}

func (m message) text(field protowire.Number, v string) message { return m.bytes(field, []byte(v)) }

// graph collects the parts of a GraphProto; err is the first failure.
type graph struct {
	tensors map[string]weight
	body    message
	err     error
}

type attr message

func integer(name string, v int64) attr {
	return attr(message(nil).text(1, name).integer(3, v).integer(20, attrInt))
}

func float(name string, v float32) attr {
	m := message(nil).text(1, name)
	m = protowire.AppendFixed32(protowire.AppendTag(m, 2, protowire.Fixed32Type), math.Float32bits(v))
	return attr(m.integer(20, attrFloat))
}

func text(name, v string) attr {
	return attr(message(nil).text(1, name).text(4, v).integer(20, attrString))
}

func ints(name string, v ...int64) attr {
	m := message(nil).text(1, name)
	for _, i := range v {
		m = m.integer(8, i)
	}
	return attr(m.integer(20, attrInts))
}

// node adds an operator with one output, named like the operator, and returns that name.
func (g *graph) node(op, name string, inputs []string, attrs ...attr) string {
	var m message
	for _, in := range inputs {
		m = m.text(1, in)
	}
	m = m.text(2, name).text(3, name).text(4, op)
	for _, a := range attrs {
		m = m.bytes(5, a)
	}
	g.body = g.body.bytes(1, m)
	return name
}

func (g *graph) initializer(name string, w weight) {
	var m message
	for _, d := range w.shape {
		m = m.integer(1, int64(d))
	}
	raw := make([]byte, 0, 4*len(w.data))
	for _, v := range w.data {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	g.body = g.body.bytes(5, m.integer(2, typeFloat32).text(8, name).bytes(9, raw))
}

// value is a ValueInfoProto of float32 whose first axis is the batch.
func value(name string, dims ...int64) message {
	shape := message(nil).bytes(1, message(nil).text(2, "batch"))
	for _, d := range dims {
		shape = shape.bytes(1, message(nil).integer(1, d))
	}
	tensor := message(nil).integer(1, typeFloat32).bytes(2, shape)
	return message(nil).text(1, name).bytes(2, message(nil).bytes(1, tensor))
}

// model closes the graph and wraps it in a ModelProto with its metadata.
func (g *graph) model() []byte {
	body := g.body.text(2, "face").
		bytes(11, value("images", 3, Input, Input)).
		bytes(12, value("output", 25, Cells, Cells))
	m := message(nil).integer(1, irVersion).text(2, "eyas").bytes(7, body).
		bytes(8, message(nil).integer(2, opset))
	for _, kv := range [][2]string{
		{"eyas", recipe},
		{"source", "@vladmandic/face-api 1.7.15, tiny_face_detector_model"},
		{"license", "MIT"},
	} {
		m = m.bytes(14, message(nil).text(1, kv[0]).text(2, kv[1]))
	}
	return m
}

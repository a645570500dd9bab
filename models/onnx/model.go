// Package onnx reads ONNX files, infers the shapes of their values and counts what they
// hold. It reads the bytes of the file itself, without generated code: initialisers are
// references into them, nothing is copied but names and small attributes.
//
// A file is outside input. Depth, counts and sizes are checked against what the file can
// hold before anything is allocated, external data stays inside the model's folder, and
// every error is one line that says what the file is and what to do. The package runs no
// operator, except on the few small integer tensors that shapes are made of.
package onnx

import (
	"github.com/eyas-edge/eyas/internal/tensor"
)

// Model is what an ONNX file says. It keeps the bytes that it was parsed from.
type Model struct {
	Path            string // "" when it was parsed from bytes
	IRVersion       int64
	Producer        string
	ProducerVersion string
	Opsets          map[string]int64  // opset version by domain; "" is ai.onnx
	Metadata        map[string]string // metadata_props, for example Ultralytics' names and task
	Functions       []Function        // model-local functions; shapes of their values are not inferred
	Graph           *Graph
	Size            int64 // bytes of the file, external data not included
	Rewritten       bool  // by DynamicBatch: the file at Path says something else
}

// Graph is the model's graph, or one that an If, Loop or Scan node holds.
type Graph struct {
	Name         string
	Nodes        []Node
	Inputs       []ValueInfo // what a run has to feed: initialisers are not listed
	Outputs      []ValueInfo
	Initializers []Initializer
	Values       map[string]ValueInfo // value_info: what the exporter noted on values in between
}

// ValueInfo is the declared type of one value.
type ValueInfo struct {
	Name     string
	Type     tensor.Type // Undefined for what is no tensor, such as a sequence
	Shape    []Dim       // empty for a scalar and when HasShape is false
	HasShape bool        // false: not even the rank is declared
}

// Dim is one declared dimension.
type Dim struct {
	Size  int    // -1: not known before a run
	Param string // the dynamic axis' name, "" if it has none
}

// Sizes returns the declared dimensions as plain numbers, -1 for those that are dynamic;
// nil when the rank is not declared.
func (v ValueInfo) Sizes() []int {
	if !v.HasShape {
		return nil
	}
	s := make([]int, len(v.Shape))
	for i, d := range v.Shape {
		s[i] = d.Size
	}
	return s
}

// Dynamic says whether a dimension, or the rank, is not known before a run.
func (v ValueInfo) Dynamic() bool {
	for _, d := range v.Shape {
		if d.Size < 0 {
			return true
		}
	}
	return !v.HasShape
}

// Node is one operator.
type Node struct {
	Op      string // operator type, for example "Conv"
	Domain  string // "" is ai.onnx
	Name    string
	Inputs  []string // "" for an optional input left out
	Outputs []string
	Attrs   []Attr
}

// AttrType is the kind of an attribute's value. The values are those of
// AttributeProto.AttributeType.
type AttrType int32

// The kinds of attributes that are read.
const (
	AttrUndefined AttrType = 0
	AttrFloat     AttrType = 1
	AttrInt       AttrType = 2
	AttrString    AttrType = 3
	AttrTensor    AttrType = 4
	AttrGraph     AttrType = 5
	AttrFloats    AttrType = 6
	AttrInts      AttrType = 7
	AttrStrings   AttrType = 8
	AttrGraphs    AttrType = 10
)

// Attr is one attribute of a node. Only the fields of its Type are set.
type Attr struct {
	Name    string
	Type    AttrType
	F       float32
	I       int64
	S       string
	T       *Initializer
	G       *Graph
	Floats  []float32
	Ints    []int64
	Strings []string
	Graphs  []*Graph
}

// Attr returns the attribute of that name, nil if the node has none.
func (n *Node) Attr(name string) *Attr {
	for i := range n.Attrs {
		if n.Attrs[i].Name == name {
			return &n.Attrs[i]
		}
	}
	return nil
}

// Int returns an integer attribute, or def if the node has none of that name and type.
func (n *Node) Int(name string, def int64) int64 {
	if a := n.Attr(name); a != nil && a.Type == AttrInt {
		return a.I
	}
	return def
}

// Ints returns an attribute that is a list of integers, nil if there is none.
func (n *Node) Ints(name string) []int64 {
	if a := n.Attr(name); a != nil && a.Type == AttrInts {
		return a.Ints
	}
	return nil
}

// Float returns a float attribute, or def if there is none.
func (n *Node) Float(name string, def float32) float32 {
	if a := n.Attr(name); a != nil && a.Type == AttrFloat {
		return a.F
	}
	return def
}

// String returns a string attribute, or def if there is none.
func (n *Node) String(name, def string) string {
	if a := n.Attr(name); a != nil && a.Type == AttrString {
		return a.S
	}
	return def
}

// Tensor returns a tensor attribute, nil if there is none.
func (n *Node) Tensor(name string) *Initializer {
	if a := n.Attr(name); a != nil && a.Type == AttrTensor {
		return a.T
	}
	return nil
}

// Graph returns a graph attribute, nil if there is none.
func (n *Node) Graph(name string) *Graph {
	if a := n.Attr(name); a != nil && a.Type == AttrGraph {
		return a.G
	}
	return nil
}

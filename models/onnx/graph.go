package onnx

import (
	"fmt"
	"math"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// graph reads a GraphProto.
func (r *reader) graph(msg []byte) (*Graph, error) {
	if r.depth++; r.depth > maxDepth {
		return nil, fmt.Errorf("graphs are nested more than %d deep: the file is damaged or made to do harm", maxDepth)
	}
	defer func() { r.depth-- }()
	g := &Graph{}
	nodes, inits := count(msg, 1), count(msg, 5)
	if err := r.take(nodes, "nodes"); err != nil {
		return nil, err
	}
	g.Nodes, g.Initializers = make([]Node, 0, nodes), make([]Initializer, 0, min(inits, r.items))
	g.Values = make(map[string]ValueInfo)
	var inputs []ValueInfo
	err := each(msg, func(f field) error {
		switch {
		case f.is(1):
			n, err := r.node(f.val)
			g.Nodes = append(g.Nodes, n)
			return err
		case f.is(2):
			g.Name = string(f.val)
		case f.is(5):
			t, err := r.tensor(f.val)
			if err != nil {
				return err
			}
			if t.Name == "" {
				return fmt.Errorf("an initialiser has no name: the file is damaged, export it again")
			}
			g.Initializers = append(g.Initializers, *t)
		case f.is(11), f.is(12), f.is(13):
			v, err := r.valueInfo(f.val)
			switch {
			case err != nil:
				return err
			case f.num == 11:
				inputs = append(inputs, v)
			case f.num == 12:
				g.Outputs = append(g.Outputs, v)
			default:
				g.Values[v.Name] = v
			}
		case f.is(15):
			t, err := r.sparse(f.val)
			if err != nil {
				return err
			}
			g.Initializers = append(g.Initializers, *t)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// Files of IR 3 and older, and of some exporters, list the weights as inputs too.
	weights := make(map[string]bool, len(g.Initializers))
	for i := range g.Initializers {
		weights[g.Initializers[i].Name] = true
	}
	listed := make(map[string]bool)
	for _, v := range inputs {
		if !weights[v.Name] {
			g.Inputs = append(g.Inputs, v)
			continue
		}
		listed[v.Name] = true
	}
	for i := range g.Initializers {
		g.Initializers[i].Listed = listed[g.Initializers[i].Name]
	}
	return g, nil
}

// sparse reads a SparseTensorProto as the tensor of its values, which is what it takes.
func (r *reader) sparse(msg []byte) (*Initializer, error) {
	var t *Initializer
	err := each(msg, func(f field) (err error) {
		if f.is(1) {
			t, err = r.tensor(f.val)
		}
		return err
	})
	if err == nil && (t == nil || t.Name == "") {
		err = fmt.Errorf("a sparse tensor has no values or no name: the file is damaged, export it again")
	}
	return t, err
}

// node reads a NodeProto.
func (r *reader) node(msg []byte) (Node, error) {
	ins, outs, attrs := count(msg, 1), count(msg, 2), count(msg, 5)
	if err := r.take(attrs, "attributes"); err != nil {
		return Node{}, err
	}
	if err := r.take((ins+outs)/namesPerItem, "inputs and outputs"); err != nil {
		return Node{}, err
	}
	n := Node{
		Inputs:  make([]string, 0, ins),
		Outputs: make([]string, 0, outs),
		Attrs:   make([]Attr, 0, attrs),
	}
	err := each(msg, func(f field) error {
		switch {
		case f.is(1):
			n.Inputs = append(n.Inputs, string(f.val))
		case f.is(2):
			n.Outputs = append(n.Outputs, string(f.val))
		case f.is(3):
			n.Name = string(f.val)
		case f.is(4):
			n.Op = string(f.val)
		case f.is(5):
			a, err := r.attr(f.val)
			if err != nil {
				return err
			}
			n.Attrs = append(n.Attrs, a)
		case f.is(7):
			n.Domain = string(f.val)
			if n.Domain == "ai.onnx" {
				n.Domain = "" // two names of the same domain
			}
		}
		return nil
	})
	if err == nil && n.Op == "" {
		err = fmt.Errorf("node %.60q has no operator: the file is damaged, export it again", n.Name)
	}
	return n, err
}

// attr reads an AttributeProto.
func (r *reader) attr(msg []byte) (Attr, error) {
	var a Attr
	seen := AttrUndefined // files of IR 1 say no type
	err := each(msg, func(f field) (err error) {
		switch {
		case f.is(1):
			a.Name = string(f.val)
		case f.num == 2:
			a.F, seen = math.Float32frombits(uint32(f.n)), AttrFloat
		case f.isInt(3):
			a.I, seen = int64(f.n), AttrInt
		case f.is(4):
			a.S, seen = string(f.val), AttrString
		case f.is(5):
			a.T, err = r.tensor(f.val)
			seen = AttrTensor
		case f.is(6):
			a.G, err = r.graph(f.val)
			seen = AttrGraph
		case f.num == 7:
			a.Floats, seen = f.floats(a.Floats), AttrFloats
		case f.num == 8:
			seen = AttrInts
			err = f.varints(func(v uint64) error { a.Ints = append(a.Ints, int64(v)); return nil })
		case f.is(9):
			a.Strings, seen = append(a.Strings, string(f.val)), AttrStrings
		case f.is(11):
			var g *Graph
			g, err = r.graph(f.val)
			a.Graphs, seen = append(a.Graphs, g), AttrGraphs
		case f.isInt(20):
			a.Type = AttrType(f.n)
		}
		return err
	})
	if a.Type == AttrUndefined {
		a.Type = seen
	}
	if err == nil && ((a.Type == AttrTensor && a.T == nil) || (a.Type == AttrGraph && a.G == nil)) {
		err = fmt.Errorf("attribute %.60q has no value: the file is damaged, export it again", a.Name)
	}
	if err == nil && a.Name == "" {
		err = fmt.Errorf("an attribute has no name: the file is damaged, export it again")
	}
	return a, err
}

// valueInfo reads a ValueInfoProto. Types that are no tensors stay Undefined.
func (r *reader) valueInfo(msg []byte) (ValueInfo, error) {
	var v ValueInfo
	if err := r.take(1, "values"); err != nil {
		return v, err
	}
	err := each(msg, func(f field) error {
		switch {
		case f.is(1):
			v.Name = string(f.val)
		case f.is(2): // TypeProto
			return each(f.val, func(f field) error {
				if !f.is(1) {
					return nil
				}
				return each(f.val, func(f field) error { // TypeProto.Tensor
					switch {
					case f.isInt(1):
						v.Type = tensor.Type(f.n)
					case f.is(2):
						v.HasShape = true
						return v.shape(f.val)
					}
					return nil
				})
			})
		}
		return nil
	})
	if err == nil && v.Name == "" {
		err = fmt.Errorf("an input, output or value has no name: the file is damaged, export it again")
	}
	return v, err
}

// shape reads a TensorShapeProto into v.
func (v *ValueInfo) shape(msg []byte) error {
	return each(msg, func(f field) error {
		if !f.is(1) {
			return nil
		}
		if len(v.Shape) == maxRank {
			return fmt.Errorf("value %.60q has more than %d dimensions: the file is damaged", v.Name, maxRank)
		}
		d := Dim{Size: -1}
		err := each(f.val, func(f field) error {
			switch {
			case f.isInt(1):
				d.Size = -1 // some exporters write -1 or 0 for a dynamic axis
				if f.n > 0 && f.n <= math.MaxInt {
					d.Size = int(f.n)
				}
			case f.is(2):
				d.Param = string(f.val)
			}
			return nil
		})
		v.Shape = append(v.Shape, d)
		return err
	})
}

// entry reads a StringStringEntryProto.
func entry(msg []byte) (key, value string, err error) {
	err = each(msg, func(f field) error {
		switch {
		case f.is(1):
			key = string(f.val)
		case f.is(2):
			value = string(f.val)
		}
		return nil
	})
	return key, value, err
}

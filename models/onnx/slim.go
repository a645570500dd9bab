package onnx

import "slices"

// keptElements is the size up to which DropWeights leaves a tensor alone: shapes, axes, anchors.
const keptElements = 1024

// DropWeights lets go of the model's own bytes, which an engine has copied by then: of every tensor of more
// than 1024 elements in it only name, type and shape are left, and Bytes fails. What inference needs stays. No
// other method may be called meanwhile.
func (m *Model) DropWeights() {
	slimGraph(m.Graph)
	for n := range m.Nodes() {
		for i := range n.Attrs {
			a := &n.Attrs[i]
			if a.T != nil {
				a.T.slim()
			}
			for _, g := range append(a.Graphs[:len(a.Graphs):len(a.Graphs)], a.G) {
				slimGraph(g)
			}
		}
	}
}

func slimGraph(g *Graph) {
	if g == nil {
		return
	}
	for i := range g.Initializers {
		g.Initializers[i].slim()
	}
}

// slim cuts the tensor off the bytes of the model's file.
func (t *Initializer) slim() {
	switch {
	case t.External != nil:
		t.msg = nil
	case t.Elements() > keptElements:
		t.dropped = true
		t.raw, t.msg = nil, nil
	case t.raw != nil:
		t.raw, t.msg = slices.Clone(t.raw), nil
	default:
		t.msg = slices.Clone(t.msg)
	}
}

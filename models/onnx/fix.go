package onnx

import (
	"maps"
	"slices"
)

// WithDims returns the model with dynamic axes of these names at these sizes, as an engine sees it that was told
// them before it loads the model. The two share everything else.
func (m *Model) WithDims(sizes map[string]int) *Model {
	if len(sizes) == 0 {
		return m
	}
	fix := func(v ValueInfo) ValueInfo {
		v.Shape = slices.Clone(v.Shape)
		for i, d := range v.Shape {
			if size, ok := sizes[d.Param]; ok && d.Param != "" && d.Size < 0 {
				v.Shape[i] = Dim{Size: size}
			}
		}
		return v
	}
	fixed, graph := *m, *m.Graph
	graph.Inputs, graph.Outputs, graph.Values = slices.Clone(graph.Inputs), slices.Clone(graph.Outputs), maps.Clone(graph.Values)
	for i, v := range graph.Inputs {
		graph.Inputs[i] = fix(v)
	}
	for i, v := range graph.Outputs {
		graph.Outputs[i] = fix(v)
	}
	for name, v := range graph.Values {
		graph.Values[name] = fix(v)
	}
	fixed.Graph = &graph
	return &fixed
}

package onnx

import (
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
)

func TestWithDims(t *testing.T) {
	m := &Model{Graph: &Graph{
		Inputs: []ValueInfo{{Name: "x", Type: tensor.Float32, HasShape: true,
			Shape: []Dim{{Size: -1, Param: "batch"}, {Size: 3}, {Size: -1, Param: "height"}, {Size: -1}}}},
		Outputs: []ValueInfo{{Name: "y", Type: tensor.Float32, HasShape: true, Shape: []Dim{{Size: -1, Param: "batch"}}}},
		Values:  map[string]ValueInfo{"z": {Name: "z", HasShape: true, Shape: []Dim{{Size: -1, Param: "height"}, {Size: 7, Param: "batch"}}}},
	}}
	if m.WithDims(nil) != m {
		t.Error("without sizes it is another model")
	}
	f := m.WithDims(map[string]int{"batch": 4, "": 9})
	for _, c := range []struct {
		name string
		got  Dim
		want Dim
	}{
		{"named", f.Graph.Inputs[0].Shape[0], Dim{Size: 4}},
		{"fixed", f.Graph.Inputs[0].Shape[1], Dim{Size: 3}},
		{"another name", f.Graph.Inputs[0].Shape[2], Dim{Size: -1, Param: "height"}},
		{"without a name", f.Graph.Inputs[0].Shape[3], Dim{Size: -1}},
		{"of an output", f.Graph.Outputs[0].Shape[0], Dim{Size: 4}},
		{"fixed already", f.Graph.Values["z"].Shape[1], Dim{Size: 7, Param: "batch"}},
		{"of the model itself", m.Graph.Inputs[0].Shape[0], Dim{Size: -1, Param: "batch"}},
	} {
		if c.got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, c.got, c.want)
		}
	}
}

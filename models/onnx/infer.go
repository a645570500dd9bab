package onnx

import (
	"errors"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// Inference is what is known of the values of a graph for given input shapes.
type Inference struct {
	Shapes  map[string][]int       // by value name; -1 where a dimension depends on data; absent when the rank is unknown
	Types   map[string]tensor.Type // by value name; absent when unknown
	Missing []string               // one line for each node whose output shape could not be inferred
}

// Infer returns the shapes of all values of the graph, initialisers included, for the shapes
// of inputs. An input that is absent takes its declared shape. What cannot be inferred is
// absent, a dimension that depends on data is -1. It fails when an input is unknown or its
// shape contradicts the declared one, or when the graph does not run at these shapes.
func (m *Model) Infer(inputs map[string][]int) (map[string][]int, error) {
	inf, err := m.InferAll(inputs)
	if err != nil {
		return nil, err
	}
	return inf.Shapes, nil
}

// InferAll is Infer with the types, and with what could not be inferred.
func (m *Model) InferAll(inputs map[string][]int) (*Inference, error) {
	return nil, errors.ErrUnsupported
}

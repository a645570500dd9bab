package onnx

import (
	"errors"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// Initializer is a constant tensor: a weight, or the value of a Constant node. It refers to the
// model's bytes or to an external file; Bytes, Float32s and Int64s read it.
type Initializer struct {
	Name     string
	Type     tensor.Type
	Dims     []int     // product checked against what the file holds; empty is a scalar
	External *External // nil when the data lies in the model's file
}

// External says where in the model's folder the data lies.
type External struct {
	Location       string // relative to the model's folder
	Offset, Length int64  // bytes
}

// Elements returns the number of elements that Dims says.
func (t *Initializer) Elements() int { return tensor.Elements(t.Dims) }

// Bytes returns the elements as little-endian bytes.
func (t *Initializer) Bytes() ([]byte, error) { return nil, errors.ErrUnsupported }

// Float32s returns the elements of a float32, float16, bfloat16 or float64 tensor as float32.
func (t *Initializer) Float32s() ([]float32, error) { return nil, errors.ErrUnsupported }

// Int64s returns the elements of an integer or bool tensor as int64.
func (t *Initializer) Int64s() ([]int64, error) { return nil, errors.ErrUnsupported }

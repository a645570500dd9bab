package onnx

import "errors"

// Open reads the ONNX file at path.
func Open(path string) (*Model, error) { return nil, errors.ErrUnsupported }

// Parse reads a model from data, which must not change afterwards. dir is the folder that
// external data lies in; "" refuses external data.
func Parse(data []byte, dir string) (*Model, error) { return nil, errors.ErrUnsupported }

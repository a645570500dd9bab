package onnx

import "github.com/eyas-edge/eyas/internal/tensor"

// Stats is what a model holds and what one run of it computes.
type Stats struct {
	Params       int64                 // elements of the weights
	WeightBytes  map[tensor.Type]int64 // bytes of the weights by type
	Float32Bytes int64                 // bytes if every weight were float32
	Ops          map[string]int        // nodes by operator type
	MACs         int64                 // multiply-adds of one run at the shapes given
	MACsComplete bool                  // false when the shapes of a counted operator are not known
}

// Stats counts the model's weights, operators and, at shapes (the result of Infer), multiply-adds.
func (m *Model) Stats(shapes map[string][]int) Stats { return Stats{} }

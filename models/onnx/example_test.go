package onnx_test

import (
	"fmt"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/models/onnx"
)

func ExampleBuilder() {
	b := onnx.NewBuilder("tiny", 17)
	x := b.Input("images", tensor.Float32, -1, 3, 32, 32)
	w := b.Float32("w", []int{8, 3, 3, 3}, make([]float32, 8*3*3*3))
	y := b.Node("Conv", []string{x, w}, onnx.Ints("strides", 2, 2), onnx.Ints("pads", 1, 1, 1, 1))
	b.Output(y, tensor.Float32, -1, 8, 16, 16)
	b.Meta("task", "detect")
	m, err := b.Model()
	if err != nil {
		fmt.Println(err)
		return
	}
	shapes, err := m.Infer(map[string][]int{"images": {4, 3, 32, 32}})
	if err != nil {
		fmt.Println(err)
		return
	}
	st := m.Stats(shapes)
	fmt.Println(shapes[y], st.Params, st.MACs)
	// Output: [4 8 16 16] 216 221184
}

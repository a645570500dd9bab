package face

import (
	"fmt"
	"strings"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/models/onnx"
)

const (
	opset = 11
	leaky = 0.1 // slope of the activation below zero
)

// network is the graph under construction; err is the first failure.
type network struct {
	*onnx.Builder
	weights map[string]weight
	err     error
}

// build makes the network: a plain convolution, five depthwise-separable ones with a 2x2
// pool before each, one more pool that keeps the size, and a 1x1 convolution to the grid.
func build(weights map[string]weight) ([]byte, error) {
	n := &network{Builder: onnx.NewBuilder("face", opset), weights: weights}
	n.Meta("eyas", recipe)
	n.Meta("license", "MIT")
	n.Meta("source", "@vladmandic/face-api 1.7.15, tiny_face_detector_model")

	x := n.Input("images", tensor.Float32, -1, 3, Input, Input)
	x = n.activate(n.conv(x, "conv0/filters", "conv0/bias", 0))
	for i := 1; i <= 5; i++ {
		layer := fmt.Sprintf("conv%d", i)
		x = n.pool(x, 2)
		x = n.conv(x, layer+"/depthwise_filter", "", 1)
		x = n.activate(n.conv(x, layer+"/pointwise_filter", layer+"/bias", 0))
	}
	x = n.conv(n.pool(x, 1), "conv8/filters", "conv8/bias", 0)
	n.Add(onnx.Node{Op: "Identity", Name: "output", Inputs: []string{x}, Outputs: []string{"output"}})
	n.Output("output", tensor.Float32, -1, 25, Cells, Cells)
	if n.err != nil {
		return nil, n.err
	}
	return n.Bytes()
}

func (n *network) activate(x string) string {
	return n.Node("LeakyRelu", []string{x}, onnx.Float("alpha", leaky))
}

// conv adds a convolution of stride 1; one whose filter is a depthwise one is grouped. bias
// may be empty.
func (n *network) conv(x, filter, bias string, pad int64) string {
	w := n.take(filter, 4)
	if n.err != nil {
		return ""
	}
	attrs := []onnx.Attr{
		onnx.Ints("kernel_shape", int64(w.shape[0]), int64(w.shape[1])),
		onnx.Ints("pads", pad, pad, pad, pad),
	}
	if strings.HasSuffix(filter, "/depthwise_filter") {
		attrs = append(attrs, onnx.Int("group", int64(w.shape[2])))
		w = w.depthwise()
	}
	w = w.oihw()
	inputs := []string{x, n.Float32(filter, w.shape, w.data)}
	if bias != "" {
		b := n.take(bias, 1)
		inputs = append(inputs, n.Float32(bias, b.shape, b.data))
	}
	return n.Node("Conv", inputs, attrs...)
}

// pool adds a 2x2 maximum pool that pads at the end only, as TensorFlow's "same" does: odd
// sides (207, and 13 with stride 1) get one row and one column.
func (n *network) pool(x string, stride int64) string {
	return n.Node("MaxPool", []string{x},
		onnx.Ints("kernel_shape", 2, 2), onnx.Ints("strides", stride, stride), onnx.String("auto_pad", "SAME_UPPER"))
}

// take returns a weight that has to be there with this many axes.
func (n *network) take(name string, axes int) weight {
	w := n.weights[name]
	if n.err == nil && len(w.shape) != axes {
		n.err = fmt.Errorf("weights manifest: %s has shape %v, expected %d axes", name, w.shape, axes)
	}
	return w
}

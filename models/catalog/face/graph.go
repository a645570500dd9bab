package face

import (
	"fmt"
	"strings"
)

// leaky is the slope of the activation below zero.
const leaky = 0.1

// build makes the network: a plain convolution, five depthwise-separable ones with a 2x2
// pool before each, the last of which keeps the size, and a 1x1 convolution to the grid.
func build(tensors map[string]weight) ([]byte, error) {
	g := &graph{tensors: tensors}
	x := g.conv("images", "conv0/filters", "conv0/bias", 0)
	x = g.node("LeakyRelu", "conv0", []string{x}, float("alpha", leaky))
	for i := 1; i <= 5; i++ {
		name := fmt.Sprintf("conv%d", i)
		x = g.pool(x, name+"/pool", 2)
		x = g.conv(x, name+"/depthwise_filter", "", 1)
		x = g.conv(x, name+"/pointwise_filter", name+"/bias", 0)
		x = g.node("LeakyRelu", name, []string{x}, float("alpha", leaky))
	}
	x = g.pool(x, "conv8/pool", 1)
	g.conv(x, "conv8/filters", "conv8/bias", 0)
	if g.err != nil {
		return nil, g.err
	}
	return g.model(), nil
}

// conv adds a convolution of stride 1. A filter whose name ends in depthwise_filter makes a
// grouped one. bias may be empty. The output is named like the filter's layer.
func (g *graph) conv(x, filter, bias string, pad int64) string {
	w, err := g.take(filter, 4)
	if err != nil {
		return ""
	}
	layer := filter[:len("convN")]
	inputs := []string{x, filter}
	attrs := []attr{ints("kernel_shape", int64(w.shape[0]), int64(w.shape[1])), ints("pads", pad, pad, pad, pad)}
	out := layer + "/conv"
	switch {
	case strings.HasSuffix(filter, "/depthwise_filter"):
		attrs = append(attrs, integer("group", int64(w.shape[2])))
		w, out = w.depthwise(), layer+"/depthwise"
	case layer == "conv8":
		w, out = w.oihw(), "output"
	default:
		w = w.oihw()
	}
	g.initializer(filter, w)
	if bias != "" {
		b, err := g.take(bias, 1)
		if err != nil {
			return ""
		}
		if b.shape[0] != w.shape[0] {
			g.err = fmt.Errorf("%s of shape %v does not fit %s", bias, b.shape, filter)
			return ""
		}
		g.initializer(bias, b)
		inputs = append(inputs, bias)
	}
	return g.node("Conv", out, inputs, attrs...)
}

// pool adds a 2x2 maximum pool that pads at the end only, as TensorFlow's "same" does; odd
// sizes (207, and 13 with stride 1) have one column and row of padding.
func (g *graph) pool(x, name string, stride int64) string {
	return g.node("MaxPool", name, []string{x},
		ints("kernel_shape", 2, 2), ints("strides", stride, stride), text("auto_pad", "SAME_UPPER"))
}

// take returns a weight that has to exist with this many axes; the first failure sticks.
func (g *graph) take(name string, axes int) (weight, error) {
	w, ok := g.tensors[name]
	if g.err == nil && (!ok || len(w.shape) != axes) {
		g.err = fmt.Errorf("weights: %s is missing or has shape %v, expected %d axes", name, w.shape, axes)
	}
	return w, g.err
}

package onnx

import (
	"fmt"
	"math"
	"slices"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// window is how Conv and the pools go over the spatial axes.
type window struct {
	kernel, strides, dilations, pads []int // pads: begins, then ends
	auto                             string
	ceil                             bool
}

// window reads the attributes for n spatial axes; kernel is used where the node names none.
func (c *call) window(n int, kernel []int) (w window, err error) {
	w.auto = c.String("auto_pad", "NOTSET")
	w.ceil = c.Int("ceil_mode", 0) != 0
	list := func(name string, n int, def int) []int {
		l := toInts(c.Ints(name))
		if l == nil {
			l = slices.Repeat([]int{def}, n)
		}
		if len(l) != n {
			err = fmt.Errorf("%s has %d entries, not %d", name, len(l), n)
		}
		for _, v := range l {
			if v < 0 || v > math.MaxInt32 || (def == 1 && v == 0) {
				err = fmt.Errorf("%s has an entry of %d", name, v)
			}
		}
		return l
	}
	if w.kernel = kernel; c.Attr("kernel_shape") != nil || kernel == nil {
		w.kernel = list("kernel_shape", n, 1)
	}
	if product(w.kernel) > math.MaxInt32 {
		return w, fmt.Errorf("a kernel of %s", showShape(w.kernel))
	}
	w.strides, w.dilations, w.pads = list("strides", n, 1), list("dilations", n, 1), list("pads", 2*n, 0)
	return w, err
}

// out returns the size of spatial axis i of the output for in of the input.
func (w *window) out(i, in int) (int, error) {
	k, s := w.kernel[i], w.strides[i]
	if in < 0 || k < 0 {
		return -1, nil
	}
	if w.auto == "SAME_UPPER" || w.auto == "SAME_LOWER" {
		return (in + s - 1) / s, nil
	}
	padded := in
	if w.auto != "VALID" {
		padded += w.pads[i] + w.pads[i+len(w.kernel)]
	}
	free := padded - (w.dilations[i]*(k-1) + 1)
	if free < 0 || in == 0 {
		return 0, fmt.Errorf("a kernel of %d does not fit into %d values", k, in)
	}
	n := free/s + 1
	if w.ceil && free%s > 0 {
		// A window has to begin inside of the input or its left padding.
		if n*s < in+w.pads[i] {
			n++
		}
	}
	return n, nil
}

// spatial returns batch, channels and the output's spatial axes.
func (w *window) spatial(in []int, channels int) ([]int, error) {
	shape := []int{in[0], channels}
	for i, d := range in[2:] {
		n, err := w.out(i, d)
		if err != nil {
			return nil, err
		}
		shape = append(shape, n)
	}
	return shape, nil
}

// conv is for the convolutions with input x and weights [out, in/group, kernel...] at input w. t is
// the type of the result, Undefined for that of the input.
func conv(w int, t tensor.Type) opFunc {
	return func(c *call) error {
		x, k := c.in(0), c.in(w)
		typ := t
		if typ == tensor.Undefined {
			typ = x.typ
		}
		c.set(0, typ, nil)
		if x.shape == nil || k.shape == nil {
			return nil
		}
		if len(x.shape) != len(k.shape) || len(x.shape) < 3 {
			return fmt.Errorf("input %s does not fit weights %s", showShape(x.shape), showShape(k.shape))
		}
		if in, per := x.shape[1], k.shape[1]; in >= 0 && per >= 0 && in != times(per, int(max(c.Int("group", 1), 0))) {
			return fmt.Errorf("input %s has not the channels of weights %s", showShape(x.shape), showShape(k.shape))
		}
		win, err := c.window(len(x.shape)-2, k.shape[2:])
		if err != nil {
			return err
		}
		shape, err := win.spatial(x.shape, k.shape[0])
		c.set(0, typ, shape)
		return err
	}
}

// convTranspose has weights [in, out/group, kernel...].
func convTranspose(c *call) error {
	x, k := c.in(0), c.in(1)
	c.set(0, x.typ, nil)
	if x.shape == nil || k.shape == nil {
		return nil
	}
	if len(x.shape) != len(k.shape) || len(x.shape) < 3 {
		return fmt.Errorf("input %s does not fit weights %s", showShape(x.shape), showShape(k.shape))
	}
	n := len(x.shape) - 2
	w, err := c.window(n, k.shape[2:])
	if err != nil {
		return err
	}
	extra, fixed := toInts(c.Ints("output_padding")), toInts(c.Ints("output_shape"))
	if (extra != nil && len(extra) != n) || (fixed != nil && len(fixed) != n) {
		return fmt.Errorf("output_padding or output_shape does not have %d entries", n)
	}
	shape := []int{x.shape[0], times(k.shape[1], int(max(c.Int("group", 1), 1)))}
	for i, in := range x.shape[2:] {
		out := -1
		switch {
		case fixed != nil:
			out = fixed[i]
		case in < 0 || w.kernel[i] < 0:
		case w.auto == "SAME_UPPER" || w.auto == "SAME_LOWER":
			out = times(in, w.strides[i])
		default:
			out = times(in-1, w.strides[i]) + w.dilations[i]*(w.kernel[i]-1) + 1 - w.pads[i] - w.pads[i+n]
			if extra != nil {
				out += extra[i]
			}
		}
		shape = append(shape, out)
	}
	c.set(0, x.typ, shape)
	return nil
}

// pool is for MaxPool, AveragePool and LpPool; MaxPool may give indices too.
func pool(c *call) error {
	x := c.in(0)
	c.set(0, x.typ, nil)
	if x.shape == nil {
		return nil
	}
	if len(x.shape) < 3 {
		return fmt.Errorf("input %s has no spatial axes", showShape(x.shape))
	}
	w, err := c.window(len(x.shape)-2, nil)
	if err != nil {
		return err
	}
	shape, err := w.spatial(x.shape, x.shape[1])
	c.set(0, x.typ, shape)
	c.set(1, tensor.Int64, shape)
	return err
}

// globalPool leaves one value of each channel.
func globalPool(c *call) error {
	x := c.in(0)
	shape := slices.Clone(x.shape)
	for d := 2; d < len(shape); d++ {
		shape[d] = 1
	}
	c.set(0, x.typ, shape)
	return nil
}

// resize is Resize and Upsample: by scales, or to sizes.
func resize(c *call) error {
	x := c.in(0)
	c.set(0, x.typ, nil)
	if x.shape == nil {
		return nil
	}
	rank := len(x.shape)
	axes := c.resizeAxes(rank)
	scales, sizes := c.scales(), c.elems(3)
	shape := slices.Clone(x.shape)
	for i, a := range axes {
		d, ok := axis(a, rank)
		if !ok {
			return fmt.Errorf("axis %d is outside of shape %s", a, showShape(x.shape))
		}
		shape[d] = -1
		switch {
		case len(sizes) > 0 && len(sizes) != len(axes), len(scales) > 0 && len(scales) != len(axes):
			return fmt.Errorf("%d sizes or scales for %d axes", max(len(sizes), len(scales)), len(axes))
		case len(sizes) > 0 && !math.IsNaN(sizes[i]):
			shape[d] = clampInt(sizes[i])
		case len(scales) > 0 && !math.IsNaN(scales[i]) && x.shape[d] >= 0:
			shape[d] = scaled(x.shape[d], scales[i])
		}
		if shape[d] < -1 {
			return fmt.Errorf("a size of %d", shape[d])
		}
	}
	if policy := c.String("keep_aspect_ratio_policy", "stretch"); policy != "stretch" && len(sizes) > 0 {
		keepAspect(shape, x.shape, axes, policy == "not_larger")
	}
	c.set(0, x.typ, shape)
	return nil
}

// resizeAxes returns the axes that scales and sizes are for.
func (c *call) resizeAxes(rank int) []int {
	axes := toInts(c.Ints("axes"))
	if axes == nil {
		for d := range rank {
			axes = append(axes, d)
		}
	}
	return axes
}

// scales returns the scales of Resize or Upsample, as far as they are known.
func (c *call) scales() []float64 {
	if a := c.Attr("scales"); a != nil { // Upsample of opset 7
		return toFloats(c.s, a.Floats)
	}
	if c.opset >= 11 && c.Op == "Resize" {
		return c.elems(2)
	}
	return c.elems(1) // Upsample, and Resize of opset 10
}

// scaled is floor(dim * scale) in float32, as the runtimes compute it.
func scaled(dim int, scale float64) int {
	return clampInt(math.Floor(float64(float32(dim) * float32(scale))))
}

// keepAspect replaces the sizes of axes by one common scale (opset 18).
func keepAspect(shape, in, axes []int, notLarger bool) {
	scale := math.NaN()
	for _, a := range axes {
		d, _ := axis(a, len(shape))
		if shape[d] < 0 || in[d] <= 0 {
			continue
		}
		s := float64(shape[d]) / float64(in[d])
		if math.IsNaN(scale) || (notLarger == (s < scale)) {
			scale = s
		}
	}
	for _, a := range axes {
		d, _ := axis(a, len(shape))
		if shape[d] = -1; in[d] >= 0 && !math.IsNaN(scale) {
			shape[d] = clampInt(math.Floor(float64(in[d])*scale + 0.5))
		}
	}
}

// gridSample samples [N,C,spatial...] at a grid [N,out...,2 or 3].
func gridSample(c *call) error {
	x, grid := c.in(0), c.in(1)
	c.set(0, x.typ, nil)
	if x.shape == nil || grid.shape == nil {
		return nil
	}
	if len(x.shape) < 3 || len(grid.shape) != len(x.shape) {
		return fmt.Errorf("input %s does not fit grid %s", showShape(x.shape), showShape(grid.shape))
	}
	c.set(0, x.typ, join(x.shape[:2], grid.shape[1:len(grid.shape)-1]))
	return nil
}

// roiAlign gives one crop a region.
func roiAlign(c *call) error {
	x, rois := c.in(0), c.in(1)
	c.set(0, x.typ, nil)
	if len(x.shape) == 4 && len(rois.shape) == 2 {
		c.set(0, x.typ, []int{rois.shape[0], x.shape[1], int(c.Int("output_height", 1)), int(c.Int("output_width", 1))})
	}
	return nil
}

// depthSpace is DepthToSpace, and with back SpaceToDepth.
func depthSpace(back bool) opFunc {
	return func(c *call) error {
		x := c.in(0)
		c.set(0, x.typ, nil)
		b := int(c.Int("blocksize", 0))
		if len(x.shape) != 4 {
			return nil
		}
		if b < 1 || b > 1<<16 {
			return fmt.Errorf("a block of %d", b)
		}
		n, ch, h, w := x.shape[0], x.shape[1], x.shape[2], x.shape[3]
		if back {
			ch, h, w = times(ch, b*b), divide(h, b), divide(w, b)
		} else {
			ch, h, w = divide(ch, b*b), times(h, b), times(w, b)
		}
		c.set(0, x.typ, []int{n, ch, h, w})
		return nil
	}
}

func divide(d, n int) int {
	if d < 0 {
		return -1
	}
	return d / n
}

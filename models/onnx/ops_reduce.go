package onnx

import (
	"fmt"
	"math"
	"slices"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// reduce is for the Reduce operators. f folds constants; it may be nil.
func reduce(f func(a, b float64) float64) opFunc {
	return func(c *call) error {
		v := c.in(0)
		c.set(0, v.typ, nil)
		if v.shape == nil {
			return nil
		}
		axes, given, ok := c.attrOrInput("axes", 1)
		keep := c.Int("keepdims", 1) != 0
		switch {
		case !ok && keep:
			c.set(0, v.typ, unknownDims(len(v.shape)))
			return nil
		case !ok:
			return nil
		case !given || len(axes) == 0:
			if c.Int("noop_with_empty_axes", 0) != 0 {
				c.copied(v)
				return nil
			}
			axes = nil
			for d := range v.shape {
				axes = append(axes, d)
			}
		}
		shape, err := reduced(v.shape, axes, keep)
		if err != nil {
			return err
		}
		c.set(0, v.typ, shape)
		if e := c.elems(0); f != nil && len(e) > 0 && product(shape) == 1 && len(c.out) > 0 && c.s.spend(len(e)) {
			c.out[0].elems = []float64{foldAll(e, f)}
		}
		return nil
	}
}

func foldAll(e []float64, f func(a, b float64) float64) float64 {
	acc := e[0]
	for _, x := range e[1:] {
		acc = f(acc, x)
	}
	return acc
}

// reduced returns shape without axes, or with them as 1.
func reduced(shape, axes []int, keep bool) ([]int, error) {
	gone := make([]bool, len(shape))
	for _, a := range axes {
		d, ok := axis(a, len(shape))
		if !ok {
			return nil, fmt.Errorf("axis %d is outside of shape %s", a, showShape(shape))
		}
		gone[d] = true
	}
	out := []int{}
	for d, size := range shape {
		switch {
		case !gone[d]:
			out = append(out, size)
		case keep:
			out = append(out, 1)
		}
	}
	return out, nil
}

// argReduce is ArgMax and ArgMin.
func argReduce(c *call) error {
	v := c.in(0)
	c.set(0, tensor.Int64, nil)
	if v.shape == nil {
		return nil
	}
	shape, err := reduced(v.shape, []int{int(c.Int("axis", 0))}, c.Int("keepdims", 1) != 0)
	c.set(0, tensor.Int64, shape)
	return err
}

// topK has values and indices.
func topK(c *call) error {
	v := c.in(0)
	c.set(0, v.typ, nil)
	c.set(1, tensor.Int64, nil)
	d, ok := axis(int(c.Int("axis", -1)), len(v.shape))
	if v.shape == nil {
		return nil
	}
	if !ok {
		return fmt.Errorf("axis %d is outside of shape %s", c.Int("axis", -1), showShape(v.shape))
	}
	k := int(c.Int("k", -1)) // opset 9 and older
	if list, known := c.constInts(1); known && len(list) == 1 {
		k = list[0]
	}
	if k > v.shape[d] && v.shape[d] >= 0 {
		return fmt.Errorf("it wants the best %d of %d values", k, v.shape[d])
	}
	shape := append([]int{}, v.shape...)
	shape[d] = max(k, -1)
	c.set(0, v.typ, shape)
	c.set(1, tensor.Int64, slices.Clone(shape))
	return nil
}

// nonMaxSuppression gives (batch, class, box) for each box that stays: how many depends on data.
func nonMaxSuppression(c *call) error {
	n := -1
	if boxes, scores := c.in(0).shape, c.in(1).shape; c.s.largest && len(boxes) == 3 && len(scores) == 3 {
		keep := boxes[1]
		if limit, ok := c.constInts(2); ok && len(limit) == 1 {
			keep = min(keep, max(limit[0], 0))
		}
		n = product([]int{scores[0], scores[1], keep})
	}
	c.set(0, tensor.Int64, []int{n, 3})
	return nil
}

// nonZero gives the indices of the elements that are not zero, one column each.
func nonZero(c *call) error {
	v := c.in(0)
	c.set(0, tensor.Int64, nil)
	if v.shape == nil {
		return nil
	}
	n, known := -1, false
	if c.s.largest {
		n = product(v.shape)
	}
	if e := c.elems(0); e != nil && c.s.spend(len(e)) && !slices.ContainsFunc(e, math.IsNaN) {
		n, known = 0, true
		for _, x := range e {
			if x != 0 {
				n++
			}
		}
	}
	c.set(0, tensor.Int64, []int{len(v.shape), n})
	if known && len(v.shape) == 1 && len(c.out) > 0 && c.s.spend(n) {
		list := make([]float64, 0, n)
		for i, x := range c.elems(0) {
			if x != 0 {
				list = append(list, float64(i))
			}
		}
		c.out[0].elems = list
	}
	return nil
}

// pickSome is for operators whose output is a list of unknown length: Unique, Compress.
func pickSome(c *call) error {
	v := c.in(0)
	n := -1
	if c.s.largest && v.shape != nil {
		n = product(v.shape)
	}
	shape := []int{n}
	if a := c.Attr("axis"); a != nil {
		shape = slices.Clone(v.shape)
		if d, ok := axis(int(a.I), len(shape)); ok {
			if n = -1; c.s.largest {
				n = shape[d]
			}
			shape[d] = n
		}
	}
	c.set(0, v.typ, shape)
	for i := 1; i < len(c.out); i++ {
		c.set(i, tensor.Int64, []int{n})
	}
	return nil
}

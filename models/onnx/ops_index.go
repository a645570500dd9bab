package onnx

import (
	"fmt"
	"math"
	"slices"

	"github.com/eyas-edge/eyas/internal/tensor"
)

func concat(c *call) error {
	first := c.in(0)
	c.set(0, first.typ, nil)
	for i := range c.Inputs {
		if c.in(i).shape == nil {
			return nil
		}
	}
	a, ok := axis(int(c.Int("axis", 1)), len(first.shape)) // opset 1 had this default
	if !ok {
		return fmt.Errorf("axis %d is outside of shape %s", c.Int("axis", 1), showShape(first.shape))
	}
	shape := slices.Clone(first.shape)
	for i := 1; i < len(c.Inputs); i++ {
		other := c.in(i).shape
		if len(other) != len(shape) {
			return fmt.Errorf("shapes %s and %s cannot be joined", showShape(shape), showShape(other))
		}
		for d, n := range other {
			switch {
			case d == a && (n < 0 || shape[d] < 0):
				shape[d] = -1
			case d == a:
				shape[d] += n
			case shape[d] < 0:
				shape[d] = n
			case n >= 0 && n != shape[d]:
				return fmt.Errorf("shapes %s and %s cannot be joined along axis %d", showShape(first.shape), showShape(other), a)
			}
		}
		if shape[a] > maxElems {
			return fmt.Errorf("the result is impossibly large")
		}
	}
	c.set(0, first.typ, shape)
	c.joinElems(a)
	return nil
}

// joinElems folds Concat. An input of one dimension whose values are not known still has a place
// in the result, as unknown elements: shapes are put together so.
func (c *call) joinElems(a int) {
	if len(c.out) == 0 {
		return
	}
	shape := c.out[0].shape
	n := product(shape)
	if slices.Contains(shape, -1) || !c.s.spend(n) {
		return
	}
	if n == 0 { // known in full; in front of the axis there may be 2^44 times nothing
		c.out[0].elems = []float64{}
		return
	}
	outer := product(shape[:a])
	parts := make([][]float64, len(c.Inputs))
	for i := range parts {
		if parts[i] = c.elems(i); parts[i] == nil {
			k := product(c.in(i).shape)
			if len(shape) != 1 || !c.s.spend(k) {
				return
			}
			parts[i] = make([]float64, k)
			for j := range parts[i] {
				parts[i][j] = math.NaN()
			}
		}
	}
	e := make([]float64, 0, n)
	for o := range outer {
		for _, p := range parts {
			w := len(p) / outer
			e = append(e, p[o*w:(o+1)*w]...)
		}
	}
	c.out[0].elems = e
}

func split(c *call) error {
	v := c.in(0)
	for i := range c.out {
		c.set(i, v.typ, nil)
	}
	if v.shape == nil || len(c.out) == 0 {
		return nil
	}
	a, ok := axis(int(c.Int("axis", 0)), len(v.shape))
	if !ok {
		return fmt.Errorf("axis %d is outside of shape %s", c.Int("axis", 0), showShape(v.shape))
	}
	sizes, given, ok := c.attrOrInput("split", 1)
	switch {
	case ok && given && len(sizes) < len(c.out):
		return fmt.Errorf("%d sizes for %d outputs", len(sizes), len(c.out))
	case !ok || (!given && v.shape[a] < 0):
		sizes = unknownDims(len(c.out))
	case !given: // equal parts, the last one smaller
		part := (v.shape[a] + len(c.out) - 1) / len(c.out)
		for i := range c.out {
			sizes = append(sizes, max(min(part, v.shape[a]-i*part), 0))
		}
	}
	start, e, st := 0, c.elems(0), strides(v.shape)
	for i := range c.out {
		shape := slices.Clone(v.shape)
		if shape[a] = sizes[i]; sizes[i] < -1 {
			return fmt.Errorf("a part of %d", sizes[i])
		}
		c.set(i, v.typ, shape)
		from := start
		c.out[i].elems = c.s.remap(e, shape, func(idx []int) int {
			return dot(idx, st) + from*st[a]
		})
		start += max(sizes[i], 0)
	}
	if start != v.shape[a] && !slices.Contains(sizes, -1) && v.shape[a] >= 0 && len(sizes) == len(c.out) {
		return fmt.Errorf("parts %v do not add up to dimension %d of shape %s", sizes[:min(len(sizes), maxRank)], a, showShape(v.shape))
	}
	return nil
}

func dot(a, b []int) int {
	n := 0
	for i := range a {
		n += a[i] * b[i]
	}
	return n
}

// slice cuts a range out of some axes.
func slice(c *call) error {
	v := c.in(0)
	c.set(0, v.typ, nil)
	if v.shape == nil {
		return nil
	}
	rank := len(v.shape)
	axes, hasAxes, ok := c.attrOrInput("axes", 3)
	if !ok {
		c.set(0, v.typ, unknownDims(rank))
		return nil
	}
	starts, ends, steps := c.elems(1), c.elems(2), c.elems(4)
	if a := c.Attr("starts"); a != nil { // opset 9 and older
		starts, ends = toFloats(c.s, a.Ints), toFloats(c.s, c.Ints("ends"))
	}
	n := max(len(starts), len(ends))
	if !hasAxes {
		if starts == nil || ends == nil {
			c.set(0, v.typ, unknownDims(rank))
			return nil
		}
		for d := range min(n, rank) {
			axes = append(axes, d)
		}
	}
	shape := slices.Clone(v.shape)
	begin, step := make([]int, rank), make([]int, rank)
	for d := range step {
		step[d] = 1
	}
	for i, a := range axes {
		d, ok := axis(a, rank)
		if !ok {
			return fmt.Errorf("axis %d is outside of shape %s", a, showShape(v.shape))
		}
		by := at(steps, i)
		if !c.has(4) {
			by = 1
		}
		if !math.IsNaN(by) && clampInt(by) == 0 {
			return fmt.Errorf("a step of 0")
		}
		begin[d], shape[d], step[d] = cut(v.shape[d], at(starts, i), at(ends, i), by)
	}
	c.set(0, v.typ, shape)
	st := strides(v.shape)
	c.remap(c.elems(0), func(idx []int) int {
		k := 0
		for d, i := range idx {
			k += (begin[d] + i*step[d]) * st[d]
		}
		return k
	})
	return nil
}

// at returns element i, NaN when it is not known.
func at(list []float64, i int) float64 {
	if i < len(list) {
		return list[i]
	}
	return math.NaN()
}

// cut returns where a slice of a dimension begins, how many elements it has (-1: not known) and the step.
func cut(dim int, start, end, step float64) (begin, n, by int) {
	if dim < 0 || math.IsNaN(start) || math.IsNaN(end) || math.IsNaN(step) {
		return 0, -1, 1
	}
	by = clampInt(step)
	bound := func(x float64, low, high int) int {
		i := clampInt(x)
		if i < 0 {
			i += dim
		}
		return min(max(i, low), high)
	}
	if by > 0 {
		b, e := bound(start, 0, dim), bound(end, 0, dim)
		return b, max(e-b, 0)/by + boolInt(max(e-b, 0)%by > 0), by
	}
	b, e := bound(start, 0, dim-1), bound(end, -1, dim-1)
	if dim == 0 {
		return 0, 0, by
	}
	return b, max(b-e, 0)/-by + boolInt(max(b-e, 0)%-by > 0), by
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func gather(c *call) error {
	v, index := c.in(0), c.in(1)
	c.set(0, v.typ, nil)
	if v.shape == nil || index.shape == nil {
		return nil
	}
	a, ok := axis(int(c.Int("axis", 0)), len(v.shape))
	if !ok {
		return fmt.Errorf("axis %d is outside of shape %s", c.Int("axis", 0), showShape(v.shape))
	}
	shape := join(v.shape[:a], index.shape, v.shape[a+1:])
	c.set(0, v.typ, shape)
	list, ok := c.constInts(1)
	if !ok {
		return nil
	}
	k, st, ist := len(index.shape), strides(v.shape), strides(index.shape)
	c.remap(c.elems(0), func(idx []int) int {
		i := list[dot(idx[a:a+k], ist)]
		if i < 0 {
			i += v.shape[a]
		}
		if i < 0 || i >= v.shape[a] {
			return -1
		}
		return dot(idx[:a], st[:a]) + i*st[a] + dot(idx[a+k:], st[a+1:])
	})
	return nil
}

// likeIndices is GatherElements: the shape of the indices, the type of the data.
func likeIndices(c *call) error {
	c.set(0, c.in(0).typ, c.in(1).shape)
	return nil
}

func gatherND(c *call) error {
	v, index := c.in(0), c.in(1)
	c.set(0, v.typ, nil)
	if v.shape == nil || len(index.shape) == 0 {
		return nil
	}
	last := len(index.shape) - 1
	k, b := index.shape[last], int(c.Int("batch_dims", 0))
	if k < 0 {
		return nil
	}
	if b < 0 || b > last || b+k > len(v.shape) {
		return fmt.Errorf("indices of shape %s do not fit shape %s", showShape(index.shape), showShape(v.shape))
	}
	c.set(0, v.typ, join(index.shape[:last], v.shape[b+k:]))
	return nil
}

// pad adds to both ends of axes; negative pads crop.
func pad(c *call) error {
	v := c.in(0)
	c.set(0, v.typ, nil)
	if v.shape == nil {
		return nil
	}
	rank := len(v.shape)
	pads, given, ok := c.attrOrInput("pads", 1)
	axes, hasAxes, axesKnown := c.attrOrInput("axes", 3)
	if !given || !ok || !axesKnown {
		c.set(0, v.typ, unknownDims(rank))
		return nil
	}
	if !hasAxes {
		for d := range rank {
			axes = append(axes, d)
		}
	}
	if len(pads) != 2*len(axes) {
		return fmt.Errorf("%d pads for %d axes", len(pads), len(axes))
	}
	shape := slices.Clone(v.shape)
	for i, a := range axes {
		d, ok := axis(a, rank)
		if !ok {
			return fmt.Errorf("axis %d is outside of shape %s", a, showShape(v.shape))
		}
		if shape[d] < 0 {
			continue
		}
		if shape[d] += pads[i] + pads[i+len(axes)]; shape[d] < 0 || shape[d] > maxElems {
			return fmt.Errorf("pads %d and %d do not fit shape %s", pads[i], pads[i+len(axes)], showShape(v.shape))
		}
	}
	c.set(0, v.typ, shape)
	return nil
}

func oneHot(c *call) error {
	index, depth := c.in(0), -1
	if e, ok := c.constInts(1); ok && len(e) == 1 {
		depth = max(e[0], 0)
	}
	t := c.in(2).typ
	c.set(0, t, nil)
	if index.shape == nil {
		return nil
	}
	a, ok := axis(int(c.Int("axis", -1)), len(index.shape)+1)
	if !ok {
		return fmt.Errorf("axis %d is outside of shape %s", c.Int("axis", -1), showShape(index.shape))
	}
	c.set(0, t, slices.Insert(slices.Clone(index.shape), a, depth))
	return nil
}

// eyeLike keeps the shape and may change the type.
func eyeLike(c *call) error {
	c.set(0, tensor.Type(c.Int("dtype", int64(c.in(0).typ))), c.in(0).shape)
	return nil
}

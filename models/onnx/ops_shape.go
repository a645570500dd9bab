package onnx

import (
	"fmt"
	"math"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// constantNode is Constant: a tensor, or plain numbers in an attribute.
func constantNode(c *call) error {
	if len(c.out) == 0 {
		return nil
	}
	for i := range c.Attrs {
		a := &c.Attrs[i]
		switch {
		case a.Name == "value" && a.T != nil:
			c.out[0] = *constant(a.T)
		case a.Name == "value_int":
			c.out[0] = value{typ: tensor.Int64, shape: []int{}, elems: []float64{float64(a.I)}}
		case a.Name == "value_float":
			c.out[0] = value{typ: tensor.Float32, shape: []int{}, elems: []float64{float64(a.F)}}
		case a.Name == "value_ints":
			c.set(0, tensor.Int64, []int{len(a.Ints)})
			c.out[0].elems = toFloats(c.s, a.Ints)
		case a.Name == "value_floats":
			c.set(0, tensor.Float32, []int{len(a.Floats)})
			c.out[0].elems = toFloats(c.s, a.Floats)
		case a.Name == "value_string":
			c.set(0, tensor.String, []int{})
		case a.Name == "value_strings":
			c.set(0, tensor.String, []int{len(a.Strings)})
		}
	}
	return nil
}

func toFloats[E int64 | float32](s *inferrer, list []E) []float64 {
	if !s.spend(len(list)) {
		return nil
	}
	out := make([]float64, len(list))
	for i, v := range list {
		out[i] = float64(v)
	}
	return out
}

// shapeOf is Shape.
func shapeOf(c *call) error {
	v := c.in(0)
	c.set(0, tensor.Int64, []int{-1})
	if v.shape == nil || len(c.out) == 0 {
		return nil
	}
	rank := len(v.shape)
	bound := func(name string, def int64) int {
		i := int(max(min(c.Int(name, def), int64(rank)), int64(-rank)))
		if i < 0 {
			i += rank
		}
		return i
	}
	from, to := bound("start", 0), bound("end", int64(rank))
	dims := v.shape[from:max(from, to)]
	c.set(0, tensor.Int64, []int{len(dims)})
	e := make([]float64, len(dims))
	for i, d := range dims {
		if e[i] = float64(d); d < 0 {
			e[i] = math.NaN()
		}
	}
	c.out[0].elems = e
	return nil
}

// size is Size: the number of elements.
func size(c *call) error {
	c.set(0, tensor.Int64, []int{})
	if n := product(c.in(0).shape); c.in(0).shape != nil && n >= 0 && len(c.out) > 0 {
		c.out[0].elems = []float64{float64(n)}
	}
	return nil
}

// reshape keeps the elements in their order. In the target 0 copies a dimension (not with
// allowzero) and one -1 takes what is left.
func reshape(c *call) error {
	v := c.in(0)
	c.set(0, v.typ, nil)
	target := c.elems(1)
	if a := c.Attr("shape"); a != nil { // opset 1
		target = toFloats(c.s, a.Ints)
	}
	if target == nil {
		if s := c.in(1).shape; len(s) == 1 && s[0] >= 0 && s[0] <= maxRank {
			c.set(0, v.typ, unknownDims(s[0]))
		}
		return nil
	}
	if len(target) > maxRank {
		return fmt.Errorf("target has %d dimensions", len(target))
	}
	shape, err := c.target(target, v.shape)
	if err != nil {
		return err
	}
	if total := product(v.shape); total >= 0 && v.shape != nil {
		if err := fill(shape, total); err != nil {
			return fmt.Errorf("shape %s (%d values) %w", showShape(v.shape), total, err)
		}
	}
	c.set(0, v.typ, shape)
	c.sameElems()
	return nil
}

// target turns the elements of a Reshape target into a shape, -1 for what is to be filled in or not
// known. A 0 copies the dimension of in, which may be nil.
func (c *call) target(target []float64, in []int) ([]int, error) {
	copies := c.Int("allowzero", 0) == 0
	shape := make([]int, len(target))
	for i, t := range target {
		d := clampInt(t)
		switch {
		case d != 0 || !copies:
			shape[i] = max(d, -1)
		case in == nil:
			shape[i] = -1
		case i < len(in):
			shape[i] = in[i]
		default:
			return nil, fmt.Errorf("target copies dimension %d of shape %s", i, showShape(in))
		}
	}
	return shape, nil
}

// fill replaces the one -1 of a shape so that it holds total elements. It fails when no size fits.
func fill(shape []int, total int) error {
	open, openAt, known := 0, -1, 1
	for i, d := range shape {
		if d < 0 {
			open, openAt = open+1, i
			continue
		}
		if known = product([]int{known, d}); known < 0 {
			return fmt.Errorf("cannot become %s", showShape(shape))
		}
	}
	switch {
	case open == 0 && known != total, open == 1 && known > 0 && total%known != 0:
		return fmt.Errorf("cannot become %s", showShape(shape))
	case open == 1 && known > 0:
		shape[openAt] = total / known
	}
	return nil
}

// sameElems keeps the elements of input 0 when the output holds as many in the same order.
func (c *call) sameElems() {
	if e := c.elems(0); e != nil && len(c.out) > 0 && product(c.out[0].shape) == len(e) {
		c.out[0].elems = e
	}
}

func flatten(c *call) error {
	v := c.in(0)
	c.set(0, v.typ, nil)
	if v.shape == nil {
		return nil
	}
	a := int(c.Int("axis", 1))
	if a < 0 {
		a += len(v.shape)
	}
	if a < 0 || a > len(v.shape) {
		return fmt.Errorf("axis %d is outside of shape %s", c.Int("axis", 1), showShape(v.shape))
	}
	c.set(0, v.typ, []int{product(v.shape[:a]), product(v.shape[a:])})
	return nil
}

func squeeze(c *call) error {
	v := c.in(0)
	c.set(0, v.typ, nil)
	axes, given, ok := c.attrOrInput("axes", 1)
	if v.shape == nil || !ok {
		return nil
	}
	if !given {
		for d, n := range v.shape {
			if n < 0 {
				return nil // it may be 1 or not
			}
			if n == 1 {
				axes = append(axes, d)
			}
		}
	}
	for _, a := range axes {
		if d, ok := axis(a, len(v.shape)); ok && v.shape[d] > 1 {
			return fmt.Errorf("axis %d of shape %s is not 1", a, showShape(v.shape))
		}
	}
	shape, err := reduced(v.shape, axes, false)
	c.set(0, v.typ, shape)
	c.sameElems()
	return err
}

func unsqueeze(c *call) error {
	v := c.in(0)
	c.set(0, v.typ, nil)
	axes, _, ok := c.attrOrInput("axes", 1)
	if v.shape == nil || !ok {
		return nil
	}
	rank := len(v.shape) + len(axes)
	if rank > maxRank {
		return fmt.Errorf("the result has %d dimensions", rank)
	}
	shape := make([]int, rank)
	for _, a := range axes {
		d, ok := axis(a, rank)
		if !ok || shape[d] == 1 {
			return fmt.Errorf("axis %d does not fit shape %s", a, showShape(v.shape))
		}
		shape[d] = 1
	}
	rest := v.shape
	for d := range shape {
		if shape[d] == 0 {
			shape[d], rest = rest[0], rest[1:]
		}
	}
	c.set(0, v.typ, shape)
	c.sameElems()
	return nil
}

func transpose(c *call) error {
	v := c.in(0)
	c.set(0, v.typ, nil)
	if v.shape == nil {
		return nil
	}
	rank := len(v.shape)
	perm := toInts(c.Ints("perm"))
	if perm == nil {
		for d := range rank {
			perm = append(perm, rank-1-d)
		}
	}
	seen := make([]bool, rank)
	shape := make([]int, rank)
	for i, p := range perm {
		if len(perm) != rank || p < 0 || p >= rank || seen[p] {
			return fmt.Errorf("permutation %v does not fit shape %s", perm[:min(len(perm), maxRank)], showShape(v.shape))
		}
		seen[p] = true
		shape[i] = v.shape[p]
	}
	if len(perm) != rank {
		return fmt.Errorf("permutation %v does not fit shape %s", perm, showShape(v.shape))
	}
	c.set(0, v.typ, shape)
	st := strides(v.shape)
	c.remap(c.elems(0), func(idx []int) int {
		n := 0
		for i, p := range perm {
			n += idx[i] * st[p]
		}
		return n
	})
	return nil
}

func expand(c *call) error {
	v := c.in(0)
	c.set(0, v.typ, nil)
	target := c.elems(1)
	if target == nil || v.shape == nil || len(target) > maxRank {
		if s := c.in(1).shape; len(s) == 1 && s[0] >= 0 && s[0] <= maxRank && v.shape != nil {
			c.set(0, v.typ, unknownDims(max(s[0], len(v.shape))))
		}
		return nil
	}
	want := make([]int, len(target))
	for i, t := range target {
		if want[i] = clampInt(t); math.IsNaN(t) {
			want[i] = -1
		} else if want[i] < 0 {
			return fmt.Errorf("target has a dimension of %d", want[i])
		}
	}
	shape, err := broadcast(v.shape, want)
	if err != nil {
		return err
	}
	c.set(0, v.typ, shape)
	c.remap(c.elems(0), broadcastAt(v.shape))
	return nil
}

func tile(c *call) error {
	v := c.in(0)
	c.set(0, v.typ, nil)
	if v.shape == nil {
		return nil
	}
	repeats, ok := c.constInts(1)
	if !ok {
		c.set(0, v.typ, unknownDims(len(v.shape)))
		return nil
	}
	if len(repeats) != len(v.shape) {
		return fmt.Errorf("%d repeats for shape %s", len(repeats), showShape(v.shape))
	}
	shape := make([]int, len(v.shape))
	for d := range shape {
		if repeats[d] < 0 {
			return fmt.Errorf("a repeat of %d", repeats[d])
		}
		shape[d] = times(v.shape[d], repeats[d])
	}
	c.set(0, v.typ, shape)
	st := strides(v.shape)
	c.remap(c.elems(0), func(idx []int) int {
		n := 0
		for d, i := range idx {
			n += i % v.shape[d] * st[d]
		}
		return n
	})
	return nil
}

// times multiplies a dimension, -1 when it is not known. What is too large comes out as larger than
// any tensor, which is refused later.
func times(d, n int) int {
	switch {
	case d < 0:
		return -1
	case d > 0 && n > maxElems/d:
		return maxElems + 1
	}
	return d * n
}

// rangeOf is Range.
func rangeOf(c *call) error {
	c.set(0, c.in(0).typ, []int{-1})
	start, limit, delta := c.elems(0), c.elems(1), c.elems(2)
	if len(start) != 1 || len(limit) != 1 || len(delta) != 1 || len(c.out) == 0 {
		return nil
	}
	n := math.Max(math.Ceil((limit[0]-start[0])/delta[0]), 0)
	if math.IsNaN(n) || n > maxElems { // NaN: not known, or a step of 0
		return nil
	}
	c.set(0, c.in(0).typ, []int{int(n)})
	if c.s.spend(int(n)) {
		e := make([]float64, int(n))
		for i := range e {
			e[i] = start[0] + float64(i)*delta[0]
		}
		c.out[0].elems = e
	}
	return nil
}

func constantOfShape(c *call) error {
	t, fill := tensor.Float32, 0.0
	if v := c.Tensor("value"); v != nil {
		t = v.Type
		if e := c.s.elements(constant(v)); len(e) == 1 {
			fill = e[0]
		}
	}
	c.set(0, t, nil)
	dims := c.elems(0)
	if dims == nil || len(dims) > maxRank {
		if s := c.in(0).shape; len(s) == 1 && s[0] >= 0 && s[0] <= maxRank {
			c.set(0, t, unknownDims(s[0]))
		}
		return nil
	}
	shape := make([]int, len(dims))
	for i, d := range dims {
		if shape[i] = clampInt(d); math.IsNaN(d) {
			shape[i] = -1
		} else if shape[i] < 0 {
			return fmt.Errorf("a dimension of %d", shape[i])
		}
	}
	c.set(0, t, shape)
	c.remap([]float64{fill}, func([]int) int { return 0 })
	return nil
}

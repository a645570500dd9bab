package onnx

import (
	"math"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// value is what is known of one value while shapes are inferred.
type value struct {
	typ   tensor.Type
	shape []int // -1: depends on data; nil: not even the rank is known; a scalar is empty, not nil

	// elems are the elements of a small constant, NaN where one is not known, so that arithmetic
	// carries "not known" by itself; nil when nothing is known. float64 holds every dimension
	// exactly; the bounds of int64 that slices use are rounded, which changes no result.
	elems []float64
	init  *Initializer // where elems come from when first asked for
}

var unknown = &value{}

// constant is the value of an initialiser.
func constant(t *Initializer) *value {
	return &value{typ: t.Type, shape: append([]int{}, t.Dims...), init: t}
}

// elements returns the elements of v if it is a small constant, nil otherwise.
func (s *inferrer) elements(v *value) []float64 {
	if v.elems != nil || v.init == nil {
		return v.elems
	}
	t := v.init
	v.init = nil
	if !s.spend(t.Elements()) {
		return nil
	}
	if ints, err := t.Int64s(); err == nil {
		v.elems = make([]float64, len(ints))
		for i, n := range ints {
			v.elems[i] = float64(n)
		}
	} else if floats, err := t.Float32s(); err == nil {
		v.elems = make([]float64, len(floats))
		for i, f := range floats {
			v.elems[i] = float64(f)
		}
	}
	return v.elems
}

// spend says whether n more elements may be folded, and charges them.
func (s *inferrer) spend(n int) bool {
	if n < 0 || n > maxFold || n > s.budget {
		return false
	}
	s.budget -= n
	return true
}

// call is one node while its outputs are inferred.
type call struct {
	*Node
	s     *inferrer
	opset int64
	out   []value
}

// opFunc sets the outputs of a call as far as they can be known. It fails when the shapes of the
// inputs contradict each other, so that the node cannot run.
type opFunc func(c *call) error

// has says whether input i is given.
func (c *call) has(i int) bool { return i < len(c.Inputs) && c.Inputs[i] != "" }

// in returns input i, an unknown value when it is absent.
func (c *call) in(i int) *value {
	if c.has(i) {
		if v := c.s.vals[c.Inputs[i]]; v != nil {
			return v
		}
	}
	return unknown
}

// set sets output i, if the node has it. A nil shape is one of unknown rank.
func (c *call) set(i int, t tensor.Type, shape []int) {
	if i < len(c.out) {
		c.out[i].typ, c.out[i].shape = t, shape
	}
}

// copied makes output 0 the same as v.
func (c *call) copied(v *value) {
	if len(c.out) > 0 {
		c.out[0] = *v
	}
}

// elems returns the elements of input i if it is a small constant, nil otherwise.
func (c *call) elems(i int) []float64 { return c.s.elements(c.in(i)) }

// constInts returns input i as integers if it is a constant that is known in full.
func (c *call) constInts(i int) ([]int, bool) {
	e := c.elems(i)
	if e == nil || !c.s.spend(len(e)) {
		return nil, false
	}
	list := make([]int, len(e))
	for k, v := range e {
		if math.IsNaN(v) {
			return nil, false
		}
		list[k] = clampInt(v)
	}
	return list, true
}

// attrOrInput returns a list that older opsets keep in an attribute and newer ones in input i.
// given is false when there is neither, ok is false when it is not known.
func (c *call) attrOrInput(name string, i int) (list []int, given, ok bool) {
	if a := c.Attr(name); a != nil {
		return toInts(a.Ints), true, true
	}
	if !c.has(i) {
		return nil, false, true
	}
	list, ok = c.constInts(i)
	return list, true, ok
}

// toInts keeps nil: an attribute that is not there.
func toInts(list []int64) []int {
	if list == nil {
		return nil
	}
	out := make([]int, len(list))
	for i, v := range list {
		out[i] = int(v)
	}
	return out
}

// clampInt converts with saturation far inside int's range, so that sums cannot overflow; NaN, not
// known, becomes -1.
func clampInt(v float64) int {
	const limit = 1 << 60
	if math.IsNaN(v) {
		return -1
	}
	return int(math.Max(-limit, math.Min(limit, v)))
}

// axis returns an axis counted from the front; ok is false when it lies outside of the rank.
func axis(a, rank int) (int, bool) {
	if a < 0 {
		a += rank
	}
	return a, a >= 0 && a < rank
}

// product multiplies dimensions, -1 when one is unknown or the product is not plausible.
func product(dims []int) int {
	if n := tensor.Elements(dims); n <= maxElems {
		return n
	}
	return -1
}

// unknownDims is a shape of known rank.
func unknownDims(rank int) []int {
	s := make([]int, rank)
	for i := range s {
		s[i] = -1
	}
	return s
}

// remap folds output 0, whose shape is set, from the elements src: element idx of the output is
// src[at(idx)]. It does nothing when src is not known, or when at leaves it.
func (c *call) remap(src []float64, at func(idx []int) int) {
	if src == nil || len(c.out) == 0 {
		return
	}
	c.out[0].elems = c.s.remap(src, c.out[0].shape, at)
}

func (s *inferrer) remap(src []float64, shape []int, at func(idx []int) int) []float64 {
	n := product(shape)
	if src == nil || shape == nil || !s.spend(n) {
		return nil
	}
	out := make([]float64, n)
	idx := make([]int, len(shape))
	for k := range out {
		i := at(idx)
		if i < 0 || i >= len(src) {
			return nil
		}
		out[k] = src[i]
		for d := len(idx) - 1; d >= 0; d-- {
			if idx[d]++; idx[d] < shape[d] {
				break
			}
			idx[d] = 0
		}
	}
	return out
}

// strides returns the step of each dimension in row-major order.
func strides(shape []int) []int {
	s := make([]int, len(shape))
	n := 1
	for d := len(shape) - 1; d >= 0; d-- {
		s[d] = n
		n *= shape[d]
	}
	return s
}

// join puts parts of shapes together. The result is never nil, which would be an unknown rank.
func join(parts ...[]int) []int {
	out := []int{}
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

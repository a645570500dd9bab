package onnx

import (
	"fmt"
	"math"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// same is for operators whose first output has the type and shape of the first input.
func same(c *call) error {
	v := c.in(0)
	c.set(0, v.typ, v.shape)
	return nil
}

// unary is same with the operator itself, so that constants are folded.
func unary(f func(float64) float64) opFunc {
	return func(c *call) error {
		v := c.in(0)
		c.set(0, v.typ, v.shape)
		if e := c.elems(0); e != nil && len(c.out) > 0 && c.s.spend(len(e)) {
			out := make([]float64, len(e))
			for i := range e {
				out[i] = f(e[i])
			}
			c.out[0].elems = out
		}
		return nil
	}
}

// identity hands the value on, constants included.
func identity(c *call) error {
	c.copied(c.in(0))
	return nil
}

// dropout has a mask beside the value.
func dropout(c *call) error {
	c.copied(c.in(0))
	c.set(1, tensor.Bool, c.in(0).shape)
	return nil
}

// toBool is for predicates of one input.
func toBool(c *call) error {
	c.set(0, tensor.Bool, c.in(0).shape)
	return nil
}

func cast(c *call) error {
	v := c.in(0)
	to := tensor.Type(c.Int("to", 0))
	if c.Op == "CastLike" {
		to = c.in(1).typ
	}
	c.set(0, to, v.shape)
	e := c.elems(0)
	if e == nil || len(c.out) == 0 || !c.s.spend(len(e)) {
		return nil
	}
	out := make([]float64, len(e))
	for i, f := range e {
		switch {
		case to == tensor.Bool && !math.IsNaN(f):
			f = boolean(f != 0)
		case !isFloat(to):
			f = math.Trunc(f)
		}
		out[i] = f
	}
	c.out[0].elems = out
	return nil
}

func isFloat(t tensor.Type) bool {
	return t == tensor.Float32 || t == tensor.Float16 || t == tensor.Float64 || t == tensor.BFloat16
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// broadcast returns the shape that a and b broadcast to (numpy's rule).
func broadcast(a, b []int) ([]int, error) {
	if a == nil || b == nil {
		return nil, nil
	}
	if len(a) < len(b) {
		a, b = b, a
	}
	out := append([]int{}, a...)
	for i := range b {
		k := i + len(a) - len(b)
		switch x, y := a[k], b[i]; {
		case x == y, y == 1:
		case x == 1 || x < 0: // an unknown dimension is 1 or the other's
			out[k] = y
		case y >= 0:
			return nil, fmt.Errorf("shapes %s and %s do not fit together", showShape(a), showShape(b))
		}
	}
	return out, nil
}

// broadcastAt returns the offset, in a value of the given shape, of an index of the shape that it is
// broadcast to.
func broadcastAt(shape []int) func(idx []int) int {
	st := strides(shape)
	return func(idx []int) int {
		n, lead := 0, len(idx)-len(shape)
		for d, size := range shape {
			if size > 1 {
				n += idx[lead+d] * st[d]
			}
		}
		return n
	}
}

// pairwise is for operators of two inputs that broadcast. A nil f is never folded; truth is the
// type of the result when it is not the inputs'.
func pairwise(f func(a, b float64) float64, truth tensor.Type) opFunc {
	return func(c *call) error {
		a, b := c.in(0), c.in(1)
		shape, err := broadcast(a.shape, b.shape)
		if err != nil {
			return err
		}
		t := a.typ
		if t == tensor.Undefined {
			t = b.typ
		}
		integer := !isFloat(t)
		if truth != tensor.Undefined {
			t = truth
		}
		c.set(0, t, shape)
		if f == nil || shape == nil || len(c.out) == 0 {
			return nil
		}
		x := c.s.remap(c.elems(0), shape, broadcastAt(a.shape))
		y := c.s.remap(c.elems(1), shape, broadcastAt(b.shape))
		if x == nil || y == nil {
			return nil
		}
		for i := range x {
			if x[i] = f(x[i], y[i]); integer && truth == tensor.Undefined {
				x[i] = math.Trunc(x[i]) // integer division
			}
		}
		c.out[0].elems = x
		return nil
	}
}

// compare is a predicate of two numbers, NaN (not known) when one is not known.
func compare(f func(a, b float64) bool) func(a, b float64) float64 {
	return func(a, b float64) float64 {
		if math.IsNaN(a) || math.IsNaN(b) {
			return math.NaN()
		}
		return boolean(f(a, b))
	}
}

// mod is ONNX's Mod: the sign of the divisor, that of the dividend with fmod.
func mod(c *call) error {
	return pairwise(func(a, b float64) float64 {
		m := math.Mod(a, b) // NaN when b is 0
		if c.Int("fmod", 0) == 0 && m != 0 && (m < 0) != (b < 0) {
			m += b
		}
		return m
	}, tensor.Undefined)(c)
}

// variadic is for operators of any number of inputs that broadcast.
func variadic(f func(a, b float64) float64) opFunc {
	return func(c *call) error {
		if len(c.Inputs) == 2 {
			return pairwise(f, tensor.Undefined)(c)
		}
		v := c.in(0)
		shape := v.shape
		for i := 1; i < len(c.Inputs); i++ {
			var err error
			if shape, err = broadcast(shape, c.in(i).shape); err != nil {
				return err
			}
		}
		c.set(0, v.typ, shape)
		if len(c.Inputs) == 1 {
			c.copied(v)
		}
		return nil
	}
}

func where(c *call) error {
	shape, err := broadcast(c.in(1).shape, c.in(2).shape)
	if err == nil {
		shape, err = broadcast(shape, c.in(0).shape)
	}
	if err != nil {
		return err
	}
	c.set(0, c.in(1).typ, shape)
	if shape == nil || len(c.out) == 0 {
		return nil
	}
	cond := c.s.remap(c.elems(0), shape, broadcastAt(c.in(0).shape))
	x := c.s.remap(c.elems(1), shape, broadcastAt(c.in(1).shape))
	y := c.s.remap(c.elems(2), shape, broadcastAt(c.in(2).shape))
	if cond == nil || x == nil || y == nil {
		return nil
	}
	for i := range x {
		switch {
		case math.IsNaN(cond[i]):
			x[i] = math.NaN()
		case cond[i] == 0:
			x[i] = y[i]
		}
	}
	c.out[0].elems = x
	return nil
}

// normalized is for LayerNormalization and its like: the optional further outputs are statistics whose
// normalised axes are 1.
func normalized(c *call) error {
	v := c.in(0)
	c.set(0, v.typ, v.shape)
	a, ok := axis(int(c.Int("axis", -1)), len(v.shape))
	if v.shape == nil || !ok {
		return nil
	}
	stats := append([]int{}, v.shape...)
	for d := a; d < len(stats); d++ {
		stats[d] = 1
	}
	c.set(1, tensor.Float32, stats)
	c.set(2, tensor.Float32, stats)
	return nil
}

package onnx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// matMul is for the matrix products of inputs 0 and b (numpy's matmul). t is the type of the result,
// Undefined for that of the first input.
func matMul(b int, t tensor.Type) opFunc {
	return func(c *call) error {
		x, y := c.in(0), c.in(b)
		typ := t
		if typ == tensor.Undefined {
			typ = x.typ
		}
		c.set(0, typ, nil)
		if x.shape == nil || y.shape == nil {
			return nil
		}
		shape, err := matMulShape(swapped(x.shape, c.Int("transA", 0)), swapped(y.shape, c.Int("transB", 0)))
		c.set(0, typ, shape)
		return err
	}
}

// swapped exchanges the last two axes if yes is not 0 (FusedMatMul).
func swapped(shape []int, yes int64) []int {
	n := len(shape)
	if yes == 0 || n < 2 {
		return shape
	}
	shape = slices.Clone(shape)
	shape[n-1], shape[n-2] = shape[n-2], shape[n-1]
	return shape
}

func matMulShape(a, b []int) ([]int, error) {
	if len(a) == 0 || len(b) == 0 {
		return nil, fmt.Errorf("a scalar cannot be multiplied so")
	}
	row, col := len(a) == 1, len(b) == 1 // a vector gets an axis that is dropped again
	if row {
		a = []int{1, a[0]}
	}
	if col {
		b = []int{b[0], 1}
	}
	m, k := a[len(a)-2], a[len(a)-1]
	k2, n := b[len(b)-2], b[len(b)-1]
	if k >= 0 && k2 >= 0 && k != k2 {
		return nil, fmt.Errorf("matrices %s and %s do not fit together", showShape(a), showShape(b))
	}
	shape, err := broadcast(a[:len(a)-2], b[:len(b)-2])
	if err != nil {
		return nil, err
	}
	if !row {
		shape = append(shape, m)
	}
	if !col {
		shape = append(shape, n)
	}
	return shape, nil
}

// gemm is the product of two matrices, either transposed.
func gemm(c *call) error {
	x, y := c.in(0), c.in(1)
	c.set(0, x.typ, nil)
	if len(x.shape) != 2 || len(y.shape) != 2 {
		return nil
	}
	shape, err := matMulShape(swapped(x.shape, c.Int("transA", 0)), swapped(y.shape, c.Int("transB", 0)))
	c.set(0, x.typ, shape)
	return err
}

// quantize is QuantizeLinear: the type is the zero point's.
func quantize(c *call) error {
	t := tensor.Type(c.Int("output_dtype", int64(tensor.Uint8)))
	if c.has(2) {
		t = c.in(2).typ
	}
	c.set(0, t, c.in(0).shape)
	return nil
}

// dequantize is DequantizeLinear: the type is the scale's.
func dequantize(c *call) error {
	c.set(0, c.in(1).typ, c.in(0).shape)
	return nil
}

// dynamicQuantize gives uint8 values, their scale and their zero point.
func dynamicQuantize(c *call) error {
	c.set(0, tensor.Uint8, c.in(0).shape)
	c.set(1, tensor.Float32, []int{})
	c.set(2, tensor.Uint8, []int{})
	return nil
}

// qlinearBinary is for com.microsoft's QLinearAdd and QLinearMul: a, scale, zero point, b, ...
func qlinearBinary(c *call) error {
	shape, err := broadcast(c.in(0).shape, c.in(3).shape)
	c.set(0, c.in(0).typ, shape)
	return err
}

// qlinearConcat is com.microsoft's QLinearConcat: output scale and zero point, then tensor, scale, zero
// point of each part.
func qlinearConcat(c *call) error {
	inner := *c.Node
	inner.Inputs = nil
	for i := 2; i < len(c.Inputs); i += 3 {
		inner.Inputs = append(inner.Inputs, c.Inputs[i])
	}
	if len(inner.Inputs) == 0 {
		return nil
	}
	c.Node = &inner
	return concat(c)
}

// qlinearGlobalPool is globalPool with the channels first or last.
func qlinearGlobalPool(c *call) error {
	if c.Int("channels_last", 0) == 0 {
		return globalPool(c)
	}
	x := c.in(0)
	shape := slices.Clone(x.shape)
	for d := 1; d < len(shape)-1; d++ {
		shape[d] = 1
	}
	c.set(0, x.typ, shape)
	return nil
}

// einsum is Einsum without an ellipsis; with one the shape stays unknown.
func einsum(c *call) error {
	c.set(0, c.in(0).typ, nil)
	terms, out, ok := einsumTerms(c.String("equation", ""))
	if !ok || len(terms) != len(c.Inputs) {
		return nil
	}
	size := map[rune]int{}
	for i, term := range terms {
		s := c.in(i).shape
		if len(s) != len(term) {
			return nil
		}
		for d, letter := range term {
			if old, seen := size[letter]; !seen || old <= 1 {
				size[letter] = s[d]
			} else if s[d] > 1 && s[d] != old {
				return fmt.Errorf("%q has %d and %d for %q", c.String("equation", ""), old, s[d], letter)
			}
		}
	}
	shape := []int{}
	for _, letter := range out {
		n, seen := size[letter]
		if !seen {
			return nil
		}
		shape = append(shape, n)
	}
	c.set(0, c.in(0).typ, shape)
	return nil
}

// einsumTerms cuts "bchw,bkc->bkhw" into runes of inputs and output. ok is false for an ellipsis or an
// equation without an output.
func einsumTerms(equation string) (terms [][]rune, out []rune, ok bool) {
	equation = strings.ReplaceAll(equation, " ", "")
	left, right, found := strings.Cut(equation, "->")
	if !found || strings.Contains(equation, ".") || len(right) > maxRank {
		return nil, nil, false
	}
	for term := range strings.SplitSeq(left, ",") {
		if len(term) > maxRank {
			return nil, nil, false
		}
		terms = append(terms, []rune(term))
	}
	return terms, []rune(right), true
}

package decode

import (
	"fmt"
	"math"

	"github.com/eyas-edge/eyas/internal/half"
	"github.com/eyas-edge/eyas/internal/tensor"
)

// view reads one sample's part of an output: field f of candidate i is element
// i*step + f*field. One of the slices is set, by the output's type; none if it is empty.
type view struct {
	f32         []float32
	f16         []uint16
	i64         []int64
	i32         []int32
	raw         []byte // the same bytes
	step, field int
}

// at returns field f of candidate i of a float output.
func (v *view) at(i, f int) float32 {
	k := i*v.step + f*v.field
	if v.f32 != nil {
		return v.f32[k]
	}
	return half.ToFloat32(v.f16[k])
}

// size returns the bytes of an element of a float output.
func (v *view) size() int {
	if v.f16 != nil {
		return 2
	}
	return 4
}

// whole returns element i*step as a whole number: a label or a count. It says false when it is
// not one, or not one that a class could have.
func (v *view) whole(i int) (int, bool) {
	var n int64
	switch k := i * v.step; {
	case v.i64 != nil:
		n = v.i64[k]
	case v.i32 != nil:
		n = int64(v.i32[k])
	default:
		f := v.at(i, 0)
		if !(f > -1 && f < 1<<30) { // out of range or NaN: the conversion would not be defined
			return 0, false
		}
		n = int64(math.RoundToEven(float64(f)))
	}
	return int(n), n >= 0 && n < 1<<30
}

// from returns the view that starts k elements later.
func (v view) from(k int) view {
	switch {
	case v.f32 != nil:
		v.f32, v.raw = v.f32[k:], v.raw[4*k:]
	case v.f16 != nil:
		v.f16, v.raw = v.f16[k:], v.raw[2*k:]
	case v.i64 != nil:
		v.i64, v.raw = v.i64[k:], v.raw[8*k:]
	case v.i32 != nil:
		v.i32, v.raw = v.i32[k:], v.raw[4*k:]
	}
	return v
}

// with returns the view with another distance between candidates and between fields.
func (v view) with(step, field int) view {
	v.step, v.field = step, field
	return v
}

// output returns output i, which has to be there, whole and of floats (or, for labels and
// counts, of whole numbers).
func output(outs []*tensor.Tensor, i int, whole bool) (*tensor.Tensor, error) {
	if i >= len(outs) || outs[i] == nil {
		return nil, fmt.Errorf("output %d is missing: the model gave %d", i, len(outs))
	}
	t := outs[i]
	if err := t.Check(); err != nil {
		return nil, err
	}
	switch t.Type {
	case tensor.Float32, tensor.Float16:
		return t, nil
	case tensor.Int64, tensor.Int32:
		if whole {
			return t, nil
		}
	}
	return nil, fmt.Errorf("output %q is %s%v: its type cannot be decoded", t.Name, t.Type, t.Shape)
}

// cut returns the elements of one sample of t and its dimensions without the batch axis,
// rank of them. A tensor of just that rank is a batch of one.
func cut(t *tensor.Tensor, sample, rank int) (view, []int, error) {
	batch, dims := 1, t.Shape
	if len(dims) == rank+1 {
		batch, dims = dims[0], dims[1:]
	}
	if len(dims) != rank {
		return view{}, nil, fmt.Errorf("output %q is %s%v: it wants %d dimensions after the batch", t.Name, t.Type, t.Shape, rank)
	}
	if sample < 0 || sample >= batch {
		return view{}, nil, fmt.Errorf("output %q is %s%v: it has no sample %d", t.Name, t.Type, t.Shape, sample)
	}
	n := tensor.Elements(dims)
	size := t.Type.Bytes(1)
	v := view{raw: t.Data[sample*n*size : (sample+1)*n*size]}
	part := tensor.Tensor{Type: t.Type, Data: v.raw}
	v.f32, v.f16, v.i64, v.i32 = part.Float32s(), part.Float16s(), part.Int64s(), part.Int32s()
	return v, dims, nil
}

// misfit is the error about a tensor whose shape is not the head's.
func misfit(t *tensor.Tensor, want string, args ...any) error {
	return fmt.Errorf("output %q is %s%v: want %s", t.Name, t.Type, t.Shape, fmt.Sprintf(want, args...))
}

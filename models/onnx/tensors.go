package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/eyas-edge/eyas/internal/half"
	"github.com/eyas-edge/eyas/internal/tensor"
)

// Initializer is a constant tensor: a weight, or the value of a Constant node. It refers to the
// model's bytes or to an external file; Bytes, Float32s and Int64s read it.
type Initializer struct {
	Name     string
	Type     tensor.Type
	Dims     []int     // product checked against what the file holds; empty is a scalar
	External *External // nil when the data lies in the model's file

	// Listed says that the file names the tensor among its inputs too. From IR 4 on that means that a run
	// may feed another value, so that engines cannot count on this one; older files list all of them.
	Listed bool

	raw []byte // raw_data; nil when the data is in a typed field
	msg []byte // the whole TensorProto: typed fields are read from it on demand

	dropped bool // by DropWeights
}

// The fields of a TensorProto that hold data.
const (
	floatData  protowire.Number = 4
	int32Data  protowire.Number = 5
	stringData protowire.Number = 6
	int64Data  protowire.Number = 7
	doubleData protowire.Number = 10
	uint64Data protowire.Number = 11
)

// dataField returns the typed field that holds elements of type t.
func dataField(t tensor.Type) protowire.Number {
	switch t {
	case tensor.Float32, tensor.Complex64:
		return floatData
	case tensor.Float64, tensor.Complex128:
		return doubleData
	case tensor.Int64:
		return int64Data
	case tensor.Uint32, tensor.Uint64:
		return uint64Data
	case tensor.String:
		return stringData
	}
	return int32Data
}

// entries returns the number of entries of the typed field that n elements of type t take: two
// for a complex number, one for two 4-bit numbers.
func entries(t tensor.Type, n int) int {
	switch {
	case t == tensor.Complex64 || t == tensor.Complex128:
		return 2 * n
	case t.Bits() == 4:
		return (n + 1) / 2
	}
	return n
}

// tensor reads a TensorProto and checks that its data is there.
func (r *reader) tensor(msg []byte) (*Initializer, error) {
	if err := r.take(1, "tensors"); err != nil {
		return nil, err
	}
	t := &Initializer{msg: msg}
	isExternal, hasRaw := false, false
	err := each(msg, func(f field) error {
		switch {
		case f.num == 1:
			return f.varints(func(v uint64) error {
				if v > math.MaxInt || len(t.Dims) == maxRank {
					return fmt.Errorf("tensor %.60q has an impossible shape: the file is damaged", t.Name)
				}
				t.Dims = append(t.Dims, int(v))
				return nil
			})
		case f.isInt(2):
			t.Type = tensor.Type(f.n)
		case f.is(3):
			return errors.New("a tensor is stored in segments, which no exporter writes: export the model again")
		case f.is(8):
			t.Name = string(f.val)
		case f.is(9):
			t.raw, hasRaw = f.val, true
		case f.isInt(14):
			isExternal = f.n == 1
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	n := t.Elements()
	if n < 0 || n > math.MaxInt/16 {
		return nil, fmt.Errorf("tensor %.60q claims an impossible shape %v: the file is damaged", t.Name, t.Dims)
	}
	switch {
	case isExternal:
		return t, r.external(t, msg)
	case hasRaw && t.Type == tensor.String:
		return nil, fmt.Errorf("tensor %.60q keeps strings as raw bytes, which ONNX does not allow: export the model again", t.Name)
	case hasRaw:
		if want := t.Type.Bytes(n); t.Type.Bits() > 0 && want != len(t.raw) {
			return nil, fmt.Errorf("tensor %.60q is %s%v and takes %d bytes, the file holds %d: it is damaged, export it again",
				t.Name, t.Type, t.Dims, want, len(t.raw))
		}
		return t, nil
	}
	if have, want := t.countTyped(), entries(t.Type, n); have != want {
		return nil, fmt.Errorf("tensor %.60q is %s%v and takes %d values, the file holds %d: it is damaged, export it again",
			t.Name, t.Type, t.Dims, want, have)
	}
	return t, nil
}

// countTyped returns how many entries the typed field holds.
func (t *Initializer) countTyped() int {
	num, n := dataField(t.Type), 0
	_ = each(t.msg, func(f field) error { // parsed before
		switch {
		case f.num != num:
		case f.typ != protowire.BytesType || num == stringData:
			n++
		case num == floatData:
			n += len(f.val) / 4
		case num == doubleData:
			n += len(f.val) / 8
		default:
			for _, b := range f.val {
				if b < 0x80 { // the last byte of a varint
					n++
				}
			}
		}
		return nil
	})
	return n
}

// typed calls add for each entry of the typed field: a float's bits, or an integer.
func (t *Initializer) typed(add func(uint64)) error {
	num := dataField(t.Type)
	return each(t.msg, func(f field) error {
		switch {
		case f.num != num || num == stringData:
		case f.typ != protowire.BytesType:
			add(f.n)
		case num == floatData:
			for b := f.val; len(b) >= 4; b = b[4:] {
				add(uint64(binary.LittleEndian.Uint32(b)))
			}
		case num == doubleData:
			for b := f.val; len(b) >= 8; b = b[8:] {
				add(binary.LittleEndian.Uint64(b))
			}
		default:
			return f.varints(func(v uint64) error { add(v); return nil })
		}
		return nil
	})
}

// Elements returns the number of elements that Dims says.
func (t *Initializer) Elements() int { return tensor.Elements(t.Dims) }

// Bytes returns the elements as little-endian bytes: a part of the model's own bytes where it
// can, so it must not be changed. External data is read from its file at each call.
func (t *Initializer) Bytes() ([]byte, error) {
	switch {
	case t.dropped:
		return nil, fmt.Errorf("tensor %.60q: its bytes have been let go", t.Name)
	case t.External != nil:
		return t.External.read()
	case t.raw != nil:
		return t.raw, nil
	case t.Type.Bits() == 0:
		return nil, fmt.Errorf("tensor %.60q holds %s, which has no bytes", t.Name, t.Type)
	}
	size := t.Type.Bytes(t.Elements())
	unit := size / max(entries(t.Type, t.Elements()), 1)
	out := make([]byte, 0, size)
	err := t.typed(func(v uint64) {
		for range unit {
			out = append(out, byte(v))
			v >>= 8
		}
	})
	return out, err
}

// Float32s returns the elements of a float32, float16, bfloat16 or float64 tensor as float32.
func (t *Initializer) Float32s() ([]float32, error) {
	size := t.Type.Bits() / 8
	var get func(b []byte) float32
	switch t.Type {
	case tensor.Float32:
		get = func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
	case tensor.Float16:
		get = func(b []byte) float32 { return half.ToFloat32(binary.LittleEndian.Uint16(b)) }
	case tensor.BFloat16:
		get = func(b []byte) float32 {
			return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
		}
	case tensor.Float64:
		get = func(b []byte) float32 { return float32(math.Float64frombits(binary.LittleEndian.Uint64(b))) }
	default:
		return nil, fmt.Errorf("tensor %.60q holds %s, not floating point numbers", t.Name, t.Type)
	}
	data, err := t.Bytes()
	if err != nil {
		return nil, err
	}
	out := make([]float32, 0, len(data)/size)
	for c := range slices.Chunk(data, size) {
		out = append(out, get(c))
	}
	return out, nil
}

// Int64s returns the elements of an integer or bool tensor as int64; uint64 above its range wraps.
func (t *Initializer) Int64s() ([]int64, error) {
	size := t.Type.Bits() / 8
	signed := false
	switch t.Type {
	case tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64:
		signed = true
	case tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64, tensor.Bool:
	default:
		return nil, fmt.Errorf("tensor %.60q holds %s, not integers", t.Name, t.Type)
	}
	data, err := t.Bytes()
	if err != nil {
		return nil, err
	}
	out := make([]int64, 0, len(data)/size)
	for c := range slices.Chunk(data, size) {
		var v uint64
		for i, b := range c {
			v |= uint64(b) << (8 * i)
		}
		if shift := 64 - 8*size; signed {
			v = uint64(int64(v<<shift) >> shift)
		}
		out = append(out, int64(v))
	}
	return out, nil
}

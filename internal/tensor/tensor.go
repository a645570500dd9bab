// Package tensor holds the one description of a tensor that pre-processing, the
// engine and the decoders share: a name, an element type, a shape and the bytes.
// It allocates only where it says so and knows nothing of who owns the bytes.
package tensor

import (
	"fmt"
	"math"
	"unsafe"
)

// Type is an element type. The values are those of ONNX's TensorProto.DataType
// and of ONNX Runtime's ONNXTensorElementDataType, which agree.
type Type int32

// The element types of ONNX.
const (
	Undefined      Type = 0
	Float32        Type = 1
	Uint8          Type = 2
	Int8           Type = 3
	Uint16         Type = 4
	Int16          Type = 5
	Int32          Type = 6
	Int64          Type = 7
	String         Type = 8
	Bool           Type = 9
	Float16        Type = 10
	Float64        Type = 11
	Uint32         Type = 12
	Uint64         Type = 13
	Complex64      Type = 14
	Complex128     Type = 15
	BFloat16       Type = 16
	Float8E4M3FN   Type = 17
	Float8E4M3FNUZ Type = 18
	Float8E5M2     Type = 19
	Float8E5M2FNUZ Type = 20
	Uint4          Type = 21
	Int4           Type = 22
	Float4E2M1     Type = 23
)

var types = map[Type]struct {
	name string
	bits int
}{
	Float32: {"float32", 32}, Uint8: {"uint8", 8}, Int8: {"int8", 8}, Uint16: {"uint16", 16},
	Int16: {"int16", 16}, Int32: {"int32", 32}, Int64: {"int64", 64}, String: {"string", 0},
	Bool: {"bool", 8}, Float16: {"float16", 16}, Float64: {"float64", 64}, Uint32: {"uint32", 32},
	Uint64: {"uint64", 64}, Complex64: {"complex64", 64}, Complex128: {"complex128", 128},
	BFloat16: {"bfloat16", 16}, Float8E4M3FN: {"float8e4m3fn", 8}, Float8E4M3FNUZ: {"float8e4m3fnuz", 8},
	Float8E5M2: {"float8e5m2", 8}, Float8E5M2FNUZ: {"float8e5m2fnuz", 8},
	Uint4: {"uint4", 4}, Int4: {"int4", 4}, Float4E2M1: {"float4e2m1", 4},
}

// String returns the type's usual name, for example "float32".
func (t Type) String() string {
	if i, ok := types[t]; ok {
		return i.name
	}
	return fmt.Sprintf("type(%d)", int32(t))
}

// Bits returns the bits of one element, 0 for strings and unknown types.
func (t Type) Bits() int { return types[t].bits }

// Bytes returns the bytes that n packed elements take; 0 for strings and
// unknown types.
func (t Type) Bytes(n int) int { return (n*t.Bits() + 7) / 8 }

// Tensor is a view of elements in row-major order, little endian. Whoever made
// Data keeps it alive and decides how long it stays valid. Data starts on an
// address that is a multiple of the element size.
type Tensor struct {
	Name  string
	Type  Type
	Shape []int // every dimension >= 0; an empty Shape is a scalar
	Data  []byte
}

// Elements returns the product of the dimensions of shape, 1 for a scalar, and
// -1 when a dimension is negative or the product does not fit an int.
func Elements(shape []int) int {
	n := 1
	for _, d := range shape {
		if d < 0 {
			return -1
		}
		if d > 0 && n > math.MaxInt/d {
			return -1
		}
		n *= d
	}
	return n
}

// New allocates a zeroed tensor in Go memory, which is right for tests and for
// the decoder's scratch. A tensor that native code reads or writes lies in memory
// of its own: see runtime/ort.
func New(name string, t Type, shape ...int) (*Tensor, error) {
	n := Elements(shape)
	if n < 0 || t.Bits() == 0 || n > math.MaxInt/16 {
		return nil, fmt.Errorf("tensor %s: cannot make %s of shape %v", name, t, shape)
	}
	words := make([]uint64, (t.Bytes(n)+7)/8+1) // a word array, so that any element type is aligned
	data := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), t.Bytes(n))
	return &Tensor{Name: name, Type: t, Shape: append([]int(nil), shape...), Data: data}, nil
}

// Len returns the number of elements that Shape says.
func (t *Tensor) Len() int { return Elements(t.Shape) }

// Check says whether Data holds what Type and Shape promise.
func (t *Tensor) Check() error {
	n := t.Len()
	if n < 0 || t.Type.Bits() == 0 || n > math.MaxInt/16 || len(t.Data) < t.Type.Bytes(n) {
		return fmt.Errorf("tensor %s: %s%v does not fit its %d bytes", t.Name, t.Type, t.Shape, len(t.Data))
	}
	return nil
}

// Float32s views the data as float32; nil if it is of another type.
func (t *Tensor) Float32s() []float32 { return view[float32](t, Float32) }

// Float16s views the data as the bits of IEEE 754 half precision numbers; nil if
// it is of another type.
func (t *Tensor) Float16s() []uint16 { return view[uint16](t, Float16) }

// Uint8s views the data as bytes; nil if it is of another type.
func (t *Tensor) Uint8s() []uint8 { return view[uint8](t, Uint8) }

// Int64s views the data as int64; nil if it is of another type.
func (t *Tensor) Int64s() []int64 { return view[int64](t, Int64) }

// Int32s views the data as int32; nil if it is of another type.
func (t *Tensor) Int32s() []int32 { return view[int32](t, Int32) }

func view[E any](t *Tensor, want Type) []E {
	var e E
	n := len(t.Data) / int(unsafe.Sizeof(e))
	if t.Type != want || n == 0 {
		return nil
	}
	return unsafe.Slice((*E)(unsafe.Pointer(unsafe.SliceData(t.Data))), n)
}

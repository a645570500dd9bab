package onnx

import (
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// proto makes a TensorProto with one typed field.
func proto(t tensor.Type, dims []int64, fill func(b *message)) []byte {
	var b message
	for _, d := range dims {
		b.int(1, d)
	}
	b.int(2, int64(t))
	fill(&b)
	b.text(8, "t")
	return b
}

// packed writes the integers as one packed field, plain one field each.
func packed(num protowire.Number, list ...uint64) func(*message) {
	return func(b *message) {
		var p []byte
		for _, v := range list {
			p = protowire.AppendVarint(p, v)
		}
		b.bytes(num, p)
	}
}

func plain(num protowire.Number, list ...int64) func(*message) {
	return func(b *message) {
		for _, v := range list {
			b.int(num, v)
		}
	}
}

func parseTensor(msg []byte) (*Initializer, error) {
	return (&reader{items: 10, ext: map[string]int64{}}).tensor(msg)
}

func TestTypedIntegers(t *testing.T) {
	minus := uint64(math.MaxUint64) // -1 as a varint takes ten bytes
	cases := []struct {
		name string
		typ  tensor.Type
		fill func(*message)
		want []int64
	}{
		{"int64 packed", tensor.Int64, packed(int64Data, 1, minus, 300), []int64{1, -1, 300}},
		{"int64 plain", tensor.Int64, plain(int64Data, 1, -1, 300), []int64{1, -1, 300}},
		{"int32 packed", tensor.Int32, packed(int32Data, 7, minus, 1<<20), []int64{7, -1, 1 << 20}},
		{"int8 packed", tensor.Int8, packed(int32Data, 7, minus, 128), []int64{7, -1, -128}},
		{"uint8 plain", tensor.Uint8, plain(int32Data, 7, 255, 128), []int64{7, 255, 128}},
		{"int16 packed", tensor.Int16, packed(int32Data, 7, minus, 1<<15), []int64{7, -1, -1 << 15}},
		{"bool packed", tensor.Bool, packed(int32Data, 1, 0, 1), []int64{1, 0, 1}},
		{"uint32 packed", tensor.Uint32, packed(uint64Data, 1, 1<<32-1, 2), []int64{1, 1<<32 - 1, 2}},
		{"uint64 packed", tensor.Uint64, packed(uint64Data, 1, 2, 3), []int64{1, 2, 3}},
		{"int8 raw", tensor.Int8, func(b *message) { b.bytes(9, []byte{7, 255, 128}) }, []int64{7, -1, -128}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			x, err := parseTensor(proto(c.typ, []int64{3}, c.fill))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := x.Int64s(); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
			if data, err := x.Bytes(); err != nil || len(data) != c.typ.Bytes(3) {
				t.Errorf("%d bytes, %v", len(data), err)
			}
			if _, err := x.Float32s(); err == nil {
				t.Error("integers were read as floats")
			}
		})
	}
}

func TestTypedFloats(t *testing.T) {
	float := func(list ...float32) func(*message) {
		return func(b *message) {
			for _, v := range list {
				b.float(floatData, v)
			}
		}
	}
	packedFloat := func(b *message) { b.bytes(floatData, []byte{0, 0, 128, 63, 0, 0, 0, 192}) }
	double := func(b *message) {
		var p []byte
		for _, v := range []float64{1, -2} {
			p = protowire.AppendFixed64(p, math.Float64bits(v))
		}
		b.bytes(doubleData, p)
	}
	cases := []struct {
		name string
		typ  tensor.Type
		fill func(*message)
	}{
		{"float32 plain", tensor.Float32, float(1, -2)},
		{"float32 packed", tensor.Float32, packedFloat},
		{"float64 packed", tensor.Float64, double},
		{"float16 as bits", tensor.Float16, packed(int32Data, 0x3c00, 0xc000)},
		{"bfloat16 as bits", tensor.BFloat16, packed(int32Data, 0x3f80, 0xc000)},
		{"float16 raw", tensor.Float16, func(b *message) { b.bytes(9, []byte{0, 0x3c, 0, 0xc0}) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			x, err := parseTensor(proto(c.typ, []int64{2}, c.fill))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := x.Float32s(); err != nil || !slices.Equal(got, []float32{1, -2}) {
				t.Errorf("got %v, %v, want [1 -2]", got, err)
			}
		})
	}
}

func TestTensorRefuses(t *testing.T) {
	cases := []struct {
		name string
		msg  []byte
	}{
		{"too few", proto(tensor.Int64, []int64{4}, packed(int64Data, 1, 2))},
		{"too many", proto(tensor.Int64, []int64{1}, packed(int64Data, 1, 2))},
		{"wrong field", proto(tensor.Float32, []int64{1}, packed(int64Data, 1))},
		{"raw too long", proto(tensor.Int8, []int64{1}, func(b *message) { b.bytes(9, []byte{1, 2}) })},
		{"negative dimension", proto(tensor.Int8, []int64{-1}, func(b *message) { b.bytes(9, nil) })},
		{"too large", proto(tensor.Int8, []int64{1 << 62, 1 << 62}, func(b *message) { b.bytes(9, nil) })},
		{"rank", proto(tensor.Int8, make([]int64, maxRank+1), func(b *message) { b.bytes(9, nil) })},
		{"segment", proto(tensor.Int8, []int64{0}, func(b *message) { b.bytes(3, nil) })},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if x, err := parseTensor(c.msg); err == nil {
				t.Errorf("got %+v, want an error", x)
			}
		})
	}
}

func TestFourBitTensor(t *testing.T) {
	x, err := parseTensor(proto(tensor.Int4, []int64{3}, packed(int32Data, 0x21, 0x03)))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := x.Bytes(); err != nil || !slices.Equal(got, []byte{0x21, 0x03}) {
		t.Errorf("got %v, %v", got, err)
	}
	if x.Elements() != 3 {
		t.Errorf("%d elements", x.Elements())
	}
}

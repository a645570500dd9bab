package onnx

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Limits on what a file may ask of the reader. They lie far above what exporters write.
const (
	maxDepth     = 16 // graphs within graphs
	maxRank      = 32 // dimensions of a tensor
	bytesPerItem = 8  // a node, attribute, tensor or value takes more bytes in an honest file
	namesPerItem = 4  // inputs and outputs of nodes, which take as much memory as one of those
	spareItems   = 64 // so that tiny graphs are never refused
)

var (
	errNotONNX   = errors.New("this is no ONNX file: export the model with `yolo export model=NAME.pt format=onnx`, or download it again")
	errTruncated = errors.New("the file ends too early: it is truncated, download or export it again")
	errDamaged   = errors.New("the file is damaged, a part of it does not parse: download or export it again")
)

// field is one field of a protobuf message.
type field struct {
	num protowire.Number
	typ protowire.Type
	val []byte // payload of a bytes field
	n   uint64 // value of a varint, fixed32 or fixed64 field
}

// next cuts the first field off msg. Groups are skipped: ONNX has none. The error is
// io.ErrUnexpectedEOF when msg ends inside the field.
func next(msg []byte) (f field, rest []byte, err error) {
	num, typ, n := protowire.ConsumeTag(msg)
	if n < 0 {
		return f, nil, protowire.ParseError(n)
	}
	f.num, f.typ = num, typ
	msg = msg[n:]
	switch typ {
	case protowire.BytesType:
		f.val, n = protowire.ConsumeBytes(msg)
	case protowire.VarintType:
		f.n, n = protowire.ConsumeVarint(msg)
	case protowire.Fixed32Type:
		var v uint32
		v, n = protowire.ConsumeFixed32(msg)
		f.n = uint64(v)
	case protowire.Fixed64Type:
		f.n, n = protowire.ConsumeFixed64(msg)
	default:
		n = protowire.ConsumeFieldValue(num, typ, msg)
	}
	if n < 0 {
		return f, nil, protowire.ParseError(n)
	}
	return f, msg[n:], nil
}

// each calls f for every field of msg until one fails.
func each(msg []byte, f func(field) error) error {
	for len(msg) > 0 {
		fl, rest, err := next(msg)
		if err != nil {
			return errDamaged
		}
		if err := f(fl); err != nil {
			return err
		}
		msg = rest
	}
	return nil
}

// count returns how many bytes fields numbered num msg holds, so that slices are made once.
func count(msg []byte, num protowire.Number) int {
	n := 0
	for len(msg) > 0 {
		f, rest, err := next(msg)
		if err != nil {
			break // the caller's own pass reports it
		}
		if f.num == num && f.typ == protowire.BytesType {
			n++
		}
		msg = rest
	}
	return n
}

// is says whether the field is number num with a payload of bytes.
func (f field) is(num protowire.Number) bool {
	return f.num == num && f.typ == protowire.BytesType
}

// isInt says whether the field is number num with one integer.
func (f field) isInt(num protowire.Number) bool {
	return f.num == num && f.typ == protowire.VarintType
}

// varints calls add for the integers of a repeated field, packed or not.
func (f field) varints(add func(uint64) error) error {
	switch f.typ {
	case protowire.VarintType:
		return add(f.n)
	case protowire.BytesType:
		for b := f.val; len(b) > 0; {
			v, n := protowire.ConsumeVarint(b)
			if n < 0 {
				return errDamaged
			}
			if err := add(v); err != nil {
				return err
			}
			b = b[n:]
		}
	}
	return nil
}

// floats appends the numbers of a repeated float field, packed or not.
func (f field) floats(list []float32) []float32 {
	switch f.typ {
	case protowire.Fixed32Type:
		return append(list, math.Float32frombits(uint32(f.n)))
	case protowire.BytesType:
		for b := f.val; len(b) >= 4; b = b[4:] {
			v, _ := protowire.ConsumeFixed32(b)
			list = append(list, math.Float32frombits(v))
		}
	}
	return list
}

// reader carries what all parts of one file share.
type reader struct {
	dir   string // folder of external data, "" for none
	depth int
	items int              // nodes, attributes, tensors and values that may still come
	ext   map[string]int64 // sizes of the external files seen
}

// take charges n items of kind to what a file of this size may hold.
func (r *reader) take(n int, kind string) error {
	if r.items -= n; r.items < 0 {
		return fmt.Errorf("the file claims more %s than its size allows: it is damaged or made to do harm", kind)
	}
	return nil
}

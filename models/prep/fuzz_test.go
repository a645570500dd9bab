package prep

import (
	"bytes"
	"image"
	"testing"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/tensor"
)

// FuzzFill feeds frames of any format, size, stride, plane length and region, also ones whose planes are too short, in
// memory that ends where the planes do: no panic, nothing touched outside of planes and sample, and either an error or
// a sample of finite values, all written, the same from both twins.
func FuzzFill(f *testing.F) {
	f.Add(uint8(6), uint16(1280), uint16(720), uint16(0), int16(0), uint8(64), uint8(64), uint8(0), uint64(0))
	f.Add(uint8(5), uint16(3), uint16(1), uint16(7), int16(-1), uint8(9), uint8(200), uint8(0xff), uint64(0))
	f.Add(uint8(8), uint16(1), uint16(999), uint16(1), int16(3), uint8(1), uint8(1), uint8(0x55), uint64(1))
	f.Add(uint8(1), uint16(255), uint16(255), uint16(0), int16(0), uint8(255), uint8(255), uint8(2), uint64(0x0010_0020_0100_0041))
	f.Add(uint8(2), uint16(192), uint16(108), uint16(0), int16(0), uint8(64), uint8(64), uint8(0), uint64(1))
	f.Add(uint8(9), uint16(576), uint16(9), uint16(0), int16(0), uint8(192), uint8(3), uint8(0), uint64(0))
	f.Fuzz(func(t *testing.T, format uint8, w, h, extra uint16, change int16, inW, inH, flags uint8, part uint64) {
		w, h, extra = w%2048, h%512, extra%64
		r := Recipe{
			Resize: Resize(flags % 4), BGR: flags&4 != 0, Gray: flags&8 != 0, NHWC: flags&16 != 0, Pad: flags,
			Type: []tensor.Type{tensor.Float32, tensor.Float16, tensor.Uint8, tensor.Int8}[flags>>5&3],
		}
		if _, err := NewFiller(r, int(inW), int(inH)); err != nil {
			return
		}
		fr := &frame.Frame{Format: frame.Format(format), Width: int(w), Height: int(h)}
		fr.Colour = frame.Colour{Matrix: frame.Matrix(flags >> 7), Full: flags&2 != 0}
		for _, g := range fr.Format.PlanesOf(int(w), int(h)) {
			stride := g.RowBytes + int(extra)
			data := guarded(t, max(0, stride*g.Rows-int(extra)+int(change)), part&2 == 0)
			for i := range data {
				data[i] = byte(i*7 + i>>8)
			}
			fr.Planes = append(fr.Planes, frame.Plane{Data: data, Stride: stride})
		}
		v := view{flip: part&1 != 0}
		if x, y := int(part>>8&0xff), int(part>>16&0xff); part>>24 != 0 {
			v.region = image.Rect(x, y, x+int(part>>24&0x7ff), y+int(part>>36&0x7ff))
		}
		var first []byte
		for name, filler := range bothTwins(t, r, int(inW), int(inH)) {
			dst := newTensor(t, r, 2, int(inW), int(inH))
			dst.Data = guarded(t, len(dst.Data), true)
			half := len(dst.Data) / 2
			for i := range dst.Data {
				dst.Data[i] = 0xff // NaN in both float types
			}
			filler.Region, filler.Flip = v.region, v.flip
			tr, err := filler.Fill(dst, 1, fr)
			if err != nil {
				return
			}
			if tr.SrcW != int(w) || tr.SrcH != int(h) || tr.InW != int(inW) || tr.InH != int(inH) || tr.Flip != v.flip {
				t.Fatalf("transform %+v is of another picture", tr)
			}
			for i, b := range dst.Data[:half] {
				if b != 0xff {
					t.Fatalf("byte %d of the other sample was written", i)
				}
			}
			if first == nil {
				first = dst.Data
				checkFinite(t, dst, r)
			} else if !bytes.Equal(first, dst.Data) {
				t.Fatalf("the twin in %s differs from the other one", name)
			}
		}
	})
}

// checkFinite fails if a value of sample 1 is no level.
func checkFinite(t *testing.T, dst *tensor.Tensor, r Recipe) {
	t.Helper()
	h, w := dst.Shape[2], dst.Shape[3]
	if r.NHWC {
		h, w = dst.Shape[1], dst.Shape[2]
	}
	for c := range r.channels() {
		for y := range h {
			for x := range w {
				if v := at(dst, r, 1, c, x, y); !(v >= 0 && v <= 255) {
					t.Fatalf("channel %d at %d,%d is %v", c, x, y, v)
				}
			}
		}
	}
}

package prep

import (
	"testing"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/tensor"
)

// FuzzFill feeds frames of any format, size, stride and plane length, also ones whose planes
// are too short: no panic, and either an error or a sample of finite values, all written.
func FuzzFill(f *testing.F) {
	f.Add(uint8(6), uint16(1280), uint16(720), uint16(0), int16(0), uint8(64), uint8(64), uint8(0))
	f.Add(uint8(5), uint16(3), uint16(1), uint16(7), int16(-1), uint8(9), uint8(200), uint8(0xff))
	f.Add(uint8(8), uint16(1), uint16(999), uint16(1), int16(3), uint8(1), uint8(1), uint8(0x55))
	f.Add(uint8(1), uint16(255), uint16(255), uint16(0), int16(0), uint8(255), uint8(255), uint8(2))
	f.Fuzz(func(t *testing.T, format uint8, w, h, extra uint16, change int16, inW, inH, flags uint8) {
		w, h, extra = w%2048, h%512, extra%64
		r := Recipe{
			Resize: Resize(flags % 4), BGR: flags&4 != 0, Gray: flags&8 != 0, NHWC: flags&16 != 0, Pad: flags,
			Type: []tensor.Type{tensor.Float32, tensor.Float16, tensor.Uint8, tensor.Int8}[flags>>5&3],
		}
		filler, err := NewFiller(r, int(inW), int(inH))
		if err != nil {
			return
		}
		fr := &frame.Frame{Format: frame.Format(format), Width: int(w), Height: int(h)}
		fr.Colour = frame.Colour{Matrix: frame.Matrix(flags >> 7), Full: flags&2 != 0}
		for _, g := range fr.Format.PlanesOf(int(w), int(h)) {
			stride := g.RowBytes + int(extra)
			data := make([]byte, max(0, stride*g.Rows-int(extra)+int(change)))
			for i := range data {
				data[i] = byte(i*7 + i>>8)
			}
			fr.Planes = append(fr.Planes, frame.Plane{Data: data, Stride: stride})
		}
		dst := newTensor(t, r, 2, int(inW), int(inH))
		half := len(dst.Data) / 2
		for i := range dst.Data {
			dst.Data[i] = 0xff // NaN in both float types
		}
		tr, err := filler.Fill(dst, 1, fr)
		if err != nil {
			return
		}
		if tr.SrcW != int(w) || tr.SrcH != int(h) || tr.InW != int(inW) || tr.InH != int(inH) {
			t.Fatalf("transform %+v is of another picture", tr)
		}
		for i, b := range dst.Data[:half] {
			if b != 0xff {
				t.Fatalf("byte %d of the other sample was written", i)
			}
		}
		for c := range r.channels() {
			for y := range int(inH) {
				for x := range int(inW) {
					if v := at(dst, r, 1, c, x, y); !(v >= 0 && v <= 255) {
						t.Fatalf("channel %d at %d,%d is %v", c, x, y, v)
					}
				}
			}
		}
	})
}

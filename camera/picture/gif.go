package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/gif"
)

// gifHeader reads the size of a GIF's canvas. The decoder refuses frames that reach beyond.
func gifHeader(data []byte) (header, error) {
	if len(data) < 10 {
		return header{}, errShort
	}
	w, h := int(binary.LittleEndian.Uint16(data[6:])), int(binary.LittleEndian.Uint16(data[8:]))
	return header{w: w, h: h, orientation: 1, memory: float64(w) * float64(h)}, nil
}

// gifDecode decodes the first picture; where it does not cover the canvas or is
// transparent the frame is black.
func gifDecode(data []byte, h header) (rowFunc, error) {
	m, err := gif.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	row, err := imageRows(m)
	if err != nil {
		return nil, err
	}
	b := m.Bounds().Intersect(image.Rect(0, 0, h.w, h.h))
	return place(row, b.Min.X, b.Min.Y, b.Dx(), b.Dy()), nil
}

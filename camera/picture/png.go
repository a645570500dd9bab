package picture

import (
	"bytes"
	"encoding/binary"
	"image/png"
)

const pngMagic = "\x89PNG\r\n\x1a\n"

// pngHeader reads a PNG's header chunk, and the orientation in its eXIf chunk, which may
// stand before or after the pixels.
func pngHeader(data []byte) (header, error) {
	const ihdr = len(pngMagic) + 8
	if len(data) < ihdr+13 {
		return header{}, errShort
	}
	if string(data[12:16]) != "IHDR" {
		return header{}, png.FormatError("chunk out of order")
	}
	w, h := binary.BigEndian.Uint32(data[ihdr:]), binary.BigEndian.Uint32(data[ihdr+4:])
	if w > 1<<31-1 || h > 1<<31-1 {
		return header{}, png.FormatError("dimension overflow")
	}
	depth, colour, interlace := data[ihdr+8], data[ihdr+9], data[ihdr+12]
	perPixel := 4.0 // of package image's type
	switch {
	case depth == 16:
		perPixel = 8
	case colour == 3:
		perPixel = 1
	}
	if interlace != 0 {
		perPixel *= 2 // a picture of its own for each pass
	}
	o := 1
	if exif, ok := pngChunk(data, "eXIf"); ok {
		o = orientation(exif)
	}
	return header{w: int(w), h: int(h), orientation: o, memory: perPixel * float64(w) * float64(h)}, nil
}

// pngChunk returns the body of the first chunk of a kind, and whether it is there.
func pngChunk(data []byte, kind string) ([]byte, bool) {
	for c := data[len(pngMagic):]; len(c) >= 12; {
		n := uint64(binary.BigEndian.Uint32(c))
		if n > uint64(len(c)-12) {
			break
		}
		if string(c[4:8]) == kind {
			return c[8 : 8+n], true
		}
		c = c[12+n:]
	}
	return nil, false
}

func pngDecode(data []byte, _ header) (rowFunc, error) {
	if _, ok := pngChunk(data, "IEND"); !ok {
		return nil, errTruncated
	}
	m, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return imageRows(m)
}

// Package testpic makes pictures for tests: a scene, and the same upright pixels stored
// in each of EXIF's eight orientations, as a PNG without loss or as a JPEG. Only tests import it. It
// shares no code with the decoder that it tests: every pixel is moved on its own.
package testpic

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/jpeg"
	"image/png"
)

// Scene returns w x h RGB pixels in which every corner and direction looks different:
// gradients with blocks, smooth enough for a JPEG.
func Scene(w, h int) []byte {
	pix := make([]byte, 0, 3*w*h)
	for y := range h {
		for x := range w {
			block := (x/16 + 2*(y/16)) % 5 * 20
			pix = append(pix, byte(x*155/w+block), byte(y*155/h+block), byte((x+y)*155/(w+h)+100-block))
		}
	}
	return pix
}

// Stored returns the pixels that a file with an EXIF orientation of 1..8 holds when its
// picture shows as pix, w x h RGB pixels; and their width and height. Other orientations count as 1.
func Stored(pix []byte, w, h, orientation int) (stored []byte, sw, sh int) {
	sw, sh = w, h
	if orientation >= 5 && orientation <= 8 {
		sw, sh = h, w
	}
	stored = make([]byte, len(pix))
	for y := range sh {
		for x := range sw {
			ux, uy := Upright(x, y, sw, sh, orientation)
			copy(stored[3*(y*sw+x):][:3], pix[3*(uy*w+ux):])
		}
	}
	return stored, sw, sh
}

// Upright returns where pixel (x, y) of a stored picture of w x h is shown, by the
// definition of EXIF's tag: orientation says which sides row 0 and column 0 are.
func Upright(x, y, w, h, orientation int) (ux, uy int) {
	switch orientation {
	case 2: // row 0 top, column 0 right
		return w - 1 - x, y
	case 3: // bottom, right
		return w - 1 - x, h - 1 - y
	case 4: // bottom, left
		return x, h - 1 - y
	case 5: // left, top
		return y, x
	case 6: // right, top
		return h - 1 - y, x
	case 7: // right, bottom
		return h - 1 - y, w - 1 - x
	case 8: // left, bottom
		return y, w - 1 - x
	}
	return x, y
}

// EXIF returns a TIFF structure whose one entry is the orientation, any value.
func EXIF(order binary.ByteOrder, orientation int) []byte {
	b := []byte("MM\x00*")
	if order == binary.LittleEndian {
		b = []byte("II*\x00")
	}
	app := order.(binary.AppendByteOrder)
	b = app.AppendUint32(b, 8)                   // the directory follows
	b = app.AppendUint16(b, 1)                   // one entry
	b = app.AppendUint16(b, 0x0112)              // orientation
	b = app.AppendUint16(b, 3)                   // of type SHORT
	b = app.AppendUint32(b, 1)                   // one value
	b = app.AppendUint16(b, uint16(orientation)) // in the first half of the field
	b = app.AppendUint16(b, 0)
	return app.AppendUint32(b, 0) // no further directory
}

// PNG returns a PNG that shows as pix, w x h RGB pixels, exactly, stored and tagged (eXIf)
// with an orientation.
func PNG(pix []byte, w, h, orientation int) ([]byte, error) {
	var out bytes.Buffer
	e := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := e.Encode(&out, picture(pix, w, h, orientation)); err != nil {
		return nil, err
	}
	const afterIHDR = 8 + 25
	b := out.Bytes()
	return append(append(b[:afterIHDR:afterIHDR], Chunk("eXIf", EXIF(binary.BigEndian, orientation))...), b[afterIHDR:]...), nil
}

// Chunk returns a PNG chunk with its length and checksum.
func Chunk(kind string, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	b = append(append(b, kind...), body...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// JPEG returns a JPEG of quality 1..100 that shows as pix, w x h RGB pixels, stored and tagged
// with an orientation.
func JPEG(pix []byte, w, h, orientation, quality int) ([]byte, error) {
	var out bytes.Buffer
	if err := jpeg.Encode(&out, picture(pix, w, h, orientation), &jpeg.Options{Quality: quality}); err != nil {
		return nil, err
	}
	return TagJPEG(out.Bytes(), EXIF(binary.LittleEndian, orientation)), nil
}

// TagJPEG returns a JPEG with an Exif segment of the TIFF structure put first.
func TagJPEG(jpg, tiff []byte) []byte {
	n := 2 + 6 + len(tiff)
	out := append([]byte{0xff, 0xd8, 0xff, 0xe1, byte(n >> 8), byte(n)}, "Exif\x00\x00"...)
	return append(append(out, tiff...), jpg[2:]...)
}

// picture returns the stored form as an image.
func picture(pix []byte, w, h, orientation int) image.Image {
	stored, sw, sh := Stored(pix, w, h, orientation)
	m := image.NewRGBA(image.Rect(0, 0, sw, sh))
	for i := range sw * sh {
		copy(m.Pix[4*i:], stored[3*i:3*i+3])
		m.Pix[4*i+3] = 255
	}
	return m
}

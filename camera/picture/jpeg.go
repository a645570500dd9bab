package picture

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"io"
)

// jpegHeader reads a JPEG's size, orientation and what decoding it takes.
func jpegHeader(data []byte) (header, error) {
	f, err := scanJPEG(data, true)
	if err != nil {
		return header{}, err
	}
	if f.h == 0 {
		return header{}, fmt.Errorf("the header says %dx0 pixels (a height given after the picture is not supported)", f.w)
	}
	return header{w: f.w, h: f.h, orientation: f.orientation, memory: f.memory()}, nil
}

// blocks returns the number of blocks of 8 x 8 samples, padded to whole units of all
// components.
func (f *jpegFile) blocks() int64 {
	if len(f.comps) == 1 { // sampling factors mean nothing then
		return int64((f.w+7)/8) * int64((f.h+7)/8)
	}
	hMax, vMax, perUnit := 1, 1, 0
	for _, c := range f.comps {
		hMax, vMax = max(hMax, int(c.h)), max(vMax, int(c.v))
		perUnit += int(c.h) * int(c.v)
	}
	return int64((f.w+8*hMax-1)/(8*hMax)) * int64((f.h+8*vMax-1)/(8*vMax)) * int64(perUnit)
}

// subsampled says whether components differ in resolution.
func (f *jpegFile) subsampled() bool {
	for _, c := range f.comps {
		if c.h != 1 || c.v != 1 {
			return true
		}
	}
	return false
}

// memory returns the bytes of the decoded planes, and of the coefficients that a
// progressive picture keeps until its last scan: package image/jpeg holds 4 bytes each.
func (f *jpegFile) memory() float64 {
	n := 64 * float64(f.blocks())
	if f.sof == mSOF2 {
		n *= 5
	}
	if len(f.comps) == 4 { // interleaved once more
		n += 4 * float64(f.w) * float64(f.h)
	}
	return n
}

// jpegDecode decodes a JPEG to planes and returns the rows of their colour conversion.
func jpegDecode(data []byte, _ header) (rowFunc, error) {
	f, err := scanJPEG(data, false)
	if err != nil {
		return nil, err
	}
	if err := f.complete(); err != nil {
		return nil, err
	}
	m, err := jpeg.Decode(f.plain())
	if err != nil {
		return nil, f.explain(err)
	}
	switch m := m.(type) {
	case *image.Gray:
		return imageRows(m)
	case *image.YCbCr:
		convert := fromJFIF
		if f.isRGB() {
			convert = interleave
		}
		return newPlanar(m, convert).row, nil
	case *image.CMYK:
		return f.inks(m), nil
	}
	return nil, fmt.Errorf("unexpected %T", m)
}

// complete says what a picture lacks that the decoder would silently paint grey.
func (f *jpegFile) complete() error {
	if f.scans == 0 {
		if f.end {
			return errors.New("there is no picture data (no scan)")
		}
		return io.ErrUnexpectedEOF
	}
	for i, c := range f.comps {
		if f.scanned&(1<<i) == 0 {
			if !f.end {
				return io.ErrUnexpectedEOF
			}
			return fmt.Errorf("component %d of %d has no scan", i+1, len(f.comps))
		}
		if f.tables&(1<<c.table) == 0 {
			return fmt.Errorf("quantisation table %d is missing", c.table)
		}
	}
	var size int64
	for _, k := range f.keep {
		size += int64(len(k))
	}
	// No block takes less than a bit, so a large header with hardly any data is refused before
	// its planes are allocated. The 4 is for padding blocks, which some scans leave out.
	if 4*8*size < f.blocks() {
		return io.ErrUnexpectedEOF
	}
	// image/jpeg counts restart intervals in units of all components in such scans, too.
	if f.restarts && f.single && f.subsampled() {
		return errors.New("restart intervals in scans of one component are not supported: save the picture again")
	}
	// One scan of everything is complete if the decoder gets to its end; cameras forget
	// the end marker. With several scans nobody can say how many are missing.
	if !f.end && (f.sof == mSOF2 || f.lastComps != len(f.comps)) {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// plain returns the file without what image/jpeg stumbles over or decides differently
// from libjpeg: no metadata, no unknown segments, nothing after the end; the standard Huffman tables
// if there are none (motion JPEG leaves them out); and markers that make it hand out the raw planes, JFIF
// for three components and an Adobe CMYK mark for four.
func (f *jpegFile) plain() io.Reader {
	mark := []byte("\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00")
	if len(f.comps) == 4 {
		mark = []byte("\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00")
	}
	parts := []io.Reader{bytes.NewReader([]byte{0xff, mSOI}), bytes.NewReader(mark)}
	if !f.huffman {
		parts = append(parts, bytes.NewReader(standardTables()))
	}
	for _, k := range f.keep {
		parts = append(parts, bytes.NewReader(k))
	}
	return io.MultiReader(append(parts, bytes.NewReader([]byte{0xff, mEOI}))...)
}

// explain turns image/jpeg's error into ours: where the end marker is missing, the data
// ran out.
func (f *jpegFile) explain(err error) error {
	if !f.end {
		return io.ErrUnexpectedEOF
	}
	switch e := err.(type) {
	case jpeg.FormatError:
		return fmt.Errorf("the data is broken: %s", string(e))
	case jpeg.UnsupportedError:
		return fmt.Errorf("not supported: %s", string(e))
	}
	return err
}

// isRGB decides as libjpeg's default_decompress_parms does whether three components are
// R, G, B instead of Y, Cb, Cr.
func (f *jpegFile) isRGB() bool {
	switch {
	case f.jfif:
		return false
	case f.adobe:
		return f.transform == 0
	}
	return f.comps[0].id == 'R' && f.comps[1].id == 'G' && f.comps[2].id == 'B'
}

// inks returns the rows of a four-component picture. Adobe's programs store ink inverted (255 is
// none), with or without a YCbCr transform of the first three; a file without Adobe's
// mark stores plain ink. RGB is light through both inks: (255 - C)(255 - K)/255. The decoder was told
// "Adobe CMYK" and has inverted all four, which is undone first.
func (f *jpegFile) inks(m *image.CMYK) rowFunc {
	ycck := f.adobe && f.transform != 0
	n := m.Rect.Dx()
	y, cb, cr := make([]byte, n), make([]byte, n), make([]byte, n)
	return func(at int, dst []byte) {
		src := m.Pix[at*m.Stride:][:4*n]
		if ycck {
			for x := range n {
				y[x], cb[x], cr[x] = ^src[4*x], ^src[4*x+1], ^src[4*x+2]
			}
			fromJFIF(dst, y, cb, cr)
		}
		for x := range n {
			s, d := src[4*x:4*x+4], dst[3*x:3*x+3]
			c, k := [3]byte{^s[0], ^s[1], ^s[2]}, ^s[3]
			switch {
			case ycck: // libjpeg's CMYK of YCCK is 255 - RGB
				c = [3]byte{^d[0], ^d[1], ^d[2]}
			case !f.adobe:
				c, k = [3]byte{s[0], s[1], s[2]}, s[3]
			}
			for i, v := range c {
				d[i] = byte((int(v)*int(k) + 127) / 255)
			}
		}
	}
}

// standardTables returns the DHT segment of T.81's tables K.3 to K.6: DC and AC for luma,
// DC and AC for chroma.
func standardTables() []byte {
	const tables = "" +
		"0000010501010101010100000000000000000102030405060708090a0b" +
		"100002010303020403050504040000017d01020300041105122131410613516107227114328191a1082342b1" +
		"c11552d1f02433627282090a161718191a25262728292a3435363738393a434445464748494a535455565758" +
		"595a636465666768696a737475767778797a838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aa" +
		"b2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7" +
		"f8f9fa" +
		"0100030101010101010101010000000000000102030405060708090a0b" +
		"1100020102040403040705040400010277000102031104052131061241510761711322328108144291a1b1c1" +
		"09233352f0156272d10a162434e125f11718191a262728292a35363738393a434445464748494a5354555657" +
		"58595a636465666768696a737475767778797a82838485868788898a92939495969798999aa2a3a4a5a6a7a8" +
		"a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae2e3e4e5e6e7e8e9eaf2f3f4f5f6f7" +
		"f8f9fa"
	b, err := hex.DecodeString(tables)
	if err != nil {
		panic(err) // a constant
	}
	n := len(b) + 2
	return append([]byte{0xff, mDHT, byte(n >> 8), byte(n)}, b...)
}

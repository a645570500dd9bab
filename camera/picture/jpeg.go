package picture

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"slices"
	"sync"
)

// Application segments that say how to take the components: JFIF three as YCbCr and one as
// grey, Adobe's transform 0 three as RGB and four as CMYK.
const (
	jfifMark  = "\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
	adobeMark = "\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"
)

// forceGo keeps libturbojpeg out; tests set it.
var forceGo bool

// JPEGDecoder says what decodes JPEGs: "libturbojpeg at PATH", the system's library, which is
// loaded by the first call or picture; or "go", which is package image/jpeg, where there is no
// such library, cgo is off, or the environment has EYAS_JPEG=go.
func JPEGDecoder() string {
	if !forceGo && turboPath() != "" {
		return "libturbojpeg at " + turboPath()
	}
	return "go"
}

// jpegHeader reads a JPEG's size, orientation and what decoding it takes.
func jpegHeader(data []byte) (header, error) {
	f, err := scanJPEG(data, true)
	if err != nil {
		return header{}, err
	}
	return f.header(len(data))
}

// header is what is known after a scan of the header of a file of so many bytes.
func (f *jpegFile) header(size int) (header, error) {
	if f.h == 0 {
		return header{}, fmt.Errorf("the header says %dx0 pixels (a height given after the picture is not supported)", f.w)
	}
	// The file counts twice: the decoders get its segments in one piece.
	return header{w: f.w, h: f.h, orientation: f.orientation, memory: f.memory() + float64(size)}, nil
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

// usual returns the subsampling if it is one of those that every decoder has: chroma of factors
// 1x1 and luma of the ratio; a single component counts as 4:4:4. ffmpeg writes 4:2:2 as 2x2 beside 1x2.
func (f *jpegFile) usual() (ratio image.YCbCrSubsampleRatio, ok bool) {
	if len(f.comps) == 4 {
		return 0, false
	}
	luma, chroma := f.comps[0].factors(), [2]byte{1, 1}
	if luma == [2]byte{2, 2} && len(f.comps) > 1 && f.comps[1].factors() == [2]byte{1, 2} {
		luma, chroma = [2]byte{2, 1}, [2]byte{1, 2}
	}
	for _, c := range f.comps[1:] {
		if c.factors() != chroma {
			return 0, false
		}
	}
	switch luma {
	case [2]byte{1, 1}:
		return image.YCbCrSubsampleRatio444, true
	case [2]byte{2, 1}:
		return image.YCbCrSubsampleRatio422, len(f.comps) > 1
	case [2]byte{2, 2}:
		return image.YCbCrSubsampleRatio420, len(f.comps) > 1
	case [2]byte{1, 2}:
		return image.YCbCrSubsampleRatio440, len(f.comps) > 1
	case [2]byte{4, 1}:
		return image.YCbCrSubsampleRatio411, len(f.comps) > 1
	}
	return 0, false
}

// factors are the horizontal and the vertical sampling factor.
func (c component) factors() [2]byte { return [2]byte{c.h, c.v} }

// memory returns the bytes of the decoded planes, and of the coefficients that a picture
// of several scans keeps until its last one: package image/jpeg holds 4 bytes each, of
// progressive pictures, libjpeg 2 of all.
func (f *jpegFile) memory() float64 {
	n := 64 * float64(f.blocks())
	switch {
	case f.sof == mSOF2:
		n *= 5
	case f.several:
		n *= 3
	}
	if _, ok := f.usual(); !ok { // interleaved once more, by both decoders before there is a frame
		n += 5 * float64(f.w) * float64(f.h)
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
	m, err := f.decode()
	if err != nil {
		return nil, err
	}
	return f.rows(m)
}

// rows returns the rows of what decode gave, converted to RGB.
func (f *jpegFile) rows(m image.Image) (rowFunc, error) {
	switch m := m.(type) {
	case *image.YCbCr:
		convert := fromJFIF
		if f.isRGB() {
			convert = interleave
		}
		return newPlanar(m, convert).row, nil
	case *image.CMYK:
		return f.inks(m), nil
	}
	return imageRows(m)
}

// decode decodes to planes, or to pixels where the components have to be brought together.
// libturbojpeg goes first: it is what OpenCV and PIL decode with, sample for sample, while
// image/jpeg's inverse DCT differs by up to 3 levels. Where it is content the picture is its.
// Where it warns or fails, or is not there, image/jpeg decides whether the file is good and what the error is;
// of a good file libturbojpeg's picture is used if there is one.
func (f *jpegFile) decode() (image.Image, error) {
	var m image.Image
	if !forceGo {
		var sure bool
		if m, sure = f.turbo(); sure {
			return m, nil
		}
	}
	judged, err := f.decodeGo(m != nil)
	if err != nil {
		return nil, err
	}
	if m == nil {
		m = judged
	}
	return m, nil
}

// decodeGo decodes with image/jpeg. warned says that libturbojpeg has, with a warning.
func (f *jpegFile) decodeGo(warned bool) (image.Image, error) {
	if err := f.beyondGo(); err != nil {
		if warned {
			return nil, errors.New("the data is broken")
		}
		return nil, err
	}
	m, err := jpeg.Decode(bytes.NewReader(f.appendPlain(nil, f.rawMark())))
	if err != nil {
		return nil, f.explain(err)
	}
	return m, nil
}

// beyondGo names what image/jpeg gets wrong in scans of one of several components.
func (f *jpegFile) beyondGo() error {
	if !f.single {
		return nil
	}
	hMax, vMax := byte(1), byte(1)
	for _, c := range f.comps {
		hMax, vMax = max(hMax, c.h), max(vMax, c.v)
	}
	if f.restarts && hMax*vMax > 1 { // it counts in units of all components
		return errors.New("not supported: restart intervals in scans of one component: save the picture again")
	}
	for _, c := range f.comps { // it takes the picture's width for that of such a component
		if c.h > 1 && c.h < hMax || c.v > 1 && c.v < vMax {
			return fmt.Errorf("not supported: sampling factors of %dx%d beside %dx%d in scans of one component: save the picture again",
				c.h, c.v, hMax, vMax)
		}
	}
	return nil
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
	// One scan of everything is complete if the decoder gets to its end; cameras forget
	// the end marker. With several scans nobody can say how many are missing.
	if !f.end && (f.sof == mSOF2 || f.lastComps != len(f.comps)) {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// rawMark is what makes a decoder hand out the samples as they are stored.
func (f *jpegFile) rawMark() string {
	if len(f.comps) == 4 {
		return adobeMark
	}
	return jfifMark
}

// colourMark is what makes libjpeg convert three components to RGB as we decide.
func (f *jpegFile) colourMark() string {
	if len(f.comps) == 3 && f.isRGB() {
		return adobeMark
	}
	return jfifMark
}

// appendPlain appends to buf a file that says mark about its colours, without what a decoder
// may stumble over or decides differently from libjpeg: no metadata, no unknown segments, nothing
// after the end; and with the standard Huffman tables if there are none (motion JPEG leaves them out).
func (f *jpegFile) appendPlain(buf []byte, mark string) []byte {
	size := 512 // marks and tables
	for _, k := range f.keep {
		size += len(k)
	}
	buf = slices.Grow(buf, size)
	buf = append(append(buf, 0xff, mSOI), mark...)
	if !f.huffman {
		buf = append(buf, standardTables()...)
	}
	for _, k := range f.keep {
		buf = append(buf, k...)
	}
	return append(buf, 0xff, mEOI)
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
// DC and AC for chroma. It is not to be changed.
var standardTables = sync.OnceValue(func() []byte {
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
})

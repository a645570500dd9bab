package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/jpeg"
	"math/bits"
	"testing"

	"github.com/eyas-edge/eyas/internal/testpic"
)

// encoded returns a baseline JPEG of 4:2:0 with the standard Huffman tables, which is what
// package image/jpeg writes, and its segments from the first quantisation table on.
func encoded(t testing.TB, w, h int) []byte {
	t.Helper()
	scene := testpic.Scene(w, h)
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		copy(m.Pix[4*i:], append(scene[3*i:3*i+3:3*i+3], 255))
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 90}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// segments splits a JPEG's header into segments by marker, the scan and what follows last.
func segments(jpg []byte) (list [][]byte) {
	for at := 2; ; {
		n := 2 + int(binary.BigEndian.Uint16(jpg[at+2:]))
		if jpg[at+1] == mSOS {
			return append(list, jpg[at:])
		}
		list = append(list, jpg[at:at+n])
		at += n
	}
}

// join makes a JPEG of segments again.
func join(parts ...[]byte) []byte { return append([]byte{0xff, mSOI}, bytes.Join(parts, nil)...) }

// TestJPEGVariants checks what cameras and programs do to a JPEG without changing its
// picture.
func TestJPEGVariants(t *testing.T) { withEachDecoder(t, testVariants) }

func testVariants(t *testing.T) {
	plain := encoded(t, 50, 41)
	want := decode(t, plain).Planes[0].Data
	parts := segments(plain)
	var noTables [][]byte
	for _, p := range parts {
		if p[1] != mDHT {
			noTables = append(noTables, p)
		}
	}
	noise := []byte{0x00, 0x17, 0xff, 0x00, 0x80}
	comment := []byte("\xff\xfe\x00\x06text")
	odd := []byte{0xff, 0xdc, 0, 4, 0, 0, 0xff, 0xf1, 0, 2, 0xff, 0x01}
	app := []byte("\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00")
	for _, c := range []struct {
		name string
		data []byte
	}{
		{"no Huffman tables", join(noTables...)},
		{"bytes after the end", append(bytes.Clone(plain), "trailing \xff\xd8\xff\xe0 bytes"...)},
		{"a second picture after the end", append(bytes.Clone(plain), encoded(t, 8, 8)...)},
		{"no end marker", plain[:len(plain)-2]},
		{"half an end marker", plain[:len(plain)-1]},
		{"bytes between segments", join(append([][]byte{noise, parts[0], noise}, parts[1:]...)...)},
		{"fill bytes before markers", join(append([][]byte{{0xff, 0xff}, parts[0], {0xff}}, parts[1:]...)...)},
		{"comment and unknown segments", join(append([][]byte{comment, odd, app}, parts...)...)},
		{"stray bytes before the end", append(append(bytes.Clone(plain[:len(plain)-2]), 0x00, 0x17), 0xff, mEOI)},
		{"restart marker before the end", append(append(bytes.Clone(plain[:len(plain)-2]), 0xff, 0xd0), 0xff, mEOI)},
		{"broken Exif", testpic.TagJPEG(plain, []byte("II*"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			if f := decode(t, c.data); f.Width != 50 || f.Height != 41 || !bytes.Equal(f.Planes[0].Data, want) {
				t.Errorf("%dx%d: not the same picture", f.Width, f.Height)
			}
		})
	}
}

func TestJPEGFaults(t *testing.T) { withEachDecoder(t, testFaults) }

func testFaults(t *testing.T) {
	plain := encoded(t, 50, 41)
	parts := segments(plain)
	edit := func(marker byte, at int, b ...byte) []byte {
		var edited [][]byte
		for _, p := range parts {
			if p = bytes.Clone(p); p[1] == marker {
				copy(p[at:], b)
			}
			edited = append(edited, p)
		}
		return join(edited...)
	}
	scan := parts[len(parts)-1]
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"magic only", plain[:2], "truncated inside its header"},
		{"cut in the tables", plain[:60], "truncated inside its header"},
		{"cut before the scan", plain[:len(plain)-len(scan)], "the file is truncated"},
		{"cut in the scan header", plain[:len(plain)-len(scan)+6], "truncated"},
		{"cut in the scan", plain[:len(plain)-len(scan)/2], "the file is truncated"},
		{"last block missing", plain[:len(plain)-12], "the file is truncated"},
		{"end in the scan", append(bytes.Clone(plain[:len(plain)-300]), 0xff, mEOI), "the data is broken"},
		{"end before the frame", join([]byte{0xff, mEOI}), "no frame header"},
		{"no scan", append(bytes.Clone(plain[:len(plain)-len(scan)]), 0xff, mEOI), "no picture data"},
		{"scan before the frame", join(scan), "a scan comes before the frame header"},
		{"two frames", join(append([][]byte{parts[1]}, parts...)...), "two frame headers"},
		{"no quantisation table", join(parts[1:]...), "quantisation table 0 is missing"},
		{"segment without length", edit(mSOF0, 2, 0, 1), "has no length"},
		{"short frame header", edit(mSOF0, 9, 9), "frame header is too short"},
		{"no height", edit(mSOF0, 5, 0, 0), "50x0 pixels"},
		{"no width", edit(mSOF0, 7, 0, 0), "0x41 pixels"},
		{"sampling zero", edit(mSOF0, 11, 0), "bad sampling factors"},
		{"sampling three", edit(mSOF0, 11, 0x31), "not supported: luma/chroma subsampling ratio"},
		{"one name for two", edit(mSOF0, 13, 1), "two components of one name"},
		{"two components", edit(mSOF0, 9, 2), "2 components is not supported"},
		{"12 bits", edit(mSOF0, 4, 12), "12-bit JPEG is not supported"},
		{"lossless", edit(mSOF0, 1, 0xc3), "lossless or hierarchical JPEG is not supported"},
		{"arithmetic", edit(mSOF0, 1, 0xc9), "arithmetic-coded JPEG is not supported"},
		{"larger than its data", edit(mSOF0, 5, 0x20, 0, 0x20, 0), "the file is truncated"},
		{"scan of one component", edit(mSOS, 2, 0, 8, 1, 1, 0, 0, 63, 0), "component 2 of 3 has no scan"},
		{"endless scans", join(append(append([][]byte{}, parts[:len(parts)-1]...), bytes.Repeat(scan[:14], 101))...), "more than 100 scans"},
	} {
		t.Run(c.name, func(t *testing.T) { refuse(t, c.data, Limits{}, c.want) })
	}
	for n := range plain { // every truncation but the one of the end marker
		if _, err := Decode(plain[:n], Limits{}); err == nil && n < len(plain)-2 {
			t.Errorf("the first %d of %d bytes give a picture", n, len(plain))
		}
	}
}

// TestJPEGColours checks how components are read: the same flat grey-ish samples as YCbCr,
// RGB, CMYK and YCCK.
func TestJPEGColours(t *testing.T) { withEachDecoder(t, testColours) }

func testColours(t *testing.T) {
	adobe := func(transform byte) []byte {
		return append([]byte("\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00"), transform)
	}
	jfif := []byte("\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00")
	for _, c := range []struct {
		name   string
		data   []byte
		expect [3]byte
	}{
		{"YCbCr", flat("\x01\x02\x03", nil, 100, 128, 228), [3]byte{240, 29, 100}},
		{"YCbCr by Adobe", flat("\x01\x02\x03", adobe(1), 100, 128, 228), [3]byte{240, 29, 100}},
		{"RGB by Adobe", flat("\x01\x02\x03", adobe(0), 100, 128, 228), [3]byte{100, 128, 228}},
		{"RGB by names", flat("RGB", nil, 100, 128, 228), [3]byte{100, 128, 228}},
		{"JFIF over names", flat("RGB", jfif, 100, 128, 228), [3]byte{240, 29, 100}},
		{"JFIF over Adobe", flat("\x01\x02\x03", append(bytes.Clone(jfif), adobe(0)...), 100, 128, 228), [3]byte{240, 29, 100}},
		{"plain CMYK", flat("CMYK", nil, 0, 52, 255, 51), [3]byte{204, 162, 0}},
		{"Adobe CMYK", flat("CMYK", adobe(0), 255, 204, 0, 204), [3]byte{204, 163, 0}},
		{"Adobe YCCK", flat("\x01\x02\x03\x04", adobe(2), 100, 128, 228, 255), [3]byte{15, 226, 155}},
		{"grey", flat("\x01", nil, 77), [3]byte{77, 77, 77}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := decode(t, c.data)
			if got := [3]byte(f.Planes[0].Data); got != c.expect {
				t.Errorf("%v, want %v", got, c.expect)
			}
		})
	}
}

// flat returns a JPEG of 8x8 pixels of one colour, component by component. Every block is
// its DC coefficient, and a quantiser of 8 makes that the level less 128 exactly.
func flat(ids string, mark []byte, levels ...int) []byte {
	n := len(ids)
	quantiser := append([]byte{0xff, mDQT, 0, 67, 0}, bytes.Repeat([]byte{8}, 64)...)
	sof := []byte{0xff, mSOF0, 0, byte(8 + 3*n), 8, 0, 8, 0, 8, byte(n)}
	sos := []byte{0xff, mSOS, 0, byte(6 + 2*n), byte(n)}
	for i := range n {
		sof = append(sof, ids[i], 0x11, 0)
		sos = append(sos, ids[i], 0)
	}
	sos = append(sos, 0, 63, 0)
	// The DC codes are four bits, equal to the category; the one AC code is one bit, end of block.
	dc := []byte{0xff, mDHT, 0, 28, 0x00, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}
	ac := []byte{0xff, mDHT, 0, 20, 0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	var code bitWriter
	for _, l := range levels {
		d := l - 128
		category := bits.Len(uint(max(d, -d)))
		if d < 0 {
			d += 1<<category - 1
		}
		code.put(category, 4)
		code.put(d, category)
		code.put(0, 1)
	}
	for code.n%8 != 0 {
		code.put(1, 1)
	}
	return join(mark, quantiser, sof, dc, ac, sos, code.bytes, []byte{0xff, mEOI})
}

// bitWriter collects entropy-coded bits, with a zero stuffed after a byte of ones.
type bitWriter struct {
	bytes []byte
	n     int
	last  byte
}

func (w *bitWriter) put(value, count int) {
	for i := count - 1; i >= 0; i-- {
		w.last = w.last<<1 | byte(value>>i&1)
		if w.n++; w.n%8 == 0 {
			if w.bytes = append(w.bytes, w.last); w.last == 0xff {
				w.bytes = append(w.bytes, 0)
			}
		}
	}
}

package picture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/testpic"
)

// mjpegFormats says which of the JPEGs in coded keep their planes; the others become RGB24.
var mjpegFormats = map[string]frame.Format{
	"grey": frame.Gray, "grey of odd factors": frame.Gray,
	"4:2:0": frame.I420, "one scan a component": frame.I420, "restarts in scans of one component": frame.I420,
	"4:2:2": frame.I422, "4:2:2 written as 2x2 and 1x2": frame.I422,
}

// padded returns a frame whose rows and planes are followed by bytes of 0xa5, and a check that they still are.
func padded(t testing.TB, format frame.Format, w, h, extra int) (*frame.Frame, func() error) {
	t.Helper()
	var planes []frame.Plane
	geometry := format.PlanesOf(w, h)
	for _, g := range geometry {
		p := frame.Plane{Data: bytes.Repeat([]byte{0xa5}, (g.RowBytes+extra)*g.Rows+64), Stride: g.RowBytes + extra}
		planes = append(planes, p)
	}
	f, err := frame.New(format, w, h, planes, time.Time{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f, func() error {
		for i, g := range geometry {
			for at, v := range planes[i].Data {
				if y := at / planes[i].Stride; (y >= g.Rows || at%planes[i].Stride >= g.RowBytes) && v != 0xa5 {
					return fmt.Errorf("plane %d: byte %d behind row %d is written", i, at%planes[i].Stride, y)
				}
			}
		}
		return nil
	}
}

// rowsOf returns the rows of each plane, without padding.
func rowsOf(f *frame.Frame) (planes [][][]byte) {
	for i, g := range f.Format.PlanesOf(f.Width, f.Height) {
		var list [][]byte
		for y := range g.Rows {
			list = append(list, f.Planes[i].Data[y*f.Planes[i].Stride:][:g.RowBytes])
		}
		planes = append(planes, list)
	}
	return planes
}

// TestMJPEGPlanes decodes every kind of subsampling and odd sizes into frames with and without padding, one after the
// other with one decoder. Planes are those that package image/jpeg decodes on its own; RGB is Decode's.
func TestMJPEGPlanes(t *testing.T) { withEachDecoder(t, testMJPEGPlanes) }

func testMJPEGPlanes(t *testing.T) {
	var d MJPEGDecoder
	defer d.Close()
	for _, c := range coded {
		for i, s := range []struct{ w, h int }{{48, 32}, {37, 29}, {1, 1}, {5, 70}, {16, 8}, {33, 1}, {2, 3}} {
			t.Run(fmt.Sprintf("%s %dx%d", c.name, s.w, s.h), func(t *testing.T) {
				jpg := c.encode(s.w, s.h)
				f, err := scanJPEG(jpg, false)
				if err != nil {
					t.Fatal(err)
				}
				if JPEGDecoder() == "go" && f.beyondGo() != nil {
					t.Skip("not for image/jpeg")
				}
				info, err := d.Probe(jpg, Limits{})
				if err != nil {
					t.Fatal(err)
				}
				want := JPEGInfo{s.w, s.h, frame.RGB24, frame.Colour{Full: true}}
				if format, ok := mjpegFormats[c.name]; ok {
					want.Format = format
				}
				if info != want {
					t.Fatalf("%+v, want %+v", info, want)
				}
				dst, outside := padded(t, info.Format, s.w, s.h, i%3*5)
				if err := d.Decode(dst, jpg); err != nil {
					if _, usual := f.usual(); JPEGDecoder() == "go" && !usual {
						t.Skip(err)
					}
					t.Fatal(err)
				}
				if err := outside(); err != nil {
					t.Error(err)
				}
				reference, within := [][][]byte(nil), 3
				if info.Format == frame.RGB24 {
					reference, within = rowsOf(decode(t, jpg)), 0
				} else if m, err := f.decodeGo(false); err == nil {
					reference = planesOf(m)
				} else {
					return // TestDecodersAgree says which
				}
				got := rowsOf(dst)
				for i := range got {
					if n := farthest(got[i], reference[i]); n > within {
						t.Errorf("plane %d is off by up to %d levels", i, n)
					}
				}
			})
		}
	}
}

// TestMJPEGVariants checks what cameras do to a JPEG without changing its picture.
func TestMJPEGVariants(t *testing.T) { withEachDecoder(t, testMJPEGVariants) }

func testMJPEGVariants(t *testing.T) {
	plain := encoded(t, 50, 42)
	var noTables [][]byte
	for _, p := range segments(plain) {
		if p[1] != mDHT {
			noTables = append(noTables, p)
		}
	}
	var d MJPEGDecoder
	defer d.Close()
	into := func(jpg []byte) (*frame.Frame, error) {
		f, _ := padded(t, frame.I420, 50, 42, 0)
		err := d.Decode(f, jpg)
		if e := d.Check(jpg); (e == nil) != (err == nil) && !strings.Contains(fmt.Sprint(err), ", the frame ") {
			t.Errorf("decode says %v, check %v", err, e)
		}
		return f, err
	}
	want, err := into(plain)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		data []byte
		err  string // "": the same picture
	}{
		{"no Huffman tables", join(noTables...), ""},
		{"bytes after the end", append(bytes.Clone(plain), "trailing \xff\xd8\xff\xe0 bytes"...), ""},
		{"two in one buffer", append(bytes.Clone(plain), encoded(t, 8, 8)...), ""},
		{"no end marker", plain[:len(plain)-2], ""},
		{"turned", testpic.TagJPEG(plain, testpic.EXIF(binary.BigEndian, 6)), ""},
		{"cut in the scan", plain[:len(plain)-200], "the file is truncated"},
		{"end in the scan", append(bytes.Clone(plain[:len(plain)-200]), 0xff, mEOI), "the data is broken"},
		{"cut in the header", plain[:40], "truncated inside its header"},
		{"another size", encoded(t, 64, 42), "the picture is i420 of 64x42, the frame i420 of 50x42"},
		{"another format", code{"", "211111", false, 0}.encode(50, 42), "the picture is i422 of 50x42, the frame i420 of 50x42"},
		{"no JPEG", []byte("<html>"), "does not begin as a JPEG"},
		{"nothing", nil, "does not begin as a JPEG"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := into(c.data)
			switch {
			case c.err != "":
				if err == nil || !strings.Contains(err.Error(), c.err) || !strings.HasPrefix(err.Error(), "decode jpeg: ") {
					t.Errorf("error %v, want %q", err, c.err)
				}
			case err != nil:
				t.Error(err)
			default:
				for i := range got.Planes {
					if !bytes.Equal(got.Planes[i].Data, want.Planes[i].Data) {
						t.Errorf("plane %d is not the same", i)
					}
				}
			}
		})
	}
}

// TestMJPEGProbe checks that the header alone decides, and bounds.
func TestMJPEGProbe(t *testing.T) {
	jpg := encoded(t, 640, 360)
	huge := bytes.Clone(jpg)
	at := bytes.Index(huge, []byte{0xff, mSOF0})
	copy(huge[at+5:], []byte{0xff, 0xff, 0xff, 0xff})
	lossless := bytes.Replace(jpg, []byte{0xff, mSOF0}, []byte{0xff, 0xc3}, 1)
	var d MJPEGDecoder
	for _, c := range []struct {
		name string
		data []byte
		l    Limits
		want string
	}{
		{"header only", jpg[:700], Limits{}, "i420 640x360"},
		{"just enough", jpg, Limits{MaxPixels: 640 * 360}, "i420 640x360"},
		{"too many", jpg, Limits{MaxPixels: 640*360 - 1}, "decode jpeg: 640x360 is 0.2304 megapixels, over the limit of 0.2304: raise the limit (--max-pixels) if the picture is wanted"},
		{"bomb", huge[:700], Limits{}, "decode jpeg: 65535x65535 is 4295 megapixels, over the limit of 100: raise the limit (--max-pixels) if the picture is wanted"},
		{"cut", jpg[:30], Limits{}, "decode jpeg: the file is truncated inside its header"},
		{"lossless", lossless, Limits{}, "decode jpeg: lossless or hierarchical JPEG is not supported: save it as baseline or progressive"},
	} {
		t.Run(c.name, func(t *testing.T) {
			i, err := d.Probe(c.data, c.l)
			got := fmt.Sprintf("%s %dx%d", i.Format, i.Width, i.Height)
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestMJPEGAllocations checks that probing and decoding allocate nothing once the decoder has seen a picture.
func TestMJPEGAllocations(t *testing.T) {
	requireTurbo(t)
	var d MJPEGDecoder
	defer d.Close()
	for _, c := range coded {
		if len(c.factors) == 8 { // CMYK
			continue
		}
		for _, w := range []int{64, 63} {
			jpg := c.encode(w, 48)
			info, err := d.Probe(jpg, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			dst, _ := padded(t, info.Format, w, 48, 0)
			if n := testing.AllocsPerRun(10, func() {
				_, err1 := d.Probe(jpg, Limits{})
				if err2 := d.Decode(dst, jpg); err1 != nil || err2 != nil {
					t.Error(err1, err2)
				}
			}); n > 0 {
				t.Errorf("%s of width %d: %v allocations", c.name, w, n)
			}
		}
	}
}

// FuzzMJPEG checks that any bytes decode to a frame without writing beside it, or give one line; and that libturbojpeg
// refuses nothing that image/jpeg decodes.
func FuzzMJPEG(f *testing.F) {
	for _, c := range coded {
		f.Add(c.encode(21, 13))
	}
	f.Add(encoded(f, 32, 24))
	limits := Limits{MaxPixels: 1 << 14, MaxBytes: 4 << 20}
	var d MJPEGDecoder
	f.Fuzz(func(t *testing.T, data []byte) {
		info, err := d.Probe(data, limits)
		if err == nil {
			dst, outside := padded(t, info.Format, info.Width, info.Height, 3)
			err = d.Decode(dst, data)
			if err := outside(); err != nil {
				t.Error(err)
			}
			forceGo = true
			if goErr := d.Decode(dst, data); err != nil && goErr == nil {
				t.Errorf("%s alone says %q", JPEGDecoder(), err)
			}
			forceGo = false
		}
		if err != nil && strings.ContainsAny(err.Error(), "\r\n") {
			t.Errorf("error of several lines: %q", err)
		}
	})
}

func BenchmarkMJPEG(b *testing.B) {
	jpg := encoded(b, 1920, 1080)
	dst, _ := padded(b, frame.I420, 1920, 1080, 0)
	var d MJPEGDecoder
	defer d.Close()
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Decode(dst, jpg); err != nil {
			b.Fatal(err)
		}
	}
}

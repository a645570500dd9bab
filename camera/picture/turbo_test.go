package picture

import (
	"bytes"
	"fmt"
	"image"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/testenv"
)

// withEachDecoder runs a test with libturbojpeg and with image/jpeg.
func withEachDecoder(t *testing.T, test func(*testing.T)) {
	t.Run("libturbojpeg", func(t *testing.T) {
		requireTurbo(t)
		test(t)
	})
	t.Run("go", func(t *testing.T) {
		onlyGo(t)
		test(t)
	})
}

func requireTurbo(t *testing.T) {
	t.Helper()
	testenv.Require(t, JPEGDecoder() != "go", "no libturbojpeg (apt-get install libturbojpeg0), or EYAS_JPEG or CGO_ENABLED=0 keeps it out")
}

func onlyGo(t *testing.T) {
	before := forceGo
	forceGo = true
	t.Cleanup(func() { forceGo = before })
}

// TestJPEGDecoder checks the name, and in a child that the environment chooses.
func TestJPEGDecoder(t *testing.T) {
	if os.Getenv("EYAS_JPEG") != "" {
		if got := JPEGDecoder(); got != "go" {
			t.Errorf("%q with EYAS_JPEG=go", got)
		}
		return
	}
	requireTurbo(t)
	if got := JPEGDecoder(); !strings.HasPrefix(got, "libturbojpeg at /") {
		t.Errorf("%q", got)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestJPEGDecoder$")
	child.Env = append(os.Environ(), "EYAS_JPEG=go")
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// coded are JPEGs of every kind of subsampling: pairs of factors a component.
var coded = []code{
	{"grey", "11", false, 0},
	{"grey of odd factors", "22", false, 3},
	{"4:4:4", "111111", false, 0},
	{"4:2:2", "211111", false, 2},
	{"4:2:0", "221111", false, 0},
	{"4:4:0", "121111", false, 0},
	{"4:1:1", "411111", false, 0},
	{"4:1:0", "421111", false, 0},
	{"4:2:2 written as 2x2 and 1x2", "221212", false, 0},
	{"4:4:4 written as 2x1", "212121", false, 0},
	{"4:2:2 written as 4x1 and 2x1", "412121", false, 0},
	{"one scan a component", "221111", true, 0},
	{"CMYK", "11111111", false, 0},
	{"CMYK subsampled", "22111122", false, 4},
	{"1:2 in height", "141111", false, 0},
	{"restarts in scans of one component", "221111", true, 2},
	{"4x1 and 2x1 in scans of one component", "412121", true, 0},
	{"chroma of two kinds", "221211", false, 0},
}

// TestDecodersAgree compares the planes of both decoders. Two inverse DCTs differ by a few levels,
// where one decoder took a wrong block or edge it would be tens.
func TestDecodersAgree(t *testing.T) {
	requireTurbo(t)
	for _, c := range coded {
		for _, s := range []struct{ w, h int }{{48, 32}, {37, 29}, {1, 1}, {5, 70}, {16, 8}, {33, 1}} {
			t.Run(fmt.Sprintf("%s %dx%d", c.name, s.w, s.h), func(t *testing.T) {
				jpg := c.encode(s.w, s.h)
				f, err := scanJPEG(jpg, false)
				if err != nil {
					t.Fatal(err)
				}
				m, clean := f.turbo()
				if !clean {
					t.Fatalf("%T, but libturbojpeg complains", m)
				}
				if b := m.Bounds(); b.Dx() != s.w || b.Dy() != s.h {
					t.Fatalf("bounds %v", b)
				}
				onlyGo(t)
				goes, err := f.decode()
				if err != nil {
					if _, usual := f.usual(); usual && f.beyondGo() == nil {
						t.Error(err)
					}
					return
				}
				got, want := planesOf(m), planesOf(goes)
				if len(got) != len(want) || len(f.comps) == 4 && f.comps[0].h > 1 {
					return // RGB beside planes, and inks that only libjpeg interpolates
				}
				for i := range got {
					if d := farthest(got[i], want[i]); d > 3 {
						t.Errorf("plane %d differs by up to %d levels", i, d)
					}
				}
			})
		}
	}
}

// TestOnlyTurbo checks what image/jpeg cannot read: it is named, and libturbojpeg reads it.
func TestOnlyTurbo(t *testing.T) {
	for _, c := range coded {
		f, err := scanJPEG(c.encode(40, 30), false)
		if err != nil {
			t.Fatal(err)
		}
		if f.beyondGo() == nil {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			withEachDecoder(t, func(t *testing.T) {
				_, err := Decode(c.encode(40, 30), Limits{})
				if goes := JPEGDecoder() == "go"; goes && (err == nil || !strings.Contains(err.Error(), "in scans of one component: save the picture again")) || !goes && err != nil {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

// TestTurboVerdicts checks what becomes of libturbojpeg's complaints.
func TestTurboVerdicts(t *testing.T) {
	requireTurbo(t)
	good := code{"", "221111", false, 2}.encode(70, 50)
	last := bytes.LastIndex(good, []byte{0xff, 0xd0}) // a restart marker
	stray := append(append(bytes.Clone(good[:last]), 0, 0, 0), good[last:]...)
	smooth := code{"", "221111", false, 0}.encode(70, 50)
	atEnd := func(b []byte) []byte {
		return append(append(bytes.Clone(b[:len(b)-2]), 0, 0, 0), b[len(b)-2:]...)
	}
	for _, c := range []struct {
		name         string
		data         []byte
		there, clean bool
		as           []byte // a file of the same picture; nil: refused
	}{
		{"good", good, true, true, good},
		{"stray bytes before the end", atEnd(smooth), true, true, smooth},
		{"stray bytes before the end, with restarts", atEnd(good), true, false, good},
		{"stray bytes before a restart", stray, true, false, good},
		{"last restart missing", append(bytes.Clone(good[:last]), good[last+2:]...), true, false, nil},
		{"cut", append(bytes.Clone(smooth[:len(smooth)-9]), 0xff, mEOI), true, false, nil},
		{"a table that is not there", bytes.Replace(good, []byte{3, 1, 0, 2, 0}, []byte{3, 1, 0x22, 2, 0}, 1), false, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := scanJPEG(c.data, false)
			if err != nil {
				t.Fatal(err)
			}
			if m, clean := f.turbo(); (m != nil) != c.there || clean != c.clean {
				t.Errorf("%T, clean %v", m, clean)
			}
			if c.as == nil {
				refuse(t, c.data, Limits{}, "the data is broken")
			} else if !bytes.Equal(decode(t, c.data).Planes[0].Data, decode(t, c.as).Planes[0].Data) {
				t.Error("not the same picture")
			}
		})
	}
}

// planesOf returns the rows of samples of each plane, without padding.
func planesOf(m image.Image) (planes [][][]byte) {
	cut := func(pix []byte, stride, w, h int) {
		var rows [][]byte
		for y := range h {
			rows = append(rows, pix[y*stride:][:w])
		}
		planes = append(planes, rows)
	}
	w, h := m.Bounds().Dx(), m.Bounds().Dy()
	switch m := m.(type) {
	case *image.Gray:
		cut(m.Pix, m.Stride, w, h)
	case *image.CMYK:
		cut(m.Pix, m.Stride, 4*w, h)
	case *image.YCbCr:
		p := newPlanar(m, nil)
		cut(m.Y, m.YStride, w, h)
		cut(m.Cb, m.CStride, (w+p.hs-1)/p.hs, (h+p.vs-1)/p.vs)
		cut(m.Cr, m.CStride, (w+p.hs-1)/p.hs, (h+p.vs-1)/p.vs)
	}
	return planes
}

// farthest returns the largest difference of two planes' samples.
func farthest(a, b [][]byte) (most int) {
	for y := range a {
		for x, v := range a[y] {
			most = max(most, int(v)-int(b[y][x]), int(b[y][x])-int(v))
		}
	}
	return most
}

package picture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/eyas-edge/eyas/internal/testpic"
)

// TestOrientations stores one upright picture in all eight orientations. The sizes make
// the transposing band end early, exactly, and never fill.
func TestOrientations(t *testing.T) {
	for _, s := range []struct{ w, h int }{{67, 45}, {45, 67}, {64, 48}, {1, 33}, {33, 1}, {5, 3}} {
		for o := 1; o <= 8; o++ {
			t.Run(fmt.Sprintf("%dx%d/%d", s.w, s.h, o), func(t *testing.T) {
				want := testpic.Scene(s.w, s.h)
				data, err := testpic.PNG(want, s.w, s.h, o)
				if err != nil {
					t.Fatal(err)
				}
				if w, h, err := Size(data); err != nil || w != s.w || h != s.h {
					t.Errorf("size %dx%d, %v", w, h, err)
				}
				f, err := Decode(data, Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if f.Width != s.w || f.Height != s.h || !bytes.Equal(f.Planes[0].Data, want) {
					t.Errorf("%dx%d is not the upright picture", f.Width, f.Height)
				}
			})
		}
	}
}

// TestTaggedJPEG checks that a tag only moves the pixels that the JPEG holds.
func TestTaggedJPEG(t *testing.T) {
	const w, h = 71, 50
	scene := testpic.Scene(w, h)
	for o := 0; o <= 9; o++ {
		data, err := testpic.JPEG(scene, w, h, o, 95)
		if err != nil {
			t.Fatal(err)
		}
		f := decode(t, data)
		if f.Width != w || f.Height != h {
			t.Fatalf("orientation %d: %dx%d", o, f.Width, f.Height)
		}
		got := f.Planes[0].Data
		if m := meanDifference(got, scene); m > 4 {
			t.Errorf("orientation %d: differs from the scene by %.2f levels", o, m)
		}
		stored, _, _ := testpic.Stored(scene, w, h, o)
		sw, sh := w, h
		if o >= 5 && o <= 8 {
			sw, sh = h, w
		}
		plain, err := testpic.JPEG(stored, sw, sh, 1, 95)
		if err != nil {
			t.Fatal(err)
		}
		if want, _, _ := testpic.Stored(got, w, h, o); !bytes.Equal(decode(t, plain).Planes[0].Data, want) {
			t.Errorf("orientation %d: the tag changed more than the places of pixels", o)
		}
	}
}

func TestOrientationTag(t *testing.T) {
	little, big := binary.LittleEndian, binary.BigEndian
	good := testpic.EXIF(little, 6)
	with := func(at int, b ...byte) []byte {
		c := bytes.Clone(good)
		copy(c[at:], b)
		return c
	}
	for _, c := range []struct {
		name string
		tiff []byte
		want int
	}{
		{"little endian", good, 6},
		{"big endian", testpic.EXIF(big, 8), 8},
		{"with the mark", append([]byte("Exif\x00\x00"), good...), 6},
		{"as a long", with(12, 4, 0), 6},
		{"zero", testpic.EXIF(big, 0), 1},
		{"nine", testpic.EXIF(little, 9), 1},
		{"as text", with(12, 2, 0), 1},
		{"empty", nil, 1},
		{"no byte order", with(0, 'X', 'X'), 1},
		{"directory outside", with(4, 0xff, 0xff, 0xff, 0xff), 1},
		{"directory at the end", with(4, byte(len(good)-1)), 1},
		{"count too high", with(8, 0xff, 0xff), 6},
		{"count zero", with(8, 0, 0), 1},
		{"another tag only", with(10, 0x10, 0x01), 1},
		{"cut in the entry", good[:20], 1},
	} {
		if got := orientation(c.tiff); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func FuzzOrientation(f *testing.F) {
	for o := range 10 {
		f.Add(testpic.EXIF(binary.LittleEndian, o))
		f.Add(append([]byte("Exif\x00\x00"), testpic.EXIF(binary.BigEndian, o)...))
	}
	f.Fuzz(func(t *testing.T, tiff []byte) {
		if o := orientation(tiff); o < 1 || o > 8 {
			t.Errorf("orientation %d", o)
		}
	})
}

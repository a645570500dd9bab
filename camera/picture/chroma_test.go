package picture

import (
	"bytes"
	"fmt"
	"image"
	"math"
	"testing"
)

// TestChromaRows checks the filters on values worked out by hand from libjpeg's rules.
func TestChromaRows(t *testing.T) {
	for _, c := range []struct {
		name       string
		ratio      image.YCbCrSubsampleRatio
		w, h       int
		plane      []byte // tightly packed
		wantByRows [][]byte
	}{
		{"444", image.YCbCrSubsampleRatio444, 2, 2, []byte{1, 2, 3, 4}, [][]byte{{1, 2}, {3, 4}}},
		{"422", image.YCbCrSubsampleRatio422, 6, 1, []byte{0, 100, 200}, [][]byte{{0, 25, 75, 125, 175, 200}}},
		{"422 odd", image.YCbCrSubsampleRatio422, 5, 1, []byte{0, 100, 200}, [][]byte{{0, 25, 75, 125, 175}}},
		{"422 narrow", image.YCbCrSubsampleRatio422, 4, 1, []byte{0, 100}, [][]byte{{0, 0, 100, 100}}},
		{"422 rounding", image.YCbCrSubsampleRatio422, 6, 1, []byte{0, 1, 2}, [][]byte{{0, 0, 1, 1, 2, 2}}},
		{"440", image.YCbCrSubsampleRatio440, 1, 4, []byte{0, 100}, [][]byte{{0}, {25}, {75}, {100}}},
		{"440 odd", image.YCbCrSubsampleRatio440, 1, 3, []byte{0, 100}, [][]byte{{0}, {25}, {75}}},
		{"420", image.YCbCrSubsampleRatio420, 6, 4, []byte{0, 160, 160, 160, 0, 0}, [][]byte{
			{0, 40, 120, 160, 160, 160}, {40, 60, 100, 120, 120, 120},
			{120, 100, 60, 40, 40, 40}, {160, 120, 40, 0, 0, 0}}},
		{"420 narrow", image.YCbCrSubsampleRatio420, 3, 3, []byte{1, 2, 3, 4}, [][]byte{{1, 1, 2}, {1, 1, 2}, {3, 3, 4}}},
		{"411", image.YCbCrSubsampleRatio411, 8, 1, []byte{7, 9}, [][]byte{{7, 7, 7, 7, 9, 9, 9, 9}}},
		{"410", image.YCbCrSubsampleRatio410, 5, 2, []byte{7, 9}, [][]byte{{7, 7, 7, 7, 9}, {7, 7, 7, 7, 9}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := image.NewYCbCr(image.Rect(0, 0, c.w, c.h), c.ratio)
			copy(m.Cb, c.plane)
			p := newPlanar(m, interleave)
			for y, want := range c.wantByRows {
				if got := p.chroma(p.buf[0], p.cb, y); !bytes.Equal(got, want) {
					t.Errorf("row %d: %v, want %v", y, got, want)
				}
			}
		})
	}
}

// TestTriangleFilter compares 4:2:0 with the filter as a sum of real numbers.
func TestTriangleFilter(t *testing.T) {
	for _, s := range []struct{ w, h int }{{9, 7}, {10, 8}, {23, 1}} {
		m := image.NewYCbCr(image.Rect(0, 0, s.w, s.h), image.YCbCrSubsampleRatio420)
		for i := range m.Cr {
			m.Cr[i] = byte(i * i * 37)
		}
		at := func(x, y int) float64 {
			x, y = min(max(x, 0), (s.w+1)/2-1), min(max(y, 0), (s.h+1)/2-1)
			return float64(m.Cr[y*m.CStride+x])
		}
		p := newPlanar(m, interleave)
		for y := range s.h {
			row := p.chroma(p.buf[1], p.cr, y)
			for x := range s.w {
				fx, fy := float64(x)/2-0.25, float64(y)/2-0.25 // in chroma samples
				x0, y0 := int(math.Floor(fx)), int(math.Floor(fy))
				wx, wy := fx-float64(x0), fy-float64(y0)
				want := (1-wy)*((1-wx)*at(x0, y0)+wx*at(x0+1, y0)) + wy*((1-wx)*at(x0, y0+1)+wx*at(x0+1, y0+1))
				if math.Abs(want-float64(row[x])) > 0.51 {
					t.Fatalf("%dx%d at %d,%d: %d, want %.2f", s.w, s.h, x, y, row[x], want)
				}
			}
		}
	}
}

// TestColourMatrices compares the fixed-point conversions with the standards' real ones.
func TestColourMatrices(t *testing.T) {
	for _, c := range []struct {
		name                 string
		convert              func(dst, y, cb, cr []byte)
		scale, black, chroma float64
		within               float64
	}{
		{"JFIF", fromJFIF, 1, 0, 1, 0.51},
		{"studio", fromStudio, 255.0 / 219, 16, 255.0 / 224, 1.1},
	} {
		t.Run(c.name, func(t *testing.T) {
			for y := 0; y < 256; y += 5 {
				for cb := 0; cb < 256; cb += 5 {
					for cr := 0; cr < 256; cr += 5 {
						var got [3]byte
						c.convert(got[:], []byte{byte(y)}, []byte{byte(cb)}, []byte{byte(cr)})
						l, u, v := (float64(y)-c.black)*c.scale, (float64(cb)-128)*c.chroma, (float64(cr)-128)*c.chroma
						for i, want := range []float64{l + 1.402*v, l - 0.344136*u - 0.714136*v, l + 1.772*u} {
							if want = min(max(want, 0), 255); math.Abs(want-float64(got[i])) > c.within {
								t.Fatalf("%d %d %d: channel %d is %d, want %.2f", y, cb, cr, i, got[i], want)
							}
						}
					}
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, s := range []struct{ w, h int }{{1280, 720}, {1920, 1080}} {
		data := encoded(b, s.w, s.h)
		b.Run(fmt.Sprintf("%dx%d", s.w, s.h), func(b *testing.B) {
			for b.Loop() {
				if _, err := Decode(data, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package prep

import (
	"math"
	"testing"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/tensor"
)

// encode returns luma and chroma of a colour as ITU-R BT.601 and BT.709 define them.
func encode(rgb [3]float64, c frame.Colour) (y, u, v byte) {
	kr, kb := 0.299, 0.114
	if c.Matrix == frame.BT709 {
		kr, kb = 0.2126, 0.0722
	}
	luma := kr*rgb[0] + (1-kr-kb)*rgb[1] + kb*rgb[2]
	cb, cr := (rgb[2]-luma)/2/(1-kb), (rgb[0]-luma)/2/(1-kr)
	if !c.Full {
		luma, cb, cr = 16+luma*219/255, cb*224/255, cr*224/255
	}
	level := func(v float64) byte { return byte(math.Round(min(max(v, 0), 255))) }
	return level(luma), level(128 + cb), level(128 + cr)
}

// stripes returns an I420 frame of stripes, each 64 pixels wide.
func stripes(tb testing.TB, colour frame.Colour, yuv [][3]byte) *frame.Frame {
	tb.Helper()
	const width, h = 64, 4
	w := width * len(yuv)
	planes, err := frame.Split(frame.I420, w, h, make([]byte, frame.I420.Bytes(w, h)))
	if err != nil {
		tb.Fatal(err)
	}
	for p := range planes {
		for i := range planes[p].Data {
			x := i % planes[p].Stride
			planes[p].Data[i] = yuv[x*w/planes[p].Stride/width][p]
		}
	}
	fr, err := frame.New(frame.I420, w, h, planes, fixedTime, nil)
	if err != nil {
		tb.Fatal(err)
	}
	fr.Colour = colour
	return fr
}

// The eight bars of 75 % that SMPTE's pattern begins with, in all four colour spaces.
func TestColourBars(t *testing.T) {
	const on = 191.25
	bars := [][3]float64{{on, on, on}, {on, on, 0}, {0, on, on}, {0, on, 0}, {on, 0, on}, {on, 0, 0}, {0, 0, on}, {0, 0, 0}}
	for _, colour := range colours {
		var yuv [][3]byte
		for _, bar := range bars {
			y, u, v := encode(bar, colour)
			yuv = append(yuv, [3]byte{y, u, v})
		}
		fr := stripes(t, colour, yuv)
		for twin, f := range bothTwins(t, Recipe{Resize: Stretch, Type: tensor.Float32}, fr.Width, fr.Height) {
			dst, _ := fillView(t, f, fr, view{})
			for i, bar := range bars {
				for c := range 3 {
					for _, x := range []int{64 * i, 64*i + 33, 64*i + 63} {
						if got := at(dst, f.recipe, 0, c, x, 1); math.Abs(got-bar[c]) > 2 {
							t.Errorf("%+v, twin in %s, bar %d: channel %d is %v, want %v", colour, twin, i, c, got, bar[c])
						}
					}
				}
			}
		}
	}
}

// The corners of luma and chroma clamp: no sum wraps around.
func TestExtremesDoNotWrap(t *testing.T) {
	var yuv [][3]byte
	for i := range 27 {
		ends := [3]byte{0, 128, 255}
		yuv = append(yuv, [3]byte{ends[i/9], ends[i/3%3], ends[i%3]})
	}
	for _, colour := range colours {
		fr := stripes(t, colour, yuv)
		for twin, f := range bothTwins(t, Recipe{Resize: Stretch, Type: tensor.Float32}, fr.Width, fr.Height) {
			dst, _ := fillView(t, f, fr, view{})
			for i := range yuv {
				want := rgbOf(fr, 64*i, 0, 0)
				for c := range 3 {
					if got := at(dst, f.recipe, 0, c, 64*i+40, 1); math.Abs(got-want[c]) > 1 {
						t.Errorf("%+v, twin in %s, YUV %v: channel %d is %v, want %v", colour, twin, yuv[i], c, got, want[c])
					}
				}
			}
		}
	}
}

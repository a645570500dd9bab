package prep

import (
	"math"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
)

var fixedTime = time.Unix(1_700_000_000, 0)

// reference computes a value the plain way, in floating point, pixel by pixel: colour from
// the standards' luma weights, bilinear mixing at half-pixel centres.
type reference struct {
	fr *frame.Frame
	r  Recipe
	t  Transform
}

func newReference(fr *frame.Frame, r Recipe, t Transform) reference { return reference{fr, r, t} }

// level returns the unrounded level of tensor channel c at x, y of the input. bias is added to each
// converted channel before it is rounded to a level: where a conversion ends on a half, both
// neighbours are right.
func (p reference) level(c, x, y int, bias float64) float64 {
	x -= p.t.Left
	y -= p.t.Top
	if x < 0 || y < 0 || x >= p.t.NewW || y >= p.t.NewH {
		return float64(p.r.Pad)
	}
	sx := (float64(x)+0.5)*float64(p.t.SrcW)/float64(p.t.NewW) - 0.5
	sy := (float64(y)+0.5)*float64(p.t.SrcH)/float64(p.t.NewH) - 0.5
	x0, y0 := math.Floor(sx), math.Floor(sy)
	fx, fy := sx-x0, sy-y0
	tap := func(dx, dy int) float64 {
		px := min(max(int(x0)+dx, 0), p.t.SrcW-1)
		py := min(max(int(y0)+dy, 0), p.t.SrcH-1)
		rgb := rgbOf(p.fr, px, py, bias)
		switch {
		case p.r.Gray:
			return math.Round(0.299*rgb[0] + 0.587*rgb[1] + 0.114*rgb[2] + bias)
		case p.r.BGR:
			return rgb[2-c]
		}
		return rgb[c]
	}
	return (tap(0, 0)*(1-fx)+tap(1, 0)*fx)*(1-fy) + (tap(0, 1)*(1-fx)+tap(1, 1)*fx)*fy
}

// rgbOf returns the levels of one pixel of any frame.
func rgbOf(fr *frame.Frame, x, y int, bias float64) [3]float64 {
	b := func(plane, x, y int) float64 {
		p := fr.Planes[plane]
		return float64(p.Data[y*p.Stride+x])
	}
	switch fr.Format {
	case frame.RGB24:
		return [3]float64{b(0, 3*x, y), b(0, 3*x+1, y), b(0, 3*x+2, y)}
	case frame.BGR24:
		return [3]float64{b(0, 3*x+2, y), b(0, 3*x+1, y), b(0, 3*x, y)}
	case frame.RGBA:
		return [3]float64{b(0, 4*x, y), b(0, 4*x+1, y), b(0, 4*x+2, y)}
	case frame.BGRA:
		return [3]float64{b(0, 4*x+2, y), b(0, 4*x+1, y), b(0, 4*x, y)}
	case frame.Gray:
		return [3]float64{b(0, x, y), b(0, x, y), b(0, x, y)}
	}
	var luma, u, v float64
	switch fr.Format {
	case frame.NV12:
		luma, u, v = b(0, x, y), b(1, x/2*2, y/2), b(1, x/2*2+1, y/2)
	case frame.I420:
		luma, u, v = b(0, x, y), b(1, x/2, y/2), b(2, x/2, y/2)
	case frame.I422:
		luma, u, v = b(0, x, y), b(1, x/2, y), b(2, x/2, y)
	case frame.YUYV:
		luma, u, v = b(0, 2*x, y), b(0, x/2*4+1, y), b(0, x/2*4+3, y)
	}
	clamp := func(v float64) float64 { return math.Round(min(max(v+bias, 0), 255)) }
	if fr.Colour == (frame.Colour{}) { // the rounded constants that OpenCV documents
		luma = 1.164 * max(luma-16, 0)
		u, v = u-128, v-128
		return [3]float64{clamp(luma + 1.596*v), clamp(luma - 0.391*u - 0.813*v), clamp(luma + 2.018*u)}
	}
	kr, kb := 0.299, 0.114
	if fr.Colour.Matrix == frame.BT709 {
		kr, kb = 0.2126, 0.0722
	}
	kg := 1 - kr - kb
	cb, cr := u-128, v-128
	if !fr.Colour.Full {
		luma = max(luma-16, 0) * 255 / 219
		cb, cr = cb*255/224, cr*255/224
	}
	red := luma + 2*(1-kr)*cr
	blue := luma + 2*(1-kb)*cb
	green := (luma - kr*red - kb*blue) / kg
	return [3]float64{clamp(red), clamp(green), clamp(blue)}
}

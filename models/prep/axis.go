package prep

import "math"

// blend says how one output position mixes two source positions: a*w0 + b*w1 with
// weights of weightBits bits.
type blend struct {
	a, b   uint32
	w0, w1 uint32
}

// weightBits is OpenCV's INTER_RESIZE_COEF_BITS: a weight of 1 is 2048.
const (
	weightBits = 11
	weightOne  = 1 << weightBits
)

// blends fills dst, one entry a position, for an axis of src source positions, the way
// OpenCV's INTER_LINEAR does: the centre of output pixel d lies at (d+0.5)*src/len(dst) - 0.5,
// computed in float64, kept as float32; both weights are rounded half to even. Positions
// beyond the edge repeat it. On the horizontal axis (columns) OpenCV then also sets the
// weights to 1 and 0; on the vertical one it leaves them and mixes the edge row with itself,
// which truncates differently.
func blends(dst []blend, src int, columns bool) {
	scale := 1 / (float64(len(dst)) / float64(src))
	last := src - 1
	for d := range dst {
		f := float32((float64(d)+0.5)*scale - 0.5)
		floor := math.Floor(float64(f))
		i := int(floor)
		f -= float32(floor)
		if columns && (i < 0 || i >= last) {
			f = 0
		}
		b := blend{
			a:  uint32(min(max(i, 0), last)),
			b:  uint32(min(max(i+1, 0), last)),
			w0: uint32(math.RoundToEven(float64((1 - f) * weightOne))),
			w1: uint32(math.RoundToEven(float64(f * weightOne))),
		}
		if b.w1 == 0 {
			b.b = b.a
		}
		dst[d] = b
	}
}

// shift moves all source positions by n; mirrored, position 0 is the one at n and they go down from there.
func shift(all []blend, n int, mirrored bool) {
	for i := range all {
		c := &all[i]
		if mirrored {
			c.a, c.b = uint32(n)-c.a, uint32(n)-c.b
		} else {
			c.a, c.b = uint32(n)+c.a, uint32(n)+c.b
		}
	}
}

// exact says whether every position is one source position.
func exact(all []blend) bool {
	for i := range all {
		if all[i].w0 != weightOne || all[i].w1 != 0 {
			return false
		}
	}
	return true
}

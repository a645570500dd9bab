package prep

import (
	"math"

	"github.com/eyas-edge/eyas/camera/frame"
)

// A conversion from luma and chroma adds one word of each table below. A word holds the shares
// of red, green and blue in lanes of yuvLane bits, each with yuvBits bits of fraction, so that
// one addition does three channels. The shares are rounded one by one, to what 16-bit vectors hold: of
// the values of noise and photos one in 500 comes out one level away from OpenCV 4.6, which has 20 bits.
const (
	yuvLane = 21
	yuvBits = 7
	// yuvBias keeps lanes from borrowing from their neighbours: the sums of all conversions
	// lie in -271..547 levels.
	yuvBias = 280
)

// clamped turns the whole part of a lane into a level.
var clamped = func() (t [1024]uint8) {
	for i := range t {
		t[i] = uint8(min(max(i-yuvBias, 0), 255))
	}
	return t
}()

// yuvToRGB is a conversion: its factors, and the lanes of each luma and chroma value.
type yuvToRGB struct {
	factors
	y, u, v [256]uint64
}

// factors are coefficients in 16 bits. Those above 1 hold what is left after a 1: y and ub.
type factors struct {
	black          uint8
	y              int16 // in units of 2^-15
	vr, vg, ug, ub int16 // in units of 2^-14
}

// conversions is indexed by matrix, then by full range (1) or not. Limited-range BT.601 has
// OpenCV's constants, which round the true ones to three decimals, because models were trained on
// what OpenCV makes of a picture.
var conversions = [2][2]*yuvToRGB{
	frame.BT601: {
		coefficients{black: 16, y: 1.164, vr: 1.596, vg: -0.813, ug: -0.391, ub: 2.018}.table(),
		derive(0.299, 0.114, true).table(),
	},
	frame.BT709: {
		derive(0.2126, 0.0722, false).table(),
		derive(0.2126, 0.0722, true).table(),
	},
}

// coefficients of
//
//	R = y max(Y-black, 0) + vr (V-128)
//	G = y max(Y-black, 0) + vg (V-128) + ug (U-128)
//	B = y max(Y-black, 0) + ub (U-128)
type coefficients struct {
	black, y, vr, vg, ug, ub float64
}

// derive derives the coefficients from the luma weights of red and blue, as
// ITU-R BT.601 and BT.709 define luma and the colour differences:
//
//	Y = kr R + kg G + kb B,  Cr = (R-Y) / (2 (1-kr)),  Cb = (B-Y) / (2 (1-kb))
//
// which solved for R, G and B gives
//
//	R = Y + 2 (1-kr) Cr
//	B = Y + 2 (1-kb) Cb
//	G = Y - 2 (1-kr) kr/kg Cr - 2 (1-kb) kb/kg Cb
//
// In full range all of Y, Cb+128 and Cr+128 span 0..255; in limited range Y spans 219 levels
// from 16 on and the differences span 224, so that they are stretched by 255/219 and 255/224.
func derive(kr, kb float64, full bool) coefficients {
	kg := 1 - kr - kb
	luma, diff, black := 1.0, 1.0, 0.0
	if !full {
		luma, diff, black = 255.0/219, 255.0/224, 16
	}
	return coefficients{
		black: black,
		y:     luma,
		vr:    diff * 2 * (1 - kr),
		ub:    diff * 2 * (1 - kb),
		vg:    -diff * 2 * (1 - kr) * kr / kg,
		ug:    -diff * 2 * (1 - kb) * kb / kg,
	}
}

// table computes factors and lanes. The lanes of chroma may be negative, which borrows from the lane above;
// adding luma, which carries the bias and the half for rounding, gives it back. The half is one unit short,
// because decimal coefficients often sum to exactly half a level and OpenCV's, truncated to 20 bits, then fall below it.
func (k coefficients) table() *yuvToRGB {
	fixed := func(v float64, bits int) int16 { return int16(math.Round(v * float64(int(1)<<bits))) }
	t := &yuvToRGB{factors: factors{
		black: uint8(k.black), y: fixed(k.y-1, 15),
		vr: fixed(k.vr, 14), vg: fixed(k.vg, 14), ug: fixed(k.ug, 14), ub: fixed(k.ub-1, 14),
	}}
	// What the vector twin's multiplication gives: pmulhrsw on x86, sqrdmulh on arm64.
	scaled := func(a int, f int16) int { return (a*int(f) + 1<<14) >> 15 }
	lanes := func(r, g, b int) uint64 { return uint64(r + g<<yuvLane + b<<(2*yuvLane)) }
	for i := range 256 {
		y := max(i-int(t.black), 0) << yuvBits
		y += scaled(y, t.factors.y) + yuvBias<<yuvBits + 1<<(yuvBits-1) - 1
		c := (i - 128) << 8
		t.y[i] = lanes(y, y, y)
		t.u[i] = lanes(0, scaled(c, t.ug), c>>1+scaled(c, t.ub))
		t.v[i] = lanes(scaled(c, t.vr), scaled(c, t.vg), 0)
	}
	return t
}

// OpenCV's luma weights 0.299, 0.587, 0.114 in units of 2^-15; they sum to 1.
const (
	lumaR = 9798
	lumaG = 19235
	lumaB = 3735
)

// toLuma replaces each pixel by its luma, in the first lane.
func toLuma(row []pixel) {
	for i, p := range row {
		r, g, b := p&255, p>>laneG&255, p>>laneB&255
		row[i] = (r*lumaR + g*lumaG + b*lumaB + 1<<14) >> 15
	}
}

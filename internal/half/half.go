// Package half converts between float32 and the bits of IEEE 754 half precision
// (binary16). Denormals, infinities and NaN survive in both directions; numbers too large
// for a half become infinite.
package half

import "math"

// ToFloat32 returns the exact value of the half with bits h.
func ToFloat32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h>>10) & 0x1f
	mant := uint32(h) & 0x3ff
	switch exp {
	case 0: // zero and denormals: mant * 2^-24 is exact in float32
		return math.Float32frombits(sign | math.Float32bits(float32(mant)*0x1p-24))
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | mant<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | mant<<13)
}

// FromFloat32 returns the bits of the half nearest to f, ties to even. A NaN stays a NaN.
func FromFloat32(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000: // NaN: keep the top of the payload, never let it become infinity
		return sign | 0x7e00 | uint16(b>>13)&0x3ff
	case b >= 0x477ff000: // 65520 and above round to infinity
		return sign | 0x7c00
	case b >= 0x38800000: // normal
		b += 0xfff + b>>13&1
		return sign | uint16((b-0x38000000)>>13)
	case b < 0x33000000: // below half of the least denormal
		return sign
	}
	// Denormal: adding 2^-1 aligns the mantissa so that the float's own rounding does ours.
	return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
}

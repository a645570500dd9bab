package decode

import (
	"encoding/binary"
	"math"

	"github.com/eyas-edge/eyas/internal/half"
)

// sieve finds the few scores over a threshold among many below it. It reads 64 bytes at a
// time as eight words that hold two float32 or four float16 each and adds, to all numbers of a
// word at once, what lifts the threshold's bits to the sign bit: bits of positive floats are
// ordered like the floats. A number below the threshold leaves its sign bit clear and carries
// nothing over; one at or above it, a negative one and a NaN of either sign show. Whoever
// asks looks at a block that shows; what does not show needs no look. Three operations for two scores
// make a head of 80 x 8400 scores cost what its memory traffic costs.
type sieve struct {
	lift, sign uint64
}

const blockBytes = 64

// newSieve returns the sieve for numbers of size 2 or 4 bytes at or above threshold, which is
// positive.
func newSieve(threshold float32, size int) sieve {
	if size == 2 {
		bits := half.FromFloat32(threshold) // the nearest, maybe just above: one step down shows it, too
		if bits > 0 && half.ToFloat32(bits) > threshold {
			bits--
		}
		return sieve{lift: uint64(0x8000-bits) * 0x0001_0001_0001_0001, sign: 0x8000_8000_8000_8000}
	}
	return sieve{lift: uint64(0x8000_0000-math.Float32bits(threshold)) * 0x0000_0001_0000_0001, sign: 0x8000_0000_8000_0000}
}

// next returns where the first block of b at or after byte i begins that shows, or the
// incomplete block at the end, or len(b).
func (s sieve) next(b []byte, i int) int {
	for ; len(b)-i >= blockBytes; i += blockBytes {
		p := (*[blockBytes]byte)(b[i:])
		w0 := binary.LittleEndian.Uint64(p[0:])
		w1 := binary.LittleEndian.Uint64(p[8:])
		w2 := binary.LittleEndian.Uint64(p[16:])
		w3 := binary.LittleEndian.Uint64(p[24:])
		w4 := binary.LittleEndian.Uint64(p[32:])
		w5 := binary.LittleEndian.Uint64(p[40:])
		w6 := binary.LittleEndian.Uint64(p[48:])
		w7 := binary.LittleEndian.Uint64(p[56:])
		// The words themselves are in, for the sign of a negative number: its sum may overflow.
		any := w0 | (w0 + s.lift) | w1 | (w1 + s.lift) | w2 | (w2 + s.lift) | w3 | (w3 + s.lift) |
			w4 | (w4 + s.lift) | w5 | (w5 + s.lift) | w6 | (w6 + s.lift) | w7 | (w7 + s.lift)
		if any&s.sign != 0 {
			return i
		}
	}
	return i
}

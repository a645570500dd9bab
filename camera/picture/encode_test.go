package picture

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
)

// code describes a baseline JPEG: per component its horizontal and vertical factor as
// digits, whether each has its own scan, and the restart interval in units.
type code struct {
	name    string
	factors string
	single  bool
	restart int
}

// encode returns a JPEG of random coefficients, the same ones for the same code and size.
func (c code) encode(w, h int) []byte {
	n := len(c.factors) / 2
	factor := func(i int) (int, int) { return int(c.factors[2*i] - '0'), int(c.factors[2*i+1] - '0') }
	hMax, vMax := 1, 1
	sof := []byte{0xff, mSOF0, 0, byte(8 + 3*n), 8, byte(h >> 8), byte(h), byte(w >> 8), byte(w), byte(n)}
	for i := range n {
		fh, fv := factor(i)
		hMax, vMax = max(hMax, fh), max(vMax, fv)
		sof = append(sof, byte(i+1), byte(fh<<4|fv), 0)
	}
	parts := [][]byte{append([]byte{0xff, mDQT, 0, 67, 0}, bytes.Repeat([]byte{16}, 64)...), sof,
		standardTables(), {0xff, mDRI, 0, 4, 0, byte(c.restart)}}
	e := &encoder{codes: huffmanCodes(), random: rand.New(rand.NewPCG(uint64(w), uint64(h)))}
	units := func(size, unit int) int { return (size + unit - 1) / unit }
	scan := func(columns, rows int, each func(), ids ...int) {
		sos := []byte{0xff, mSOS, 0, byte(6 + 2*len(ids)), byte(len(ids))}
		for _, id := range ids {
			sos = append(sos, byte(id+1), 0)
		}
		parts = append(parts, append(sos, 0, 63, 0), e.scan(columns*rows, c.restart, each))
	}
	switch {
	case n == 1:
		scan(units(w, 8), units(h, 8), func() { e.block(0) }, 0)
	case c.single:
		for i := range n {
			fh, fv := factor(i)
			scan(units(units(w*fh, hMax), 8), units(units(h*fv, vMax), 8), func() { e.block(i) }, i)
		}
	default:
		scan(units(w, 8*hMax), units(h, 8*vMax), func() {
			for i := range n {
				fh, fv := factor(i)
				for range fh * fv {
					e.block(i)
				}
			}
		}, []int{0, 1, 2, 3}[:n]...)
	}
	return join(append(parts, []byte{0xff, mEOI})...)
}

// encoder writes entropy-coded blocks with the standard luma tables.
type encoder struct {
	codes  [2]map[byte][2]int // DC and AC: code and length of each symbol
	random *rand.Rand
	out    bitWriter
	dc     [4]int // of each component's last block
}

// scan returns count units with restart markers between.
func (e *encoder) scan(count, restart int, unit func()) []byte {
	e.out = bitWriter{}
	flush := func() {
		for e.out.n%8 != 0 {
			e.out.put(1, 1)
		}
		e.dc = [4]int{}
	}
	flush()
	for i := range count {
		if restart > 0 && i > 0 && i%restart == 0 {
			flush()
			e.out.bytes = append(e.out.bytes, 0xff, mRST0+byte((i/restart-1)%8))
		}
		unit()
	}
	flush()
	return e.out.bytes
}

// block writes a random level and a few random frequencies.
func (e *encoder) block(component int) {
	dc := e.random.IntN(81) - 40
	e.symbol(0, 0, dc-e.dc[component])
	e.dc[component] = dc
	for run := e.random.IntN(9); run < 40; run += 1 + e.random.IntN(9) {
		zeros := e.random.IntN(9)
		e.symbol(1, zeros, 1+e.random.IntN(4))
		run += zeros
	}
	e.out.put(e.codes[1][0][0], e.codes[1][0][1]) // end of block
}

// symbol writes a run of zeros and a value, T.81 F.1.2.
func (e *encoder) symbol(table, run, value int) {
	size := bits.Len(uint(max(value, -value)))
	code := e.codes[table][byte(run<<4|size)]
	e.out.put(code[0], code[1])
	if value < 0 {
		value += 1<<size - 1
	}
	e.out.put(value, size)
}

// huffmanCodes numbers the symbols of the first two standard tables, T.81 C.2.
func huffmanCodes() (codes [2]map[byte][2]int) {
	b := standardTables()[4:]
	for t := range codes {
		codes[t] = map[byte][2]int{}
		code, symbols := 0, b[17:]
		for length := 1; length <= 16; length++ {
			for range b[length] {
				codes[t][symbols[0]] = [2]int{code, length}
				code, symbols = code+1, symbols[1:]
			}
			code <<= 1
		}
		b = symbols
	}
	return codes
}

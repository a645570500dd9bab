package prep

import "math"

// plain is the twin in Go: the tables that it makes beside the Filler's.
type plain struct {
	taps  []tap   // the source pixels that an output row needs, each once
	cols  []blend // per output column, indices of taps
	exact bool    // each column is a tap of its own
}

// band is what one thread needs to fill a band of rows.
type band struct {
	pixels  []pixel    // the taps of one source row
	mixed   [2][]pixel // source rows mixed horizontally
	held    [2]uint32  // which source row each of mixed holds
	line    []pixel    // an output row
	scratch []uint64   // of the C twin
}

func (p *plain) prepare(f *Filler) {
	p.cols = append(p.cols[:0], f.cols...)
	p.taps = p.taps[:0]
	last := [2]int{-1, -1} // source columns of the last two taps
	use := func(x uint32) uint32 {
		n := len(p.taps)
		switch int(x) {
		case last[1]:
			return uint32(n - 1)
		case last[0]:
			return uint32(n - 2)
		}
		last = [2]int{last[1], int(x)}
		p.taps = append(p.taps, f.src.tap(int(x)))
		return uint32(n)
	}
	for i := range p.cols { // columns never turn back, so that a column in use is one of the last two
		c := &p.cols[i]
		c.a, c.b = use(c.a), use(c.b)
	}
	p.exact = exact(p.cols) && len(p.taps) == len(p.cols)
	for i := range f.bands {
		b := &f.bands[i]
		if b.line == nil {
			*b = band{pixels: make([]pixel, 2*f.inW), line: make([]pixel, f.inW)}
			for k := range b.mixed {
				b.mixed[k] = make([]pixel, f.inW)
			}
		}
	}
}

// fill writes rows from..to of the sample.
func (p *plain) fill(f *Filler, b *band, from, to int) {
	const none = math.MaxUint32
	b.held = [2]uint32{none, none}
	t := &f.fit
	f.out.padRect(0, from, t.InW, min(to, t.Top), f.recipe.Pad)
	f.out.padRect(0, max(from, t.Top+t.NewH), t.InW, to, f.recipe.Pad)
	for y := max(from, t.Top); y < min(to, t.Top+t.NewH); y++ {
		f.out.store(t.Left, y, p.row(f, b, &f.lines[y-t.Top]))
		f.out.padRect(0, y, t.Left, y+1, f.recipe.Pad)
		f.out.padRect(t.Left+t.NewW, y, t.InW, y+1, f.recipe.Pad)
	}
}

// row returns the levels of an output row.
func (p *plain) row(f *Filler, b *band, l *blend) []pixel {
	if p.exact && l.w0 == weightOne && l.w1 == 0 {
		return p.read(f, b, l.a)
	}
	k := 0 // the buffer for row l.a; the other is for l.b
	if b.held[1] == l.a || b.held[0] == l.b && b.held[0] != l.a {
		k = 1
	}
	upper := p.mix(f, b, k, l.a)
	lower := upper
	if l.b != l.a {
		lower = p.mix(f, b, 1-k, l.b)
	}
	line := b.line[:len(p.cols)]
	mixRows(line, upper, lower, l.w0, l.w1)
	return line
}

// mix returns source row y mixed horizontally, in buffer k.
func (p *plain) mix(f *Filler, b *band, k int, y uint32) []pixel {
	row := b.mixed[k][:len(p.cols)]
	if b.held[k] != y {
		b.held[k] = y
		mixColumns(row, p.read(f, b, y), p.cols)
	}
	return row
}

// read converts the taps of source row y.
func (p *plain) read(f *Filler, b *band, y uint32) []pixel {
	row := b.pixels[:len(p.taps)]
	f.src.read(row, p.taps, int(y))
	if f.recipe.Gray {
		toLuma(row)
	}
	return row
}

// mixColumns mixes two pixels of src for each column: 11 bits are added to each lane.
func mixColumns(dst, src []pixel, cols []blend) {
	dst = dst[:len(cols)]
	for i := range cols {
		c := &cols[i]
		dst[i] = src[c.a]*pixel(c.w0) + src[c.b]*pixel(c.w1)
	}
}

// mixRows mixes two rows that mixColumns made and rounds to levels. The steps are
// those of OpenCV's 8-bit vertical pass, truncations included:
//
//	level = (w0*(a>>4)>>16 + w1*(b>>4)>>16 + 2) >> 2
//
// Red and blue share a word: 15 bits times a 12-bit weight of at most 2048 stay below 2^26, the
// room above blue's lane.
func mixRows(dst, a, b []pixel, w0, w1 uint32) {
	const (
		lane15 = 1<<15 - 1 | (1<<15-1)<<laneB
		lane10 = 1<<10 - 1 | (1<<10-1)<<laneB
		lane8  = 1<<8 - 1 | (1<<8-1)<<laneB
		round  = 2 | 2<<laneB
	)
	a, b = a[:len(dst)], b[:len(dst)]
	v0, v1 := pixel(w0), pixel(w1)
	for i := range dst {
		p, q := a[i]>>4, b[i]>>4
		rb := (p&lane15*v0)>>16&lane10 + (q&lane15*v1)>>16&lane10 + round
		g := (p>>laneG&(1<<15-1)*v0)>>16 + (q>>laneG&(1<<15-1)*v1)>>16 + 2
		dst[i] = rb>>2&lane8 | g>>2<<laneG
	}
}

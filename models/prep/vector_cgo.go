//go:build cgo && (amd64 || arm64)

package prep

// #cgo CFLAGS: -O3
// #include "kernels.h"
import "C"

import (
	"unsafe"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// vector is the C twin: a pass for band.c and the tables that go with it.
type vector struct {
	job      C.eyas_prep_job
	computes bool // the kernels' arithmetic gives the values of the table
	// Per output column: the left one of its two pixels, where that lies in a row, and the weights.
	xs, at []int32
	pairs  []C.eyas_prep_pair
}

// streamBytes is the size of a sample from which on it is written with streaming stores, past the caches: other stores
// read each line before they write it. With them a pass and one reading of what it wrote take as long as without for
// 1.2 MB (a side of 320), and a tenth less for 2.1 MB (416) and 4.9 MB (640), measured on Zen 3 with work in between.
const streamBytes = 3 << 19

func vectorSupported() bool { return C.eyas_prep_supported() != 0 }

func newVector(r *Recipe, inW int, out output) vector {
	return vector{
		computes: computes(r, out),
		xs:       make([]int32, 0, inW), at: make([]int32, 0, inW), pairs: make([]C.eyas_prep_pair, 0, inW),
	}
}

// computes says whether the kernels' arithmetic gives every value of the table, to the bit.
func computes(r *Recipe, out output) bool {
	var levels [256]C.uint8_t
	for i := range levels {
		levels[i] = C.uint8_t(i)
	}
	_, tables := out.raw()
	for c := range r.channels() {
		mean, factor, rest := arithmetic(r, c)
		switch r.Type {
		case tensor.Float32:
			var values [256]C.uint32_t // floats, as bits: a zero has its sign
			C.eyas_prep_store32((*C.float)(unsafe.Pointer(&values)), &levels[0], 256, mean, factor, rest, 0)
			if values != (*[3][256]C.uint32_t)(tables)[c] {
				return false
			}
		case tensor.Float16:
			var values [256]C.uint16_t
			C.eyas_prep_store16(&values[0], &levels[0], 256, mean, factor, rest)
			if values != (*[3][256]C.uint16_t)(tables)[c] {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// arithmetic returns what the kernels compute values of channel c from.
func arithmetic(r *Recipe, c int) (mean, factor, rest C.float) {
	inverse := 1 / float64(r.std(c))
	factor = C.float(inverse)
	return C.float(r.Mean[c]), factor, C.float(inverse - float64(factor))
}

// prepare makes the tables and the buffers of all bands.
func (v *vector) prepare(f *Filler) {
	t, s := &f.fit, &f.src
	first, last := f.cols[0].a, f.cols[0].a
	for i := range f.cols {
		first, last = min(first, f.cols[i].a, f.cols[i].b), max(last, f.cols[i].a, f.cols[i].b)
	}
	first &^= 1 // a pair shares its chroma
	span := int(last + 1 - first)
	v.job = C.eyas_prep_job{
		yuv: truth(s.yuv), planes: C.int32_t(s.planes), pixel: C.int32_t(s.pixel), red: C.int32_t(s.r), sub_rows: C.int32_t(s.subRows),
		luma: truth(f.recipe.Gray), first: C.int32_t(first), span: C.int32_t(span),
		in_w: C.int32_t(t.InW), in_h: C.int32_t(t.InH), left: C.int32_t(t.Left), top: C.int32_t(t.Top),
		new_w: C.int32_t(t.NewW), new_h: C.int32_t(t.NewH),
		channels: C.int32_t(f.recipe.channels()), nhwc: truth(f.recipe.NHWC), bgr: truth(f.recipe.BGR && !f.recipe.Gray),
		size: C.int32_t(f.recipe.Type.Bytes(1)), pad: C.int32_t(f.recipe.Pad), computed: truth(v.computes),
		stream: truth(f.recipe.Type.Bytes(f.recipe.channels()*t.InW*t.InH) >= streamBytes),
	}
	for c := range f.recipe.channels() {
		v.job.mean[c], v.job.factor[c], v.job.rest[c] = arithmetic(&f.recipe, c)
	}
	if s.yuv || s.pixel == 1 || f.recipe.Gray { // rows are converted, with room behind
		v.columns(f.cols, 4, int(first), span+2)
	} else {
		v.columns(f.cols, s.pixel, 0, f.shape.w)
	}
	if v.job.exact = truth(exact(f.cols) && !f.recipe.Gray); v.job.exact != 0 {
		v.picks(f)
	}
	// Two mixed rows of 16 bits and one of levels, three channels each, and the converted pixels.
	pitch := (t.NewW + 31) / 32 * 32
	need := 3*pitch*(2*2+1) + 4*(span+2)
	for i := range f.bands {
		if b := &f.bands[i]; len(b.scratch)*8 < need {
			b.scratch = make([]uint64, (need+7)/8)
		}
	}
}

func truth(b bool) C.int32_t {
	if b {
		return 1
	}
	return 0
}

// columns makes the tables of columns for rows of n columns that begin with column first, of pixel bytes a column.
// The kernels read eight bytes at once: the columns whose eight lie within the row are the safe ones.
func (v *vector) columns(cols []blend, pixel, first, n int) {
	v.xs, v.at, v.pairs = v.xs[:0], v.at[:0], v.pairs[:0]
	safe := run{}
	for i := range cols {
		c := &cols[i]
		left, w0, w1 := c.a, c.w0, c.w1
		if c.b < c.a { // mirrored
			left, w0, w1 = c.b, c.w1, c.w0
		}
		at := (int(left) - first) * pixel
		v.xs = append(v.xs, int32(left))
		v.at = append(v.at, int32(at))
		v.pairs = append(v.pairs, C.eyas_prep_pair{left: C.int16_t(w0), right: C.int16_t(w1)})
		safe.add(i, at+8 <= n*pixel)
	}
	v.job.safe_from, v.job.safe_to = C.int32_t(safe.from), C.int32_t(safe.to)
}

// run is a run of positions from..to.
type run struct{ from, to int }

// add takes position i, the one after the last, into the run, if it is good.
func (r *run) add(i int, good bool) {
	if !good {
		return
	}
	if r.from == r.to {
		r.from = i
	}
	r.to = i + 1
}

// picks makes the orders by which blocks of 16 columns find their samples where each column is one source column: every
// block has the order of the first.
func (v *vector) picks(f *Filler) {
	const columns = 16
	t, s := &f.fit, &f.src
	v.job.pick_from, v.job.pick_to = 0, 0
	width := t.W / t.NewW * columns // of a block in the picture
	start, turn := t.X, 1
	if t.Flip {
		start, turn = t.X+t.W-width, -1
	}
	blocks := t.NewW / columns
	if t.W%t.NewW != 0 || blocks == 0 {
		return
	}
	var (
		first, step [3]int // byte of its row where the channel's first block begins, bytes to the next one
		windows     [3]int // by plane
	)
	for c := range v.job.pick {
		plane, shift, bytes, offset := s.channel(c)
		first[c], step[c] = start>>shift*bytes, turn*(width>>shift)*bytes
		if s.yuv && s.planes == 1 {
			first[c] = start >> 1 * s.chroma // the same for luma
		}
		p := &v.job.pick[c]
		for w := range p.order {
			for k := range p.order[w] {
				p.order[w][k] = 0x80
			}
		}
		for k := range columns {
			at := int(v.xs[k])>>shift*bytes + offset - first[c]
			if at >= 16*len(p.order) {
				return // a ratio that is too large to be worth it
			}
			p.order[at/16][k], p.order[at/16][k+columns] = C.uint8_t(at%16), C.uint8_t(at%16)
			windows[plane] = max(windows[plane], at/16+1)
		}
		p.base, p.step = C.int32_t(first[c]-offset), C.int32_t(step[c]) // what base is added to is past the offset
	}
	all := run{0, blocks}
	for c := range v.job.pick {
		plane, _, _, _ := s.channel(c)
		row, _ := s.geometry(plane)
		safe := run{}
		for i := range blocks {
			at := first[c] + i*step[c]
			safe.add(i, at >= 0 && at+16*windows[plane] <= row)
		}
		all = run{max(all.from, safe.from), min(all.to, safe.to)}
		v.job.pick[c].windows = C.int32_t(windows[plane])
	}
	v.job.pick_from, v.job.pick_to = C.int32_t(all.from*columns), C.int32_t(all.to*columns)
}

// bind takes over what may change from frame to frame of a shape.
func (v *vector) bind(s *source) {
	for i, p := range s.frame.Planes {
		v.job.stride[i] = C.int64_t(p.Stride)
	}
	if s.yuv {
		k := &s.rgb.factors
		v.job.black, v.job.y = C.int16_t(k.black), C.int16_t(k.y)
		v.job.vr, v.job.vg, v.job.ug, v.job.ub = C.int16_t(k.vr), C.int16_t(k.vg), C.int16_t(k.ug), C.int16_t(k.ub)
	}
}

// fill writes rows from..to of the sample.
func (v *vector) fill(f *Filler, b *band, from, to int) {
	var planes [3]*C.uint8_t
	for i, p := range f.src.frame.Planes {
		planes[i] = (*C.uint8_t)(unsafe.SliceData(p.Data))
	}
	target, tables := f.out.raw()
	C.eyas_prep_band(&v.job, planes[0], planes[1], planes[2],
		(*C.int32_t)(unsafe.SliceData(v.xs)), (*C.int32_t)(unsafe.SliceData(v.at)), unsafe.SliceData(v.pairs),
		(*C.eyas_prep_line)(unsafe.Pointer(unsafe.SliceData(f.lines))), (*C.uint8_t)(tables),
		(*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(b.scratch))), (*C.uint8_t)(target), C.int32_t(from), C.int32_t(to))
}

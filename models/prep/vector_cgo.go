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
	job   C.eyas_prep_job
	exact bool               // the kernels' arithmetic gives the values of the table
	at    []int32            // per output column, where its left pixel lies in a row
	pairs []C.eyas_prep_pair // per output column, the weights of that pixel and the next
}

func vectorSupported() bool { return C.eyas_prep_supported() != 0 }

func newVector(r *Recipe, inW int, out output) vector {
	return vector{exact: computes(r, out), at: make([]int32, 0, inW), pairs: make([]C.eyas_prep_pair, 0, inW)}
}

// prepare makes the tables and the buffers of all bands.
func (v *vector) prepare(f *Filler) {
	t, s := &f.fit, &f.src
	converted := s.yuv || s.pixel == 1 || f.recipe.Gray
	first, last := int(f.cols[0].a), 0
	for i := range f.cols {
		first, last = min(first, int(f.cols[i].a), int(f.cols[i].b)), max(last, int(f.cols[i].a), int(f.cols[i].b))
	}
	first &^= 1 // a pair shares its chroma
	v.job = C.eyas_prep_job{
		yuv: truth(s.yuv), planes: C.int32_t(s.planes), pixel: C.int32_t(s.pixel), red: C.int32_t(s.r), sub_rows: C.int32_t(s.subRows),
		first: C.int32_t(first), span: C.int32_t(last + 1 - first), luma: truth(f.recipe.Gray),
		in_w: C.int32_t(t.InW), in_h: C.int32_t(t.InH), left: C.int32_t(t.Left), top: C.int32_t(t.Top),
		new_w: C.int32_t(t.NewW), new_h: C.int32_t(t.NewH),
		channels: C.int32_t(f.recipe.channels()), nhwc: truth(f.recipe.NHWC), bgr: truth(f.recipe.BGR && !f.recipe.Gray),
		size: C.int32_t(f.recipe.Type.Bytes(1)), pad: C.int32_t(f.recipe.Pad),
		computed: truth(v.exact),
	}
	for c := range f.recipe.channels() {
		v.job.mean[c], v.job.std[c], v.job.inverse[c] = factorsOf(&f.recipe, c)
	}
	if converted {
		v.columns(f.cols, 4, first, last+2)
	} else {
		v.columns(f.cols, s.pixel, 0, f.shape.w)
	}
	// Two mixed rows of 16 bits and one of levels, three channels each, and the converted pixels.
	pitch := (t.NewW + 31) / 32 * 32
	need := 3*pitch*(2*2+1) + 4*(last+1-first+32)
	for i := range f.bands {
		if b := &f.bands[i]; len(b.scratch)*8 < need {
			b.scratch = make([]uint64, (need+7)/8)
		}
	}
}

// columns makes the tables of columns for rows that begin with column first and end before column end, of pixel bytes
// a column. The kernels read eight bytes at once: the columns whose eight lie within the row are the safe ones.
func (v *vector) columns(cols []blend, pixel, first, end int) {
	v.at, v.pairs = v.at[:0], v.pairs[:0]
	from, to := -1, 0
	for i := range cols {
		c := &cols[i]
		left, w0, w1 := c.a, c.w0, c.w1
		if c.b < c.a { // mirrored
			left, w0, w1 = c.b, c.w1, c.w0
		}
		at := (int(left) - first) * pixel
		v.at = append(v.at, int32(at))
		v.pairs = append(v.pairs, C.eyas_prep_pair{left: C.int16_t(w0), right: C.int16_t(w1)})
		if at+8 <= (end-first)*pixel { // only one end of the columns can be unsafe
			if from < 0 {
				from = i
			}
			to = i + 1
		}
	}
	v.job.safe_from, v.job.safe_to = C.int32_t(max(from, 0)), C.int32_t(to)
}

func truth(b bool) C.int32_t {
	if b {
		return 1
	}
	return 0
}

// computes says whether the kernels' arithmetic gives every value of the table, to the bit.
func computes(r *Recipe, out output) bool {
	var levels [256]C.uint8_t
	for i := range levels {
		levels[i] = C.uint8_t(i)
	}
	_, tables := out.raw()
	for c := range r.channels() {
		mean, std, inverse := factorsOf(r, c)
		switch r.Type {
		case tensor.Float32:
			var values [256]C.uint32_t // floats, as bits: a zero has its sign
			C.eyas_prep_store32((*C.float)(unsafe.Pointer(&values)), &levels[0], 256, mean, std, inverse)
			if values != (*[3][256]C.uint32_t)(tables)[c] {
				return false
			}
		case tensor.Float16:
			var values [256]C.uint16_t
			C.eyas_prep_store16(&values[0], &levels[0], 256, mean, std, inverse)
			if values != (*[3][256]C.uint16_t)(tables)[c] {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func factorsOf(r *Recipe, c int) (mean, std, inverse C.float) {
	s := r.std(c)
	return C.float(r.Mean[c]), C.float(s), C.float(1 / s)
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
	target, table := f.out.raw()
	C.eyas_prep_band(&v.job, planes[0], planes[1], planes[2], (*C.int32_t)(unsafe.SliceData(v.at)), unsafe.SliceData(v.pairs),
		(*C.eyas_prep_line)(unsafe.Pointer(unsafe.SliceData(f.lines))), (*C.uint8_t)(table), (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(b.scratch))), (*C.uint8_t)(target),
		C.int32_t(from), C.int32_t(to))
}

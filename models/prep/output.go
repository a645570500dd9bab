package prep

import (
	"unsafe"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// element is what a tensor's values are made of; float16 is its bits.
type element interface {
	uint8 | uint16 | float32
}

// output writes rows of levels into one sample of a tensor. It is called once a row.
type output interface {
	// bind makes sample n of dst the target.
	bind(dst *tensor.Tensor, n int)
	// padRect fills the pixels from x0, y0 to before x1, y1. A rectangle of several rows spans
	// the whole width.
	padRect(x0, y0, x1, y1 int, level uint8)
	// store writes a row of levels at x, y.
	store(x, y int, row []pixel)
	// raw returns the first bytes of the target and of the table of values, 256 a channel.
	raw() (target, table unsafe.Pointer)
}

// writer is the output of one element type. Channels are those of the tensor.
type writer[E element] struct {
	view     func(*tensor.Tensor) []E
	w, h     int
	channels int
	nhwc     bool
	bgr      bool
	table    [3][256]E // value of each level, by channel
	data     []E       // the sample
}

func (o *writer[E]) bind(dst *tensor.Tensor, n int) {
	size := o.w * o.h * o.channels
	o.data = o.view(dst)[n*size : (n+1)*size]
}

func (o *writer[E]) raw() (target, table unsafe.Pointer) {
	return unsafe.Pointer(unsafe.SliceData(o.data)), unsafe.Pointer(&o.table)
}

func (o *writer[E]) padRect(x0, y0, x1, y1 int, level uint8) {
	from, n := y0*o.w+x0, (y1-y0)*(x1-x0)
	if n <= 0 {
		return
	}
	if o.nhwc {
		s := o.data[from*o.channels:][:n*o.channels]
		for c := range o.channels {
			for i, v := c, o.table[c][level]; i < len(s); i += o.channels {
				s[i] = v
			}
		}
		return
	}
	for c := range o.channels {
		fill(o.data[c*o.w*o.h+from:][:n], o.table[c][level])
	}
}

// fill sets all of s to v, most of it by copying what it has set, which moves more than a value at a time.
func fill[E element](s []E, v E) {
	const first = 1024
	for i := range s[:min(first, len(s))] {
		s[i] = v
	}
	for i := first; i < len(s); i += first {
		copy(s[i:], s[:first])
	}
}

func (o *writer[E]) store(x, y int, row []pixel) {
	at, plane := y*o.w+x, o.w*o.h
	red, blue := 0, 2
	if o.bgr {
		red, blue = 2, 0
	}
	switch {
	case o.channels == 1:
		storeGray(o.data[at:], row, &o.table[0])
	case o.nhwc:
		storePacked(o.data[3*at:], row, &o.table[red], &o.table[1], &o.table[blue], red)
	default:
		storePlanes(o.data[red*plane+at:], o.data[plane+at:], o.data[blue*plane+at:], row,
			&o.table[red], &o.table[1], &o.table[blue])
	}
}

func storeGray[E element](dst []E, row []pixel, table *[256]E) {
	dst = dst[:len(row)]
	for i, p := range row {
		dst[i] = table[p&255]
	}
}

func storePlanes[E element](r, g, b []E, row []pixel, tr, tg, tb *[256]E) {
	r, g, b = r[:len(row)], g[:len(row)], b[:len(row)]
	for i, p := range row {
		r[i] = tr[p&255]
		g[i] = tg[p>>laneG&255]
		b[i] = tb[p>>laneB&255]
	}
}

// storePacked puts red at element red (0 or 2) of each pixel.
func storePacked[E element](dst []E, row []pixel, tr, tg, tb *[256]E, red int) {
	blue := 2 - red
	for i, p := range row {
		d := dst[3*i : 3*i+3 : 3*i+3]
		d[red] = tr[p&255]
		d[1] = tg[p>>laneG&255]
		d[blue] = tb[p>>laneB&255]
	}
}

package prep

import (
	"fmt"

	"github.com/eyas-edge/eyas/camera/frame"
)

// maxSide bounds a frame's side so that a byte offset within a row fits 32 bits.
const maxSide = 1 << 26

// A pixel holds three channels in lanes of laneBits bits: red, green, blue from the least.
// Such a word is scaled by an 11-bit weight with a single multiplication: 255*2049 still fits
// a lane.
type pixel = uint64

const (
	laneBits = 19
	laneG    = laneBits
	laneB    = 2 * laneBits
)

// tap is where a row keeps one source pixel: byte offsets of the packed or luma sample and of
// the chroma sample. A 4:2:0 or 4:2:2 picture gives both pixels of a pair the same chroma.
type tap struct {
	p, c uint32
}

// layout says how a format's rows are read.
type layout struct {
	yuv      bool
	pixel    int // bytes from pixel to pixel: packed or luma
	chroma   int // bytes from chroma sample to chroma sample
	r, g, b  int // byte of each channel in a packed pixel
	subRows  int // chroma rows are at y >> subRows
	planes   int
	uAt, vAt int // first byte of U and V in their rows
}

var layouts = [...]layout{
	frame.RGB24: {pixel: 3, r: 0, g: 1, b: 2, planes: 1},
	frame.BGR24: {pixel: 3, r: 2, g: 1, b: 0, planes: 1},
	frame.RGBA:  {pixel: 4, r: 0, g: 1, b: 2, planes: 1},
	frame.BGRA:  {pixel: 4, r: 2, g: 1, b: 0, planes: 1},
	frame.Gray:  {pixel: 1, planes: 1},
	frame.NV12:  {yuv: true, pixel: 1, chroma: 2, subRows: 1, planes: 2, vAt: 1},
	frame.I420:  {yuv: true, pixel: 1, chroma: 1, subRows: 1, planes: 3},
	frame.I422:  {yuv: true, pixel: 1, chroma: 1, planes: 3},
	frame.YUYV:  {yuv: true, pixel: 2, chroma: 4, planes: 1, uAt: 1, vAt: 3},
}

// source reads the rows of one frame.
type source struct {
	layout
	frame *frame.Frame
	rgb   *yuvToRGB
}

// newSource checks that the frame's planes hold what its format and size promise, as
// frame.New does, because a frame's fields are open to everyone. It allocates only for errors.
func newSource(fr *frame.Frame) (source, error) {
	if fr == nil {
		return source{}, fmt.Errorf("no frame")
	}
	w, h := fr.Width, fr.Height
	if int(fr.Format) >= len(layouts) || layouts[fr.Format].planes == 0 {
		return source{}, fmt.Errorf("frame of format %s: this pixel format is not known", fr.Format)
	}
	if w < 1 || h < 1 || w > maxSide || h > maxSide {
		return source{}, fmt.Errorf("frame of %dx%d pixels: sides are 1 to %d", w, h, maxSide)
	}
	s := source{layout: layouts[fr.Format], frame: fr}
	if len(fr.Planes) != s.planes {
		return source{}, fmt.Errorf("frame of %s: has %d planes, needs %d", fr.Format, len(fr.Planes), s.planes)
	}
	for i := range s.planes {
		row, rows := s.geometry(i)
		p := fr.Planes[i]
		if p.Stride < row || len(p.Data) < row || (len(p.Data)-row)/p.Stride < rows-1 {
			return source{}, fmt.Errorf("frame of %s %dx%d: plane %d needs %d rows of %d bytes, has stride %d in %d bytes",
				fr.Format, w, h, i, rows, row, p.Stride, len(p.Data))
		}
	}
	if s.yuv {
		c := fr.Colour
		s.rgb = conversions[c.Matrix&1][0]
		if c.Full {
			s.rgb = conversions[c.Matrix&1][1]
		}
	}
	return s, nil
}

// geometry returns bytes a row and rows of plane i.
func (s *source) geometry(i int) (row, rows int) {
	w, h := s.frame.Width, s.frame.Height
	pairs := (w + 1) / 2
	switch {
	case i > 0:
		return pairs * s.chroma, (h + s.subRows) >> s.subRows
	case s.yuv && s.planes == 1:
		return pairs * s.chroma, h
	}
	return w * s.pixel, h
}

// channel returns where a row's samples of channel c lie (red, green, blue, or Y, U, V): sample x >> shift of plane at
// byte (x >> shift) * bytes + offset.
func (l *layout) channel(c int) (plane, shift, bytes, offset int) {
	switch {
	case !l.yuv:
		return 0, 0, l.pixel, [3]int{l.r, l.g, l.b}[c]
	case c == 0:
		return 0, 0, l.pixel, 0
	}
	return min(c, l.planes-1), 1, l.chroma, [3]int{0, l.uAt, l.vAt}[c]
}

// row returns bytes of row y of plane i.
func (s *source) row(i, y int) []byte {
	n, _ := s.geometry(i)
	p := &s.frame.Planes[i]
	return p.Data[y*p.Stride : y*p.Stride+n]
}

// tap returns where pixel x of a row lies.
func (l *layout) tap(x int) tap {
	return tap{p: uint32(x * l.pixel), c: uint32(x >> 1 * l.chroma)}
}

// read converts the taps of row y to RGB pixels. dst is as long as taps.
func (s *source) read(dst []pixel, taps []tap, y int) {
	main := s.row(0, y)
	if !s.yuv {
		if s.pixel == 1 {
			readGray(dst, taps, main)
		} else {
			readPacked(dst, taps, main[s.r:], main[s.g:], main[s.b:])
		}
		return
	}
	cy := y >> s.subRows
	u, v := main, main
	switch s.planes {
	case 2:
		u = s.row(1, cy)
		v = u
	case 3:
		u, v = s.row(1, cy), s.row(2, cy)
	}
	readYUV(dst, taps, main, u[s.uAt:], v[s.vAt:], s.rgb)
}

func readGray(dst []pixel, taps []tap, row []byte) {
	dst = dst[:len(taps)]
	for i := range taps {
		dst[i] = pixel(row[taps[i].p]) * (1 | 1<<laneG | 1<<laneB)
	}
}

func readPacked(dst []pixel, taps []tap, r, g, b []byte) {
	dst = dst[:len(taps)]
	for i := range taps {
		p := taps[i].p
		dst[i] = pixel(r[p]) | pixel(g[p])<<laneG | pixel(b[p])<<laneB
	}
}

// readYUV takes U and V rows that may be one row, V's samples after U's: us is at least as
// long as vs, and cut to its length it needs no bounds check of its own.
func readYUV(dst []pixel, taps []tap, ys, us, vs []byte, t *yuvToRGB) {
	dst, us = dst[:len(taps)], us[:len(vs)]
	for i := range taps {
		p, c := taps[i].p, taps[i].c
		sum := t.y[ys[p]] + t.v[vs[c]] + t.u[us[c]]
		r := pixel(clamped[sum>>yuvBits%1024])
		g := pixel(clamped[sum>>(yuvLane+yuvBits)%1024])
		b := pixel(clamped[sum>>(2*yuvLane+yuvBits)%1024])
		dst[i] = r | g<<laneG | b<<laneB
	}
}

package picture

import "image"

// planar is a picture in planes: luma of w x h samples and two chroma planes, hs times
// narrower and vs times lower, sizes rounded up. It is what JPEG and VP8 decoders leave. Chroma
// samples lie in the middle of the luma samples that they serve, as JFIF says.
type planar struct {
	w, h, hs, vs     int
	y, cb, cr        []byte
	yStride, cStride int
	convert          func(dst, y, cb, cr []byte) // one row to RGB

	buf [2][]byte // an upsampled row of each chroma plane
	sum []int32   // vertical sums of one chroma row
}

// newPlanar takes the planes of an image of package image.
func newPlanar(m *image.YCbCr, convert func(dst, y, cb, cr []byte)) *planar {
	p := &planar{w: m.Rect.Dx(), h: m.Rect.Dy(), y: m.Y, cb: m.Cb, cr: m.Cr,
		yStride: m.YStride, cStride: m.CStride, convert: convert}
	p.hs, p.vs = steps(m.SubsampleRatio)
	cw := (p.w + p.hs - 1) / p.hs
	p.buf = [2][]byte{make([]byte, cw*p.hs), make([]byte, cw*p.hs)}
	p.sum = make([]int32, cw)
	return p
}

// steps returns how many luma samples each chroma sample serves, horizontally and vertically.
func steps(ratio image.YCbCrSubsampleRatio) (hs, vs int) {
	switch ratio {
	case image.YCbCrSubsampleRatio422:
		return 2, 1
	case image.YCbCrSubsampleRatio420:
		return 2, 2
	case image.YCbCrSubsampleRatio440:
		return 1, 2
	case image.YCbCrSubsampleRatio411:
		return 4, 1
	case image.YCbCrSubsampleRatio410:
		return 4, 2
	}
	return 1, 1
}

// row is a rowFunc.
func (p *planar) row(y int, dst []byte) {
	p.convert(dst, p.y[y*p.yStride:][:p.w], p.chroma(p.buf[0], p.cb, y), p.chroma(p.buf[1], p.cr, y))
}

// chroma returns row y of a chroma plane at luma resolution. Ratios of two are interpolated
// with libjpeg's triangle filter (jdsample.c, "fancy upsampling"), weights 3/4 and 1/4 an axis with its
// alternating rounding; other ratios, and 2:1 planes of one or two columns, are repeated as libjpeg does.
func (p *planar) chroma(buf, plane []byte, y int) []byte {
	cw := (p.w + p.hs - 1) / p.hs
	near := plane[y/p.vs*p.cStride:][:cw]
	switch {
	case p.hs == 1 && p.vs == 1:
		return near
	case p.hs == 1 && p.vs == 2:
		far, bias := p.neighbour(plane, y, cw), int32(1+y&1)
		for i, v := range near {
			buf[i] = byte((3*int32(v) + int32(far[i]) + bias) >> 2)
		}
	case p.hs == 2 && cw > 2 && p.vs == 1:
		for i, v := range near {
			p.sum[i] = int32(v)
		}
		widen(buf, p.sum, 2, 1, 2)
	case p.hs == 2 && cw > 2 && p.vs == 2:
		far := p.neighbour(plane, y, cw)
		for i, v := range near {
			p.sum[i] = 3*int32(v) + int32(far[i])
		}
		widen(buf, p.sum, 4, 8, 7)
	default:
		for i := range buf {
			buf[i] = near[i/p.hs]
		}
	}
	return buf[:p.w]
}

// neighbour returns the second nearest of a plane's half-height rows to luma row y: the one
// above for even rows, below for odd ones, the edge row itself outside.
func (p *planar) neighbour(plane []byte, y, cw int) []byte {
	c := y/2 - 1 + 2*(y&1)
	c = min(max(c, 0), (p.h+1)/2-1)
	return plane[c*p.cStride:][:cw]
}

// widen doubles a row of sums: each output is 3/4 of the nearer and 1/4 of the farther
// sum, the outermost ones alone, divided by 1<<shift with the rounding terms of left and right outputs.
func widen(dst []byte, sum []int32, shift uint, left, right int32) {
	last := len(sum) - 1
	dst = dst[:2*len(sum)]
	prev := sum[0]
	for i, v := range sum[:last] {
		next := sum[i+1]
		dst[2*i] = byte((3*v + prev + left) >> shift)
		dst[2*i+1] = byte((3*v + next + right) >> shift)
		prev = v
	}
	dst[2*last] = byte((3*sum[last] + prev + left) >> shift)
	dst[2*last+1] = byte((4*sum[last] + right) >> shift)
}

// Fixed-point tables of libjpeg's jdcolor.c: JFIF's full-range BT.601,
// R = Y + 1.402 Cr, G = Y - 0.34414 Cb - 0.71414 Cr, B = Y + 1.772 Cb, 16 fraction bits.
var crR, crG, cbG, cbB = func() (crR, crG, cbG, cbB [256]int32) {
	for i := range int32(256) {
		c := i - 128
		crR[i] = (91881*c + 1<<15) >> 16
		cbB[i] = (116130*c + 1<<15) >> 16
		crG[i] = -46802 * c
		cbG[i] = -22554*c + 1<<15
	}
	return
}()

// fromJFIF converts a row of full-range YCbCr as libjpeg does.
func fromJFIF(dst, y, cb, cr []byte) {
	dst, cb, cr = dst[:3*len(y)], cb[:len(y)], cr[:len(y)]
	for i, l := range y {
		b, r, v := cb[i], cr[i], int32(l)
		d := dst[3*i : 3*i+3 : 3*i+3]
		d[0] = clamp(v + crR[r])
		d[1] = clamp(v + (cbG[b]+crG[r])>>16)
		d[2] = clamp(v + cbB[b])
	}
}

// fromStudio converts a row of VP8's limited-range BT.601 YCbCr as libwebp does (src/dsp/yuv.h,
// 14 fraction bits of which 8 are dropped after each product).
func fromStudio(dst, y, cb, cr []byte) {
	dst, cb, cr = dst[:3*len(y)], cb[:len(y)], cr[:len(y)]
	for i := range y {
		l, u, v := int32(y[i])*19077>>8, int32(cb[i]), int32(cr[i])
		d := dst[3*i : 3*i+3 : 3*i+3]
		d[0] = clamp((l + v*26149>>8 - 14234) >> 6)
		d[1] = clamp((l - u*6419>>8 - v*13320>>8 + 8708) >> 6)
		d[2] = clamp((l + u*33050>>8 - 17685) >> 6)
	}
}

// interleave makes a row of pixels of planes that hold R, G and B already.
func interleave(dst, r, g, b []byte) {
	dst, g, b = dst[:3*len(r)], g[:len(r)], b[:len(r)]
	for i := range r {
		d := dst[3*i : 3*i+3 : 3*i+3]
		d[0], d[1], d[2] = r[i], g[i], b[i]
	}
}

func clamp(v int32) byte { return byte(min(max(v, 0), 255)) }

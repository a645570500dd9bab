package picture

import (
	"fmt"
	"image"
	"image/color"
)

// imageRows returns the rows of a picture of package image, by its concrete type: going
// through At would cost an interface call and an allocation a pixel. Alpha is dropped.
func imageRows(m image.Image) (rowFunc, error) {
	w := m.Bounds().Dx()
	switch m := m.(type) {
	case *image.Gray:
		return spread(m.Pix, m.Stride, w, 1), nil
	case *image.Gray16: // big endian: the first byte of a sample is the high one
		return spread(m.Pix, m.Stride, w, 2), nil
	case *image.RGBA: // of opaque pictures only: not premultiplied by anything
		return pick(m.Pix, m.Stride, w, 1), nil
	case *image.NRGBA:
		return pick(m.Pix, m.Stride, w, 1), nil
	case *image.RGBA64:
		return pick(m.Pix, m.Stride, w, 2), nil
	case *image.NRGBA64:
		return pick(m.Pix, m.Stride, w, 2), nil
	case *image.Paletted:
		colours := levels(m.Palette)
		return func(y int, dst []byte) {
			for x, i := range m.Pix[y*m.Stride:][:w] {
				copy(dst[3*x:3*x+3], colours[i][:])
			}
		}, nil
	}
	return nil, fmt.Errorf("unexpected %T", m)
}

// spread returns the rows of grey samples of step bytes.
func spread(pix []byte, stride, w, step int) rowFunc {
	return func(y int, dst []byte) {
		src := pix[y*stride:][:w*step]
		for i, j := 0, 0; i < len(src); i, j = i+step, j+3 {
			v := src[i]
			d := dst[j : j+3 : j+3]
			d[0], d[1], d[2] = v, v, v
		}
	}
}

// pick returns the rows of pixels of four samples of step bytes, without the fourth.
func pick(pix []byte, stride, w, step int) rowFunc {
	return func(y int, dst []byte) {
		src := pix[y*stride:][:4*w*step]
		for j := 0; j+3 <= 3*w; j += 3 {
			s, d := src[:4*step], dst[j:j+3:j+3]
			d[0], d[1], d[2] = s[0], s[step], s[2*step]
			src = src[4*step:]
		}
	}
}

// levels returns a palette's colours without alpha; indices that it lacks are black.
func levels(p color.Palette) (t [256][3]byte) {
	for i, c := range p[:min(len(p), len(t))] {
		switch c := c.(type) {
		case color.RGBA:
			t[i] = [3]byte{c.R, c.G, c.B}
		case color.NRGBA:
			t[i] = [3]byte{c.R, c.G, c.B}
		}
	}
	return t
}

// place returns the rows of a canvas w pixels wide that is black except where a frame of
// fw x fh pixels lies at (left, top).
func place(row rowFunc, left, top, fw, fh int) rowFunc {
	return func(y int, dst []byte) {
		clear(dst)
		if y >= top && y < top+fh {
			row(y-top, dst[3*left:3*(left+fw)])
		}
	}
}

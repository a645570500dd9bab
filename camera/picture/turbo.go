package picture

import "image"

// verdict is what libturbojpeg says of a picture, as turbo.h numbers it.
type verdict int

const (
	failed verdict = iota
	warned         // the picture is there; the library was not content with the data
	stray          // the same, and the first thing was that bytes lie before the end marker
	clean
)

// sampling and pixelFormat are values of turbojpeg.h's TJSAMP and TJPF.
type (
	sampling    int
	pixelFormat int
)

const (
	sampGrey sampling = 3

	pixRGB  pixelFormat = 0
	pixRGBA pixelFormat = 7
	pixCMYK pixelFormat = 11
)

// samplings are the library's names for package image's ratios.
var samplings = [...]sampling{
	image.YCbCrSubsampleRatio444: 0,
	image.YCbCrSubsampleRatio422: 1,
	image.YCbCrSubsampleRatio420: 2,
	image.YCbCrSubsampleRatio440: 4,
	image.YCbCrSubsampleRatio411: 5,
}

// judge says whether there is a picture, and whether it needs no second opinion.
func (f *jpegFile) judge(v verdict) (painted, sure bool) {
	// Some webcams write stray bytes before the end marker. Nothing can go wrong after it, unless it was found where a
	// restart marker should have been.
	return v != failed, v == clean || v == stray && !f.restarts
}

// turbo decodes with libturbojpeg to what image/jpeg gives for the same file: a Gray, YCbCr or
// (inverted) CMYK; and to an RGBA where the sampling factors are none of the usual ones. Without a library
// or where that fails the image is nil; where it warns about the data there is one, but not sure.
func (f *jpegFile) turbo() (m image.Image, sure bool) {
	var t turbo
	defer t.close()
	var v verdict
	if ratio, ok := f.usual(); ok {
		m, v = f.turboPlanes(&t, ratio)
	} else {
		m, v = f.turboPixels(&t)
	}
	painted, sure := f.judge(v)
	if !painted {
		return nil, false
	}
	return m, sure
}

// turboPlanes decodes one or three components to planes at their own resolutions.
func (f *jpegFile) turboPlanes(t *turbo, ratio image.YCbCrSubsampleRatio) (image.Image, verdict) {
	jpg := f.appendPlain(nil, f.rawMark())
	rect := image.Rect(0, 0, f.w, f.h)
	if len(f.comps) == 1 {
		m := image.NewGray(rect)
		return m, t.planes(jpg, f.w, f.h, sampGrey, m.Pix, nil, nil, m.Stride, 0)
	}
	// The library's luma is padded to whole chroma samples.
	hs, vs := steps(ratio)
	m := image.NewYCbCr(image.Rect(0, 0, (f.w+hs-1)/hs*hs, (f.h+vs-1)/vs*vs), ratio)
	return m.SubImage(rect), t.planes(jpg, f.w, f.h, samplings[ratio], m.Y, m.Cb, m.Cr, m.YStride, m.CStride)
}

// turboPixels decodes to four bytes a pixel, all components brought to full resolution by
// libjpeg itself: four components to their raw samples, others to RGB.
func (f *jpegFile) turboPixels(t *turbo) (image.Image, verdict) {
	rect := image.Rect(0, 0, f.w, f.h)
	if len(f.comps) == 4 {
		m := image.NewCMYK(rect)
		v := t.pixels(f.appendPlain(nil, adobeMark), f.w, f.h, pixCMYK, m.Pix, m.Stride)
		for i := range m.Pix {
			m.Pix[i] = ^m.Pix[i]
		}
		return m, v
	}
	m := image.NewRGBA(rect)
	return m, t.pixels(f.appendPlain(nil, f.colourMark()), f.w, f.h, pixRGBA, m.Pix, m.Stride)
}

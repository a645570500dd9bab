//go:build cgo && linux

package picture

// #cgo LDFLAGS: -ldl
// #include "turbo.h"
import "C"

import (
	"bytes"
	"image"
	"os"
	"path/filepath"
	"sync"
	"unsafe"
)

// turboPath loads libturbojpeg on the first call and returns its path, "" without one. Anything
// in EYAS_JPEG keeps it out, not only "go": what is misspelt is meant to be safe.
var turboPath = sync.OnceValue(func() string {
	if os.Getenv("EYAS_JPEG") != "" {
		return ""
	}
	name := C.eyas_turbo_load()
	if name == nil {
		return ""
	}
	path := C.GoString(name)
	if real, err := filepath.EvalSymlinks(path); err == nil { // its name holds the version
		path = real
	}
	return path
})

// turbo decodes with libturbojpeg's accurate integer DCT to what image/jpeg gives for the
// same file: a Gray, YCbCr or (inverted) CMYK; and to an RGBA where the sampling factors are
// none of the usual ones. Without a library or where that fails the image is nil; where it warns about
// the data there is one, but not clean.
func (f *jpegFile) turbo() (m image.Image, clean bool) {
	if turboPath() == "" {
		return nil, false
	}
	var result C.int
	if ratio, ok := f.usual(); ok {
		m, result = f.turboPlanes(ratio)
	} else {
		m, result = f.turboPixels()
	}
	switch result {
	case C.EYAS_FAILED:
		return nil, false
	case C.EYAS_STRAY:
		// Some webcams write such bytes. Nothing can go wrong after the end marker, unless it
		// was found where a restart marker should have been.
		return m, !f.restarts
	}
	return m, result == C.EYAS_CLEAN
}

var samplings = map[image.YCbCrSubsampleRatio]C.int{
	image.YCbCrSubsampleRatio444: C.EYAS_SAMP_444,
	image.YCbCrSubsampleRatio422: C.EYAS_SAMP_422,
	image.YCbCrSubsampleRatio420: C.EYAS_SAMP_420,
	image.YCbCrSubsampleRatio440: C.EYAS_SAMP_440,
	image.YCbCrSubsampleRatio411: C.EYAS_SAMP_411,
}

// turboPlanes decodes one or three components to planes at their own resolutions.
func (f *jpegFile) turboPlanes(ratio image.YCbCrSubsampleRatio) (image.Image, C.int) {
	jpg := bytes.Join(f.plain(f.rawMark()), nil)
	w, h := C.int(f.w), C.int(f.h)
	rect := image.Rect(0, 0, f.w, f.h)
	if len(f.comps) == 1 {
		m := image.NewGray(rect)
		return m, C.eyas_turbo_planes(first(jpg), C.ulong(len(jpg)), w, h, C.EYAS_SAMP_GRAY, first(m.Pix), nil, nil, w, 0)
	}
	// The library's luma is padded to whole chroma samples.
	hs, vs := int(f.comps[0].h), int(f.comps[0].v)
	m := image.NewYCbCr(image.Rect(0, 0, (f.w+hs-1)/hs*hs, (f.h+vs-1)/vs*vs), ratio)
	return m.SubImage(rect), C.eyas_turbo_planes(first(jpg), C.ulong(len(jpg)), w, h, samplings[ratio],
		first(m.Y), first(m.Cb), first(m.Cr), C.int(m.YStride), C.int(m.CStride))
}

// turboPixels decodes to four bytes a pixel, all components brought to full resolution by
// libjpeg itself: four components to their raw samples, others to RGB.
func (f *jpegFile) turboPixels() (image.Image, C.int) {
	rect := image.Rect(0, 0, f.w, f.h)
	decode := func(mark string, format C.int, pix []byte) C.int {
		jpg := bytes.Join(f.plain(mark), nil)
		return C.eyas_turbo_pixels(first(jpg), C.ulong(len(jpg)), C.int(f.w), C.int(f.h), format, first(pix))
	}
	if len(f.comps) == 4 {
		m := image.NewCMYK(rect)
		result := decode(adobeMark, C.EYAS_PF_CMYK, m.Pix)
		for i := range m.Pix {
			m.Pix[i] = ^m.Pix[i]
		}
		return m, result
	}
	mark := jfifMark
	if len(f.comps) == 3 && f.isRGB() {
		mark = adobeMark
	}
	m := image.NewRGBA(rect)
	return m, decode(mark, C.EYAS_PF_RGBA, m.Pix)
}

// first returns where C finds a slice.
func first(pix []byte) *C.uint8_t { return (*C.uint8_t)(unsafe.SliceData(pix)) }

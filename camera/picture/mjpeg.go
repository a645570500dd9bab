package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"slices"

	"github.com/eyas-edge/eyas/camera/frame"
)

// JPEGInfo is what the header of a JPEG says about the frame that an MJPEGDecoder makes of it.
type JPEGInfo struct {
	Width, Height int // pixels as stored: a stream's EXIF orientation is ignored
	Format        frame.Format
	Colour        frame.Colour
}

// MJPEGDecoder decodes the pictures of a motion-JPEG stream into the planes of given frames: component planes as they are
// stored, without a conversion to RGB, where they are I420 (4:2:0), I422 (4:2:2) or Gray; else RGB24 (4:4:4, 4:4:0,
// 4:1:1, RGB, CMYK). Planes are full-range BT.601. It is right about what cameras do: Huffman tables that are left out are the standard ones, and
// what follows the first picture's end is ignored. A picture with missing data is an error, its frame then holds
// anything.
//
// With libturbojpeg nothing is allocated per picture in the steady state, but for pictures that it warns about, which image/jpeg judges, and
// CMYK. Without the library image/jpeg decodes, and allocates each picture. The zero value is ready; a decoder is for one
// goroutine at a time, and Close frees what the library holds.
type MJPEGDecoder struct {
	file  jpegFile
	turbo turbo
	jpg   []byte // the picture as the library gets it
	pad   []byte // planes of odd sizes, which the library pads
}

// Close frees the library's part. The decoder may be used again.
func (d *MJPEGDecoder) Close() { d.turbo.close() }

var jpegCodec = codec{name: "jpeg"}

// Probe reads the header of a JPEG, which is nearly always in the first 4 KiB of data, and holds it against the limits. Errors
// are one line.
func (d *MJPEGDecoder) Probe(data []byte, l Limits) (JPEGInfo, error) {
	if err := d.walk(data, true); err != nil {
		return JPEGInfo{}, err
	}
	h, err := d.file.header(len(data))
	if err != nil {
		return JPEGInfo{}, jpegCodec.fault(err)
	}
	if err := jpegCodec.within(l, h, int64(len(data))); err != nil {
		return JPEGInfo{}, err
	}
	return d.info(), nil
}

func (d *MJPEGDecoder) walk(data []byte, headOnly bool) error {
	if !bytes.HasPrefix(data, []byte{0xff, mSOI}) {
		return errors.New("decode jpeg: the data does not begin as a JPEG does")
	}
	if err := d.file.walk(data, headOnly); err != nil {
		return jpegCodec.fault(err)
	}
	return nil
}

// info is what a scan of the header found.
func (d *MJPEGDecoder) info() JPEGInfo {
	f := &d.file
	i := JPEGInfo{Width: f.w, Height: f.h, Format: frame.RGB24, Colour: frame.Colour{Matrix: frame.BT601, Full: true}}
	ratio, usual := f.usual()
	switch {
	case len(f.comps) == 1:
		i.Format = frame.Gray
	case !usual || f.isRGB():
	case ratio == image.YCbCrSubsampleRatio420:
		i.Format = frame.I420
	case ratio == image.YCbCrSubsampleRatio422:
		i.Format = frame.I422
	}
	return i
}

// Decode decodes a JPEG into the planes of dst, whose size and format have to be those of Probe; strides are free. It sets
// none of the frame's other fields.
func (d *MJPEGDecoder) Decode(dst *frame.Frame, data []byte) error {
	return d.whole(data, func() error {
		if i := d.info(); i.Width != dst.Width || i.Height != dst.Height || i.Format != dst.Format {
			return fmt.Errorf("the picture is %s of %dx%d, the frame %s of %dx%d",
				i.Format, i.Width, i.Height, dst.Format, dst.Width, dst.Height)
		}
		return d.fill(dst)
	})
}

// Check decodes a JPEG and forgets it: where the header asks for another frame than that of the picture before, it may
// be damaged. It allocates memory for the picture; Probe is called first.
func (d *MJPEGDecoder) Check(data []byte) error {
	return d.whole(data, func() error {
		_, err := d.file.decode()
		return err
	})
}

// whole calls decode with what a scan of a complete picture found.
func (d *MJPEGDecoder) whole(data []byte, decode func() error) (err error) {
	defer func() {
		if p := recover(); p != nil { // as of guard
			err = fmt.Errorf("decode jpeg: the data is broken: %v", p)
		}
	}()
	if err := d.walk(data, false); err != nil {
		return err
	}
	if err = d.file.complete(); err == nil {
		err = decode()
	}
	if err != nil {
		return jpegCodec.fault(err)
	}
	return nil
}

// fill decodes with libturbojpeg, and by the rules of jpegFile.decode with image/jpeg.
func (d *MJPEGDecoder) fill(dst *frame.Frame) error {
	f := &d.file
	if len(f.comps) == 4 {
		m, err := f.decode()
		if err != nil {
			return err
		}
		return f.put(dst, m)
	}
	painted := false
	if !forceGo {
		var sure bool
		if painted, sure = f.judge(d.fast(dst)); sure {
			return nil
		}
	}
	m, err := f.decodeGo(painted)
	if err != nil || painted {
		return err
	}
	return f.put(dst, m)
}

// fast decodes one or three components with libturbojpeg.
func (d *MJPEGDecoder) fast(dst *frame.Frame) verdict {
	f := &d.file
	w, h := f.w, f.h
	if dst.Format == frame.RGB24 {
		d.jpg = f.appendPlain(d.jpg[:0], f.colourMark())
		return d.turbo.pixels(d.jpg, w, h, pixRGB, rows(dst.Planes[0], 3*w, h), dst.Planes[0].Stride)
	}
	d.jpg = f.appendPlain(d.jpg[:0], f.rawMark())
	y := dst.Planes[0]
	if dst.Format == frame.Gray {
		return d.turbo.planes(d.jpg, w, h, sampGrey, rows(y, w, h), nil, nil, y.Stride, 0)
	}
	ratio, _ := f.usual()
	hs, vs := steps(ratio)
	cw, ch := (w+hs-1)/hs, (h+vs-1)/vs
	cb, cr := dst.Planes[1], dst.Planes[2]
	if w == cw*hs && h == ch*vs && cb.Stride == cr.Stride {
		return d.turbo.planes(d.jpg, w, h, samplings[ratio],
			rows(y, w, h), rows(cb, cw, ch), rows(cr, cw, ch), y.Stride, cb.Stride)
	}
	// The library writes whole units of subsampling, which the frame has no room for.
	luma, chroma := cw*hs*ch*vs, cw*ch
	d.pad = slices.Grow(d.pad[:0], luma+2*chroma)[:luma+2*chroma]
	py, pcb, pcr := d.pad[:luma], d.pad[luma:luma+chroma], d.pad[luma+chroma:]
	v := d.turbo.planes(d.jpg, w, h, samplings[ratio], py, pcb, pcr, cw*hs, cw)
	if v != failed {
		copyPlane(y, py, cw*hs, w, h)
		copyPlane(cb, pcb, cw, cw, ch)
		copyPlane(cr, pcr, cw, cw, ch)
	}
	return v
}

// put copies what image/jpeg decoded into the planes of a frame.
func (f *jpegFile) put(dst *frame.Frame, m image.Image) error {
	if m, ok := m.(*image.Gray); ok {
		copyPlane(dst.Planes[0], m.Pix, m.Stride, f.w, f.h)
		return nil
	}
	if m, ok := m.(*image.YCbCr); ok && dst.Format != frame.RGB24 {
		cw, ch := (f.w+1)/2, f.h
		if dst.Format == frame.I420 {
			ch = (f.h + 1) / 2
		}
		copyPlane(dst.Planes[0], m.Y, m.YStride, f.w, f.h)
		copyPlane(dst.Planes[1], m.Cb, m.CStride, cw, ch)
		copyPlane(dst.Planes[2], m.Cr, m.CStride, cw, ch)
		return nil
	}
	row, err := f.rows(m)
	if err != nil {
		return err
	}
	p := dst.Planes[0]
	for y := range f.h {
		row(y, p.Data[y*p.Stride:][:3*f.w])
	}
	return nil
}

// rows returns the bytes of a plane that h rows of w bytes take, all of which are there: the library is not to
// write behind them.
func rows(p frame.Plane, w, h int) []byte { return p.Data[:(h-1)*p.Stride+w] }

// copyPlane copies h rows of w bytes.
func copyPlane(dst frame.Plane, src []byte, stride, w, h int) {
	for y := range h {
		copy(dst.Data[y*dst.Stride:][:w], src[y*stride:])
	}
}

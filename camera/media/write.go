package media

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/camera/frame"
)

// maxSide bounds the pixels of a side of a picture.
const maxSide = 1 << 16

// writer puts pictures into the slots of a camera.
type writer struct {
	out  *camera.Output
	made shape
}

// shape is what the slots are made for.
type shape struct {
	format frame.Format
	colour frame.Colour
	w, h   int
}

// plane is a plane of a picture: rows of row bytes.
type plane struct {
	pix               []byte
	stride, row, rows int
}

// write hands one picture on. It is done with it when it returns.
func (w *writer) write(ctx context.Context, p picture) error {
	if w.out.Skip() {
		return nil
	}
	s, planes, err := inspect(p)
	if err != nil {
		w.out.Drop(nil, camera.Corrupt, err)
		return nil
	}
	if s.format == frame.Unknown {
		return camera.Permanent(fmt.Errorf("the camera's driver gives pictures as %T, which cannot be used", p.Image))
	}
	if s != w.made {
		if err := w.out.Format(s.format, s.colour, s.w, s.h, p.fps); err != nil {
			return err
		}
		w.made = s
	}
	f := w.out.Begin()
	if f == nil {
		return nil
	}
	if dst := w.out.Packed(f); s.format == frame.RGB24 {
		convert(dst, p.Image.(*image.YCbCr))
	} else {
		for _, from := range planes {
			for y := range from.rows {
				dst = dst[copy(dst, from.pix[y*from.stride:][:from.row]):]
			}
		}
	}
	return w.out.Publish(ctx, f, p.at, frame.ByArrival)
}

// inspect says what becomes of a picture, and where its planes are, all of which are there. The format is Unknown for kinds of
// pictures that cannot be used. Planes of luma and chroma are taken as they are, with the range of V4L2's uncompressed formats unless
// they were JPEG; where there is no format for their proportions they become RGB.
func inspect(p picture) (s shape, planes [3]plane, err error) {
	defer func() {
		if fault := recover(); fault != nil { // by a picture of the driver's own kind
			err = fmt.Errorf("the picture is broken: %v", fault)
		}
	}()
	if p.Image == nil {
		return s, planes, errors.New("the driver gives no picture")
	}
	s.w, s.h = p.Bounds().Dx(), p.Bounds().Dy()
	if s.w < 1 || s.h < 1 || s.w > maxSide || s.h > maxSide {
		return s, planes, fmt.Errorf("the picture has %dx%d pixels", s.w, s.h)
	}
	switch m := p.Image.(type) {
	case *image.YCbCr:
		s.format, planes = components(m, s.w, s.h)
		s.colour.Full = p.jpeg
	case *image.RGBA:
		s.format, planes[0] = frame.RGBA, plane{m.Pix, m.Stride, 4 * s.w, s.h}
	case *image.NRGBA:
		s.format, planes[0] = frame.RGBA, plane{m.Pix, m.Stride, 4 * s.w, s.h}
	case *image.Gray:
		s.format, planes[0] = frame.Gray, plane{m.Pix, m.Stride, s.w, s.h}
	}
	for _, p := range planes {
		if p.rows > 0 && (p.stride < p.row || len(p.pix) < p.row || (len(p.pix)-p.row)/p.stride < p.rows-1) {
			return s, planes, errors.New("the picture is shorter than its size")
		}
	}
	return s, planes, nil
}

// components returns the planes of luma and chroma.
func components(m *image.YCbCr, w, h int) (frame.Format, [3]plane) {
	format := frame.RGB24
	cw, ch := (w+1)/2, h
	switch m.SubsampleRatio {
	case image.YCbCrSubsampleRatio420:
		format, ch = frame.I420, (h+1)/2
	case image.YCbCrSubsampleRatio422:
		format = frame.I422
	default: // what convert reaches
		cw = m.COffset(m.Rect.Max.X-1, m.Rect.Min.Y) + 1
		if m.CStride > 0 {
			ch = m.COffset(m.Rect.Min.X, m.Rect.Max.Y-1)/m.CStride + 1
		}
	}
	return format, [3]plane{{m.Y, m.YStride, w, h}, {m.Cb, m.CStride, cw, ch}, {m.Cr, m.CStride, cw, ch}}
}

// convert turns a picture into RGB, as image/color does.
func convert(dst []byte, m *image.YCbCr) {
	for y := m.Rect.Min.Y; y < m.Rect.Max.Y; y++ {
		for x := m.Rect.Min.X; x < m.Rect.Max.X; x++ {
			luma, c := m.YOffset(x, y), m.COffset(x, y)
			dst[0], dst[1], dst[2] = color.YCbCrToRGB(m.Y[luma], m.Cb[c], m.Cr[c])
			dst = dst[3:]
		}
	}
}

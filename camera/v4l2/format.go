package v4l2

import (
	"errors"
	"fmt"
	"strings"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/camera/v4l2/internal/abi"
)

// encoding is a pixel format of V4L2 that can be used.
type encoding struct {
	fourCC uint32
	name   string       // as the parameter format= and the doctor name it
	pixels frame.Format // Unknown for pictures that have to be decoded
}

// encodings holds all of them, the one that is better to have first.
var encodings = [...]encoding{
	{abi.FourCC("NV12"), "nv12", frame.NV12},
	{abi.FourCC("YUYV"), "yuyv", frame.YUYV},
	{abi.FourCC("YU12"), "i420", frame.I420},
	{abi.FourCC("MJPG"), "mjpeg", frame.Unknown},
	{abi.FourCC("JPEG"), "mjpeg", frame.Unknown}, // some drivers call it so
	{abi.FourCC("GREY"), "gray", frame.Gray},
}

// rank returns the place of a format in encodings, -1 if it cannot be used.
func rank(fourCC uint32) int {
	for i, e := range encodings {
		if e.fourCC == fourCC {
			return i
		}
	}
	return -1
}

// FormatNames lists the names that Request.Format may have.
func FormatNames() []string { return []string{"nv12", "yuyv", "i420", "mjpeg", "gray"} }

// formatName names a pixel format: one that can be used by its name here, another by its four characters.
func formatName(fourCC uint32) string {
	if i := rank(fourCC); i >= 0 {
		return encodings[i].name
	}
	name := text([]byte{byte(fourCC), byte(fourCC >> 8), byte(fourCC >> 16), byte(fourCC >> 24 & 0x7f)})
	if name == "" {
		return fmt.Sprintf("%#x", fourCC)
	}
	return name
}

const (
	maxSide   = 1 << 16 // pixels
	maxPixels = 1 << 28 // of a picture
)

// Format is what a camera gives, by its driver's last word.
type Format struct {
	Pixels        frame.Format // Unknown for MJPEG
	Colour        frame.Colour // of uncompressed pictures
	Width, Height int
	FPS           float64 // 0 if the driver does not say

	fourCC uint32
	planes []plane // of uncompressed pictures
	need   int     // bytes from the first pixel to the last
	tight  bool    // the rows lie one behind the other without padding
}

// plane is where a plane lies in the driver's memory.
type plane struct {
	frame.Geometry
	offset, stride int
}

// MJPEG says that pictures have to be decoded.
func (f *Format) MJPEG() bool { return f.Pixels == frame.Unknown }

// Name is the format's name as Request.Format has it.
func (f *Format) Name() string { return formatName(f.fourCC) }

// newFormat reads the driver's answer.
func newFormat(p *abi.PixFormat) (*Format, error) {
	i := rank(p.PixelFormat)
	if i < 0 {
		return nil, fmt.Errorf("the driver gives %s, and only %s can be used", formatName(p.PixelFormat), strings.Join(FormatNames(), ", "))
	}
	if p.Width < 1 || p.Height < 1 || p.Width > maxSide || p.Height > maxSide || uint64(p.Width)*uint64(p.Height) > maxPixels {
		return nil, fmt.Errorf("the driver gives pictures of %dx%d pixels", p.Width, p.Height)
	}
	if p.Field == abi.FieldSeqTB || p.Field == abi.FieldSeqBT {
		return nil, errors.New("the driver gives half pictures, one below the other: this is not supported")
	}
	f := &Format{Pixels: encodings[i].pixels, Width: int(p.Width), Height: int(p.Height), fourCC: p.PixelFormat}
	if f.MJPEG() {
		f.need = 1
		return f, nil
	}
	f.Colour = colour(p)
	return f, f.layOut(int(p.BytesPerLine))
}

// layOut finds the planes in the driver's memory, where all follow each other and a row of a chroma plane is as long as one
// of luma, or half as long where U and V have planes of their own. stride is of luma, 0 if there is no padding.
func (f *Format) layOut(stride int) error {
	geometry := f.Pixels.PlanesOf(f.Width, f.Height)
	if stride == 0 {
		stride = geometry[0].RowBytes
	}
	f.tight = true
	for i, g := range geometry {
		s := stride
		if i > 0 && f.Pixels == frame.I420 {
			s = stride / 2
		}
		if s < g.RowBytes {
			return fmt.Errorf("the driver gives rows of %d bytes for %s of %dx%d, which needs %d", s, f.Pixels, f.Width, f.Height, g.RowBytes)
		}
		f.tight = f.tight && s == g.RowBytes
		at := 0
		if i > 0 {
			last := f.planes[i-1]
			at = last.offset + last.stride*last.Rows
		}
		f.planes = append(f.planes, plane{g, at, s})
		f.need = at + s*(g.Rows-1) + g.RowBytes
	}
	if f.need > f.most() {
		return fmt.Errorf("the driver gives rows of %d bytes for %s of %dx%d", stride, f.Pixels, f.Width, f.Height)
	}
	return nil
}

// most is the size in bytes above which a driver's buffer is not believed.
func (f *Format) most() int { return 16*f.Width*f.Height + 1<<20 }

// Copy copies an uncompressed picture from the driver's memory to dst, all planes one behind the other without padding. src holds at
// least what Capture.Next gives, dst exactly Pixels.Bytes(Width, Height).
func (f *Format) Copy(dst, src []byte) {
	if f.tight {
		copy(dst, src[:f.need])
		return
	}
	for _, p := range f.planes {
		for y := range p.Rows {
			at := p.offset + y*p.stride
			dst = dst[copy(dst, src[at:at+p.RowBytes]):]
		}
	}
}

// colour maps what the driver says to the matrices that are known: those of BT.2020 and SMPTE 240M are taken as BT.709, the
// nearest. The defaults are those of linux/videodev2.h, V4L2_MAP_YCBCR_ENC_DEFAULT and V4L2_MAP_QUANTIZATION_DEFAULT.
func colour(p *abi.PixFormat) frame.Colour {
	enc, quantization := p.YCbCrEnc, p.Quantization
	if p.Priv != abi.PrivMagic { // the driver knows neither
		enc, quantization = 0, 0
	}
	var c frame.Colour
	switch enc {
	case abi.Enc709, abi.EncXV709, abi.EncBT2020, abi.EncBT2020CL, abi.EncSMPTE240M:
		c.Matrix = frame.BT709
	case 0:
		switch p.Colorspace {
		case abi.ColorspaceREC709, abi.ColorspaceDCIP3, abi.ColorspaceBT2020, abi.ColorspaceSMPTE240M:
			c.Matrix = frame.BT709
		}
	}
	c.Full = quantization == abi.FullRange || quantization == 0 && p.Colorspace == abi.ColorspaceJPEG
	return c
}

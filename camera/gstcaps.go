package camera

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/eyas-edge/eyas/camera/frame"
)

// gstFormats are the pixel formats that are taken from GStreamer, by its names. The X of RGBx is a byte that nobody reads.
var gstFormats = map[string]frame.Format{
	"NV12": frame.NV12, "I420": frame.I420, "YUY2": frame.YUYV, "GRAY8": frame.Gray, "RGB": frame.RGB24, "BGR": frame.BGR24,
	"RGBA": frame.RGBA, "RGBx": frame.RGBA, "BGRA": frame.BGRA, "BGRx": frame.BGRA,
}

// gstRaw is the caps that a pipeline's pictures are converted to, unless they are so already.
const gstRaw = "video/x-raw,format=(string){NV12,I420,YUY2,GRAY8,RGB,BGR,RGBA,RGBx,BGRA,BGRx}"

// gstCaps are what GStreamer says of a stream of raw pictures.
type gstCaps struct {
	format frame.Format
	colour frame.Colour
	w, h   int
	fps    float64 // 0 if it is not known
}

// parseGstCaps reads "video/x-raw, format=(string)NV12, width=(int)640, height=(int)480, framerate=(fraction)30/1, ...".
func parseGstCaps(text string) (c gstCaps, err error) {
	text = strings.TrimRight(text, "\x00; ")
	media, rest, _ := strings.Cut(text, ",")
	if media, _, _ = strings.Cut(media, "("); media != "video/x-raw" {
		return c, fmt.Errorf("%w: %.40q instead of raw pictures", errGDP, media)
	}
	fields := gstFields(rest)
	var known bool
	if c.format, known = gstFormats[fields["format"]]; !known {
		return c, fmt.Errorf("%w: pixel format %.20q", errGDP, fields["format"])
	}
	c.w, _ = strconv.Atoi(fields["width"])
	c.h, _ = strconv.Atoi(fields["height"])
	if c.w < 1 || c.h < 1 || c.w > maxSide || c.h > maxSide {
		return c, fmt.Errorf("%w: pictures of %dx%d pixels", errGDP, c.w, c.h)
	}
	num, den, _ := strings.Cut(fields["framerate"], "/")
	n, _ := strconv.ParseFloat(num, 64)
	if d, _ := strconv.ParseFloat(den, 64); n > 0 && d > 0 && n/d <= maxFPS {
		c.fps = n / d
	}
	c.colour = gstColour(fields["colorimetry"], c.w, c.h)
	return c, nil
}

// gstFields takes "name=(type)value, name=(type)value" apart.
func gstFields(text string) map[string]string {
	fields := map[string]string{}
	for field := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(field, "=")
		value = strings.TrimSpace(value)
		if strings.HasPrefix(value, "(") {
			_, value, _ = strings.Cut(value, ")")
		}
		fields[strings.TrimSpace(name)] = strings.Trim(value, `" `)
	}
	return fields
}

// gstColour reads a colorimetry: a name, or range:matrix:transfer:primaries in GStreamer's numbers. Where a picture has none
// or an unknown one the matrix is guessed as for clips.
func gstColour(text string, w, h int) frame.Colour {
	guess := frame.Colour{Matrix: guessMatrix(w, h)}
	switch text {
	case "bt709", "smpte240m", "bt2020", "bt2020-10": // the nearest that there is
		return frame.Colour{Matrix: frame.BT709}
	case "bt601":
		return frame.Colour{Matrix: frame.BT601}
	}
	numbers := strings.Split(text, ":")
	if len(numbers) != 4 {
		return guess
	}
	guess.Full = numbers[0] == "1"
	switch numbers[1] {
	case "3", "5", "6": // BT.709, SMPTE 240M, BT.2020
		guess.Matrix = frame.BT709
	case "2", "4": // FCC, BT.601
		guess.Matrix = frame.BT601
	}
	return guess
}

// gstLayout is where the planes of a picture lie in a buffer of GStreamer's that says nothing else: each row begins at
// a multiple of four bytes, and planes with chroma below them have an even number of rows (gst_video_info_set_format).
type gstLayout []gstPlane

type gstPlane struct {
	rowBytes, rows int // of pixels
	stride         int // from row to row
	after          int // bytes between the last row and the next plane
}

func (c gstCaps) layout() gstLayout {
	l := make(gstLayout, 0, 3)
	for i, g := range c.format.PlanesOf(c.w, c.h) {
		p := gstPlane{rowBytes: g.RowBytes, rows: g.Rows, stride: (g.RowBytes + 3) &^ 3}
		if i == 0 && (c.format == frame.NV12 || c.format == frame.I420) {
			p.after = (g.Rows & 1) * p.stride
		}
		l = append(l, p)
	}
	return l
}

// bytes of a picture in this layout.
func (l gstLayout) bytes() (n int) {
	for _, p := range l {
		n += p.rows*p.stride + p.after
	}
	return n
}

// tight says that there is nothing but pixels.
func (l gstLayout) tight() bool {
	for _, p := range l {
		if p.stride != p.rowBytes || p.after != 0 {
			return false
		}
	}
	return true
}

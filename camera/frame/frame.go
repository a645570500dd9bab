// Package frame is the leaf that everything about pictures stands on: what a
// frame is, its pixel format, its colour, its time, and who owns it. It does no
// I/O and imports nothing of Eyas.
package frame

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Format is the layout of a frame's pixels.
type Format uint8

// The pixel formats, named as ffmpeg and V4L2 name them.
const (
	Unknown Format = iota
	RGB24          // packed R G B, one plane
	BGR24          // packed B G R, one plane
	RGBA           // packed R G B A, one plane; A is ignored
	BGRA           // packed B G R A, one plane; A is ignored
	Gray           // 8-bit luma, one plane
	NV12           // luma plane, then one plane of interleaved U V at half width and height
	I420           // luma plane, then a U and a V plane at half width and height
	YUYV           // packed Y0 U Y1 V, one plane, chroma at half width
	I422           // luma plane, then a U and a V plane at half width and full height
)

var formatNames = [...]string{"unknown", "rgb24", "bgr24", "rgba", "bgra", "gray", "nv12", "i420", "yuyv", "i422"}

// String returns the format's name in lower case, for example "nv12".
func (f Format) String() string {
	if int(f) < len(formatNames) {
		return formatNames[f]
	}
	return fmt.Sprintf("format(%d)", uint8(f))
}

// ParseFormat returns the format of a name as String gives it.
func ParseFormat(name string) (Format, error) {
	for i, n := range formatNames {
		if i > 0 && n == name {
			return Format(i), nil
		}
	}
	return Unknown, fmt.Errorf("pixel format %q is not known: use one of %v", name, formatNames[1:])
}

// Geometry is the size of one plane: rows of RowBytes bytes that carry pixels.
type Geometry struct {
	RowBytes, Rows int
}

// PlanesOf returns the planes of a picture of w x h pixels, chroma sizes rounded up;
// nil for an unknown format or a size below 1.
func (f Format) PlanesOf(w, h int) []Geometry {
	if w < 1 || h < 1 {
		return nil
	}
	cw, ch := (w+1)/2, (h+1)/2
	switch f {
	case RGB24, BGR24:
		return []Geometry{{w * 3, h}}
	case RGBA, BGRA:
		return []Geometry{{w * 4, h}}
	case Gray:
		return []Geometry{{w, h}}
	case NV12:
		return []Geometry{{w, h}, {cw * 2, ch}}
	case I420:
		return []Geometry{{w, h}, {cw, ch}, {cw, ch}}
	case YUYV:
		return []Geometry{{cw * 4, h}}
	case I422:
		return []Geometry{{w, h}, {cw, h}, {cw, h}}
	}
	return nil
}

// Bytes returns the bytes of a tightly packed picture of w x h pixels.
func (f Format) Bytes(w, h int) int {
	n := 0
	for _, g := range f.PlanesOf(w, h) {
		n += g.RowBytes * g.Rows
	}
	return n
}

// Matrix says which weights turn luma and chroma into RGB.
type Matrix uint8

// The colour matrices that cameras use.
const (
	BT601 Matrix = iota // cameras and JPEG
	BT709               // HD video
)

// Colour says how luma and chroma are to be read. The zero value is limited-range
// BT.601, what a V4L2 camera gives that does not say otherwise; JPEG is full-range
// BT.601. It has no meaning for RGB formats.
type Colour struct {
	Matrix Matrix
	Full   bool // full range 0..255 instead of 16..235
}

// CapturedBy says where a frame's capture time comes from.
type CapturedBy uint8

// The sources of a capture time, the most trustworthy first.
const (
	ByNone    CapturedBy = iota // a file: there is no capture time
	ByDriver                    // the driver's timestamp
	ByStream                    // the stream's clock
	ByArrival                   // when it arrived here
)

var capturedByNames = [...]string{"", "driver", "stream", "arrival"}

// String returns the word that results use, "" for ByNone.
func (c CapturedBy) String() string {
	if int(c) < len(capturedByNames) {
		return capturedByNames[c]
	}
	return fmt.Sprintf("captured-by(%d)", uint8(c))
}

// Plane is one plane of pixels: row y starts at Data[y*Stride].
type Plane struct {
	Data   []byte
	Stride int
}

// Frame is one picture with what is known about it. It is counted by reference: New gives the caller one, Retain
// adds one for a further holder, and each holder calls Release once done, or hands its reference on. With the
// last reference gone the pixels may be overwritten; the fields must not be changed while others read.
type Frame struct {
	Format        Format
	Colour        Colour
	Width, Height int // pixels as displayed: orientation is already applied
	Planes        []Plane

	Source     string        // name of the source, as results show it
	Seq        uint64        // counts captured frames from 0; a gap is a drop
	PTS        time.Duration // place in a clip
	HasPTS     bool          // PTS is known: a clip
	Captured   time.Time     // capture time of a live frame, with monotonic clock
	CapturedBy CapturedBy

	release func()
	refs    atomic.Int32 // never below zero
}

// New makes a frame, with one reference, over planes that the caller owns. release, if not nil, is
// called once, when the last reference is released. It fails when a plane is too short for the
// size or a stride is smaller than a row.
func New(format Format, w, h int, planes []Plane, captured time.Time, release func()) (*Frame, error) {
	geo := format.PlanesOf(w, h)
	if geo == nil {
		return nil, fmt.Errorf("frame: no %s picture of %dx%d pixels", format, w, h)
	}
	if len(planes) != len(geo) {
		return nil, fmt.Errorf("frame: %s has %d planes, got %d", format, len(geo), len(planes))
	}
	for i, g := range geo {
		p := planes[i]
		if p.Stride < g.RowBytes || len(p.Data) < g.RowBytes || (len(p.Data)-g.RowBytes)/p.Stride < g.Rows-1 {
			return nil, fmt.Errorf("frame: plane %d of %s %dx%d needs %d rows of %d bytes, got stride %d in %d bytes",
				i, format, w, h, g.Rows, g.RowBytes, p.Stride, len(p.Data))
		}
	}
	f := &Frame{Format: format, Width: w, Height: h, Planes: planes, Captured: captured, release: release}
	f.refs.Store(1)
	return f, nil
}

// Split cuts tightly packed bytes, as ffmpeg's rawvideo writes them, into the planes of
// a picture. It fails when data is too short.
func Split(format Format, w, h int, data []byte) ([]Plane, error) {
	geo := format.PlanesOf(w, h)
	if geo == nil || len(data) < format.Bytes(w, h) {
		return nil, fmt.Errorf("frame: %s %dx%d needs %d bytes, got %d", format, w, h, format.Bytes(w, h), len(data))
	}
	planes := make([]Plane, len(geo))
	for i, g := range geo {
		n := g.RowBytes * g.Rows
		planes[i] = Plane{Data: data[:n:n], Stride: g.RowBytes}
		data = data[n:]
	}
	return planes, nil
}

// Retain adds a reference, for one more holder. Only who holds one may call it.
func (f *Frame) Retain() { f.refs.Add(1) }

// Release gives one reference back; the last one gives the pixels back to whoever made the frame. A call beyond
// the last does nothing, but a frame of a pool must not be released again by a former holder: the pool may
// have handed it out anew, and the call would take it from its new holder.
func (f *Frame) Release() {
	if f == nil {
		return
	}
	for n := f.refs.Load(); n > 0; n = f.refs.Load() {
		if f.refs.CompareAndSwap(n, n-1) {
			if n == 1 && f.release != nil {
				f.release()
			}
			return
		}
	}
}

// Recycle gives a released frame one reference again, for the pool that made it, so that a frame costs no memory
// per picture: the last Release calls the pool's function again, whoever calls it. Only whoever got the frame back
// through that function may call it, once for each time.
func (f *Frame) Recycle() { f.refs.Store(1) }

// Package picture decodes still pictures into upright frames: JPEG, PNG, WebP, GIF (the
// first picture) and BMP, told apart by their bytes and not by a file's name.
//
// A frame is RGB24, whatever the file holds: grey is spread over three channels, 16-bit samples
// lose their low byte and alpha is dropped without blending, all as OpenCV's imread and
// PIL's convert("RGB") do, because that is what detectors were trained on. JPEG chroma is
// interpolated and converted as libjpeg does by default, WebP as libwebp does. EXIF orientation is
// applied; colour profiles and gamma are not.
//
// JPEGs are decoded by the system's libturbojpeg where there is one, and then every sample
// is libjpeg's; else by package image/jpeg, which is off by up to 3 levels before the colour conversion.
// EYAS_JPEG=go in the environment chooses the latter.
//
// The pictures of a motion-JPEG stream are another matter: MJPEGDecoder leaves them as the planes that they are.
//
// Limits are checked against the headers before anything is allocated for pixels, and a
// file that ends too early is an error, never a half-grey picture.
package picture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/fserr"
)

// Limits bounds what one picture may take. The zero value is right for cameras.
type Limits struct {
	MaxPixels int   // width times height; 0: 100 million
	MaxBytes  int64 // the file, its decoder and the frame together; 0: 1 GiB
}

const (
	defaultMaxPixels = 100_000_000
	defaultMaxBytes  = 1 << 30

	// Where a header is looked for: nearly always in the first bytes; a JPEG may carry
	// megabytes of metadata before its size.
	shortHead = 64 << 10
	longHead  = 8 << 20
)

var (
	// errShort means that data ends before the header does.
	errShort = errors.New("the file is truncated inside its header")
	// errTruncated is what a user sees of io.ErrUnexpectedEOF.
	errTruncated = errors.New("the file is truncated")
)

// header is what a file says about itself before its pixels.
type header struct {
	w, h        int     // pixels as stored
	orientation int     // EXIF, 1..8; 1 where the file says nothing
	memory      float64 // bytes that the decoder takes, without file and frame
}

// rowFunc fills dst with the R G B bytes of row y of the picture as stored. Rows are
// asked for once each, from the top.
type rowFunc func(y int, dst []byte)

// codec is one file format. header needs only the first bytes for the size, and returns
// errShort if it has too few; decode needs all of them.
type codec struct {
	name   string
	is     func(data []byte) bool
	header func(data []byte) (header, error)
	decode func(data []byte, h header) (rowFunc, error)
}

func codecs() []codec {
	return []codec{
		{"jpeg", prefixed("\xff\xd8"), jpegHeader, jpegDecode},
		{"png", prefixed(pngMagic), pngHeader, pngDecode},
		{"webp", isWebP, webpHeader, webpDecode},
		{"gif", prefixed("GIF8"), gifHeader, gifDecode},
		{"bmp", prefixed("BM"), bmpHeader, bmpDecode},
	}
}

// Decode returns the upright RGB24 frame of a picture. The frame owns its pixels; its
// Release need not be called. An error is one line that names the format and the fault.
func Decode(data []byte, l Limits) (*frame.Frame, error) {
	c, err := codecOf(data)
	if err != nil {
		return nil, err
	}
	return guard(c.name, func() (*frame.Frame, error) {
		h, err := c.check(data, int64(len(data)), l)
		if err != nil {
			return nil, err
		}
		row, err := c.decode(data, h)
		if err != nil {
			return nil, c.fault(err)
		}
		pix, w, ht := paint(h, row)
		return frame.New(frame.RGB24, w, ht, []frame.Plane{{Data: pix, Stride: w * 3}}, time.Time{}, nil)
	})
}

// guard turns a panic of a decoder into an error: they read bytes from outside, some are
// not ours, and a fault there is a bad picture, not the end of the process.
func guard(name string, decode func() (*frame.Frame, error)) (f *frame.Frame, err error) {
	defer func() {
		if p := recover(); p != nil {
			f, err = nil, fmt.Errorf("decode %s: the data is broken: %v", name, p)
		}
	}()
	return decode()
}

// Size returns the width and height in pixels that Decode's frame will have, from the
// headers alone.
func Size(data []byte) (w, h int, err error) {
	c, err := codecOf(data)
	if err != nil {
		return 0, 0, err
	}
	hd, err := c.header(data)
	if err != nil {
		return 0, 0, c.fault(err)
	}
	if hd.orientation > 4 {
		return hd.h, hd.w, nil
	}
	return hd.w, hd.h, nil
}

// ReadFile decodes the picture in a regular file. The header is checked against the limits
// before the rest of the file is read. Errors name the path.
func ReadFile(path string, l Limits) (*frame.Frame, error) {
	data, err := load(path, l)
	if err != nil {
		return nil, fmt.Errorf("read picture %s: %w", path, err)
	}
	f, err := Decode(data, l)
	if err != nil {
		return nil, fmt.Errorf("read picture %s: %w", path, err)
	}
	return f, nil
}

// load reads a file whose header keeps to the limits.
func load(path string, l Limits) ([]byte, error) {
	info, err := os.Stat(path) // before opening: opening a pipe would wait for its writer
	if err != nil {
		return nil, fserr.Bare(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fserr.Bare(err)
	}
	defer f.Close()
	size := info.Size()
	head := make([]byte, min(size, shortHead))
	if _, err := io.ReadFull(f, head); err != nil {
		return nil, fmt.Errorf("the file changed while it was read: %w", err)
	}
	if size <= shortHead {
		return head, nil
	}
	if err := checkHead(f, head, size, l); err != nil {
		return nil, err
	}
	data := make([]byte, size)
	n := copy(data, head)
	if _, err := io.ReadFull(f, data[n:]); err != nil {
		return nil, fmt.Errorf("the file changed while it was read: %w", err)
	}
	return data, nil
}

// checkHead checks the limits on the first bytes of a file of size bytes, with a longer
// look if the first ones do not hold the header.
func checkHead(f io.ReaderAt, head []byte, size int64, l Limits) error {
	c, err := codecOf(head)
	if err != nil {
		return err
	}
	_, err = c.check(head, size, l)
	if !errors.Is(err, errShort) {
		return err
	}
	head = make([]byte, min(size, longHead))
	if _, err := f.ReadAt(head, 0); err != nil {
		return fmt.Errorf("the file changed while it was read: %w", err)
	}
	if _, err = c.check(head, size, l); errors.Is(err, errShort) && size > longHead {
		return fmt.Errorf("decode %s: no picture size in the first %d MiB", c.name, longHead>>20)
	}
	return err
}

// check reads the header and holds it against the limits. fileBytes counts as memory.
func (c codec) check(data []byte, fileBytes int64, l Limits) (header, error) {
	h, err := c.header(data)
	if err != nil {
		return h, c.fault(err)
	}
	return h, c.within(l, h, fileBytes)
}

// within holds a header against the limits.
func (c codec) within(l Limits, h header, fileBytes int64) error {
	if h.w < 1 || h.h < 1 {
		return fmt.Errorf("decode %s: the header says %dx%d pixels", c.name, h.w, h.h)
	}
	maxPixels, maxBytes := int64(l.MaxPixels), l.MaxBytes
	if maxPixels == 0 {
		maxPixels = defaultMaxPixels
	}
	if maxBytes == 0 {
		maxBytes = defaultMaxBytes
	}
	pixels := int64(h.w) * int64(h.h)
	if pixels > maxPixels {
		return fmt.Errorf("decode %s: %dx%d is %.4g megapixels, over the limit of %.4g: raise the limit (--max-pixels) if the picture is wanted",
			c.name, h.w, h.h, float64(pixels)/1e6, float64(maxPixels)/1e6)
	}
	// In real numbers: products of header fields overflow integers.
	if need := float64(fileBytes) + h.memory + 3*float64(pixels); need > float64(maxBytes) {
		return fmt.Errorf("decode %s: %dx%d needs %.0f MiB of memory to decode, over the limit of %d: make the picture smaller",
			c.name, h.w, h.h, need/(1<<20), maxBytes>>20)
	}
	return nil
}

// fault puts the format's name before a decoder's error and says plainly what an early
// end of the data means.
func (c codec) fault(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errTruncated
	}
	if text, ok := strings.CutPrefix(err.Error(), c.name+": "); ok { // the decoder has said it already
		return fmt.Errorf("decode %s: %s", c.name, text)
	}
	return fmt.Errorf("decode %s: %w", c.name, err)
}

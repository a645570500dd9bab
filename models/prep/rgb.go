package prep

import (
	"fmt"

	"github.com/eyas-edge/eyas/camera/frame"
)

// ToRGB writes the whole of fr as packed R G B, three bytes a pixel without padding,
// with the same colour conversion as Fill. dst holds at least 3*Width*Height bytes. It
// allocates nothing.
func ToRGB(dst []byte, fr *frame.Frame) error { return toPacked(dst, 3, fr) }

// ToRGBA is ToRGB with a fourth byte of 255, the layout of image.RGBA and image.NRGBA.
func ToRGBA(dst []byte, fr *frame.Frame) error { return toPacked(dst, 4, fr) }

func toPacked(dst []byte, bytes int, fr *frame.Frame) error {
	src, err := newSource(fr)
	if err != nil {
		return fmt.Errorf("convert to RGB: %w", err)
	}
	w, h := fr.Width, fr.Height
	if len(dst)/bytes/w < h {
		return fmt.Errorf("convert to RGB: %dx%d pixels need %d bytes each, got %d in all", w, h, bytes, len(dst))
	}
	const chunk = 256 // columns at a time, so that the tables stay on the stack
	var (
		taps [chunk]tap
		row  [chunk]pixel
	)
	for x := 0; x < w; x += chunk {
		n := min(chunk, w-x)
		for i := range n {
			taps[i] = src.tap(x + i)
		}
		for y := range h {
			src.read(row[:n], taps[:n], y)
			pack(dst[(y*w+x)*bytes:][:n*bytes], row[:n], bytes)
		}
	}
	return nil
}

func pack(dst []byte, row []pixel, bytes int) {
	for i, p := range row {
		d := dst[i*bytes:][:bytes]
		d[0], d[1], d[2] = byte(p), byte(p>>laneG), byte(p>>laneB)
		if bytes == 4 {
			d[3] = 255
		}
	}
}

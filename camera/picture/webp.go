package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"

	"golang.org/x/image/vp8"
	"golang.org/x/image/vp8l"
)

// WebP container: https://developers.google.com/speed/webp/docs/riff_container.

var errNoBitstream = errors.New("there is no picture in the container")

func isWebP(data []byte) bool {
	return len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP"
}

// chunks calls f for every RIFF chunk of data until f returns false. A last chunk that data
// does not hold whole is handed over as far as it goes.
func chunks(data []byte, f func(id string, body []byte, whole bool) bool) {
	for len(data) >= 8 {
		id, n := string(data[:4]), uint64(binary.LittleEndian.Uint32(data[4:]))
		data = data[8:]
		whole := n <= uint64(len(data))
		body := data[:min(n, uint64(len(data)))]
		if !f(id, body, whole) || !whole {
			return
		}
		data = data[min(n+n&1, uint64(len(data))):]
	}
}

// webpHeader reads the canvas from the first chunk and the orientation from the EXIF chunk.
func webpHeader(data []byte) (header, error) {
	h := header{orientation: 1}
	var err error = errShort
	first := true
	chunks(data[12:], func(id string, body []byte, whole bool) bool {
		if first {
			first = false
			h.w, h.h, err = webpSize(id, body)
			return err == nil && id == "VP8X"
		}
		if id == "EXIF" && whole {
			h.orientation = orientation(body)
		}
		return true
	})
	// The lossless decoder holds its pixels twice while a palette is undone, and block maps.
	h.memory = 12 * float64(h.w) * float64(h.h)
	return h, err
}

// webpSize returns the pixels that the start of a VP8X, VP8 or VP8L chunk declares.
func webpSize(id string, b []byte) (w, h int, err error) {
	switch {
	case id == "VP8X" && len(b) >= 10:
		return 1 + uint24(b[4:]), 1 + uint24(b[7:]), nil
	case id == "VP8 " && len(b) >= 10:
		if b[0]&1 != 0 || string(b[3:6]) != "\x9d\x01\x2a" {
			return 0, 0, errors.New("the VP8 data does not start with a key frame")
		}
		return int(binary.LittleEndian.Uint16(b[6:])) & 0x3fff, int(binary.LittleEndian.Uint16(b[8:])) & 0x3fff, nil
	case id == "VP8L" && len(b) >= 5:
		v := binary.LittleEndian.Uint32(b[1:])
		return 1 + int(v&0x3fff), 1 + int(v>>14&0x3fff), nil
	case id == "VP8X", id == "VP8 ", id == "VP8L":
		return 0, 0, errShort
	}
	return 0, 0, fmt.Errorf("the first chunk is %q", id)
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// webpDecode decodes a still picture, or the first frame of an animation on a black canvas. Its
// alpha plane is not looked at.
func webpDecode(data []byte, h header) (rowFunc, error) {
	var (
		row rowFunc
		err error = errNoBitstream
	)
	chunks(data[12:], func(id string, body []byte, whole bool) bool {
		switch id {
		case "ANMF", "VP8 ", "VP8L":
		default:
			return true
		}
		if !whole {
			err = errTruncated
			return false
		}
		if id == "ANMF" {
			row, err = webpFrame(body, h)
		} else {
			row, err = webpBitstream(id, body, h.w, h.h)
		}
		return false
	})
	return row, err
}

// webpFrame decodes an animation frame onto the canvas.
func webpFrame(b []byte, h header) (rowFunc, error) {
	if len(b) < 16 {
		return nil, errTruncated
	}
	left, top, w, ht := 2*uint24(b), 2*uint24(b[3:]), 1+uint24(b[6:]), 1+uint24(b[9:])
	if left+w > h.w || top+ht > h.h {
		return nil, fmt.Errorf("a frame of %dx%d at %d,%d is outside of the canvas of %dx%d", w, ht, left, top, h.w, h.h)
	}
	var (
		row rowFunc
		err error = errNoBitstream
	)
	chunks(b[16:], func(id string, body []byte, whole bool) bool {
		if id != "VP8 " && id != "VP8L" {
			return true
		}
		if err = errTruncated; whole {
			row, err = webpBitstream(id, body, w, ht)
		}
		return false
	})
	if err != nil {
		return nil, err
	}
	return place(row, left, top, w, ht), nil
}

// webpBitstream decodes one VP8 (lossy) or VP8L (lossless) picture, which must be of the
// size that the container has promised: that one was checked against the limits.
func webpBitstream(id string, body []byte, w, h int) (rowFunc, error) {
	gotW, gotH, err := webpSize(id, body)
	if errors.Is(err, errShort) {
		err = errTruncated
	}
	if err != nil {
		return nil, err
	}
	if gotW != w || gotH != h {
		return nil, fmt.Errorf("the container says %dx%d, the picture inside %dx%d", w, h, gotW, gotH)
	}
	if id == "VP8L" {
		var m image.Image
		if m, err = vp8l.Decode(bytes.NewReader(body)); err != nil {
			return nil, err
		}
		return imageRows(m)
	}
	d := vp8.NewDecoder()
	d.Init(bytes.NewReader(body), len(body))
	if _, err := d.DecodeFrameHeader(); err != nil {
		return nil, err
	}
	m, err := d.DecodeFrame()
	if err != nil {
		return nil, err
	}
	return newPlanar(m, fromStudio).row, nil
}

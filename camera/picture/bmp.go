package picture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// bmpInfo is what the headers of a BMP say: BITMAPCOREHEADER and BITMAPINFOHEADER with its
// successors, https://learn.microsoft.com/windows/win32/gdi/bitmap-storage.
type bmpInfo struct {
	w, h    int
	topDown bool
	depth   int          // bits a pixel
	masks   [3]uint32    // of red, green, blue, for 16 and 32 bits
	palette [256][3]byte // for 1 to 8 bits
	pixels  int          // where the rows start in the file
	used    int          // bytes of a row that carry pixels
	stride  int          // bytes from row to row: used, padded to four
}

func bmpHeader(data []byte) (header, error) {
	b, err := readBMP(data)
	if err != nil {
		return header{}, err
	}
	return header{w: b.w, h: b.h, orientation: 1}, nil
}

// readBMP reads the headers and the palette.
func readBMP(data []byte) (*bmpInfo, error) {
	const fileHeader, coreHeader, infoHeader = 14, 12, 40
	if len(data) < fileHeader+coreHeader {
		return nil, errShort
	}
	le := binary.LittleEndian
	b := &bmpInfo{pixels: int(le.Uint32(data[10:]))}
	info := data[fileHeader:]
	size := int(le.Uint32(info))
	var compression, colours uint32
	entry := 4
	switch {
	case size == coreHeader:
		b.w, b.h = int(le.Uint16(info[4:])), int(le.Uint16(info[6:]))
		b.depth = int(le.Uint16(info[10:]))
		entry = 3
	case size >= infoHeader && size <= 256:
		if len(info) < infoHeader {
			return nil, errShort
		}
		b.w, b.h = int(int32(le.Uint32(info[4:]))), int(int32(le.Uint32(info[8:])))
		b.depth = int(le.Uint16(info[14:]))
		compression, colours = le.Uint32(info[16:]), le.Uint32(info[32:])
	default:
		return nil, fmt.Errorf("a header of %d bytes is not known", size)
	}
	if b.h < 0 {
		b.h, b.topDown = -b.h, true
	}
	if b.w < 1 || b.h < 1 {
		return nil, fmt.Errorf("the header says %dx%d pixels", b.w, b.h)
	}
	b.used, b.stride = (b.w*b.depth+7)/8, (b.w*b.depth+31)/32*4
	switch {
	case b.depth == 24 && compression == 0:
	case b.depth == 1 || b.depth == 4 || b.depth == 8:
		if compression != 0 {
			return nil, errors.New("run-length coding is not supported: save it uncompressed")
		}
		return b, b.readPalette(data, fileHeader+size, entry, colours)
	case b.depth == 16 || b.depth == 32:
		return b, b.readMasks(data, fileHeader+infoHeader, compression)
	default:
		return nil, fmt.Errorf("%d bits a pixel with compression %d is not supported: save it with 24 bits", b.depth, compression)
	}
	return b, nil
}

// readPalette reads the colours between the headers and the pixels, blue first. Indices
// that the palette lacks are black.
func (b *bmpInfo) readPalette(data []byte, at, entry int, colours uint32) error {
	n := 1 << b.depth
	if colours > 0 && colours < uint32(n) {
		n = int(colours)
	}
	if len(data) < at+n*entry {
		return errShort
	}
	for i := range n {
		c := data[at+i*entry:]
		b.palette[i] = [3]byte{c[2], c[1], c[0]}
	}
	return nil
}

// readMasks sets where the colours lie in a pixel: given after the header (compression 3
// and 6), else five bits each or eight.
func (b *bmpInfo) readMasks(data []byte, at int, compression uint32) error {
	switch {
	case compression == 3 || compression == 6:
		if len(data) < at+12 {
			return errShort
		}
		for i := range b.masks {
			b.masks[i] = binary.LittleEndian.Uint32(data[at+4*i:])
			if b.masks[i] == 0 {
				return errors.New("a colour mask is empty")
			}
		}
	case compression != 0:
		return fmt.Errorf("compression %d is not supported: save it uncompressed", compression)
	case b.depth == 16:
		b.masks = [3]uint32{0x7c00, 0x3e0, 0x1f}
	default:
		b.masks = [3]uint32{0xff0000, 0xff00, 0xff}
	}
	return nil
}

func bmpDecode(data []byte, _ header) (rowFunc, error) {
	b, err := readBMP(data)
	if err != nil {
		return nil, err
	}
	if b.pixels+b.stride*(b.h-1)+b.used > len(data) { // the last row's padding may be missing
		return nil, errTruncated
	}
	convert := b.masked
	switch b.depth {
	case 24:
		convert = swapped
	case 1, 4, 8:
		convert = b.indexed
	}
	return func(y int, dst []byte) {
		if !b.topDown {
			y = b.h - 1 - y
		}
		convert(dst, data[b.pixels+y*b.stride:][:b.used])
	}, nil
}

// swapped converts a row of B G R.
func swapped(dst, src []byte) {
	for i := 0; i+3 <= len(dst); i += 3 {
		dst[i], dst[i+1], dst[i+2] = src[i+2], src[i+1], src[i]
	}
}

// indexed converts a row of palette indices, the leftmost pixel in a byte's highest bits.
func (b *bmpInfo) indexed(dst, src []byte) {
	perByte, mask := 8/b.depth, byte(1<<b.depth-1)
	for x := range b.w {
		shift := 8 - b.depth*(x%perByte+1)
		copy(dst[3*x:3*x+3], b.palette[src[x/perByte]>>shift&mask][:])
	}
}

// masked converts a row of 16 or 32-bit pixels; levels of fewer bits are scaled to 0..255.
func (b *bmpInfo) masked(dst, src []byte) {
	var shift [3]int
	var top [3]uint64
	for i, m := range b.masks {
		shift[i] = bits.TrailingZeros32(m)
		top[i] = uint64(m >> shift[i])
	}
	step := b.depth / 8
	for x := range b.w {
		v := uint32(binary.LittleEndian.Uint16(src[x*step:]))
		if step == 4 {
			v = binary.LittleEndian.Uint32(src[x*step:])
		}
		for i, m := range b.masks {
			dst[3*x+i] = byte((uint64(v&m>>shift[i])*255 + top[i]/2) / top[i])
		}
	}
}

package camera

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"time"
)

// nutReader reads what ffmpeg writes as "-c:v rawvideo -f nut": one stream of uncompressed
// pictures, each with its time. NUT is the container of choice because time and pixels come
// in one stream, whole and in order, with a few bytes of header a frame. Names and layout
// are those of the format's specification (ffmpeg.org/~michael/nut.txt).
type nutReader struct {
	r             *bufio.Reader
	codes         [256]nutCode
	elision       [][]byte // what may be left out at the start of small frames
	num, den      uint64   // time base: seconds per unit of time
	width, height int
	fourcc        string
	ptsShift      uint
	lastPTS       uint64
	prefix        []byte // of the frame at hand
	body          []byte // of the packet at hand, used again
	bodyReader    bytes.Reader
}

// nutCode is a row of the table that the first byte of a frame selects.
type nutCode struct {
	flags           uint64
	sizeMul, sizeLo uint64
	ptsDelta        int64
	reserved        uint64
	header          uint64
	stream          uint64
}

// Frame flags. Those that only inform (key frame) are left out.
const (
	nutCodedPTS  = 1 << 3
	nutStreamID  = 1 << 4
	nutSizeMSB   = 1 << 5
	nutChecksum  = 1 << 6
	nutReserved  = 1 << 7
	nutSideData  = 1 << 8
	nutHeaderIdx = 1 << 10
	nutMatchTime = 1 << 11
	nutCoded     = 1 << 12
	nutInvalid   = 1 << 13
)

// Start codes of packets; their first byte is 'N', which is never a frame's.
const (
	nutMain      = 0x4e4d7a561f5f04ad
	nutStream    = 0x4e5311405bf2f9db
	nutSyncpoint = 0x4e4be4adeeca4569
	nutIndex     = 0x4e58dd672f23e64e
	nutInfo      = 0x4e49ab68b596ba78

	nutMagic      = "nut/multimedia container\x00"
	nutMaxPacket  = 1 << 20 // bytes of a packet that is read; others are skipped
	nutMaxElision = 4096    // larger frames leave nothing out
)

var errNut = errors.New("not the stream that was asked for")

// newNutReader reads the headers. Without any data at all the error is io.EOF.
func newNutReader(r io.Reader) (*nutReader, error) {
	n := &nutReader{r: bufio.NewReaderSize(r, 4096)} // frames are read past this buffer
	magic := make([]byte, len(nutMagic))
	if _, err := io.ReadFull(n.r, magic); err != nil {
		return nil, err
	}
	if string(magic) != nutMagic {
		return nil, fmt.Errorf("%w: no NUT signature", errNut)
	}
	for n.width == 0 {
		b, err := n.r.ReadByte()
		if err != nil {
			return nil, unexpected(err)
		}
		if b != 'N' {
			return nil, fmt.Errorf("%w: a frame before the stream's header", errNut)
		}
		if err := n.packet(); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// next goes to the next frame and returns its time and size in bytes, which fill or skip has
// to take. At the end it returns io.EOF.
func (n *nutReader) next() (pts time.Duration, size int, err error) {
	for {
		b, err := n.r.ReadByte()
		if err != nil {
			return 0, 0, err
		}
		if b == 'N' {
			err = n.packet()
		} else {
			pts, size, err = n.frame(n.codes[b])
		}
		if err != nil {
			return 0, 0, unexpected(err)
		}
		if size > 0 { // an empty frame only marks the end of the stream
			return pts, size, nil
		}
	}
}

// fill reads the frame that next announced into dst, which is of its size.
func (n *nutReader) fill(dst []byte) error {
	k := copy(dst, n.prefix)
	_, err := io.ReadFull(n.r, dst[k:])
	return unexpected(err)
}

// skip passes over the frame of size bytes that next announced.
func (n *nutReader) skip(size int) error {
	_, err := n.r.Discard(size - len(n.prefix))
	return unexpected(err)
}

// frame reads the header of a frame behind its first byte.
func (n *nutReader) frame(c nutCode) (pts time.Duration, size int, err error) {
	in := nutFields{r: n.r}
	if c.flags&nutCoded != 0 {
		c.flags ^= in.v()
	}
	if c.flags&(nutInvalid|nutSideData) != 0 {
		return 0, 0, fmt.Errorf("%w: frame flags %#x", errNut, c.flags)
	}
	if c.flags&nutStreamID != 0 {
		c.stream = in.v()
	}
	full := n.lastPTS + uint64(c.ptsDelta)
	if c.flags&nutCodedPTS != 0 {
		full = n.fullPTS(in.v())
	}
	bytes := c.sizeLo
	if c.flags&nutSizeMSB != 0 {
		hi, lo := bits.Mul64(c.sizeMul, in.v())
		bytes += lo
		if hi != 0 || bytes < lo {
			bytes = math.MaxUint64
		}
	}
	if c.flags&nutMatchTime != 0 {
		in.v()
	}
	if c.flags&nutHeaderIdx != 0 {
		c.header = in.v()
	}
	if c.flags&nutReserved != 0 {
		c.reserved = in.v()
	}
	for ; c.reserved > 0 && in.err == nil; c.reserved-- {
		in.v()
	}
	if c.flags&nutChecksum != 0 {
		in.skip(4)
	}
	if in.err != nil {
		return 0, 0, in.err
	}
	return n.accept(c, full, bytes)
}

// accept checks a frame's header against the stream.
func (n *nutReader) accept(c nutCode, pts, size uint64) (time.Duration, int, error) {
	n.prefix = nil
	if size <= nutMaxElision && c.header < uint64(len(n.elision)) {
		n.prefix = n.elision[c.header]
	}
	if c.stream != 0 || size > math.MaxInt32 || (size > 0 && size < uint64(len(n.prefix))) {
		return 0, 0, fmt.Errorf("%w: frame of %d bytes in stream %d", errNut, size, c.stream)
	}
	n.lastPTS = pts
	at, ok := nutTime(pts, n.num, n.den)
	if !ok {
		return 0, 0, fmt.Errorf("%w: frame time %d", errNut, pts)
	}
	return at, int(size), nil
}

// fullPTS completes a coded time, of which often only the low bits are written.
func (n *nutReader) fullPTS(coded uint64) uint64 {
	one := uint64(1) << n.ptsShift
	if coded >= one {
		return coded - one
	}
	base := n.lastPTS - (one-1)/2
	return (coded-base)&(one-1) + base
}

// nutTime returns pts*num/den seconds.
func nutTime(pts, num, den uint64) (time.Duration, bool) {
	hi, lo := bits.Mul64(pts, num)
	if hi >= den {
		return 0, false
	}
	seconds, rest := bits.Div64(hi, lo, den)
	if seconds >= math.MaxInt64/uint64(time.Second) {
		return 0, false
	}
	hi, lo = bits.Mul64(rest, 1e9)
	ns, _ := bits.Div64(hi, lo, den)
	return time.Duration(seconds*1e9 + ns), true
}

// packet reads or skips a packet behind the first byte of its start code.
func (n *nutReader) packet() error {
	in := nutFields{r: n.r}
	start := uint64('N')
	for range 7 {
		start = start<<8 | uint64(in.byte())
	}
	size := in.v()
	if size > nutMaxElision {
		in.skip(4) // the header's own checksum
	}
	if in.err != nil {
		return unexpected(in.err)
	}
	if size < 4 || size > math.MaxInt32 {
		return fmt.Errorf("%w: packet of %d bytes", errNut, size)
	}
	if start == nutIndex || start == nutInfo {
		_, err := n.r.Discard(int(size))
		return unexpected(err)
	}
	if size > nutMaxPacket {
		return fmt.Errorf("%w: packet of %d bytes", errNut, size)
	}
	n.body = slices.Grow(n.body[:0], int(size))[:size]
	if _, err := io.ReadFull(n.r, n.body); err != nil {
		return unexpected(err)
	}
	n.bodyReader.Reset(n.body[:size-4]) // the rest is a checksum, which a pipe does not need
	in = nutFields{r: &n.bodyReader}
	var err error
	switch start {
	case nutMain:
		err = n.mainHeader(&in)
	case nutStream:
		err = n.streamHeader(&in)
	case nutSyncpoint:
		n.lastPTS = in.v() // what the next frame's time is relative to
	default:
		err = fmt.Errorf("%w: packet %x", errNut, start)
	}
	if err == nil {
		err = unexpected(in.err)
	}
	return err
}

// mainHeader reads the time base and the table of frame codes.
func (n *nutReader) mainHeader(in *nutFields) error {
	version := in.v()
	if version > 3 {
		in.v()
	}
	streams, _, bases := in.v(), in.v(), in.v()
	n.num, n.den = in.v(), in.v()
	if in.err == nil && (version < 2 || version > 4 || streams != 1 || bases != 1 ||
		n.num == 0 || n.den == 0 || n.num > math.MaxInt32 || n.den > math.MaxInt32) {
		return fmt.Errorf("%w: version %d, %d streams, %d time bases", errNut, version, streams, bases)
	}
	n.table(in)
	n.elision = make([][]byte, 1)
	for more := in.v(); more > 0 && in.err == nil; more-- {
		n.elision = append(n.elision, in.vb(256))
	}
	return nil
}

// table reads the frame codes, which are written as runs of similar rows.
func (n *nutReader) table(in *nutFields) {
	row := nutCode{}
	mul := uint64(1)
	for i := 0; i < 256 && in.err == nil; {
		row.flags = in.v()
		fields := in.v()
		lo, count := uint64(0), uint64(0)
		row.reserved = 0
		for f := uint64(0); f < fields && in.err == nil; f++ {
			switch f {
			case 0:
				row.ptsDelta = in.s()
			case 1:
				mul = in.v()
			case 2:
				row.stream = in.v()
			case 3:
				lo = in.v()
			case 4:
				row.reserved = in.v()
			case 5:
				count = in.v()
			case 7:
				row.header = in.v()
			default: // 6 is the match time
				in.v()
			}
		}
		if fields <= 5 {
			count = mul - lo
		}
		row.sizeMul = mul
		for j := uint64(0); j < count && i < 256; i++ {
			if i == 'N' {
				n.codes[i].flags = nutInvalid
				continue
			}
			n.codes[i] = row
			n.codes[i].sizeLo = lo + j
			j++
		}
	}
}

// streamHeader reads the size of the pictures.
func (n *nutReader) streamHeader(in *nutFields) error {
	_, class := in.v(), in.v()
	n.fourcc = string(in.vb(4))
	in.v() // time base
	shift := in.v()
	in.v() // largest distance of times
	in.v() // decode delay
	in.v() // flags
	in.vb(nutMaxPacket)
	w, h := in.v(), in.v()
	if in.err != nil {
		return nil // the caller reports it
	}
	if class != 0 || shift > 32 || w == 0 || h == 0 || w > maxSide || h > maxSide {
		return fmt.Errorf("%w: stream of class %d, %dx%d pixels", errNut, class, w, h)
	}
	n.ptsShift, n.width, n.height = uint(shift), int(w), int(h)
	return nil
}

// nutFields reads numbers of variable length, and keeps the first error.
type nutFields struct {
	r interface {
		io.ByteReader
		io.Reader
	}
	err error
}

// v reads an unsigned number: seven bits a byte, the highest first.
func (f *nutFields) v() uint64 {
	n := uint64(0)
	for range 10 {
		b := f.byte()
		n = n<<7 | uint64(b&0x7f)
		if b < 0x80 {
			return n
		}
	}
	f.err = fmt.Errorf("%w: a number without end", errNut)
	return 0
}

// s reads a signed number.
func (f *nutFields) s() int64 {
	n := f.v() + 1
	if n&1 != 0 {
		return -int64(n >> 1)
	}
	return int64(n >> 1)
}

// vb reads a string of bytes.
func (f *nutFields) vb(limit uint64) []byte {
	n := f.v()
	if f.err == nil && n > limit {
		f.err = fmt.Errorf("%w: a string of %d bytes", errNut, n)
	}
	if f.err != nil {
		return nil
	}
	b := make([]byte, n)
	_, f.err = io.ReadFull(f.r, b)
	return b
}

// byte reads one byte, 0 after an error.
func (f *nutFields) byte() (b byte) {
	if f.err == nil {
		b, f.err = f.r.ReadByte()
	}
	return b
}

func (f *nutFields) skip(n int) {
	for range n {
		f.byte()
	}
}

// unexpected says that a stream must not end here.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

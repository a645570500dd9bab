package camera

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// gdpReader reads what GStreamer's gdppay writes: the GStreamer Data Protocol 1.0, in which raw pictures come with their
// format and time. A packet is a header of 62 bytes, all numbers with the highest byte first, and a payload:
//
//	 0  version: 1, 0
//	 2  flags: which checksums there are, which a pipe does not need; a byte of padding
//	 4  type: 1 a buffer, 2 caps (what the buffers are from here on), 64 and above events
//	 6  bytes of the payload, 32 bits
//	10  of a buffer: its time in ns, 64 bits, all ones for none
//	18  of a buffer: duration, offset, end of offset, flags, decoding time; not used
//	58  checksums of header and payload
type gdpReader struct {
	r      *bufio.Reader
	header [gdpHeader]byte
	text   []byte // of caps, used again
	layout gstLayout
}

const (
	gdpHeader = 62
	gdpBuffer = 1
	gdpCaps   = 2
	gdpEvents = 64

	gdpMaxCaps = 64 << 10 // bytes; a few hundred are usual
)

var errGDP = errors.New("not the stream that was asked for")

func newGDPReader(r io.Reader) *gdpReader {
	return &gdpReader{r: bufio.NewReaderSize(r, 4096)} // pictures are read past this buffer
}

// gdpPacket is a change of format, or a picture whose bytes fill or skip has to take.
type gdpPacket struct {
	caps    *gstCaps      // what the pictures are from here on; nil: this is one
	size    int           // bytes of a picture
	pts     time.Duration // its time
	hasTime bool
}

// next goes to the next picture or change of format, and skips everything else. At the end it returns io.EOF.
func (g *gdpReader) next() (gdpPacket, error) {
	for {
		if _, err := io.ReadFull(g.r, g.header[:]); err != nil {
			return gdpPacket{}, err
		}
		h := g.header[:]
		if h[0] != 1 || h[1] != 0 {
			return gdpPacket{}, fmt.Errorf("%w: version %d.%d of the GStreamer Data Protocol", errGDP, h[0], h[1])
		}
		size := int(binary.BigEndian.Uint32(h[6:]))
		switch kind := binary.BigEndian.Uint16(h[4:]); {
		case kind == gdpBuffer:
			p := gdpPacket{size: size}
			if ns := binary.BigEndian.Uint64(h[10:]); ns <= math.MaxInt64 {
				p.pts, p.hasTime = time.Duration(ns), true
			}
			return p, nil
		case kind == gdpCaps:
			caps, err := g.caps(size)
			return gdpPacket{caps: caps}, err
		case kind < gdpEvents:
			return gdpPacket{}, fmt.Errorf("%w: packet of type %d", errGDP, kind)
		}
		if err := g.skip(size); err != nil {
			return gdpPacket{}, err
		}
	}
}

// caps reads caps and takes the layout of the pictures from them.
func (g *gdpReader) caps(size int) (*gstCaps, error) {
	if size > gdpMaxCaps {
		return nil, fmt.Errorf("%w: caps of %d bytes", errGDP, size)
	}
	g.text = slices.Grow(g.text[:0], size)[:size]
	if _, err := io.ReadFull(g.r, g.text); err != nil {
		return nil, unexpected(err)
	}
	caps, err := parseGstCaps(string(g.text))
	if err != nil {
		return nil, err
	}
	g.layout = caps.layout()
	return &caps, nil
}

// fill reads the picture that next announced into dst, tightly packed; it has as many bytes as the layout says.
func (g *gdpReader) fill(dst []byte) error {
	if g.layout.tight() {
		_, err := io.ReadFull(g.r, dst)
		return unexpected(err)
	}
	for _, p := range g.layout {
		for range p.rows {
			if _, err := io.ReadFull(g.r, dst[:p.rowBytes]); err != nil {
				return unexpected(err)
			}
			dst = dst[p.rowBytes:]
			if err := g.skip(p.stride - p.rowBytes); err != nil {
				return err
			}
		}
		if err := g.skip(p.after); err != nil {
			return err
		}
	}
	return nil
}

// skip passes over bytes of a payload.
func (g *gdpReader) skip(n int) error {
	_, err := g.r.Discard(n)
	return unexpected(err)
}

package ring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/eyas-edge/eyas/camera/frame"
)

// The header as docs/frames.md has it: offsets in bytes, little endian. The first 192 bytes never change.
const (
	magic   = "EYASRING"
	version = 1

	atVersion    = 8
	atSlots      = 12
	atMemory     = 16 // bytes of the whole memory
	atFirst      = 24 // offset of slot 0
	atSlotBytes  = 32 // from one slot to the next
	atFrameBytes = 40
	atFormat     = 48 // name, filled with zeros
	atWidth      = 56
	atHeight     = 60
	atMatrix     = 64
	atFullRange  = 68
	atPlanes     = 72
	atPlane      = 80 // of each plane: offset in the slot (8 bytes), stride (4), rows (4)

	atNewest   = 192 // publications so far << 8 | slot of the newest
	atInterval = 200 // ns between publications, smoothed
	atTick     = 208 // changes with every publication and at the end: what readers wait on
	atClosed   = 212 // 1: the ring is over

	headBytes = 256 // then the slots' headers

	slotHeadBytes = 64
	atSequence    = 0 // odd while the slot is written
	atCount       = 8
	atSeq         = 16
	atMono        = 24
	atWall        = 32
	atPublished   = 40
	atCapturedBy  = 48
	atBytes       = 56

	maxPlanes = 4
	planeSize = 16
)

// Bounds of what a header may say. They keep every product below within 63 bits.
const (
	maxSlots = 255
	// MaxSide is the most pixels of a side.
	MaxSide = 1 << 14
)

// Layout is what a ring holds: frames of one format, colour and size in a number of slots, 1 to 255.
type Layout struct {
	Format        frame.Format
	Colour        frame.Colour
	Width, Height int // pixels, at most 16384
	Slots         int
}

// Bytes returns the bytes of the whole memory with its header, whole pages; 0 for a layout that cannot be.
func (l Layout) Bytes() int64 {
	h, err := newHeader(l)
	if err != nil {
		return 0
	}
	return h.memory
}

// header is the part of a ring's header that never changes.
type header struct {
	Layout
	memory     int64
	first      int64
	slotBytes  int64
	frameBytes int64
	planes     []plane
}

// plane is where a plane lies in its slot.
type plane struct {
	offset int64
	stride int
	frame.Geometry
}

// end returns the offset behind the plane's last pixel.
func (p plane) end() int64 { return p.offset + int64(p.stride)*int64(p.Rows-1) + int64(p.RowBytes) }

// check fails for a layout that no ring has.
func (l Layout) check() error {
	if l.Slots < 1 || l.Slots > maxSlots {
		return fmt.Errorf("a ring has 1 to %d slots, not %d", maxSlots, l.Slots)
	}
	if l.Width > MaxSide || l.Height > MaxSide || l.Format.PlanesOf(l.Width, l.Height) == nil {
		return fmt.Errorf("no ring holds %s pictures of %dx%d pixels", l.Format, l.Width, l.Height)
	}
	return nil
}

// newHeader lays out a ring: planes tightly packed, slots on pages.
func newHeader(l Layout) (*header, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	h := &header{Layout: l}
	for _, g := range l.Format.PlanesOf(l.Width, l.Height) {
		p := plane{offset: h.frameBytes, stride: g.RowBytes, Geometry: g}
		h.planes = append(h.planes, p)
		h.frameBytes = p.end()
	}
	h.first = pages(headBytes + slotHeadBytes*int64(l.Slots))
	h.slotBytes = pages(h.frameBytes)
	h.memory = h.first + h.slotBytes*int64(l.Slots)
	return h, nil
}

// pages rounds n up to whole pages.
func pages(n int64) int64 {
	size := int64(os.Getpagesize())
	return (n + size - 1) / size * size
}

// put writes the header into the beginning of a memory of zeros.
func (h *header) put(mem []byte) {
	le := binary.LittleEndian
	copy(mem, magic)
	le.PutUint32(mem[atVersion:], version)
	le.PutUint32(mem[atSlots:], uint32(h.Slots))
	le.PutUint64(mem[atMemory:], uint64(h.memory))
	le.PutUint64(mem[atFirst:], uint64(h.first))
	le.PutUint64(mem[atSlotBytes:], uint64(h.slotBytes))
	le.PutUint64(mem[atFrameBytes:], uint64(h.frameBytes))
	copy(mem[atFormat:atFormat+8], h.Format.String())
	le.PutUint32(mem[atWidth:], uint32(h.Width))
	le.PutUint32(mem[atHeight:], uint32(h.Height))
	le.PutUint32(mem[atMatrix:], uint32(h.Colour.Matrix))
	if h.Colour.Full {
		le.PutUint32(mem[atFullRange:], 1)
	}
	le.PutUint32(mem[atPlanes:], uint32(len(h.planes)))
	for i, p := range h.planes {
		b := mem[atPlane+planeSize*i:]
		le.PutUint64(b, uint64(p.offset))
		le.PutUint32(b[8:], uint32(p.stride))
		le.PutUint32(b[12:], uint32(p.Rows))
	}
}

// parseHeader reads the first bytes of a memory of size bytes that another process made. What it returns
// lies within the memory, whatever the bytes are.
func parseHeader(b []byte, size int64) (*header, error) {
	if len(b) < headBytes || string(b[:len(magic)]) != magic {
		return nil, errors.New("it is not a ring")
	}
	le := binary.LittleEndian
	if v := le.Uint32(b[atVersion:]); v != version {
		return nil, versionError(v)
	}
	format, err := frame.ParseFormat(strings.TrimRight(string(b[atFormat:atFormat+8]), "\x00"))
	if err != nil {
		return nil, err
	}
	u32 := func(at int) int64 { return int64(le.Uint32(b[at:])) }
	u64 := func(at int) int64 { return int64(min(le.Uint64(b[at:]), 1<<62)) }
	h := &header{
		Layout: Layout{
			Format: format, Colour: frame.Colour{Matrix: frame.Matrix(u32(atMatrix)), Full: u32(atFullRange) == 1},
			Width: int(u32(atWidth)), Height: int(u32(atHeight)), Slots: int(u32(atSlots)),
		},
		memory: u64(atMemory), first: u64(atFirst), slotBytes: u64(atSlotBytes), frameBytes: u64(atFrameBytes),
	}
	if err := h.check(); err != nil {
		return nil, err
	}
	if u32(atMatrix) > int64(frame.BT709) || u32(atFullRange) > 1 {
		return nil, errors.New("its colour is not known")
	}
	if h.memory != size || h.first < headBytes+slotHeadBytes*int64(h.Slots) || h.first > size ||
		h.frameBytes < 1 || h.frameBytes > h.slotBytes || h.slotBytes > (size-h.first)/int64(h.Slots) {
		return nil, fmt.Errorf("its slots do not lie within its %d bytes", size)
	}
	return h, h.parsePlanes(b)
}

func versionError(v uint32) error {
	return fmt.Errorf("its format has version %d, this eyas reads version %d: use the same eyas for both", v, version)
}

func (h *header) parsePlanes(b []byte) error {
	le := binary.LittleEndian
	geo := h.Format.PlanesOf(h.Width, h.Height)
	if int(le.Uint32(b[atPlanes:])) != len(geo) {
		return fmt.Errorf("%s has %d planes, not %d", h.Format, len(geo), le.Uint32(b[atPlanes:]))
	}
	for i, g := range geo {
		b := b[atPlane+planeSize*i:]
		p := plane{offset: int64(min(le.Uint64(b), 1<<62)), stride: int(le.Uint32(b[8:])), Geometry: g}
		if int(le.Uint32(b[12:])) != g.Rows || p.stride < g.RowBytes || p.offset > h.frameBytes || p.end() > h.frameBytes {
			return fmt.Errorf("plane %d does not lie within its slot", i)
		}
		h.planes = append(h.planes, p)
	}
	return nil
}

// cut returns the planes of a frame in the bytes of a slot.
func (h *header) cut(slot []byte) []frame.Plane {
	planes := make([]frame.Plane, len(h.planes))
	for i, p := range h.planes {
		planes[i] = frame.Plane{Data: slot[p.offset:p.end():p.end()], Stride: p.stride}
	}
	return planes
}

// slot returns the bytes of slot i.
func (h *header) slot(mem []byte, i int) []byte {
	at := h.first + int64(i)*h.slotBytes
	return mem[at : at+h.frameBytes : at+h.frameBytes]
}

// slotHead returns the header of slot i.
func slotHead(mem []byte, i int) []byte {
	at := headBytes + slotHeadBytes*i
	return mem[at : at+slotHeadBytes : at+slotHeadBytes]
}

// word64 and word32 are the words that both sides use at the same time. Mappings begin on a page and the
// offsets are multiples of the words' sizes.
func word64(mem []byte, at int) *uint64 { return (*uint64)(unsafe.Pointer(&mem[at : at+8][0])) }
func word32(mem []byte, at int) *uint32 { return (*uint32)(unsafe.Pointer(&mem[at : at+4][0])) }

// newest splits the word at atNewest: publications so far, and the slot of the last.
func newest(mem []byte) (count uint64, slot int) {
	n := atomic.LoadUint64(word64(mem, atNewest))
	return n >> 8, int(n & 0xff)
}

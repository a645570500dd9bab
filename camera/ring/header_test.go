package ring

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/testenv"
)

var layouts = []Layout{
	small, stamped, big,
	{Format: frame.I420, Width: 1, Height: 1, Slots: 1},
	{Format: frame.I422, Colour: frame.Colour{Full: true}, Width: 5, Height: 3, Slots: 2},
	{Format: frame.YUYV, Width: 7, Height: 2, Slots: 4},
	{Format: frame.RGB24, Width: 640, Height: 480, Slots: maxSlots},
	{Format: frame.BGRA, Width: MaxSide, Height: MaxSide, Slots: maxSlots},
}

func TestHeadersAreReadAsWritten(t *testing.T) {
	for _, l := range layouts {
		h, err := newHeader(l)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, headBytes)
		h.put(b)
		got, err := parseHeader(b, h.memory)
		if err != nil || !reflect.DeepEqual(got, h) {
			t.Errorf("%+v is read as %+v, %v", h, got, err)
		}
		page := int64(os.Getpagesize())
		if l.Bytes() != h.memory || h.first%page != 0 || h.slotBytes%page != 0 || h.frameBytes != int64(l.Format.Bytes(l.Width, l.Height)) {
			t.Errorf("%+v: slots of %d from %d on, frames of %d bytes", l, h.slotBytes, h.first, h.frameBytes)
		}
	}
}

func TestLayoutsThatCannotBe(t *testing.T) {
	for _, l := range []Layout{
		{}, {Format: frame.Gray, Width: 8, Height: 8}, {Format: frame.Gray, Width: 8, Height: 8, Slots: maxSlots + 1},
		{Format: frame.Gray, Width: 0, Height: 8, Slots: 2}, {Format: frame.Gray, Width: 8, Height: MaxSide + 1, Slots: 2},
		{Format: frame.Gray, Width: -8, Height: -8, Slots: 2}, {Format: 99, Width: 8, Height: 8, Slots: 2},
	} {
		if _, err := New("x", l); err == nil || l.Bytes() != 0 {
			t.Errorf("%+v is made, of %d bytes", l, l.Bytes())
		}
	}
}

func TestForeignHeaders(t *testing.T) {
	le := binary.LittleEndian
	for name, c := range map[string]struct {
		change func(b []byte)
		want   string
	}{
		"magic":                  {func(b []byte) { b[0] = 'X' }, "not a ring"},
		"version":                {func(b []byte) { b[atVersion] = 2 }, "version 2"},
		"no slots":               {func(b []byte) { le.PutUint32(b[atSlots:], 0) }, "slots"},
		"many slots":             {func(b []byte) { le.PutUint32(b[atSlots:], 1<<31) }, "slots"},
		"memory of another size": {func(b []byte) { b[atMemory]++ }, "lie within"},
		"slots in the header":    {func(b []byte) { le.PutUint64(b[atFirst:], headBytes) }, "lie within"},
		"slots behind the end":   {func(b []byte) { le.PutUint64(b[atFirst:], 1<<63) }, "lie within"},
		"slots too long":         {func(b []byte) { le.PutUint64(b[atSlotBytes:], 1<<61) }, "lie within"},
		"frame over its slot":    {func(b []byte) { le.PutUint64(b[atFrameBytes:], 1<<40) }, "lie within"},
		"no frame":               {func(b []byte) { le.PutUint64(b[atFrameBytes:], 0) }, "lie within"},
		"format":                 {func(b []byte) { copy(b[atFormat:], "p010\x00") }, "p010"},
		"no format":              {func(b []byte) { copy(b[atFormat:], "unknown\x00") }, "unknown"},
		"no width":               {func(b []byte) { le.PutUint32(b[atWidth:], 0) }, "0x17"},
		"height":                 {func(b []byte) { le.PutUint32(b[atHeight:], 1<<32-1) }, "4294967295"},
		"matrix":                 {func(b []byte) { b[atMatrix] = 9 }, "colour"},
		"range":                  {func(b []byte) { b[atFullRange] = 2 }, "colour"},
		"planes":                 {func(b []byte) { b[atPlanes] = 3 }, "planes"},
		"rows":                   {func(b []byte) { b[atPlane+12] = 0 }, "plane 0"},
		"stride":                 {func(b []byte) { b[atPlane+8] = 32 }, "plane 0"},
		"stride over the slot":   {func(b []byte) { le.PutUint32(b[atPlane+8:], 1<<32-1) }, "plane 0"},
		"plane behind the frame": {func(b []byte) { le.PutUint64(b[atPlane+planeSize:], 1<<63) }, "plane 1"},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := newHeader(small)
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, headBytes)
			h.put(b)
			c.change(b)
			if _, err := parseHeader(b, h.memory); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

// Whatever a header says, slots and planes that are accepted lie within the memory.
func FuzzHeader(f *testing.F) {
	for _, l := range layouts {
		h, err := newHeader(l)
		if err != nil {
			f.Fatal(err)
		}
		b := make([]byte, headBytes)
		h.put(b)
		f.Add(b, h.memory)
	}
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		h, err := parseHeader(b, size)
		if err != nil {
			return
		}
		if last := h.first + int64(h.Slots-1)*h.slotBytes; last < h.first || last > size-h.frameBytes || h.first < int64(headBytes+slotHeadBytes*h.Slots) {
			t.Fatalf("slots leave the memory of %d bytes: %+v", size, h)
		}
		if h.frameBytes > 1<<24 {
			return // beyond what a fuzz run should allocate
		}
		planes := h.cut(make([]byte, h.frameBytes))
		if _, err := frame.New(h.Format, h.Width, h.Height, planes, time.Time{}, nil); err != nil {
			t.Fatalf("%+v: %v", h, err)
		}
	})
}

// docs/frames.md is what readers are written by.
func TestTheMemoryIsDocumented(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "frames.md"))
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	for _, f := range []struct {
		at, bytes int
		name      string
	}{
		{0, 8, "magic"}, {atVersion, 4, "version"}, {atSlots, 4, "slots"}, {atMemory, 8, "memory_bytes"}, {atFirst, 8, "first"},
		{atSlotBytes, 8, "slot_bytes"}, {atFrameBytes, 8, "frame_bytes"}, {atFormat, 8, "format"}, {atWidth, 4, "width"},
		{atHeight, 4, "height"}, {atMatrix, 4, "matrix"}, {atFullRange, 4, "full_range"}, {atPlanes, 4, "planes"},
		{atPlane, maxPlanes * planeSize, "plane"}, {atNewest, 8, "newest"}, {atInterval, 8, "interval"}, {atTick, 4, "tick"}, {atClosed, 4, "closed"},
		{atSequence, 8, "sequence"}, {atCount, 8, "count"}, {atSeq, 8, "seq"}, {atMono, 8, "captured_mono"}, {atWall, 8, "captured_wall"},
		{atPublished, 8, "published_mono"}, {atCapturedBy, 4, "captured_by"}, {atBytes, 8, "bytes"},
	} {
		if row := fmt.Sprintf("\n| %d | %d | `%s` |", f.at, f.bytes, f.name); !strings.Contains(doc, row) {
			t.Errorf("no row %s", row)
		}
	}
	for _, text := range []string{
		fmt.Sprintf("From %d on each slot has a header of %d bytes", headBytes, slotHeadBytes), fmt.Sprintf("1 to %d |", maxSlots),
		fmt.Sprintf("at most %d |", MaxSide), fmt.Sprintf("one message of %d bytes", greetingBytes), fmt.Sprintf("(our readers do %d)", tries),
	} {
		if !strings.Contains(doc, text) {
			t.Errorf("it does not say %q", text)
		}
	}
	for f := frame.RGB24; f.PlanesOf(2, 2) != nil; f++ {
		if name := f.String(); !strings.Contains(doc, "`"+name+"`") || len(name) > 8 {
			t.Errorf("format %s is not documented, or its name is too long", name)
		}
	}
}

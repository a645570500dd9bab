package ring

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/camera/frame"
)

// tries is how often Newest copies until a frame is whole. A writer that has other slots to go to gets at a slot
// again only after a whole frame time, so that the second try nearly always succeeds.
const tries = 16

// waitSlice bounds one wait in the kernel, in which a context's end is not seen.
const waitSlice = 50 * time.Millisecond

// Reader reads the ring of another process. It is for one goroutine.
type Reader struct {
	head       *header
	mem        []byte
	clock      clock
	generation uint32
	pid        int
}

// Snapshot is a copy of a frame of a ring. The zero value is ready for use; it takes its memory at the first
// Newest and keeps it.
type Snapshot struct {
	*frame.Frame
	Count uint64 // publications of the ring up to this one, from 1

	pix  []byte
	head *header // of the ring that the memory was made for
}

// Layout returns what the ring holds.
func (r *Reader) Layout() Layout { return r.head.Layout }

// Generation counts the rings of this name that the writer's process has made, from 1.
func (r *Reader) Generation() uint32 { return r.generation }

// PID returns the process that serves the ring, 0 if it is not visible from here.
func (r *Reader) PID() int { return r.pid }

// Close gives the memory back. Snapshots stay valid.
func (r *Reader) Close() error {
	if r.mem == nil {
		return nil
	}
	mem := r.mem
	r.mem = nil
	return unix.Munmap(mem)
}

// Closed says whether the writer has ended the ring. A writer that was killed did not: its ring gets no newer
// frames, and connecting again fails.
func (r *Reader) Closed() bool { return atomic.LoadUint32(word32(r.mem, atClosed)) != 0 }

// Newest copies the newest frame, which is whole or an error: ErrNoFrame before the first, ErrBusy when the writer was
// faster every time. The frame of a ring that is over can still be had.
func (r *Reader) Newest(into *Snapshot) error {
	if err := into.fit(r.head); err != nil {
		return err
	}
	for range tries {
		count, i := newest(r.mem)
		if count == 0 {
			return ErrNoFrame
		}
		if i >= r.head.Slots {
			return fmt.Errorf("the ring is damaged: its newest frame is in slot %d of %d", i, r.head.Slots)
		}
		if r.copySlot(i, into) {
			return nil
		}
	}
	return ErrBusy
}

// copySlot copies a slot and says whether it is whole: not being written before, and not written meanwhile.
func (r *Reader) copySlot(i int, into *Snapshot) bool {
	head := slotHead(r.mem, i)
	sequence := word64(head, atSequence)
	before := atomic.LoadUint64(sequence)
	if before%2 != 0 {
		return false
	}
	fence()
	copy(into.pix, r.head.slot(r.mem, i))
	le := binary.LittleEndian
	count, seq := le.Uint64(head[atCount:]), le.Uint64(head[atSeq:])
	mono, by := int64(le.Uint64(head[atMono:])), frame.CapturedBy(le.Uint32(head[atCapturedBy:]))
	fence()
	if atomic.LoadUint64(sequence) != before {
		return false
	}
	into.Count, into.Seq, into.CapturedBy = count, seq, by
	into.Captured = time.Time{}
	if mono != 0 {
		into.Captured = r.clock.time(mono)
	}
	return true
}

// fit makes the snapshot's memory that of a ring.
func (s *Snapshot) fit(h *header) error {
	if s.head == h {
		return nil
	}
	pix := make([]byte, h.frameBytes)
	f, err := frame.New(h.Format, h.Width, h.Height, h.cut(pix), time.Time{}, nil)
	if err != nil {
		return err
	}
	f.Colour = h.Colour
	s.Frame, s.pix, s.head = f, pix, h
	return nil
}

// Wait returns once more than count frames have been published and the newest can be read, or with ErrClosed once the
// ring is over, or when ctx ends, which it sees within 50 ms.
func (r *Reader) Wait(ctx context.Context, count uint64) error {
	word := word32(r.mem, atTick)
	for {
		tick := atomic.LoadUint32(word) // before what it announces is looked at, so that nothing is missed
		if n, i := newest(r.mem); n > count && r.whole(i) {
			return nil
		}
		if r.Closed() {
			return ErrClosed
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := futexWait(word, tick, waitSlice); err != nil {
			return fmt.Errorf("wait for a frame: %w", err)
		}
	}
}

// whole says whether slot i is not being written. The newest is where all others are held.
func (r *Reader) whole(i int) bool {
	return i < r.head.Slots && atomic.LoadUint64(word64(slotHead(r.mem, i), atSequence))%2 == 0
}

// Status is how a ring is doing.
type Status struct {
	Frames uint64        // published so far
	Rate   float64       // frames a second, smoothed over about eight; 0 if unknown
	Age    time.Duration // since the newest was published; -1 if there is none
}

// Status returns how the ring is doing now.
func (r *Reader) Status() Status {
	s := Status{Age: -1}
	var slot int
	s.Frames, slot = newest(r.mem)
	if s.Frames > 0 && slot < r.head.Slots {
		published := int64(atomic.LoadUint64(word64(slotHead(r.mem, slot), atPublished)))
		s.Age = time.Duration(max(0, r.clock.now()-published))
	}
	if interval := int64(atomic.LoadUint64(word64(r.mem, atInterval))); interval > 0 {
		s.Rate = 1e9 / float64(interval)
	}
	return s
}

// Package ring is the shared memory of one camera: a sealed memfd with a header and slots, each of which
// holds one frame. One goroutine writes; holders in this process keep slots by reference count; processes of
// the same user get a descriptor that can only read, and take the newest frame under a sequence count, so that
// a frame which is overwritten meanwhile is never taken for whole. docs/frames.md describes the memory to the byte.
//
// It knows nothing of cameras: what a frame is and when it is dropped is for its user. It needs Linux and a
// little-endian processor.
package ring

import (
	"encoding/binary"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/camera/frame"
)

// Ring is the writer's side. Begin and Publish are for one goroutine; frames may be released, and the ring
// be closed, from any.
type Ring struct {
	head   *header
	mem    []byte
	file   *os.File // read-only: what readers get
	slots  []slot
	count  uint64 // publications so far
	last   int64  // monotonic time of the last publication, ns
	clock  clock
	closed atomic.Bool
	users  atomic.Int32 // frames that are held, and one for the ring while it is open: with the last the memory goes
}

// slot is what the writer knows of one slot.
type slot struct {
	frame *frame.Frame
	pix   []byte // the whole frame
	head  []byte
	count uint64 // publication that lies in it, 0 for none
	free  atomic.Bool
}

// New makes a ring, its memory reserved and populated. The name, which must hold no credentials, is for messages
// and the process's map of memory. It fails with a *SpaceError when the memory cannot be had.
func New(name string, l Layout) (*Ring, error) {
	head, err := newHeader(l)
	if err != nil {
		return nil, err
	}
	mem, file, err := takeMemory(name, head)
	if err != nil {
		return nil, err
	}
	r := &Ring{head: head, mem: mem, file: file, slots: make([]slot, l.Slots), clock: newClock()}
	for i := range r.slots {
		if err := r.initSlot(i); err != nil {
			return nil, errors.Join(err, unix.Munmap(mem), file.Close())
		}
	}
	r.users.Store(1)
	return r, nil
}

func (r *Ring) initSlot(i int) (err error) {
	s := &r.slots[i]
	s.pix, s.head = r.head.slot(r.mem, i), slotHead(r.mem, i)
	s.frame, err = frame.New(r.head.Format, r.head.Width, r.head.Height, r.head.cut(s.pix), time.Time{}, func() {
		s.free.Store(true)
		r.leave()
	})
	if err != nil {
		return err
	}
	s.frame.Colour = r.head.Colour
	s.free.Store(true)
	return nil
}

// Begin returns a frame to write, with one reference, or nil when every slot is held or the ring is closed. Of
// several free slots it takes the one published longest ago, so that readers in other processes have the most
// time. What lay in the slot is invalid from now on, whether the frame is published or just released.
func (r *Ring) Begin() *frame.Frame {
	if r.closed.Load() || !r.enter() {
		return nil
	}
	s := r.oldestFree()
	if s == nil {
		r.leave()
		return nil
	}
	s.free.Store(false)
	s.count = 0
	if n := word64(s.head, atSequence); *n%2 == 0 { // it is odd if the slot was begun and never published
		atomic.StoreUint64(n, *n+1)
	}
	fence()
	f := s.frame
	f.Recycle()
	f.Seq, f.PTS, f.HasPTS = 0, 0, false
	f.Captured, f.CapturedBy = time.Time{}, frame.ByNone
	return f
}

func (r *Ring) oldestFree() *slot {
	var oldest *slot
	for i := range r.slots {
		if s := &r.slots[i]; s.free.Load() && (oldest == nil || s.count < oldest.count) {
			oldest = s
		}
	}
	return oldest
}

// Packed returns the whole slot of a frame of Begin, all planes one behind the other; nil for any other frame.
func (r *Ring) Packed(f *frame.Frame) []byte {
	if _, s := r.find(f); s != nil {
		return s.pix
	}
	return nil
}

func (r *Ring) find(f *frame.Frame) (int, *slot) {
	for i := range r.slots {
		if s := &r.slots[i]; s.frame == f {
			return i, s
		}
	}
	return 0, nil
}

// Publish makes a frame of Begin the newest for readers in other processes, with its Seq, Captured and
// CapturedBy as they are now. The reference stays the caller's. A frame of another ring, and one that is published
// already, is left as it is.
func (r *Ring) Publish(f *frame.Frame) {
	i, s := r.find(f)
	if s == nil || s.count != 0 {
		return
	}
	r.count++
	s.count = r.count
	now := r.clock.now()
	le := binary.LittleEndian
	le.PutUint64(s.head[atCount:], s.count)
	le.PutUint64(s.head[atSeq:], f.Seq)
	mono, wall := int64(0), int64(0)
	if !f.Captured.IsZero() {
		mono, wall = r.clock.at(f.Captured), f.Captured.UnixNano()
	}
	le.PutUint64(s.head[atMono:], uint64(mono))
	le.PutUint64(s.head[atWall:], uint64(wall))
	le.PutUint64(s.head[atPublished:], uint64(now))
	le.PutUint32(s.head[atCapturedBy:], uint32(f.CapturedBy))
	le.PutUint64(s.head[atBytes:], uint64(r.head.frameBytes))
	fence()
	n := word64(s.head, atSequence)
	atomic.StoreUint64(n, *n+1)
	atomic.StoreUint64(word64(r.mem, atNewest), r.count<<8|uint64(i))
	r.smooth(now)
	r.tick()
}

// smooth keeps the interval between publications, each new one counting for an eighth.
func (r *Ring) smooth(now int64) {
	if r.count > 1 {
		word := word64(r.mem, atInterval)
		mean, since := int64(*word), now-r.last
		if r.count > 2 {
			since = mean + (since-mean)/8
		}
		atomic.StoreUint64(word, uint64(since))
	}
	r.last = now
}

// tick wakes the readers that wait.
func (r *Ring) tick() {
	word := word32(r.mem, atTick)
	atomic.AddUint32(word, 1)
	futexWake(word)
}

// Close ends the ring: readers are told that it is over. Its memory goes when the last frame is released.
func (r *Ring) Close() error {
	if r.closed.Swap(true) {
		return nil
	}
	atomic.StoreUint32(word32(r.mem, atClosed), 1)
	r.tick()
	err := r.file.Close()
	r.leave()
	return err
}

// enter holds the memory, unless it is gone already.
func (r *Ring) enter() bool {
	for n := r.users.Load(); n > 0; n = r.users.Load() {
		if r.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

func (r *Ring) leave() {
	if r.users.Add(-1) == 0 {
		_ = unix.Munmap(r.mem) // it fails only for what is no mapping
	}
}

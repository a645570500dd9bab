package ort

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Arena is one block of memory for the intermediate tensors of bindings that take
// turns: a run waits until the one before it has ended. It is as large as the
// largest of their plans, not as their sum.
type Arena struct {
	turn sync.Mutex // held during a run, and to close
	mem  unsafe.Pointer
	size uintptr // mapped
	c    block

	slots, spill int64
	unlocked     error

	mu     sync.Mutex // guards users and closed
	users  int        // bindings that replay from it
	closed bool
}

// hugePage is what x86 and arm64 with 4 KiB pages call huge.
const hugePage = 2 << 20

// NewArena maps slots bytes for planned buffers and spill bytes for what is not planned, each
// rounded up to 64, fills in all pages and locks them where that is allowed: see
// Locked. shared takes shared memory instead of private. Close gives it back.
func NewArena(slots, spill int64, shared bool) (*Arena, error) {
	if slots < 0 || spill < 0 || slots > maxBytes || spill > maxBytes {
		return nil, fmt.Errorf("arena: cannot map %d and %d bytes", slots, spill)
	}
	a := &Arena{slots: aligned(slots), spill: aligned(spill)}
	kind := unix.MAP_PRIVATE
	if shared {
		kind = unix.MAP_SHARED
	}
	if err := a.mapPages(kind); err != nil {
		return nil, fmt.Errorf("arena: map %d bytes: %w", a.slots+a.spill, err)
	}
	if err := populate(a.bytes()); err != nil {
		return nil, errors.Join(fmt.Errorf("arena: fill %d bytes: %w", a.size, err), a.unmap())
	}
	a.unlocked = unix.Mlock(a.bytes())
	var err error
	if a.c, err = newBlock(a.mem, a.slots, a.spill); err != nil {
		return nil, errors.Join(fmt.Errorf("arena: %w", err), a.unmap())
	}
	return a, nil
}

// mapPages maps the block at a multiple of the huge page's size where it is as large as
// one: the kernel can then use huge pages from its beginning.
func (a *Arena) mapPages(kind int) error {
	page := uintptr(os.Getpagesize())
	a.size = (uintptr(a.slots+a.spill) + overrun + page - 1) &^ (page - 1)
	room := a.size
	if a.size >= hugePage {
		room += hugePage
	}
	mem, err := unix.MmapPtr(-1, 0, nil, room, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|kind)
	if err != nil {
		return err
	}
	a.mem = mem
	if room == a.size {
		return nil
	}
	skip := -uintptr(mem) & (hugePage - 1)
	a.mem = unsafe.Add(mem, skip)
	if skip > 0 {
		err = unix.MunmapPtr(mem, skip)
	}
	if rest := room - skip - a.size; rest > 0 {
		err = errors.Join(err, unix.MunmapPtr(unsafe.Add(a.mem, a.size), rest))
	}
	_ = unix.Madvise(a.bytes(), unix.MADV_HUGEPAGE) // a wish: kernels without them refuse
	return err
}

func (a *Arena) bytes() []byte { return unsafe.Slice((*byte)(a.mem), a.size) }

func (a *Arena) unmap() error { return unix.MunmapPtr(a.mem, a.size) }

// Bytes returns all pages, for measuring: what lies in them is the library's. It is nil after
// Close.
func (a *Arena) Bytes() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	return a.bytes()
}

// Huge returns how many bytes of the arena lie in huge pages, as far as the system tells. Reading
// that takes milliseconds.
func (a *Arena) Huge() int64 { return hugeBytes(a.Bytes()) }

// Slots returns the bytes for planned buffers.
func (a *Arena) Slots() int64 { return a.slots }

// Spill returns the bytes for what is not planned.
func (a *Arena) Spill() int64 { return a.spill }

// Mapped returns the bytes of all pages.
func (a *Arena) Mapped() int64 { return int64(a.size) }

// Locked returns nil if the pages cannot be swapped out, else why they could not be
// locked: mostly the limit on locked memory (ulimit -l).
func (a *Arena) Locked() error { return a.unlocked }

// Close gives the memory back. It fails, and does nothing, while a binding replays
// from the arena or a session keeps a buffer in it. A second Close does nothing.
func (a *Arena) Close() error {
	a.turn.Lock()
	defer a.turn.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	if a.users > 0 {
		return fmt.Errorf("arena: close: %d bindings use it", a.users)
	}
	if !a.c.free() {
		return errors.New("arena: close: a session keeps a buffer in it; close the session first")
	}
	a.closed = true
	return a.unmap()
}

// join counts a binding in, leave counts it out.
func (a *Arena) join() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return errors.New("the arena is closed")
	}
	a.users++
	return nil
}

func (a *Arena) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.users--
}

package ort

// #cgo CFLAGS: -fexceptions
// #include "alloc.h"
// #include "shim.h"
import "C"

import (
	"errors"
	"unsafe"
)

// This file holds every call from Go into alloc.c. Sizes are in bytes. The flag lets the
// exception for a lack of memory pass through the C frame that throws it.

const (
	alignment = C.EYAS_ALIGN
	guardSize = C.EYAS_GUARD
	overrun   = C.EYAS_OVERRUN
	none      = C.EYAS_NONE
)

// useAllocator registers our allocator with the library.
func useAllocator() error {
	var able C.int
	if err := statusError(C.eyas_use_allocator(&able)); err != nil {
		return err
	}
	if able == 0 {
		return errors.New("it brings no C++ runtime that can report a lack of memory")
	}
	return nil
}

// watch and watched enclose what has to stay on one thread; watched returns the bytes
// of our allocator that this thread took in between, and that are in use.
func watch()         { C.eyas_watch() }
func watched() int64 { return int64(C.eyas_watched()) }

// Totals counts what all bindings of the process, and threads that run none, took
// from our allocator.
func Totals() Counts { return countsOf(C.eyas_total()) }

func countsOf(c C.eyas_counts) Counts {
	return Counts{
		Runs: int64(c.runs), Arena: int64(c.arena), Spill: int64(c.spill), Heap: int64(c.heap),
		ArenaBytes: int64(c.arena_bytes), SpillBytes: int64(c.spill_bytes), HeapBytes: int64(c.heap_bytes),
		Mismatches: int64(c.mismatches), Kept: int64(c.kept), HeapLive: int64(c.heap_live),
	}
}

// block is an arena in C.
type block struct{ c *C.eyas_arena }

func newBlock(base unsafe.Pointer, slots, spill int64) (block, error) {
	b := block{C.eyas_arena_new(base, C.size_t(slots), C.size_t(spill))}
	if b.c == nil {
		return b, errors.New("out of memory")
	}
	return b, nil
}

// free is false, and does nothing, while a part of the block is in use.
func (b block) free() bool { return C.eyas_arena_free(b.c) != 0 }

// kept returns how many blocks of earlier runs are in use among the slots.
func (b block) kept() int64 { return int64(C.eyas_arena_kept(b.c)) }

// limit is a quota in C.
type limit struct{ c *C.eyas_quota }

func newLimit(bytes int64) limit { return limit{C.eyas_quota_new(C.int64_t(bytes))} }

func (l limit) drop() { C.eyas_quota_drop(l.c) }

func (l limit) get() (used, peak int64) {
	var u, p C.int64_t
	C.eyas_quota_get(l.c, &u, &p)
	return int64(u), int64(p)
}

func (b call) limit(l limit) { C.eyas_lane_limit(b.c.lane, l.c) }

// record makes the next run a recorded one, whose events then are those of recording. It
// is served from the heap, or from a.
func (b call) record(a block) { C.eyas_lane_record(b.c.lane, a.c) }

func (b call) recording() (Recording, error) {
	var n C.size_t
	events := C.eyas_lane_events(b.c.lane, &n)
	if events == nil {
		return nil, errors.New("no memory for the recording")
	}
	r := make(Recording, n)
	for i, e := range unsafe.Slice(events, int(n)) {
		r[i] = Event{Request: int(e.id), Free: e.freed != 0, Bytes: int64(e.size)}
	}
	return r, nil
}

// replay serves later runs from the arena.
func (b call) replay(a block, slots []slot, open, check bool) error {
	list := make([]C.eyas_slot, len(slots)+1) // one more, so that there is an address to pass
	for i, s := range slots {
		list[i] = C.eyas_slot{offset: C.size_t(s.offset), size: C.size_t(s.size), need: C.uint32_t(s.need), rank: C.uint32_t(s.rank)}
	}
	if C.eyas_lane_replay(b.c.lane, a.c, &list[0], C.uint32_t(len(slots)), flag(open), flag(check)) == 0 {
		return errors.New("out of memory")
	}
	return nil
}

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

func (b call) plain() { C.eyas_lane_plain(b.c.lane) }

func (b call) counts() Counts { return countsOf(C.eyas_lane_counts(b.c.lane)) }

// refused says whether the last run wanted memory that it did not get.
func (b call) refused() bool { return C.eyas_lane_refused(b.c.lane) != 0 }

// broken returns the slot that the last run wrote past the end of, -1 for none.
func (b call) broken() int {
	id := C.eyas_lane_broken(b.c.lane)
	if id == none {
		return -1
	}
	return int(id)
}

// shrink is for tests: the guard of a slot begins that many bytes early.
func (b call) shrink(id, bytes int) { C.eyas_lane_shrink(b.c.lane, C.uint32_t(id), C.size_t(bytes)) }

var reasons = map[C.int]string{
	C.EYAS_TOO_LARGE: "larger than its slot",
	C.EYAS_TOO_EARLY: "before a free that came first in the recording",
	C.EYAS_TOO_MANY:  "one more than in the recording",
	C.EYAS_KEPT:      "a buffer of an earlier run is still in use",
}

func (b call) mismatch() (Mismatch, bool) {
	m := C.eyas_lane_mismatch(b.c.lane)
	return Mismatch{Request: int(m.id), Bytes: int64(m.size), Slot: int64(m.slot), Why: reasons[m.why]}, m.why != 0
}

package ort

// Counts says where the tensor memory of runs came from. All numbers but HeapLive only grow.
type Counts struct {
	Runs       int64 // that ended, with an error or without
	Arena      int64 // requests served from their slots, or by RecordIn from the space of all slots
	Spill      int64 // from the spill block
	Heap       int64 // from malloc
	ArenaBytes int64 // of the requests served from the arena
	SpillBytes int64 // of those served from the spill block
	HeapBytes  int64 // of those served from malloc
	Mismatches int64 // runs that left the schedule
	Kept       int64 // slots that were still in use when a run ended
	HeapLive   int64 // bytes from malloc that are in use now; in Totals only
}

// Mismatch is a request that did not go by the schedule. The rest of its run was
// served from the spill block and the heap.
type Mismatch struct {
	Request int
	Bytes   int64 // asked for
	Slot    int64 // bytes of its slot, 0 if it has none
	Why     string
}

// Quota limits the bytes that bindings may have from the heap at one time, beside
// arena and spill block. Several bindings may share one.
type Quota struct {
	c     limit
	bytes int64
}

// NewQuota returns a quota of so many bytes. It is released with Close.
func NewQuota(bytes int64) *Quota { return &Quota{newLimit(bytes), bytes} }

// Used returns the bytes in use now, and the most that there were.
func (q *Quota) Used() (now, peak int64) { return q.c.get() }

// Close releases the quota, which must not be given to bindings any more; those that
// have it keep it.
func (q *Quota) Close() {
	q.c.drop()
	q.c = limit{}
}

// own says, as an error, that a binding cannot do what needs Options.OwnAllocator.
func (b *Binding) own(what string) error {
	if b.closed {
		return fail(ErrRun, "%s: %s: the binding is closed", b.session.name, what)
	}
	if !b.session.own {
		return fail(ErrRun, "%s: %s: the session uses the library's allocator", b.session.name, what)
	}
	return nil
}

// Record is Run with memory from the heap, and returns the requests that the run made.
// It needs Options.OwnAllocator, and a run before it: in its first one a session also
// allocates what it keeps.
func (b *Binding) Record() (Recording, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.own("record"); err != nil {
		return nil, err
	}
	b.call.record(block{})
	if err := b.run(); err != nil {
		return nil, err
	}
	return b.recording()
}

// RecordIn is Record with memory from an arena that is there already, whether bindings
// replay from it or not: the space of its slots serves as a heap for the time of the run.
// What does not fit comes from the spill block and then from the heap, charged to the
// binding's Limit: beyond it the run fails with ErrQuota.
//
// First fit can waste half of an arena. A binding that replays from this one
// gets the places of its plan as long as they suffice, and needs no more than the plan where the run goes
// by it; the plan of a larger input serves a smaller one. It goes on replaying.
//
// Outputs that the library allocates are freed when RecordIn returns: for their values
// the caller runs again, by the new recording. Outputs that are bound are as after Run. It
// waits for a run under way in the arena; no plan of it and no output in its spill block
// is touched. Guards are not checked.
//
// The session should have run before, with any binding: in its first run it may allocate what it keeps,
// and until that is freed an arena hands out no slot. RecordIn then fails.
func (b *Binding) RecordIn(a *Arena) (Recording, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.own("record"); err != nil {
		return nil, err
	}
	a.turn.Lock()
	defer a.turn.Unlock()
	if err := a.join(); err != nil {
		return nil, fail(ErrRun, "%s: record: %v", b.session.name, err)
	}
	defer a.leave()
	before := a.c.kept()
	b.call.record(a.c)
	err := b.runInTurn()
	b.endViews()
	b.call.releaseOutputs()
	if err != nil {
		return nil, err
	}
	if n := a.c.kept() - before; n > 0 {
		return nil, fail(ErrRun, "%s: record: the session keeps %d buffers of the run in the arena; run the model once before", b.session.name, n)
	}
	return b.recording()
}

// recording returns the events of the run that was recorded last.
func (b *Binding) recording() (Recording, error) {
	r, err := b.call.recording()
	if err != nil {
		return nil, fail(ErrRun, "%s: record: %v", b.session.name, err)
	}
	return r, nil
}

// Replay serves later runs from the arena, each request of the schedule from its
// offset: those of a solution of s.Problem, whose height is at most a.Slots. It needs
// Options.OwnAllocator. Plain, Close or another Replay ends it.
//
// A run that leaves the schedule goes on with the spill block and the heap; it gives
// the same results.
func (b *Binding) Replay(a *Arena, s *Schedule, offsets []int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.own("replay"); err != nil {
		return err
	}
	slots, err := s.place(offsets, a.slots)
	if err != nil {
		return fail(ErrRun, "%s: replay: %v", b.session.name, err)
	}
	b.leaveArena()
	if err := a.join(); err != nil {
		return fail(ErrRun, "%s: replay: %v", b.session.name, err)
	}
	b.arena = a
	b.check = s.check
	b.slots = slots
	if err := b.call.replay(a.c, slots, s.open, s.check); err != nil {
		b.leaveArena()
		return fail(ErrRun, "%s: replay: %v", b.session.name, err)
	}
	return nil
}

// Plain ends Replay, and the outputs that the library allocated: later runs have their
// memory from the heap.
func (b *Binding) Plain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leaveArena()
}

func (b *Binding) leaveArena() {
	if b.arena == nil {
		return
	}
	b.endViews()
	b.call.releaseOutputs()
	b.call.plain()
	b.arena.leave()
	b.arena, b.slots, b.check = nil, nil, false
}

// Limit charges what later runs take from the heap to q, nil for no limit. A run that
// would need more fails with ErrQuota, as no other run does. Record is not charged.
func (b *Binding) Limit(q *Quota) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.own("limit"); err != nil {
		return err
	}
	b.quota = q
	if q == nil {
		b.call.limit(limit{})
	} else {
		b.call.limit(q.c)
	}
	return nil
}

// Counts says where the memory of this binding's runs came from. All are 0 without
// Options.OwnAllocator.
func (b *Binding) Counts() Counts {
	b.end.Lock()
	defer b.end.Unlock()
	if b.closed || !b.session.own {
		return Counts{}
	}
	return b.call.counts()
}

// Mismatch returns how the last run that left the schedule did so; false if none did.
// It waits for a run under way.
func (b *Binding) Mismatch() (Mismatch, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || !b.session.own {
		return Mismatch{}, false
	}
	return b.call.mismatch()
}

// shortage is the error of a run that did not get the memory that it asked for.
func (b *Binding) shortage() error {
	if b.quota == nil {
		return fail(ErrRun, "%s: run: out of memory", b.session.name)
	}
	used, _ := b.quota.Used()
	return fail(ErrQuota, "%s: run: needs more than its quota of %d bytes beside the arena, of which %d are in use; raise the quota",
		b.session.name, b.quota.bytes, used)
}

// overwritten is the error of a run that wrote past the end of a slot.
func (b *Binding) overwritten(id int) error {
	s := b.slots[id]
	return fail(ErrRun, "%s: run: slot %d (%d bytes at offset %d of the arena): the bytes behind it were overwritten",
		b.session.name, id, s.size, s.offset)
}

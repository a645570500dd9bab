package ort

// Overrun is the bytes that an arena maps beside its slots and its spill block: kernels read past the end
// of a buffer.
const Overrun = overrun

// Own says whether the session takes the memory of tensors from our allocator: Options.OwnAllocator.
func (s *Session) Own() bool { return s.own }

// Plus returns the sum of both counts.
func (c Counts) Plus(d Counts) Counts {
	return Counts{
		Runs: c.Runs + d.Runs, Arena: c.Arena + d.Arena, Spill: c.Spill + d.Spill, Heap: c.Heap + d.Heap,
		ArenaBytes: c.ArenaBytes + d.ArenaBytes, SpillBytes: c.SpillBytes + d.SpillBytes, HeapBytes: c.HeapBytes + d.HeapBytes,
		Mismatches: c.Mismatches + d.Mismatches, Kept: c.Kept + d.Kept, HeapLive: c.HeapLive + d.HeapLive,
	}
}

// Minus returns what was counted since d was.
func (c Counts) Minus(d Counts) Counts {
	return Counts{
		Runs: c.Runs - d.Runs, Arena: c.Arena - d.Arena, Spill: c.Spill - d.Spill, Heap: c.Heap - d.Heap,
		ArenaBytes: c.ArenaBytes - d.ArenaBytes, SpillBytes: c.SpillBytes - d.SpillBytes, HeapBytes: c.HeapBytes - d.HeapBytes,
		Mismatches: c.Mismatches - d.Mismatches, Kept: c.Kept - d.Kept, HeapLive: c.HeapLive - d.HeapLive,
	}
}

// Trim gives free pages of the C heap back to the system: what recorded runs and the optimisation of a
// model took and do not need any more.
func Trim() { trim() }

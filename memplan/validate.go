package memplan

import (
	"fmt"
	"sort"
)

// Validate says whether a solution is a plan for the problem: every buffer has an offset that its alignment,
// fixed offset and alias allow, no two overlap in time and space, and the height is where the highest ends,
// no lower than the bytes live at the busiest time.
//
// It shares no code with the solver, and compares buffers as they stand in the problem.
func Validate(p Problem, s Solution) error {
	if len(s.Offsets) != len(p.Buffers) {
		return fmt.Errorf("%d offsets for %d buffers", len(s.Offsets), len(p.Buffers))
	}
	var top int64
	for i, b := range p.Buffers {
		at := s.Offsets[i]
		switch {
		case b.Upper <= b.Lower || b.Size < 0:
			return fmt.Errorf("buffer %d is not one: lifetime [%d, %d), size %d", i, b.Lower, b.Upper, b.Size)
		case at < 0 || at+b.Size < at:
			return fmt.Errorf("buffer %d lies at %d", i, at)
		case b.Align > 1 && at%b.Align != 0:
			return fmt.Errorf("buffer %d lies at %d, no multiple of %d", i, at, b.Align)
		case b.Fixed != nil && at != *b.Fixed:
			return fmt.Errorf("buffer %d lies at %d, not at %d", i, at, *b.Fixed)
		case b.Alias != nil && at != s.Offsets[*b.Alias]:
			return fmt.Errorf("buffer %d lies at %d, its alias %d at %d", i, at, *b.Alias, s.Offsets[*b.Alias])
		}
		if b.Size > 0 && at+b.Size > top {
			top = at + b.Size
		}
	}
	blocks := storages(p, s)
	live, err := sweep(blocks)
	switch {
	case err != nil:
		return err
	case s.Height != top:
		return fmt.Errorf("height %d, the highest buffer ends at %d", s.Height, top)
	case s.LowerBound < live || s.LowerBound > s.Height:
		return fmt.Errorf("lower bound %d, with %d bytes live at the busiest time and a height of %d", s.LowerBound, live, s.Height)
	case s.Height == s.LowerBound && !s.Proven:
		return fmt.Errorf("height %d is the lower bound, and not called proven", s.Height)
	}
	return nil
}

// block is what lies in memory: the storage of a buffer and its aliases.
type block struct {
	first      int // the lowest index of its buffers
	begin, end int
	at, size   int64
}

// storages joins the buffers that share storage.
func storages(p Problem, s Solution) []block {
	neighbours := make([][]int, len(p.Buffers))
	for i, b := range p.Buffers {
		if b.Alias != nil {
			neighbours[i] = append(neighbours[i], *b.Alias)
			neighbours[*b.Alias] = append(neighbours[*b.Alias], i)
		}
	}
	var blocks []block
	seen := make([]bool, len(p.Buffers))
	for i, b := range p.Buffers {
		if seen[i] {
			continue
		}
		joined := block{first: i, begin: b.Lower, end: b.Upper, at: s.Offsets[i]}
		seen[i] = true
		for queue := []int{i}; len(queue) > 0; queue = queue[1:] {
			member := p.Buffers[queue[0]]
			if member.Lower < joined.begin {
				joined.begin = member.Lower
			}
			if member.Upper > joined.end {
				joined.end = member.Upper
			}
			if member.Size > joined.size {
				joined.size = member.Size
			}
			for _, n := range neighbours[queue[0]] {
				if !seen[n] {
					seen[n] = true
					queue = append(queue, n)
				}
			}
		}
		if joined.size > 0 {
			blocks = append(blocks, joined)
		}
	}
	return blocks
}

// sweep goes through time with the blocks that live, and returns the most bytes that live at once.
func sweep(blocks []block) (int64, error) {
	sort.Slice(blocks, func(i, j int) bool { return blocks[i].begin < blocks[j].begin })
	var alive []block
	var most int64
	for _, b := range blocks {
		kept, bytes := alive[:0], b.size
		for _, a := range alive {
			if a.end <= b.begin {
				continue
			}
			if a.at < b.at+b.size && b.at < a.at+a.size {
				return 0, fmt.Errorf("buffers %d and %d overlap: both live at %d, at [%d, %d) and [%d, %d)",
					a.first, b.first, b.begin, a.at, a.at+a.size, b.at, b.at+b.size)
			}
			kept = append(kept, a)
			bytes += a.size
		}
		alive = append(kept, b)
		if bytes > most {
			most = bytes
		}
	}
	return most, nil
}

package memplan

import "math/bits"

// node searches a part whose unplaced items are rest, by (low, rank), within a range of sections. Offsets
// below floor are over, and at floor ranks up to last.
func (s *search) node(rest []int32, in span, floor int64, last int32) outcome {
	first := 0
	for first < len(rest) && !s.after(rest[first], floor, last) {
		first++
	}
	if first == len(rest) {
		return dead // nothing can come next
	}
	// The next placement is at least here, and so are all.
	next := s.low[rest[first]]
	if !s.off.noBound && !s.fits(rest, in, next) {
		return dead
	}
	if s.off.noMemo || len(rest) < 4 {
		return s.branch(rest[first:], rest, in, next)
	}
	k := s.key(rest)
	e := &s.memo[k.a%uint64(len(s.memo))]
	if e.key == k && e.floor <= next {
		return dead
	}
	o := s.branch(rest[first:], rest, in, next)
	if o == dead {
		if next == floor && last >= 0 {
			next++ // some at this offset were left out
		}
		*e = entry{k, next}
	}
	return o
}

// after says whether item i comes after (floor, last) in the canonical order.
func (s *search) after(i int32, floor int64, last int32) bool {
	return s.low[i] > floor || s.low[i] == floor && s.rank[i] > last
}

// branch tries each candidate as the next placement. next is the first one's low.
func (s *search) branch(candidates, rest []int32, in span, next int64) outcome {
	items := s.in.items
	highest := s.capacity // offset for the next placement
	for k := in.from; k <= in.to && !s.off.noBound; k++ {
		// All that is left of a section lies at the next placement or above it.
		if n := s.need[k]; n > 0 {
			highest = min(highest, s.capacity+s.in.pad[k]-n)
		}
	}
	for _, i := range rest {
		if s.off.noDominance {
			break
		}
		// Dominance. An unplaced fixed item that ends here or below has been passed: then there is no plan anyway.
		highest = min(highest, s.low[i]+items[i].size-1)
	}
	for _, x := range rest[:len(rest)-len(candidates)] {
		if s.in.anyFixed && items[x].fixed >= 0 {
			return dead // passed: it can no longer be placed where it has to be
		}
	}
	for _, x := range candidates {
		at := s.low[x]
		if at > highest {
			break
		}
		if s.nodes >= s.limit || s.nodes&255 == 255 && s.halt() {
			return stopped
		}
		if t := s.twin[x]; t >= 0 && !s.placed[t] && !s.off.noTwins {
			continue
		}
		if s.blocked(rest, x, at) {
			continue
		}
		s.nodes++
		if o := s.place(rest, x, at, in); o != dead {
			return o
		}
		if items[x].fixed >= 0 {
			break // all that follows would pass it
		}
	}
	return dead
}

// blocked says whether an unplaced fixed item is in the way.
func (s *search) blocked(rest []int32, x int32, at int64) bool {
	if !s.in.anyFixed || s.in.items[x].fixed >= 0 {
		return false
	}
	it := &s.in.items[x]
	for _, y := range rest {
		if other := &s.in.items[y]; other.fixed >= 0 && other.fixed < at+it.size && it.overlaps(other) {
			return true
		}
	}
	return false
}

// place puts x at an offset, searches what remains, and takes it away again unless a plan was found.
func (s *search) place(rest []int32, x int32, at int64, in span) outcome {
	it := &s.in.items[x]
	base, mark := len(s.stack), len(s.undo)
	o := dead
	if s.raise(rest, x, at+it.stride) {
		for k := it.lo; k <= it.hi; k++ {
			s.need[k] -= it.stride
		}
		s.at[x], s.placed[x] = at, true
		o = s.split(s.remaining(rest, x, s.undo[mark:]), in, at, s.rank[x])
		s.placed[x] = false
		for k := it.lo; k <= it.hi; k++ {
			s.need[k] += it.stride
		}
	}
	for _, u := range s.undo[mark:] {
		s.low[u.item] = u.low
	}
	s.undo, s.stack = s.undo[:mark], s.stack[:base]
	return o
}

// raise lifts the lows of what lives with x to x's end. It says whether they all still fit.
func (s *search) raise(rest []int32, x int32, end int64) bool {
	it := &s.in.items[x]
	for _, y := range rest {
		other := &s.in.items[y]
		if y == x || s.low[y] >= end || !it.overlaps(other) {
			continue
		}
		low := roundUp(end, other.align)
		if other.fixed >= 0 || low+other.size > s.capacity {
			return false
		}
		s.undo = append(s.undo, raised{y, s.low[y]})
		s.low[y] = low
	}
	return true
}

// remaining returns rest without x, by (low, rank) again. The raised items, which stand in the order of rest,
// mostly have one low now: they are sorted by rank through a set of bits, then merged in.
func (s *search) remaining(rest []int32, x int32, changed []raised) []int32 {
	for _, u := range changed {
		r := s.rank[u.item]
		s.marked[r>>6] |= 1 << (r & 63)
	}
	up := s.up[:0]
	for w := 0; len(up) < len(changed); w++ {
		for m := s.marked[w]; m != 0; m &= m - 1 {
			y := s.ranked[w<<6+bits.TrailingZeros64(m)]
			j := len(up)
			up = append(up, y)
			for ; j > 0 && s.low[up[j-1]] > s.low[y]; j-- { // only where alignments differ
				up[j] = up[j-1]
			}
			up[j] = y
		}
		s.marked[w] = 0
	}
	base := len(s.stack)
	for _, y := range rest {
		if y == x {
			continue
		}
		if len(changed) > 0 && changed[0].item == y {
			changed = changed[1:]
			continue
		}
		for len(up) > 0 && !s.after(up[0], s.low[y], s.rank[y]) {
			s.stack = append(s.stack, up[0])
			up = up[1:]
		}
		s.stack = append(s.stack, y)
	}
	s.stack = append(s.stack, up...)
	return s.stack[base:len(s.stack):len(s.stack)]
}

// fits is the bound: in every section the unplaced items have to be stacked between the least of their
// lows, or the next placement where that is more, and the capacity. The uppermost needs its size only.
//
// Since rest is sorted by low, the first item to reach a section has its least; skip leads past the sections
// that have been reached, so that each is looked at once.
func (s *search) fits(rest []int32, in span, next int64) bool {
	skip := s.skip
	for k := in.from; k <= in.to+1; k++ {
		skip[k] = k
	}
	left := in.to - in.from + 1
	for _, y := range rest {
		it := &s.in.items[y]
		room := s.capacity - max(s.low[y], next)
		for k := it.lo; ; k++ {
			for skip[k] != k {
				skip[k] = skip[skip[k]]
				k = skip[k]
			}
			if k > it.hi {
				break
			}
			if s.need[k]-s.in.pad[k] > room {
				return false
			}
			skip[k] = k + 1
			left--
		}
		if left == 0 {
			break
		}
	}
	return true
}

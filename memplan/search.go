package memplan

import (
	"cmp"
	"slices"
)

type outcome int

const (
	dead outcome = iota // no plan within the capacity
	found
	stopped // the node limit or the context ended it
)

// prune switches parts of the search off. All of them only prune: the tests run every combination.
type prune struct {
	noBound, noDominance, noSplit, noMemo, noTwins, noPassed bool
}

// search looks for a plan within a capacity.
type search struct {
	in       *instance
	capacity int64
	order    order
	off      prune
	limit    int64
	nodes    int64
	halt     func() bool

	at     []int64 // offset of a placed item
	placed []bool
	twin   []int32
	low    []int64 // the least offset that the placed ones leave an unplaced item
	need   []int64 // of each section: strides of its unplaced items
	load   []int64 // scratch
	reach  []int32 // scratch
	rank   []int32
	undo   []raised
	stack  []int32
	keys   []int64
	memo   []entry
}

type raised struct {
	item int32
	low  int64
}

func newSearch(in *instance, off prune) *search {
	n := len(in.items)
	s := &search{in: in, off: off, placed: make([]bool, n), twin: make([]int32, n),
		at: make([]int64, n), low: make([]int64, n), rank: make([]int32, n),
		load: make([]int64, len(in.need)), reach: make([]int32, len(in.need)),
		memo: make([]entry, 1<<16),
	}
	for i := range s.twin {
		s.twin[i] = -1
		a := &in.items[i]
		for j := range i {
			b := &in.items[j]
			if a.fixed < 0 && b.fixed < 0 && a.lo == b.lo && a.hi == b.hi && a.size == b.size && a.align == b.align {
				s.twin[i] = int32(j)
			}
		}
	}
	return s
}

func (s *search) run(ord order, capacity, limit int64, halt func() bool) outcome {
	clear(s.memo)
	s.order = ord
	s.capacity, s.limit, s.nodes, s.halt = capacity, limit, 0, halt
	s.need = slices.Clone(s.in.need)
	s.undo, s.stack = s.undo[:0], s.stack[:0]
	clear(s.placed)
	for i := range s.in.items {
		s.low[i] = max(0, s.in.items[i].fixed)
		s.stack = append(s.stack, int32(i))
	}
	return s.split(s.stack, 0, int32(len(s.in.need)-1), 0, -1, true)
}

type span struct{ a, b int32 }

// split solves the independent parts of what is unplaced.
func (s *search) split(rest []int32, a, b int32, floor int64, last int32, fresh bool) outcome {
	if len(rest) == 0 {
		return found
	}
	if s.off.noSplit && !fresh {
		return s.node(rest, a, b, floor, last)
	}
	for k := a; k <= b; k++ {
		s.reach[k] = -1
	}
	for _, i := range rest {
		it := &s.in.items[i]
		if it.hi > s.reach[it.lo] {
			s.reach[it.lo] = it.hi
		}
	}
	var spans []span
	from, end := int32(-1), int32(-1)
	for k := a; k <= b; k++ {
		r := s.reach[k]
		if r < 0 {
			continue
		}
		if from >= 0 && k > end {
			spans = append(spans, span{from, end})
			from = -1
		}
		if from < 0 {
			from, end = k, r
		}
		end = max(end, r)
	}
	if len(spans) == 0 && !fresh {
		return s.node(rest, from, end, floor, last)
	}
	spans = append(spans, span{from, end})
	base := len(s.stack)
	// tightest first
	slices.SortStableFunc(spans, func(x, y span) int {
		return cmp.Compare(s.slack(x), s.slack(y))
	})
	for _, sp := range spans {
		from := len(s.stack)
		for _, i := range rest {
			if s.in.items[i].lo >= sp.a && s.in.items[i].hi <= sp.b {
				s.stack = append(s.stack, i)
			}
		}
		if o := s.part(s.stack[from:len(s.stack):len(s.stack)], sp.a, sp.b, floor); o != found {
			s.stack = s.stack[:base]
			return o
		}
	}
	s.stack = s.stack[:base]
	return found
}

func (s *search) slack(x span) int64 {
	return -slices.Max(s.need[x.a : x.b+1])
}

func (s *search) part(rest []int32, a, b int32, floor int64) outcome {
	if len(rest) == 1 {
		i := rest[0]
		at := s.low[i]
		if at < floor || at+s.in.items[i].size > s.capacity {
			return dead
		}
		s.at[i] = at
		return found
	}
	base := len(s.stack)
	s.stack = append(s.stack, rest...)
	for _, i := range rest {
		s.stack = append(s.stack, s.rank[i])
	}
	saved := s.stack[base:len(s.stack):len(s.stack)]
	s.setRanks(rest, a, b)
	slices.SortFunc(rest, func(x, y int32) int {
		return cmp.Or(cmp.Compare(s.low[x], s.low[y]), cmp.Compare(s.rank[x], s.rank[y]))
	})
	o := s.node(rest, a, b, floor, -1)
	for j, i := range saved[:len(rest)] {
		s.rank[i] = saved[len(rest)+j]
	}
	s.stack = s.stack[:base]
	return o
}

// node tries every canonical next placement.
func (s *search) node(rest []int32, a, b int32, floor int64, last int32) outcome {
	first := 0
	for first < len(rest) {
		l := s.low[rest[first]]
		if l > floor || l == floor && s.rank[rest[first]] > last {
			break
		}
		first++
	}
	if first == len(rest) {
		return dead
	}
	eff := s.low[rest[first]]
	if !s.off.noBound && !s.fits(rest, a, b, eff) {
		return dead
	}
	var k key
	memo := !s.off.noMemo && len(rest) > 3
	if memo {
		k = s.hash(rest)
		if e := &s.memo[k.a%uint64(len(s.memo))]; e.key == k && e.floor <= eff {
			return dead
		}
	}
	before := s.nodes
	o := s.branch(rest, first, a, b, floor, last)
	if memo && o == dead {
		e := &s.memo[k.a%uint64(len(s.memo))]
		_ = before
		if eff == floor && last >= 0 {
			eff++
		}
		*e = entry{k, eff}
	}
	return o
}

func (s *search) branch(rest []int32, first int, a, b int32, floor int64, last int32) outcome {
	items := s.in.items
	top := s.capacity
	if !s.off.noBound {
		for k := a; k <= b; k++ {
			if n := s.need[k]; n > 0 {
				top = min(top, s.capacity+s.in.pad[k]-n)
			}
		}
	}
	under := s.capacity
	for _, i := range rest {
		under = min(under, s.low[i]+items[i].size)
	}
	if s.off.noDominance {
		under = s.capacity
	}
	for _, x := range rest {
		at := s.low[x]
		if at < floor || at == floor && s.rank[x] <= last {
			if items[x].fixed >= 0 {
				return dead
			}
			continue
		}
		if at > top || at >= under {
			break
		}
		if s.nodes >= s.limit {
			return stopped
		}
		s.nodes++
		if s.nodes&1023 == 0 && s.halt != nil && s.halt() {
			return stopped
		}
		if t := s.twin[x]; t >= 0 && !s.placed[t] && !s.off.noTwins {
			continue
		}
		if items[x].fixed < 0 && s.blocked(rest, x, at) {
			continue
		}
		if o := s.place(rest, x, at, a, b); o != dead {
			return o
		}
		if items[x].fixed >= 0 {
			break
		}
	}
	return dead
}

func (s *search) blocked(rest []int32, x int32, at int64) bool {
	it := &s.in.items[x]
	for _, y := range rest {
		o := &s.in.items[y]
		if o.fixed >= 0 && o.fixed < at+it.size && it.overlaps(o) {
			return true
		}
	}
	return false
}

func (s *search) place(rest []int32, x int32, at int64, a, b int32) outcome {
	items := s.in.items
	it := &items[x]
	roof := at + it.stride
	base, mark := len(s.stack), len(s.undo)
	o := dead
	// child list: unchanged and raised merged
	ok := true
	for _, y := range rest {
		if y == x {
			continue
		}
		other := &items[y]
		if s.low[y] >= roof || !it.overlaps(other) {
			continue
		}
		low := roundUp(roof, other.align)
		if low+other.size > s.capacity || other.fixed >= 0 {
			ok = false
			break
		}
		s.undo = append(s.undo, raised{y, s.low[y]})
		s.low[y] = low
	}
	if ok {
		for k := it.lo; k <= it.hi; k++ {
			s.need[k] -= it.stride
		}
		s.at[x], s.placed[x] = at, true
		child := s.child(rest, x, mark)
		o = s.split(child, a, b, at, s.rank[x], false)
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

func (s *search) child(rest []int32, x int32, mark int) []int32 {
	base := len(s.stack)
	up := s.undo[mark:]
	for _, y := range rest {
		if y == x {
			continue
		}
		// raised ones are in the order of rest
		if len(up) > 0 && up[0].item == y {
			up = up[1:]
			continue
		}
		s.stack = append(s.stack, y)
	}
	// insert raised
	for _, u := range s.undo[mark:] {
		y := u.item
		j := len(s.stack)
		s.stack = append(s.stack, y)
		for j > base && s.after(s.stack[j-1], y) {
			s.stack[j] = s.stack[j-1]
			j--
		}
		s.stack[j] = y
	}
	return s.stack[base:len(s.stack):len(s.stack)]
}

func (s *search) after(x, y int32) bool {
	return s.low[x] > s.low[y] || s.low[x] == s.low[y] && s.rank[x] > s.rank[y]
}

// fits: the strongest release-time bound.
func (s *search) fits(rest []int32, a, b int32, floor int64) bool {
	load := s.load
	for k := a; k <= b; k++ {
		load[k] = -s.in.pad[k]
	}
	for j := len(rest) - 1; j >= 0; j-- {
		it := &s.in.items[rest[j]]
		room := s.capacity - max(s.low[rest[j]], floor)
		stride := it.stride
		for k, l := range load[it.lo : it.hi+1] {
			l += stride
			load[int(it.lo)+k] = l
			if l > room {
				return false
			}
		}
	}
	return true
}

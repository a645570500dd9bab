package memplan

import (
	"cmp"
	"slices"
)

// The search decides whether a plan fits within a capacity. It builds plans from the bottom: the next item
// goes to the least offset that those already placed leave it (its low), and placements come in the order
// of (offset, rank). Every prune below keeps one plan alive, if there is any: the one with the least sum of
// offsets, in which of equal items the first lies lowest. Call it the least plan.
//
//   - Canonical order: in the least plan nothing can sink, so that every item lies at 0, on another
//     one or where it is fixed. Its items, taken by (offset, rank), are placed at their lows one after the other.
//   - Dominance (branch): nothing goes to an offset at which an unplaced item could end. That item would
//     have to go higher later on, and could sink to its low in any plan that came of it.
//   - Twins (branch): of items equal in size, lifetime and alignment the first is placed first. Exchanging two changes no sum.
//   - Bound (fits): the unplaced items of a section have to be stacked above the least of their lows.
//   - Split (split): parts that share no section are independent; a plan is one of each.
//   - Memo (node): what can follow depends on nothing but the unplaced items, their lows and the least
//     offset allowed (the floor). A state without a plan has none with a higher floor either.

type outcome int

const (
	dead    outcome = iota // no plan within the capacity
	found                  // at holds one
	stopped                // the node limit or halt ended the search
)

// prune switches prunes off, for the tests that show that they change no answer.
type prune struct {
	noBound, noDominance, noSplit, noMemo, noTwins bool
}

// search is one worker's state. It is made once and run many times.
type search struct {
	in       *instance
	off      prune
	order    order
	capacity int64
	limit    int64 // of nodes
	nodes    int64
	halt     func() bool // asked now and then

	at     []int64 // offset of each placed item
	placed []bool
	twin   []int32 // of each item: the equal one before it, -1 for none
	low    []int64 // the least offset that the placed ones leave each unplaced item
	need   []int64 // of each section: strides of its unplaced items
	rank   []int32 // of each unplaced item within its part, the first in line has 0
	ranked []int32 // the current part's items by rank, with those placed since
	undo   []raised
	stack  []int32 // the lists of unplaced items, one on the other
	memo   []entry

	// Scratch.
	reach, skip, up []int32
	marked          []uint64
	keys            []int64
}

// raised is an item's low before a placement raised it.
type raised struct {
	item int32
	low  int64
}

const memoEntries = 1 << 16 // 1.5 MB; four times as many save no time on the problems tried

func newSearch(in *instance, off prune) *search {
	n, sections := len(in.items), len(in.need)
	s := &search{in: in, off: off,
		at: make([]int64, n), placed: make([]bool, n), twin: make([]int32, n), low: make([]int64, n),
		need: make([]int64, sections), rank: make([]int32, n), memo: make([]entry, memoEntries),
		reach: make([]int32, sections), skip: make([]int32, sections+1), up: make([]int32, n), marked: make([]uint64, n/64+1),
	}
	type shape struct {
		lo, hi      int32
		size, align int64
	}
	last := map[shape]int32{}
	for i := range in.items {
		it := &in.items[i]
		s.twin[i] = -1
		if it.fixed >= 0 {
			continue
		}
		sh := shape{it.lo, it.hi, it.size, it.align}
		if j, ok := last[sh]; ok {
			s.twin[i] = j
		}
		last[sh] = int32(i)
	}
	return s
}

// run searches with one order of ranks, from the beginning: the outcome and nodes depend on the arguments
// alone, unless halt ends it.
func (s *search) run(by order, capacity, limit int64, halt func() bool) outcome {
	s.order, s.capacity, s.limit, s.nodes, s.halt = by, capacity, limit, 0, halt
	clear(s.memo)
	clear(s.placed)
	copy(s.need, s.in.need)
	s.undo, s.stack = s.undo[:0], s.stack[:0]
	for i := range s.in.items {
		s.low[i] = max(0, s.in.items[i].fixed)
		s.stack = append(s.stack, int32(i))
	}
	return s.parts(s.stack, s.spans(s.stack, 0, int32(len(s.need)-1)), 0)
}

// span is a range of sections, both ends included.
type span struct{ from, to int32 }

// spans returns the ranges of sections that the items of rest cover without a boundary that none of them
// crosses, within the sections from and to.
func (s *search) spans(rest []int32, from, to int32) []span {
	reach := s.reach[from : to+1] // of each section: the last one of the items that begin in it
	for k := range reach {
		reach[k] = -1
	}
	for _, i := range rest {
		if it := &s.in.items[i]; it.hi > reach[it.lo-from] {
			reach[it.lo-from] = it.hi
		}
	}
	var first [4]span // most calls find one: no allocation
	spans := first[:0]
	end := int32(-1)
	for k, r := range reach {
		if r < 0 {
			continue
		}
		if section := from + int32(k); section > end {
			spans = append(spans, span{section, r})
		}
		end = max(end, r)
		spans[len(spans)-1].to = end
	}
	return spans
}

// split goes on with what is unplaced: by parts if there are several, else as before.
func (s *search) split(rest []int32, in span, floor int64, last int32) outcome {
	if len(rest) == 0 {
		return found
	}
	if s.off.noSplit {
		return s.node(rest, in, floor, last)
	}
	spans := s.spans(rest, in.from, in.to)
	if len(spans) == 1 {
		return s.node(rest, spans[0], floor, last)
	}
	return s.parts(rest, spans, floor)
}

// parts searches each part for itself, the one with the fullest section first: it is the likeliest to fail,
// and one failure is enough.
func (s *search) parts(rest []int32, spans []span, floor int64) outcome {
	fullest := func(p span) int64 { return slices.Max(s.need[p.from : p.to+1]) }
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(fullest(b), fullest(a)) })
	base := len(s.stack)
	o := found
	for _, p := range spans {
		begin := len(s.stack)
		for _, i := range rest {
			if it := &s.in.items[i]; it.lo >= p.from && it.hi <= p.to {
				s.stack = append(s.stack, i)
			}
		}
		if o = s.part(s.stack[begin:len(s.stack):len(s.stack)], p, floor); o != found {
			break
		}
	}
	s.stack = s.stack[:base]
	return o
}

// part ranks the items of a part by what remains of the problem, and searches it. The list is sorted in place.
func (s *search) part(rest []int32, in span, floor int64) outcome {
	base, n := len(s.stack), len(rest)
	// The ranks of the part around this one are needed again when this one fails.
	s.stack = append(s.stack, rest...)
	for _, i := range rest {
		s.stack = append(s.stack, s.rank[i])
	}
	s.stack = append(s.stack, rest...)
	saved, ranked, outer := s.stack[base:base+n], s.stack[base+2*n:base+3*n], s.ranked
	ranks := s.stack[base+n : base+2*n]
	s.setRanks(rest)
	for _, i := range rest {
		ranked[s.rank[i]] = i
	}
	s.ranked = ranked
	slices.SortFunc(rest, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.low[a], s.low[b]), cmp.Compare(s.rank[a], s.rank[b]))
	})
	o := s.node(rest, in, floor, -1)
	for j, i := range saved {
		s.rank[i] = ranks[j]
	}
	s.ranked, s.stack = outer, s.stack[:base]
	return o
}

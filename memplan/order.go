package memplan

import (
	"cmp"
	"slices"
)

// order names what an item's rank goes by, most important first, larger first:
// W sections lived in, T need of the busiest of these, A size times sections, Z size, L lifetime.
type order string

var orders = []order{"TLA", "AWT", "TWL", "TLW", "TAW", "TWA", "LWT", "WTL"}

func (s *search) setRanks(rest []int32, a, b int32) {
	w := len(s.order)
	n := len(rest)
	if cap(s.keys) < n*w {
		s.keys = make([]int64, len(s.in.items)*w)
	}
	keys := s.keys[:n*w]
	idx := make([]int32, n)
	for j, i := range rest {
		idx[j] = int32(j)
		for c := range w {
			keys[j*w+c] = s.rankKey(s.order[c], i)
		}
	}
	slices.SortFunc(idx, func(x, y int32) int {
		for c := range w {
			if d := cmp.Compare(keys[int(y)*w+c], keys[int(x)*w+c]); d != 0 {
				return d
			}
		}
		return cmp.Compare(rest[x], rest[y])
	})
	for r, j := range idx {
		s.rank[rest[j]] = int32(r)
	}
}

func (s *search) rankKey(letter byte, i int32) int64 {
	it := &s.in.items[i]
	switch letter {
	case 'W':
		return int64(it.hi - it.lo)
	case 'T':
		return slices.Max(s.need[it.lo : it.hi+1])
	case 'A':
		return it.size * int64(it.hi-it.lo+1)
	case 'Z':
		return it.size
	case 'L':
		return int64(it.to - it.from)
	}
	return 0
}

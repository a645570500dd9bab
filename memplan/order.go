package memplan

import (
	"cmp"
	"slices"
)

// order says by what the items of a part are ranked.
type order struct {
	// by names the keys, most important first; the larger goes first: W sections lived in, L lifetime, T need of
	// the busiest section lived in, A size times sections.
	by string
	// weights multiply each item's first key, in units of 1/unit; nil for none.
	weights []int32
}

const (
	unit  = 1024
	noise = unit / 8 // most that a weight is above unit: 5 to 15 % were about as good, 50 % worse
)

// plainOrders come first. Any of them may need a thousand nodes or a thousand times that: among them, each of
// the problems A-C, E-I, K of MiniMalloc falls within 16384.
var plainOrders = []order{{by: "TLA"}, {by: "AWT"}, {by: "TWL"}, {by: "TLW"}, {by: "TAW"}, {by: "TWA"}, {by: "LWT"}, {by: "WTL"}}

// vary returns the order with the weights of about one item in every oneIn drawn anew. The same seed draws the same.
func (o order) vary(n int, seed, oneIn uint64) order {
	w := make([]int32, n)
	for i := range w {
		w[i] = unit
		if o.weights != nil {
			w[i] = o.weights[i]
		}
		if h := mix(seed<<32 + uint64(i) + 1); h%oneIn == 0 {
			w[i] = unit + int32(h>>32%noise)
		}
	}
	return order{o.by, w}
}

// setRanks ranks the items of a part by what is unplaced now.
func (s *search) setRanks(rest []int32) {
	width := len(s.order.by)
	if len(s.keys) < len(rest)*width {
		s.keys = make([]int64, len(s.in.items)*width)
	}
	keys, line := s.keys, s.up[:len(rest)]
	for j, i := range rest {
		line[j] = int32(j)
		for c := range width {
			keys[j*width+c] = s.rankKey(s.order.by[c], i)
		}
		if s.order.weights != nil {
			keys[j*width] *= int64(s.order.weights[i])
		}
	}
	slices.SortFunc(line, func(a, b int32) int {
		for c := range width {
			if d := cmp.Compare(keys[int(b)*width+c], keys[int(a)*width+c]); d != 0 {
				return d
			}
		}
		return cmp.Compare(rest[a], rest[b])
	})
	for r, j := range line {
		s.rank[rest[j]] = int32(r)
	}
}

func (s *search) rankKey(name byte, i int32) int64 {
	it := &s.in.items[i]
	switch name {
	case 'W':
		return int64(it.hi - it.lo + 1)
	case 'T':
		return slices.Max(s.need[it.lo : it.hi+1])
	case 'A':
		return min(it.size, 1<<36) * int64(it.hi-it.lo+1) // with the weight below 1<<63
	}
	return it.life() // L
}

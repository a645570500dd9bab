package memplan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// patternAlign is what ONNX Runtime rounds the sizes in its pattern up to, and with them all offsets.
const patternAlign = 256

// BestFit plans as ONNX Runtime's memory pattern does, its default: buffers come in the order of their lifetimes'
// beginnings and never move; each goes to the start of the smallest gap that holds it (the lowest of equal ones), else
// on top of the highest that lives. A gap lies between living buffers, or between the highest and the end of what is
// reserved so far. What it reserves is what Eyas is compared with.
//
// The algorithm is that of onnxruntime/core/framework/mem_pattern_planner.h, with the granularity of its caller.
// The library's own pattern holds outputs of operators only. What kernels take for themselves during a run comes
// beside it, never from its gaps, so that a best fit of all requests is up to a quarter lower than the library's peak.
// Fixed offsets are an error, since a pattern has none.
func BestFit(p Problem) (Solution, error) {
	in, err := compile(p)
	if err != nil {
		return Solution{}, err
	}
	if in.anyFixed {
		return Solution{}, errors.New("best fit: buffers with fixed offsets cannot be planned")
	}
	order := make([]int, len(in.items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(in.items[a].from, in.items[b].from) })
	bound := in.lowerBound()
	offsets := make([]int64, len(in.items))
	var living []int // items by offset
	var reserved int64
	for _, i := range order {
		it := &in.items[i]
		if it.align = lcm(it.align, patternAlign); it.align > MaxBytes {
			return Solution{}, fmt.Errorf("best fit: an alignment and %d have no common multiple below %d", patternAlign, int64(MaxBytes))
		}
		living = slices.DeleteFunc(living, func(k int) bool { return in.items[k].to <= it.from })
		var k int
		offsets[i], k = in.bestGap(living, offsets, reserved, it)
		reserved = max(reserved, roundUp(offsets[i]+it.size, patternAlign))
		living = slices.Insert(living, k, i)
	}
	s := Solution{Height: in.height(offsets), LowerBound: bound, Offsets: in.spread(p, offsets)}
	s.Proven = s.Height == s.LowerBound
	return s, nil
}

// bestGap returns where an item goes, and before which of the living.
func (in *instance) bestGap(living []int, offsets []int64, reserved int64, it *item) (at int64, before int) {
	var free int64 // where the gap below the next one begins
	least := int64(math.MaxInt64)
	try := func(end int64, k int) {
		start := roundUp(free, it.align)
		if rest := end - start - it.size; rest >= 0 && rest < least {
			least, at, before = rest, start, k
		}
	}
	for k, other := range living {
		try(offsets[other], k)
		free = offsets[other] + in.items[other].size
	}
	try(reserved, len(living))
	if least == math.MaxInt64 {
		return roundUp(free, it.align), len(living)
	}
	return at, before
}

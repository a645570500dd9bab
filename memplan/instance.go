package memplan

import (
	"cmp"
	"fmt"
	"slices"
)

// instance is a problem made ready for the solver: aliases merged, empty buffers dropped, time reduced to
// sections. A section is a maximal set of buffers that live at the same time; since lifetimes are
// intervals, the sections can be numbered in the order of time and every buffer lives in a range of them.
// Two buffers overlap in time exactly if their ranges do, so that nothing is lost.
type instance struct {
	items    []item
	owner    []int32 // of each buffer of the problem: its item, -1 for one of size 0
	need     []int64 // of each section: the sum of its items' strides
	pad      []int64 // of each section: the most that an item's stride exceeds its size
	anyFixed bool    // some item is fixed
	step     int64   // every height of a tight plan is a multiple of this
	stretch  int64   // sum of all items' ranges: what one look at everything costs
}

// item is a buffer, or the storage that several aliases share.
type item struct {
	lo, hi   int32 // first and last section
	size     int64
	stride   int64 // size, rounded up to what all alignments have in common: what it takes from the one above it
	align    int64
	fixed    int64 // offset it must have, -1 for any
	from, to int   // lifetime
}

func (a *item) overlaps(b *item) bool { return a.lo <= b.hi && b.lo <= a.hi }

// life is the length of the lifetime, cut off where products of it could overflow.
func (a *item) life() int64 { return int64(min(uint64(a.to)-uint64(a.from), 1<<50)) }

func compile(p Problem) (*instance, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	in := &instance{owner: make([]int32, len(p.Buffers))}
	if err := in.merge(p); err != nil {
		return nil, err
	}
	in.measure()
	in.cut()
	if err := in.checkFixed(p); err != nil {
		return nil, err
	}
	return in, nil
}

// merge makes one item of each buffer and its aliases.
func (in *instance) merge(p Problem) error {
	root := make([]int32, len(p.Buffers))
	for i := range root {
		root[i] = int32(i)
	}
	find := func(i int32) int32 {
		for root[i] != i {
			root[i] = root[root[i]]
			i = root[i]
		}
		return i
	}
	for i, b := range p.Buffers {
		if b.Alias != nil {
			root[find(int32(i))] = find(int32(*b.Alias))
		}
	}
	shared := make([]item, len(p.Buffers))
	for i, b := range p.Buffers {
		s := &shared[find(int32(i))]
		if s.align == 0 {
			*s = item{align: 1, fixed: -1, from: b.Lower, to: b.Upper}
		}
		s.from, s.to = min(s.from, b.Lower), max(s.to, b.Upper)
		s.size, s.align = max(s.size, b.Size), lcm(s.align, b.align())
		if s.align > MaxBytes {
			return fmt.Errorf("buffer %s: its alignment and that of its aliases have no common multiple below %d", p.name(i), int64(MaxBytes))
		}
		if b.Fixed != nil {
			if s.fixed >= 0 && s.fixed != *b.Fixed {
				return fmt.Errorf("buffer %s: fixed at %d, an alias of it at %d", p.name(i), *b.Fixed, s.fixed)
			}
			s.fixed = *b.Fixed
		}
	}
	var sum int64
	number := make([]int32, len(p.Buffers))
	for i := range shared {
		s := &shared[i]
		number[i] = -1
		if s.size == 0 { // no such root, or nothing to place
			continue
		}
		if s.fixed >= 0 && s.fixed%s.align != 0 {
			return fmt.Errorf("buffer %s: fixed offset %d is no multiple of its aliases' alignment %d", p.name(i), s.fixed, s.align)
		}
		// Padding never adds more than one alignment: within this limit no sum of the solver overflows.
		if sum += s.size + s.align - 1; sum > MaxBytes {
			return fmt.Errorf("buffers add up to more than %d bytes, alignment included, at %s", int64(MaxBytes), p.name(i))
		}
		number[i] = int32(len(in.items))
		in.items = append(in.items, *s)
	}
	for i := range in.owner {
		in.owner[i] = number[find(int32(i))]
	}
	return nil
}

// measure finds the strides and the step.
func (in *instance) measure() {
	var common, aligned int64 // of all alignments; of those that are not 1
	for _, it := range in.items {
		common = gcd(common, it.align)
		if it.align > 1 {
			aligned = gcd(aligned, it.align)
		}
		// A tight plan consists of stacks: its height is a sum of sizes and of a fixed offset, some of them rounded up.
		in.step = gcd(gcd(in.step, it.size), max(it.fixed, 0))
	}
	in.step = gcd(in.step, aligned)
	// Every offset is a multiple of common: whatever lies above an item starts at least its size, rounded up
	// to common, above it.
	for i := range in.items {
		in.items[i].stride = roundUp(in.items[i].size, common)
	}
}

// cut finds the sections: between a birth and the next death the set of live buffers is maximal.
func (in *instance) cut() {
	born := make([]int32, len(in.items))
	for i := range born {
		born[i] = int32(i)
	}
	dead := slices.Clone(born)
	slices.SortStableFunc(born, func(a, b int32) int { return cmp.Compare(in.items[a].from, in.items[b].from) })
	slices.SortStableFunc(dead, func(a, b int32) int { return cmp.Compare(in.items[a].to, in.items[b].to) })
	section := int32(0)
	for d := 0; d < len(dead); {
		if t := in.items[dead[d]].to; len(born) > 0 && in.items[born[0]].from < t {
			in.items[born[0]].lo = section
			born = born[1:]
			continue
		}
		in.items[dead[d]].hi = section
		d++
		// The section ends with the last death before the next birth.
		if d == len(dead) || len(born) > 0 && in.items[born[0]].from < in.items[dead[d]].to {
			section++
		}
	}
	in.need, in.pad = make([]int64, section+1), make([]int64, section)
	for i := range in.items {
		it := &in.items[i]
		in.stretch += int64(it.hi - it.lo + 1)
		in.need[it.lo] += it.stride // differences first: thousands of long lives would take thousands times as long
		in.need[it.hi+1] -= it.stride
		if pad := it.stride - it.size; pad > 0 {
			for s := it.lo; s <= it.hi; s++ {
				in.pad[s] = max(in.pad[s], pad)
			}
		}
	}
	for s := range section {
		in.need[s+1] += in.need[s]
	}
	in.need = in.need[:section]
}

// checkFixed says whether two fixed items are in each other's way.
func (in *instance) checkFixed(p Problem) error {
	var fixed []int
	for i := range in.items {
		if in.items[i].fixed >= 0 {
			fixed, in.anyFixed = append(fixed, i), true
		}
	}
	for k, i := range fixed {
		a := &in.items[i]
		for _, j := range fixed[:k] {
			if b := &in.items[j]; a.overlaps(b) && a.fixed < b.fixed+b.size && b.fixed < a.fixed+a.size {
				x, y := slices.Index(in.owner, int32(j)), slices.Index(in.owner, int32(i))
				return fmt.Errorf("buffers %s and %s overlap where they are fixed", p.name(x), p.name(y))
			}
		}
	}
	return nil
}

// lowerBound is the largest need of a section: all strides but that of the uppermost item, which counts with its size.
func (in *instance) lowerBound() int64 {
	var bound int64
	for s, need := range in.need {
		bound = max(bound, need-in.pad[s])
	}
	for i := range in.items {
		if it := &in.items[i]; it.fixed >= 0 {
			bound = max(bound, it.fixed+it.size)
		}
	}
	return bound
}

// height is where the highest item ends.
func (in *instance) height(offsets []int64) int64 {
	var h int64
	for i := range in.items {
		h = max(h, offsets[i]+in.items[i].size)
	}
	return h
}

// spread gives every buffer of the problem its item's offset. Buffers without bytes lie at their fixed offset or at 0.
func (in *instance) spread(p Problem, offsets []int64) []int64 {
	out := make([]int64, len(p.Buffers))
	for i, item := range in.owner {
		switch {
		case item >= 0:
			out[i] = offsets[item]
		case p.Buffers[i].Fixed != nil:
			out[i] = *p.Buffers[i].Fixed
		}
	}
	return out
}

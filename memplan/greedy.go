package memplan

import (
	"cmp"
	"slices"
)

// Greedy plans without search: the largest buffer first, each at the lowest offset where it fits between
// those already there. It is what most runtimes do; Solve starts from it.
func Greedy(p Problem) (Solution, error) {
	in, err := compile(p)
	if err != nil {
		return Solution{}, err
	}
	offsets := in.firstFit(bySize)
	s := Solution{Height: in.height(offsets), LowerBound: in.lowerBound(), Offsets: in.spread(p, offsets)}
	s.Proven = s.Height == s.LowerBound
	return s, nil
}

// firstOrder says which of two items is placed first, negative for a.
type firstOrder func(a, b *item) int

func bySize(a, b *item) int { return cmp.Compare(b.size, a.size) }

func byLife(a, b *item) int { return cmp.Compare(b.life(), a.life()) }

func byArea(a, b *item) int {
	return cmp.Compare(float64(b.size)*float64(b.life()), float64(a.size)*float64(a.life()))
}

// firstFit places the fixed items, then the others in an order, each as low as it fits.
func (in *instance) firstFit(order firstOrder) []int64 {
	queue := make([]int32, len(in.items))
	for i := range queue {
		queue[i] = int32(i)
	}
	slices.SortStableFunc(queue, func(a, b int32) int {
		x, y := &in.items[a], &in.items[b]
		if (x.fixed >= 0) != (y.fixed >= 0) {
			return cmp.Compare(y.fixed, x.fixed)
		}
		return order(x, y)
	})
	offsets := make([]int64, len(in.items))
	placed := make([]int32, 0, len(in.items)) // by offset
	for _, i := range queue {
		it := &in.items[i]
		at := max(it.fixed, 0)
		if it.fixed < 0 {
			for _, j := range placed {
				other := &in.items[j]
				if !it.overlaps(other) {
					continue
				}
				if at+it.size <= offsets[j] {
					break
				}
				at = max(at, roundUp(offsets[j]+other.size, it.align))
			}
		}
		offsets[i] = at
		k, _ := slices.BinarySearchFunc(placed, at, func(j int32, at int64) int { return cmp.Compare(offsets[j], at) })
		placed = slices.Insert(placed, k, i)
	}
	return offsets
}

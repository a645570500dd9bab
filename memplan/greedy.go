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
	placed := make([]room, 0, len(in.items)) // by offset
	for _, i := range queue {
		it := &in.items[i]
		at := max(it.fixed, 0)
		if it.fixed < 0 {
			for k := range placed {
				r := &placed[k]
				if it.lo > r.hi || r.lo > it.hi {
					continue
				}
				if at+it.size <= r.at {
					break
				}
				at = max(at, roundUp(r.end, it.align))
			}
		}
		offsets[i] = at
		k, _ := slices.BinarySearchFunc(placed, at, func(r room, at int64) int { return cmp.Compare(r.at, at) })
		placed = slices.Insert(placed, k, room{at, at + it.size, it.lo, it.hi})
	}
	return offsets
}

// room is what a placed item takes. The loop over these is all of a greedy plan's time.
type room struct {
	at, end int64
	lo, hi  int32
}

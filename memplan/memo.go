package memplan

// key tells states apart by two hashes of 64 bits: over the 10^7 nodes of a long search the chance that two
// states share both is below 10^-24.
type key struct{ a, b uint64 }

// entry says that a state has no plan whose remaining offsets are all at least floor. The zero entry is
// that of no state.
type entry struct {
	key
	floor int64
}

// key of the unplaced items and their lows, in whatever order. All else that decides about a state but the
// floor follows from these: the tops of the sections matter only where they are some item's low.
func (s *search) key(rest []int32) key {
	var k key
	for _, i := range rest {
		h := mix(uint64(i)*0x9e3779b97f4a7c15 ^ uint64(s.low[i])*0xc2b2ae3d27d4eb4f + 1)
		k.a += h
		k.b += mix(h ^ 0x165667b19e3779f9)
	}
	return k
}

// mix is the last step of the generator SplitMix64 (Steele, Lea, Flood, 2014): every bit of x reaches all bits.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

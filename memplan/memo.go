package memplan

// key tells parts apart: two independent hashes of 64 bits.
type key struct{ a, b uint64 }

type entry struct {
	key
	floor int64
}

func (s *search) hash(rest []int32) key {
	var k key
	for _, i := range rest {
		x := mix(uint64(i)*0x9e3779b97f4a7c15 ^ uint64(s.low[i])*0xc2b2ae3d27d4eb4f + 1)
		k.a += x
		k.b += mix(x ^ 0x165667b19e3779f9)
	}
	return k
}

// mix is the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

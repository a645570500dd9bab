package memplan

import (
	"fmt"
	"math"
)

// Limits of a problem. They keep hostile input from taking the machine's memory and sums from overflowing.
const (
	MaxBuffers = 1 << 15 // buffers of a problem
	MaxBytes   = 1 << 48 // sum of all sizes, and largest offset and alignment
)

// Buffer is one block of memory with the time during which it is needed.
type Buffer struct {
	// ID names the buffer in messages and drawings. It may be empty and need not be unique.
	ID string
	// Lower and Upper bound the lifetime: the buffer is needed at every time t with Lower <= t < Upper.
	Lower, Upper int
	// Size in bytes. A buffer of size 0 takes no room and overlaps nothing.
	Size int64
	// Align is what the offset has to be a multiple of, in bytes. It defaults to 1.
	Align int64
	// Fixed is the offset that the buffer must have, nil for any.
	Fixed *int64
	// Alias is the index of the buffer whose storage this one shares, nil for storage of its own. The
	// shared storage has one offset, is as large as its largest user, and is kept from the first user's
	// Lower to the last user's Upper.
	Alias *int
}

// Problem is dynamic storage allocation: give every buffer an offset so that no two that live at the same
// time overlap, and the highest end is as low as possible.
type Problem struct {
	Buffers []Buffer
	// Capacity is the height that is enough, in bytes: the search stops at the first plan that fits in it.
	// It defaults to 0: as low as possible.
	Capacity int64
}

// Solution is a plan for a problem.
type Solution struct {
	Height     int64 `json:"height"`      // end of the highest buffer, in bytes
	LowerBound int64 `json:"lower_bound"` // no plan can be lower: see LowerBound
	// Proven says that no lower plan exists: the height is the lower bound, or the search for less ended empty-handed.
	Proven  bool    `json:"proven"`
	Nodes   int64   `json:"nodes"`   // placements that the search tried
	Seconds float64 `json:"seconds"` // time taken; the only field that differs between two runs
	Offsets []int64 `json:"offsets"` // of each buffer, in the problem's order
}

// Fragmentation is the part of the reserved bytes that is empty even at the busiest time, 0 to 1.
func (s Solution) Fragmentation() float64 {
	if s.Height == 0 {
		return 0
	}
	return 1 - float64(s.LowerBound)/float64(s.Height)
}

// check says what is wrong with the numbers of a problem.
func (p Problem) check() error {
	if len(p.Buffers) > MaxBuffers {
		return fmt.Errorf("problem has %d buffers, at most %d can be planned", len(p.Buffers), MaxBuffers)
	}
	if p.Capacity < 0 {
		return fmt.Errorf("capacity %d is negative", p.Capacity)
	}
	for i, b := range p.Buffers {
		if err := b.check(len(p.Buffers)); err != nil {
			return fmt.Errorf("buffer %s: %w", p.name(i), err)
		}
	}
	return nil
}

func (b Buffer) check(n int) error {
	switch {
	case b.Upper <= b.Lower:
		return fmt.Errorf("lifetime [%d, %d) is empty", b.Lower, b.Upper)
	case b.Size < 0 || b.Size > MaxBytes:
		return fmt.Errorf("size %d is not within 0 and %d", b.Size, int64(MaxBytes))
	case b.Align < 0 || b.Align > MaxBytes:
		return fmt.Errorf("alignment %d is not within 0 and %d", b.Align, int64(MaxBytes))
	case b.Fixed != nil && (*b.Fixed < 0 || *b.Fixed > MaxBytes):
		return fmt.Errorf("fixed offset %d is not within 0 and %d", *b.Fixed, int64(MaxBytes))
	case b.Fixed != nil && *b.Fixed%b.align() != 0:
		return fmt.Errorf("fixed offset %d is no multiple of the alignment %d", *b.Fixed, b.Align)
	case b.Alias != nil && (*b.Alias < 0 || *b.Alias >= n):
		return fmt.Errorf("alias of buffer number %d, there are %d", *b.Alias, n)
	}
	return nil
}

func (b Buffer) align() int64 { return max(b.Align, 1) }

// name is what messages call buffer i.
func (p Problem) name(i int) string {
	if id := p.Buffers[i].ID; id != "" {
		return fmt.Sprintf("%q", id)
	}
	return fmt.Sprintf("number %d", i)
}

// LowerBound returns the bytes that live at the busiest time, with the padding that alignment forces even
// there, or the end of the highest fixed buffer where that is more. No plan is lower.
func LowerBound(p Problem) (int64, error) {
	in, err := compile(p)
	if err != nil {
		return 0, err
	}
	return in.lowerBound(), nil
}

// roundUp returns the least multiple of align that is at least n, both at most MaxBytes.
func roundUp(n, align int64) int64 {
	if align <= 1 {
		return n
	}
	return (n + align - 1) / align * align
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// lcm is the least common multiple, or math.MaxInt64 where it is above MaxBytes.
func lcm(a, b int64) int64 {
	a /= gcd(a, b)
	if a > MaxBytes/b {
		return math.MaxInt64
	}
	return a * b
}

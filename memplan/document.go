package memplan

// SolvedArena is a planned arena: what one model needs at one batch size.
type SolvedArena struct {
	Model string `json:"model"`
	Solution
	Buffers []PlacedBuffer `json:"buffers,omitempty"` // in the order of Offsets
}

// PlacedBuffer is one buffer of an arena, so that a reader of the plan can check its offset.
type PlacedBuffer struct {
	ID    string `json:"id"`
	Lower int    `json:"lower"` // lives at every time t with Lower <= t < Upper
	Upper int    `json:"upper"`
	Bytes int64  `json:"bytes"`
}

// NewSolvedArena joins a problem and its solution.
func NewSolvedArena(model string, p Problem, s Solution) SolvedArena {
	a := SolvedArena{Model: model, Solution: s}
	for _, b := range p.Buffers {
		a.Buffers = append(a.Buffers, PlacedBuffer{ID: b.ID, Lower: b.Lower, Upper: b.Upper, Bytes: b.Size})
	}
	return a
}

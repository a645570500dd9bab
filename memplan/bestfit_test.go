package memplan

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Sizes and offsets of the table are in blocks of 256 bytes.
func TestBestFitPlacesInOrder(t *testing.T) {
	for _, c := range []struct {
		name    string
		buffers []Buffer
		want    []int64
		height  int64
	}{
		{"nothing", nil, nil, 0},
		{"on top of each other", []Buffer{{Upper: 9, Size: 4}, {Lower: 1, Upper: 9, Size: 3}, {Lower: 2, Upper: 9, Size: 2}}, []int64{0, 4, 7}, 9},
		{"a gap that fits exactly", []Buffer{{Upper: 2, Size: 4}, {Lower: 1, Upper: 9, Size: 3}, {Lower: 2, Upper: 9, Size: 4}}, []int64{0, 4, 0}, 7},
		{"a gap too small", []Buffer{{Upper: 2, Size: 4}, {Lower: 1, Upper: 9, Size: 3}, {Lower: 2, Upper: 9, Size: 5}}, []int64{0, 4, 7}, 12},
		{"the smaller of two gaps, not the lower", []Buffer{
			{Upper: 4, Size: 8}, {Lower: 1, Upper: 9, Size: 1}, {Lower: 2, Upper: 4, Size: 5}, {Lower: 3, Upper: 9, Size: 1}, {Lower: 4, Upper: 9, Size: 4}},
			[]int64{0, 8, 9, 14, 9}, 15},
		{"the lower of two equal gaps", []Buffer{
			{Upper: 4, Size: 5}, {Lower: 1, Upper: 9, Size: 1}, {Lower: 2, Upper: 4, Size: 5}, {Lower: 3, Upper: 9, Size: 1}, {Lower: 4, Upper: 9, Size: 4}},
			[]int64{0, 5, 6, 11, 0}, 12},
		// The third goes on top of what lives, not of what was reserved.
		{"the top moves down again", []Buffer{{Upper: 9, Size: 2}, {Lower: 1, Upper: 3, Size: 8}, {Lower: 3, Upper: 9, Size: 4}}, []int64{0, 2, 2}, 10},
		{"what is left of the reserved, not the larger gap below", []Buffer{
			{Upper: 3, Size: 8}, {Lower: 1, Upper: 9, Size: 1}, {Lower: 2, Upper: 3, Size: 5}, {Lower: 3, Upper: 9, Size: 4}},
			[]int64{0, 8, 9, 9}, 14},
		{"the gap below, not the larger rest of the reserved", []Buffer{
			{Upper: 3, Size: 5}, {Lower: 1, Upper: 9, Size: 1}, {Lower: 2, Upper: 3, Size: 8}, {Lower: 3, Upper: 9, Size: 4}},
			[]int64{0, 5, 6, 0}, 14},
		{"in the order of time, not of the list", []Buffer{{Lower: 5, Upper: 9, Size: 4}, {Upper: 9, Size: 3}}, []int64{3, 0}, 7},
		{"aligned", []Buffer{{Upper: 9, Size: 5}, {Lower: 1, Upper: 2, Size: 9, Align: 4}, {Lower: 1, Upper: 9, Size: 1}, {Lower: 2, Upper: 9, Size: 6, Align: 8}},
			[]int64{0, 8, 5, 8}, 17},
		{"one of no bytes", []Buffer{{Upper: 9, Size: 0}, {Upper: 9, Size: 3}}, []int64{0, 0}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Problem{Buffers: c.buffers}
			for i := range p.Buffers {
				p.Buffers[i].Size *= patternAlign
				p.Buffers[i].Align *= patternAlign
			}
			for i := range c.want {
				c.want[i] *= patternAlign
			}
			s, err := BestFit(p)
			if err != nil {
				t.Fatal(err)
			}
			if err := Validate(p, s); err != nil {
				t.Error(err)
			}
			if !slices.Equal(s.Offsets, c.want) || s.Height != c.height*patternAlign {
				t.Errorf("offsets %d, height %d, want %d, %d", s.Offsets, s.Height, c.want, c.height*patternAlign)
			}
		})
	}
}

func TestBestFitRoundsUp(t *testing.T) {
	s, err := BestFit(Problem{Buffers: []Buffer{{Upper: 2, Size: 1}, {Upper: 9, Size: 257}, {Lower: 2, Upper: 9, Size: 256}, {Lower: 3, Upper: 9, Size: 3}}})
	if err != nil || !slices.Equal(s.Offsets, []int64{0, 256, 0, 768}) || s.Height != 771 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestBestFitOfRandomProblems(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		p := randomProblem(r, 1+r.IntN(12))
		fixed := slices.ContainsFunc(p.Buffers, func(b Buffer) bool { return b.Fixed != nil && b.Size > 0 })
		s, err := BestFit(p)
		if err != nil {
			if !fixed {
				t.Fatalf("%v for %+v", err, p)
			}
			continue
		}
		if err := Validate(p, s); err != nil {
			t.Fatalf("%v: %+v for %+v", err, s, p)
		}
	}
	if _, err := BestFit(Problem{Buffers: []Buffer{{Upper: 1, Size: 1, Align: 1<<31 - 1}}}); err != nil {
		t.Error(err)
	}
	if _, err := BestFit(Problem{Buffers: []Buffer{{Upper: 1, Size: 1, Align: 1<<47 - 1}}}); err == nil {
		t.Error("no error for an alignment that has no multiple with the pattern's")
	}
	if _, err := BestFit(Problem{Buffers: []Buffer{{Upper: 0}}}); err == nil {
		t.Error("no error for an empty lifetime")
	}
	if _, err := BestFit(Problem{Buffers: []Buffer{{Upper: 1, Size: 1, Fixed: ptr(int64(3))}}}); err == nil {
		t.Error("no error for a fixed offset")
	}
}

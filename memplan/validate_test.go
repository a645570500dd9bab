package memplan

import (
	"math"
	"strings"
	"testing"
)

func TestValidateFindsFaults(t *testing.T) {
	two := []Buffer{{Lower: 0, Upper: 2, Size: 8}, {Lower: 1, Upper: 3, Size: 8, Align: 8}}
	good := Solution{Height: 16, LowerBound: 16, Proven: true, Offsets: []int64{0, 8}}
	for name, c := range map[string]struct {
		buffers []Buffer
		change  func(*Solution)
		want    string
	}{
		"none":              {two, func(*Solution) {}, ""},
		"too few offsets":   {two, func(s *Solution) { s.Offsets = s.Offsets[:1] }, "1 offsets for 2"},
		"overlap":           {two, func(s *Solution) { s.Offsets[0] = 1 }, "overlap"},
		"negative":          {two, func(s *Solution) { s.Offsets[0] = -8 }, "lies at -8"},
		"past all numbers":  {two, func(s *Solution) { s.Offsets[0] = math.MaxInt64 - 7 }, "lies at"},
		"alignment":         {two, func(s *Solution) { s.Offsets[1] = 9 }, "no multiple of 8"},
		"height too low":    {two, func(s *Solution) { s.Height, s.LowerBound = 15, 15 }, "highest buffer ends at 16"},
		"height too high":   {two, func(s *Solution) { s.Height = 17 }, "highest buffer ends at 16"},
		"bound too low":     {two, func(s *Solution) { s.LowerBound = 15 }, "lower bound 15"},
		"bound above":       {two, func(s *Solution) { s.LowerBound = 17 }, "lower bound 17"},
		"proof not claimed": {two, func(s *Solution) { s.Proven = false }, "not called proven"},
		"not fixed": {[]Buffer{two[0], {Lower: 1, Upper: 3, Size: 8, Fixed: ptr(int64(16))}},
			func(*Solution) {}, "not at 16"},
		"alias elsewhere": {[]Buffer{two[0], {Lower: 5, Upper: 6, Size: 8, Alias: ptr(0)}},
			func(*Solution) {}, "its alias"},
		"storage of an alias": { // between the two lifetimes of the shared storage
			[]Buffer{{Lower: 0, Upper: 2, Size: 8}, {Lower: 3, Upper: 4, Size: 8}, {Lower: 5, Upper: 6, Size: 8, Alias: ptr(0)}},
			func(s *Solution) { s.Offsets = []int64{0, 4, 0} }, "overlap"},
		"no lifetime": {[]Buffer{two[0], {Lower: 3, Upper: 3, Size: 8}}, func(*Solution) {}, "is not one"},
	} {
		t.Run(name, func(t *testing.T) {
			s := good
			s.Offsets = append([]int64{}, good.Offsets...)
			c.change(&s)
			err := Validate(Problem{Buffers: c.buffers}, s)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

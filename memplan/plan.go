// Package memplan plans memory: which regions a configuration needs, how large each is and
// where it lies; and, by Solve, the offsets of buffers within a region that is as small as can be. It is
// pure computation on the standard library and never allocates what it plans.
package memplan

import (
	"fmt"
	"slices"
	"strings"
)

// Kind says what a region holds.
type Kind string

// The regions that are known before the first frame.
const (
	Weights Kind = "weights" // the model's parameters as its file holds them
	Tensors Kind = "tensors" // bound inputs and outputs
	Frames  Kind = "frames"  // pictures that wait or are being read
)

// Region is one planned block.
type Region struct {
	Kind  Kind   `json:"kind"`
	Owner string `json:"owner"` // the model or source that it belongs to
	Bytes int64  `json:"bytes"`
}

// Plan is a set of regions. The zero value is an empty plan.
type Plan struct {
	Regions []Region `json:"regions"`
}

// Add plans n more bytes for a region, making the region when it is new.
func (p *Plan) Add(kind Kind, owner string, n int64) {
	i := slices.IndexFunc(p.Regions, func(r Region) bool { return r.Kind == kind && r.Owner == owner })
	if i < 0 {
		p.Regions = append(p.Regions, Region{Kind: kind, Owner: owner})
		i = len(p.Regions) - 1
	}
	p.Regions[i].Bytes += n
}

// Total returns the bytes of all regions.
func (p *Plan) Total() int64 {
	var n int64
	for _, r := range p.Regions {
		n += r.Bytes
	}
	return n
}

// Of returns the bytes of all regions of a kind.
func (p *Plan) Of(kind Kind) int64 {
	var n int64
	for _, r := range p.Regions {
		if r.Kind == kind {
			n += r.Bytes
		}
	}
	return n
}

// String writes one line per region and the total.
func (p *Plan) String() string {
	var b strings.Builder
	for _, r := range p.Regions {
		fmt.Fprintf(&b, "%-8s %-24s %12d\n", r.Kind, r.Owner, r.Bytes)
	}
	fmt.Fprintf(&b, "%-8s %-24s %12d\n", "total", "", p.Total())
	return b.String()
}

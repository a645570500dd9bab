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

// The regions of a plan. The first six are Eyas' own and laid out before the first frame; the last three are
// what others take, as far as it is known.
const (
	Weights  Kind = "weights"  // the optimised model, and what its kernels copy of it
	Headroom Kind = "headroom" // reserved for what no plan foresees; used only by fall-backs
	Arena    Kind = "arena"    // intermediate tensors of all models that take turns
	Spill    Kind = "spill"    // of an arena, for what outlives a run or leaves its schedule
	Tensors  Kind = "tensors"  // bound inputs and outputs
	Frames   Kind = "frames"   // pictures that wait or are being read
	Engine   Kind = "engine"   // what the inference library holds itself
	Children Kind = "children" // decoder processes
	Go       Kind = "go"       // the Go heap
)

// Placement says what kind of memory a region lies in.
type Placement string

// The kinds of memory. A region of the kinds engine, children and go has none: its owner places it.
const (
	Dedicated Placement = "dedicated" // private locked pages; with a GPU its own allocation
	Shared    Placement = "shared"    // pages that another process or the GPU can map
)

// Region is one planned block.
type Region struct {
	Kind      Kind      `json:"kind"`
	Owner     string    `json:"owner,omitempty"` // the model or source that it belongs to, "" for all
	Bytes     int64     `json:"bytes"`
	Placement Placement `json:"placement,omitempty"`
	// Basis says where the figure comes from unless it is exact: one of the following, or other words.
	Basis string `json:"basis,omitempty"`
}

// Where figures come from that are not exact.
const (
	Estimated  = "estimated"
	EarlierRun = "measured by an earlier run"
	Allowance  = "allowance per EP, not measured on a board"
)

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

// In returns where the first region of a kind lies, "" if there is none.
func (p *Plan) In(kind Kind) Placement {
	for _, r := range p.Regions {
		if r.Kind == kind {
			return r.Placement
		}
	}
	return ""
}

// Where returns where the region of a kind and an owner lies, "" if there is none.
func (p *Plan) Where(kind Kind, owner string) Placement {
	for _, r := range p.Regions {
		if r.Kind == kind && r.Owner == owner {
			return r.Placement
		}
	}
	return ""
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

package memplan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// DocumentVersion is that of the plan document. Fields are only ever added to a version.
const DocumentVersion = 1

// Document is a plan as `eyas plan` prints it. Sizes are in bytes.
type Document struct {
	Version      int         `json:"version"`
	Scheme       string      `json:"scheme"` // the plan in a sentence
	Models       []ModelPlan `json:"models"`
	Batches      []BatchPlan `json:"batches"` // of the ladder, ascending
	LargestBatch int         `json:"largest_batch"`
	Capacity     Capacity    `json:"capacity"`
	Regions      []Region    `json:"regions"` // of the whole ladder
	Total        int64       `json:"total"`
	Fits         bool        `json:"fits"`
}

// ModelPlan is what one model needs.
type ModelPlan struct {
	Name  string `json:"name"`
	Path  string `json:"path,omitempty"`
	Quota int64  `json:"quota,omitempty"`
	Need  int64  `json:"need"` // on its own, see Plan.Need
}

// BatchPlan is the plan for runs of one batch size.
type BatchPlan struct {
	Batch    int   `json:"batch"`
	Weights  int64 `json:"weights"`
	Headroom int64 `json:"headroom"`
	// Arena is the highest of this batch size, Sharing are those of the other models, which take turns in it.
	Arena      SolvedArena   `json:"arena"`
	Sharing    []SolvedArena `json:"sharing,omitempty"`
	ArenaBytes int64         `json:"arena_bytes"` // what the arenas of all lanes take
	Spill      int64         `json:"spill"`
	Tensors    int64         `json:"tensors"`
	Frames     int64         `json:"frames"`
	Engine     int64         `json:"engine"`
	Children   int64         `json:"children"`
	Go         int64         `json:"go"`
	Total      int64         `json:"total"`
	// Fits says that the ladder up to this batch size fits.
	Fits  bool            `json:"fits"`
	Basis map[Kind]string `json:"basis,omitempty"` // of what is not exact
}

// SolvedArena is a planned arena: what one model needs at one batch size.
type SolvedArena struct {
	Model string `json:"model"`
	Solution
	Buffers []PlacedBuffer `json:"buffers,omitempty"` // in the order of Offsets
	Spill   int64          `json:"spill"`             // what the model needs beside it
	Tensors int64          `json:"tensors,omitempty"` // of the model itself, where models share their tensors' block
	Lanes   int            `json:"lanes,omitempty"`   // that have such an arena and tensors each; 0 stands for one
}

// PlacedBuffer is one buffer of an arena, so that a reader of the plan can check its offset.
type PlacedBuffer struct {
	ID    string `json:"id"`
	Lower int    `json:"lower"` // lives at every time t with Lower <= t < Upper
	Upper int    `json:"upper"`
	Bytes int64  `json:"bytes"`
}

// NewSolvedArena joins a problem and its solution.
func NewSolvedArena(model string, p Problem, s Solution, spill int64) SolvedArena {
	a := SolvedArena{Model: model, Solution: s, Spill: spill}
	for _, b := range p.Buffers {
		a.Buffers = append(a.Buffers, PlacedBuffer{ID: b.ID, Lower: b.Lower, Upper: b.Upper, Bytes: b.Size})
	}
	return a
}

// Problem returns what the arena was solved for.
func (a *SolvedArena) Problem() Problem {
	var p Problem
	for _, b := range a.Buffers {
		p.Buffers = append(p.Buffers, Buffer{ID: b.ID, Lower: b.Lower, Upper: b.Upper, Size: b.Bytes})
	}
	return p
}

// NewDocument places the plan of a ladder and describes it. Of models it sets Need. If something does not fit,
// the whole plan or a quota, the error is a *Shortage and the document says what would be needed. The document is
// nil only for a placement that is none.
func NewDocument(models []ModelPlan, rungs []Rung, c Capacity, force Placement) (*Document, error) {
	rungs = byBatch(rungs)
	d := &Document{Version: DocumentVersion, Models: append([]ModelPlan{}, models...), Capacity: c}
	d.LargestBatch = largest(rungs, func(part []Rung) error {
		_, err := d.place(part, force)
		return err
	})
	plan, err := d.place(rungs, force)
	var short *Shortage
	if err != nil && !errors.As(err, &short) {
		return nil, err
	}
	d.Regions, d.Total, d.Fits = append([]Region{}, plan.Regions...), plan.Total(), err == nil
	for i := range d.Models {
		d.Models[i].Need = plan.Need(d.Models[i].Name, ownArena(d.Models[i].Name, rungs))
	}
	d.Batches = make([]BatchPlan, len(rungs))
	for i := range rungs {
		d.Batches[i] = rungs[i].describe()
		d.Batches[i].Fits = rungs[i].Batch <= d.LargestBatch
	}
	d.Scheme = scheme(&plan, d.Batches, c)
	return d, err
}

// place returns the plan of a ladder, and whether it and each model's part of it fit.
func (d *Document) place(rungs []Rung, force Placement) (Plan, error) {
	plan := Ladder(rungs...)
	if err := plan.Place(d.Capacity, force); err != nil {
		return plan, err
	}
	for _, m := range d.Models {
		if err := plan.CheckQuota(m.Name, ownArena(m.Name, rungs), m.Quota); err != nil {
			return plan, err
		}
	}
	return plan, nil
}

// ownArena returns what a model's highest arena takes, with its spill block, and its part of tensors that models share.
func ownArena(model string, rungs []Rung) int64 {
	var height, spill, tensors int64
	lanes := 1
	for _, r := range rungs {
		for _, a := range r.Arenas {
			if a.Model == model {
				height, spill, tensors = max(height, a.Height), max(spill, a.Spill), max(tensors, a.Tensors)
				lanes = max(lanes, a.Lanes)
			}
		}
	}
	return int64(lanes) * (height + spill + tensors)
}

func (r *Rung) describe() BatchPlan {
	p := &r.Plan
	b := BatchPlan{
		Batch: r.Batch, Weights: p.Of(Weights), Headroom: p.Of(Headroom), ArenaBytes: p.Of(Arena), Spill: p.Of(Spill),
		Tensors: p.Of(Tensors), Frames: p.Of(Frames), Engine: p.Of(Engine), Children: p.Of(Children), Go: p.Of(Go), Total: p.Total(),
	}
	for _, region := range p.Regions {
		switch known := b.Basis[region.Kind]; {
		case region.Basis == "" || slices.Contains(strings.Split(known, "; "), region.Basis):
		case b.Basis == nil:
			b.Basis = map[Kind]string{region.Kind: region.Basis}
		case known == "":
			b.Basis[region.Kind] = region.Basis
		default:
			b.Basis[region.Kind] = known + "; " + region.Basis
		}
	}
	if len(r.Arenas) > 0 {
		arenas := slices.SortedStableFunc(slices.Values(r.Arenas), func(a, b SolvedArena) int { return cmp.Compare(b.Height, a.Height) })
		b.Arena, b.Sharing = arenas[0], arenas[1:]
	}
	return b
}

// scheme says in a sentence where everything lies: what lies in the same kind of memory is named together.
func scheme(p *Plan, batches []BatchPlan, c Capacity) string {
	names := map[Placement]string{Dedicated: c.name(), Shared: "shared memory"}
	type group struct {
		what  []string
		where string
	}
	var groups []group
	for _, kind := range []Kind{Weights, Arena, Tensors, Frames} {
		if p.Of(kind) == 0 {
			continue
		}
		what := fmt.Sprintf("%s %s", kind, FormatBytes(p.Of(kind)))
		if kind == Arena {
			what = arenaScheme(p, batches)
		}
		where := places(p, kind, names)
		if n := len(groups); n == 0 || groups[n-1].where != where {
			groups = append(groups, group{where: where})
		}
		last := &groups[len(groups)-1]
		last.what = append(last.what, what)
	}
	var parts []string
	for _, g := range groups {
		parts = append(parts, strings.Join(g.what, ", ")+" in "+g.where)
	}
	return strings.Join(parts, "; ")
}

// places names the kinds of memory that the regions of a kind lie in.
func places(p *Plan, kind Kind, names map[Placement]string) string {
	var list []string
	for _, at := range []Placement{Dedicated, Shared} {
		if slices.ContainsFunc(p.Regions, func(r Region) bool { return r.Kind == kind && r.Placement == at }) {
			list = append(list, names[at])
		}
	}
	return strings.Join(list, " and ")
}

func arenaScheme(p *Plan, batches []BatchPlan) string {
	lanes := 0
	for _, r := range p.Regions {
		if r.Kind == Arena {
			lanes++
		}
	}
	text := "one arena of " + FormatBytes(p.Of(Arena))
	if lanes > 1 {
		text = fmt.Sprintf("%d arenas of together %s", lanes, FormatBytes(p.Of(Arena)))
	}
	users := map[string]bool{}
	for _, b := range batches {
		users[b.Arena.Model] = true
		for _, a := range b.Sharing {
			users[a.Model] = true
		}
	}
	highest := highest(batches)
	text += fmt.Sprintf(" for %s of %s", count(len(batches), "batch size"), count(len(users), "model"))
	switch {
	case highest.Height == 0:
		return text
	case highest.Height == highest.LowerBound:
		return text + " (lower bound, proven)"
	case highest.Proven:
		return text + " (proven minimal)"
	}
	return text + fmt.Sprintf(" (%.2g %% above the lower bound)", 100*(float64(highest.Height)/float64(max(highest.LowerBound, 1))-1))
}

// Decisive returns the arena that the block owes its size to, with its batch size; false where nothing is planned
// in one.
func (d *Document) Decisive() (arena SolvedArena, batch int, ok bool) {
	for _, b := range d.Batches {
		if b.Arena.Height > arena.Height {
			arena, batch = b.Arena, b.Batch
		}
	}
	return arena, batch, arena.Height > 0
}

// highest returns the highest arena of all batch sizes and models, the first of several.
func highest(batches []BatchPlan) SolvedArena {
	var top SolvedArena
	for _, b := range batches {
		if b.Arena.Height > top.Height { // the others of this batch size are no higher
			top = b.Arena
		}
	}
	return top
}

func count(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

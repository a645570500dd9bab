package memplan

import (
	"cmp"
	"fmt"
	"slices"
)

// Unlimited, as Capacity.Dedicated, is dedicated memory without bound.
const Unlimited = -1

// Capacity is the memory that a plan may take, in bytes.
type Capacity struct {
	// Budget is what all regions together may take. 0 or less is none.
	Budget int64 `json:"budget,omitempty"`
	// Machine is what the machine, or the control group, has left for all regions together. 0 or less is unknown.
	Machine int64 `json:"machine,omitempty"`
	// Dedicated is how much of it can be dedicated memory: on a CPU the limit on locked memory. Below 0 is without bound.
	Dedicated int64 `json:"dedicated"`
	// Name is what dedicated memory is called here. It defaults to "locked memory".
	Name string `json:"name,omitempty"`
}

func (c Capacity) name() string { return cmp.Or(c.Name, "locked memory") }

// holds says whether there is room for a plan of n bytes.
func (c Capacity) holds(n int64) error {
	limit := c.Machine
	if c.Budget > 0 && (limit <= 0 || c.Budget <= limit) {
		if n > c.Budget {
			return &Shortage{What: "plan", Need: n, Of: "the budget", Have: c.Budget,
				Remedy: "raise the budget, or take a smaller batch ladder, smaller inputs, or fewer models and sources"}
		}
		return nil
	}
	if limit > 0 && n > limit {
		return &Shortage{What: "plan", Need: n, Of: "this machine", Have: limit,
			Remedy: "free memory or raise the control group's limit, or take a smaller batch ladder, smaller inputs, or fewer models and sources"}
	}
	return nil
}

// Shortage is the error for memory that is not there. Sizes are in bytes.
type Shortage struct {
	What   string // what needs it: "plan", the regions, or the model
	Need   int64
	Of     string // what has too little: "the budget", "this machine", "locked memory", "its quota"
	Have   int64
	Remedy string // what to do
}

func (s *Shortage) Error() string {
	return fmt.Sprintf("%s: %s needed, %s has %s: %s", s.What, exactBytes(s.Need), s.Of, exactBytes(s.Have), s.Remedy)
}

// Place decides where each region lies and whether all of them fit.
//
// Weights, headroom and arenas go to dedicated memory, tensors and frames are shared from the start. What
// dedicated memory does not hold moves to shared memory: first headroom, then arenas, weights last, and of
// several of a kind the last in the plan first. A region is never split, and the spill block stays with its arena.
// Engine, children and Go heap have no placement and count only in the total.
//
// force puts weights, headroom and arenas into one kind of memory, "" into what fits. The error is a *Shortage
// with the numbers if something does not fit; the placements are set even then, as they would be needed.
func (p *Plan) Place(c Capacity, force Placement) error {
	switch force {
	case "", Dedicated, Shared:
	default:
		return fmt.Errorf("placement %q is not one: use %s, %s or none", force, Dedicated, Shared)
	}
	blocks, need := p.movable()
	for i := range p.Regions {
		p.Regions[i].Placement = startsIn(p.Regions[i].Kind)
	}
	for _, b := range blocks {
		if force == Dedicated || force == "" && (c.Dedicated < 0 || need <= c.Dedicated) {
			break
		}
		need -= b.bytes
		for _, i := range b.regions {
			p.Regions[i].Placement = Shared
		}
	}
	if force == Dedicated && c.Dedicated >= 0 && need > c.Dedicated {
		return &Shortage{What: "weights, headroom and arena", Need: need, Of: c.name(), Have: c.Dedicated,
			Remedy: "raise its limit, take a smaller batch ladder, or let the placement follow from what fits"}
	}
	return c.holds(p.Total())
}

// startsIn returns where a region lies that has all the room it wants.
func startsIn(kind Kind) Placement {
	switch kind {
	case Weights, Headroom, Arena, Spill:
		return Dedicated
	case Tensors, Frames:
		return Shared
	}
	return ""
}

// leaves is the order in which kinds leave dedicated memory.
var leaves = map[Kind]int{Headroom: 1, Arena: 2, Spill: 2, Weights: 3}

// movable is regions that move together.
type movable struct {
	rank    int
	owner   string
	bytes   int64
	regions []int
}

// movable returns what may lie in dedicated memory in the order in which it leaves, and its sum.
func (p *Plan) movable() ([]movable, int64) {
	var blocks []movable
	var sum int64
	for i, r := range p.Regions {
		rank := leaves[r.Kind]
		if rank == 0 {
			continue
		}
		k := slices.IndexFunc(blocks, func(b movable) bool { return b.rank == rank && b.owner == r.Owner })
		if k < 0 {
			blocks = append(blocks, movable{rank: rank, owner: r.Owner})
			k = len(blocks) - 1
		}
		blocks[k].bytes += r.Bytes
		blocks[k].regions = append(blocks[k].regions, i)
		sum += r.Bytes
	}
	slices.Reverse(blocks)
	slices.SortStableFunc(blocks, func(a, b movable) int { return cmp.Compare(a.rank, b.rank) })
	return blocks, sum
}

// Need returns what a model takes on its own: its weights, headroom and tensors, and an arena of that many
// bytes, spill included. The plan's own arenas are as large as the largest model needs, and do not count.
func (p *Plan) Need(owner string, arena int64) int64 {
	n := arena
	for _, r := range p.Regions {
		if r.Owner == owner && (r.Kind == Weights || r.Kind == Headroom || r.Kind == Tensors) {
			n += r.Bytes
		}
	}
	return n
}

// CheckQuota says with a *Shortage that a model needs more (see Need) than its quota. A quota of 0 or less is none.
func (p *Plan) CheckQuota(owner string, arena, quota int64) error {
	need := p.Need(owner, arena)
	if quota <= 0 || need <= quota {
		return nil
	}
	return &Shortage{What: "model " + owner, Need: need, Of: "its quota", Have: quota,
		Remedy: "raise its quota, or take a smaller batch ladder or a smaller input"}
}

// Rung is one batch size of the ladder, with the plan for runs of that size alone.
type Rung struct {
	Batch int
	Plan  Plan
	// Arenas are the solved arenas of this batch size, one for each model.
	Arenas []SolvedArena
}

// Ladder returns the plan under which each of the rungs can run: of every region the largest, since batch sizes
// take turns on the same memory.
func Ladder(rungs ...Rung) Plan {
	var all Plan
	for _, rung := range rungs {
		for _, r := range rung.Plan.Regions {
			i := slices.IndexFunc(all.Regions, func(o Region) bool { return o.Kind == r.Kind && o.Owner == r.Owner })
			switch {
			case i < 0:
				all.Regions = append(all.Regions, r)
			case r.Bytes > all.Regions[i].Bytes:
				all.Regions[i] = r
			}
		}
	}
	return all
}

// LargestBatch returns the largest batch size such that the ladder up to it fits, 0 if none does.
func LargestBatch(rungs []Rung, c Capacity, force Placement) int {
	return largest(byBatch(rungs), func(part []Rung) error {
		plan := Ladder(part...)
		return plan.Place(c, force)
	})
}

// largest returns the batch size up to which a sorted ladder fits.
func largest(rungs []Rung, fit func([]Rung) error) int {
	batch := 0
	for i, r := range rungs {
		if fit(rungs[:i+1]) != nil {
			break
		}
		batch = r.Batch
	}
	return batch
}

func byBatch(rungs []Rung) []Rung {
	return slices.SortedFunc(slices.Values(rungs), func(a, b Rung) int { return cmp.Compare(a.Batch, b.Batch) })
}

package memplan

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// board is a plan of two models that share an arena.
func board() Plan {
	return Plan{Regions: []Region{
		{Kind: Weights, Owner: "a", Bytes: 100}, {Kind: Headroom, Owner: "a", Bytes: 20}, {Kind: Tensors, Owner: "a", Bytes: 7},
		{Kind: Weights, Owner: "b", Bytes: 50}, {Kind: Headroom, Owner: "b", Bytes: 10}, {Kind: Tensors, Owner: "b", Bytes: 3},
		{Kind: Arena, Bytes: 200}, {Kind: Spill, Bytes: 5}, {Kind: Frames, Owner: "door", Bytes: 60},
		{Kind: Engine, Bytes: 1000, Basis: Allowance}, {Kind: Children, Owner: "door", Bytes: 30}, {Kind: Go, Bytes: 15},
	}}
}

// placed returns what lies in dedicated memory, in words.
func placed(p Plan) string {
	var names []string
	for _, r := range p.Regions {
		if r.Placement == Dedicated {
			names = append(names, strings.TrimSpace(string(r.Kind)+" "+r.Owner))
		}
	}
	return strings.Join(names, ", ")
}

func TestPlaceOverflowsInOrder(t *testing.T) {
	const all = "weights a, headroom a, weights b, headroom b, arena, spill"
	for _, c := range []struct {
		name      string
		dedicated int64
		force     Placement
		want      string
	}{
		{"unlimited", Unlimited, "", all},
		{"just enough", 385, "", all},
		{"the last headroom goes first", 384, "", "weights a, headroom a, weights b, arena, spill"},
		{"then the other", 374, "", "weights a, weights b, arena, spill"},
		{"weights and arena", 355, "", "weights a, weights b, arena, spill"},
		{"the spill block stays with the arena", 354, "", "weights a, weights b"},
		{"weights last", 149, "", "weights a"},
		{"nothing fits", 99, "", ""},
		{"no dedicated memory", 0, "", ""},
		{"all shared by force", Unlimited, Shared, ""},
		{"all dedicated by force", 385, Dedicated, all},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := board()
			if err := p.Place(Capacity{Dedicated: c.dedicated}, c.force); err != nil {
				t.Fatal(err)
			}
			if got := placed(p); got != c.want {
				t.Errorf("dedicated: %s, want %s", got, c.want)
			}
			for _, r := range p.Regions {
				if none := r.Kind == Engine || r.Kind == Children || r.Kind == Go; none != (r.Placement == "") {
					t.Errorf("%s lies in %q", r.Kind, r.Placement)
				}
				if (r.Kind == Tensors || r.Kind == Frames) && r.Placement != Shared {
					t.Errorf("%s lies in %q", r.Kind, r.Placement)
				}
			}
		})
	}
}

func TestPlaceRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		c     Capacity
		force Placement
		want  string // "" where it fits
	}{
		{"budget just at the need", Capacity{Budget: 1500, Dedicated: Unlimited}, "", ""},
		{"budget just below", Capacity{Budget: 1499, Dedicated: Unlimited}, "", "plan: 1.5 KiB (1500 bytes) needed, the budget has 1.5 KiB (1499 bytes): raise the budget"},
		{"machine just at the need", Capacity{Machine: 1500}, "", ""},
		{"machine just below", Capacity{Machine: 1499}, "", "plan: 1.5 KiB (1500 bytes) needed, this machine has 1.5 KiB (1499 bytes): free memory"},
		{"a budget above what the machine has", Capacity{Budget: 2000, Machine: 1400}, "", "plan: 1.5 KiB (1500 bytes) needed, this machine has"},
		{"a budget below what the machine has", Capacity{Budget: 1400, Machine: 1450}, "", "plan: 1.5 KiB (1500 bytes) needed, the budget has"},
		{"dedicated by force, just below", Capacity{Dedicated: 384}, Dedicated, "weights, headroom and arena: 385 B needed, locked memory has 384 B: raise its limit"},
		{"with another name", Capacity{Dedicated: 0, Name: "device memory"}, Dedicated, "weights, headroom and arena: 385 B needed, device memory has 0 B"},
		{"budget, all shared", Capacity{Budget: 1499, Dedicated: 0}, Shared, "plan: 1.5 KiB"},
		{"no such placement", Capacity{}, "somewhere", `placement "somewhere" is not one`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := board()
			err := p.Place(c.c, c.force)
			switch {
			case c.want == "":
				if err != nil {
					t.Error(err)
				}
			case err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n"):
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestQuota(t *testing.T) {
	p := board()
	const need = 100 + 20 + 7 + 150 // the plan's own arena, which b needs, does not count
	if got := p.Need("a", 150); got != need {
		t.Errorf("a needs %d, want %d", got, need)
	}
	for _, quota := range []int64{need, need + 1, 0, -1} {
		if err := p.CheckQuota("a", 150, quota); err != nil {
			t.Errorf("quota %d: %v", quota, err)
		}
	}
	var s *Shortage
	if err := p.CheckQuota("a", 150, need-1); !errors.As(err, &s) || s.Need != need || s.Have != need-1 || !strings.HasPrefix(err.Error(), "model a: 277 B needed, its quota has 276 B") {
		t.Errorf("got %v", err)
	}
}

func randomPlan(r *rand.Rand) Plan {
	kinds := []Kind{Weights, Headroom, Arena, Spill, Tensors, Frames, Engine, Children, Go}
	var p Plan
	for range r.IntN(20) {
		p.Add(kinds[r.IntN(len(kinds))], []string{"", "a", "b", "c"}[r.IntN(4)], int64(r.IntN(50)))
	}
	return p
}

func (p *Plan) in(where Placement) int64 {
	var n int64
	for _, r := range p.Regions {
		if r.Placement == where {
			n += r.Bytes
		}
	}
	return n
}

func TestPlaceOfRandomPlans(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		p := randomPlan(r)
		p.Place(Capacity{Dedicated: Unlimited}, "")
		most, total := p.in(Dedicated), p.Total()

		before := map[int]bool{}
		for dedicated := int64(0); dedicated <= most+1; dedicated += 1 + int64(r.IntN(20)) {
			c := Capacity{Dedicated: dedicated, Machine: 1 + r.Int64N(total+2)}
			err := p.Place(c, "")
			if (err != nil) != (total > c.Machine) {
				t.Fatalf("%v: error %v, total %d", c, err, total)
			}
			if got := p.in(Dedicated); got > dedicated {
				t.Fatalf("%d bytes in %d of dedicated memory", got, dedicated)
			}
			checkOrder(t, p, dedicated)
			for i := range before { // more dedicated memory never moves a region out of it
				if p.Regions[i].Placement != Dedicated {
					t.Fatalf("region %+v left with more dedicated memory", p.Regions[i])
				}
			}
			for i, x := range p.Regions {
				if x.Placement == Dedicated {
					before[i] = true
				}
			}
		}
		if p.Place(Capacity{Dedicated: most}, Dedicated) != nil || most > 0 && p.Place(Capacity{Dedicated: most - 1}, Dedicated) == nil {
			t.Fatalf("%d bytes by force: fits below, or does not fit", most)
		}
		p.Place(Capacity{Dedicated: most}, Shared)
		if p.in(Dedicated) != 0 {
			t.Fatal("dedicated memory by force of shared")
		}
	}
}

// checkOrder says whether no region left dedicated memory before one that leaves earlier, and none left in vain.
func checkOrder(t *testing.T, p Plan, dedicated int64) {
	t.Helper()
	rank := func(k Kind) int { return slices.Index([]Kind{Headroom, Arena, Weights}, k) }
	place := func(i int) int { // in the plan, of a region or of the spill block that comes before its arena
		return slices.IndexFunc(p.Regions, func(r Region) bool {
			return r.Owner == p.Regions[i].Owner && (r.Kind == p.Regions[i].Kind || r.Kind == Spill && p.Regions[i].Kind == Arena)
		})
	}
	smallest := int64(-1) // the block that left last, of those that could come back
	for i, gone := range p.Regions {
		if rank(gone.Kind) < 0 || gone.Placement != Shared {
			continue
		}
		for k, stays := range p.Regions {
			if stays.Placement == Dedicated && (rank(stays.Kind) >= 0 && rank(stays.Kind) < rank(gone.Kind) || stays.Kind == gone.Kind && place(k) > place(i)) {
				t.Fatalf("%+v left before %+v", gone, stays)
			}
		}
	}
	for _, x := range p.Regions {
		if x.Kind != Spill {
			continue
		}
		for _, a := range p.Regions {
			if a.Kind == Arena && a.Owner == x.Owner && a.Placement != x.Placement {
				t.Fatalf("arena %+v and spill block %+v part", a, x)
			}
		}
	}
	// The block that would come back first must not fit.
	blocks, _ := p.movable()
	for _, b := range blocks {
		if p.Regions[b.regions[0]].Placement == Shared {
			smallest = b.bytes
		}
	}
	if smallest >= 0 && p.in(Dedicated)+smallest <= dedicated {
		t.Fatalf("%d bytes left in vain: %d of %d are in use", smallest, p.in(Dedicated), dedicated)
	}
}

func ladder(batches ...int) []Rung {
	var rungs []Rung
	for _, b := range batches {
		p := board()
		for i := range p.Regions {
			switch p.Regions[i].Kind {
			case Arena, Tensors:
				p.Regions[i].Bytes *= int64(b)
			}
		}
		rungs = append(rungs, Rung{Batch: b, Plan: p})
	}
	return rungs
}

func TestLargestBatch(t *testing.T) {
	rungs := ladder(4, 1, 2) // in any order
	need := func(batch int64) int64 { return 1290 + 210*batch }
	for _, c := range []struct {
		budget int64
		want   int
	}{{need(1) - 1, 0}, {need(1), 1}, {need(2) - 1, 1}, {need(2), 2}, {need(4) - 1, 2}, {need(4), 4}, {0, 4}} {
		if got := LargestBatch(rungs, Capacity{Budget: c.budget}, ""); got != c.want {
			t.Errorf("budget %d: batch %d, want %d", c.budget, got, c.want)
		}
	}
	if got := LargestBatch(rungs, Capacity{Dedicated: 385}, Dedicated); got != 1 {
		t.Errorf("by force batch %d, want 1", got)
	}
	if rungs[0].Batch != 4 || rungs[0].Plan.Regions[0].Placement != "" {
		t.Error("the ladder was changed")
	}
	if got := LargestBatch(nil, Capacity{}, ""); got != 0 {
		t.Errorf("batch %d of an empty ladder", got)
	}
}

func TestLargestBatchOfRandomLadders(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		var rungs []Rung
		for b := 1; b <= 1+r.IntN(5); b++ {
			rungs = append(rungs, Rung{Batch: b, Plan: randomPlan(r)})
		}
		all := Ladder(rungs...)
		before := 0
		for budget := int64(1); budget <= all.Total()+1; budget += 1 + int64(r.IntN(30)) {
			got := LargestBatch(rungs, Capacity{Budget: budget}, "")
			if got < before {
				t.Fatalf("budget %d: batch %d, with less %d", budget, got, before)
			}
			fitting, next := Ladder(rungs[:got]...), Ladder(rungs[:min(got+1, len(rungs))]...)
			if fitting.Total() > budget || got < len(rungs) && next.Total() <= budget {
				t.Fatalf("budget %d: batch %d needs %d, the next %d", budget, got, fitting.Total(), next.Total())
			}
			before = got
		}
		if got := LargestBatch(rungs, Capacity{Budget: all.Total()}, ""); all.Total() > 0 && got != len(rungs) {
			t.Fatalf("batch %d of %d with all that is needed", got, len(rungs))
		}
	}
}

// A smaller batch that needs more than a larger one (another kernel) counts for every ladder that holds it.
func TestLadderTakesTheLargestOfEach(t *testing.T) {
	small, large := ladder(1)[0], ladder(2)[0]
	small.Plan.Add(Arena, "", 1000)
	plan := Ladder(small, large)
	if plan.Of(Arena) != 1200 || plan.Of(Tensors) != 20 || plan.Of(Weights) != 150 || len(plan.Regions) != len(small.Plan.Regions) {
		t.Errorf("%v", plan.String())
	}
}

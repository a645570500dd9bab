package lane

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/eyas-edge/eyas/memplan"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// Shape is what a plan is good for: the input size in pixels and the pictures of a run.
type Shape struct {
	H     int `json:"h"`
	W     int `json:"w"`
	Batch int `json:"batch"`
}

// Saved is what a model's runs were found to allocate, for the next start.
type Saved struct {
	Plans []SavedPlan `json:"plans"`
}

// SavedPlan is the plan of one shape.
type SavedPlan struct {
	Shape
	Recordings []ort.Recording  `json:"recordings"`
	Solution   memplan.Solution `json:"arena"`
}

// MaxNodes limits the search for one arena, recorded or estimated: tens of milliseconds at most.
const MaxNodes = 50_000

// Limits of what is kept of a model. Real ones come in 39 input sizes at most (multiples of 32 up to 640 on
// one side); one whose runs go on to differ after eight plans is left to the spill block.
const (
	maxShapes     = 64
	maxRecordings = 8
	minSpill      = 64 << 10
)

// plan is the plan of one shape. It is replaced, never changed.
type plan struct {
	recordings []ort.Recording
	schedule   *ort.Schedule
	solution   memplan.Solution
	// outgrown says that schedule and solution are for fewer recordings: what all of them need does not
	// fit the arena. The next start plans for them.
	outgrown bool
	// recalled says that the plan is of an earlier run, and no run of this one has kept to it yet.
	recalled bool
}

// fits says whether the plan fits an arena with so many bytes for slots; nothing fits none.
func (p *plan) fits(room int64) bool { return p != nil && room > 0 && p.solution.Height <= room }

// plans are the plans of a model, shared by the lanes that run it.
type plans struct {
	check bool
	room  int64 // of the arenas; 0 while there is none

	mu      sync.Mutex
	byShape map[Shape]*plan
	left    map[Shape]int // how often runs have left their plan
}

func newPlans(check bool, saved *Saved) *plans {
	ps := &plans{check: check, byShape: map[Shape]*plan{}, left: map[Shape]int{}}
	if saved == nil || check { // guards make slots larger
		return ps
	}
	for _, s := range saved.Plans {
		schedule, err := ort.NewSchedule(false, s.Recordings...)
		if err != nil || len(ps.byShape) == maxShapes || len(s.Recordings) > maxRecordings {
			continue // it is recorded anew
		}
		if s.Solution.Height == 0 || memplan.Validate(schedule.Problem(), s.Solution) != nil {
			continue // a plan of nothing has no run that could leave it
		}
		ps.byShape[s.Shape] = &plan{recordings: s.Recordings, schedule: schedule, solution: s.Solution, recalled: true}
	}
	return ps
}

// get returns the plan of a shape, nil if there is none, and whether there is room for one.
func (ps *plans) get(s Shape) (p *plan, room bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.byShape[s], len(ps.byShape) < maxShapes
}

// above returns a plan that fits an arena and holds a larger input in the same batch size, nil if there is none.
func (ps *plans) above(s Shape, room int64) *plan {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for o, p := range ps.byShape {
		if o.Batch == s.Batch && o.H >= s.H && o.W >= s.W && p.fits(room) {
			return p
		}
	}
	return nil
}

// add plans for one more recording of a shape.
func (ps *plans) add(ctx context.Context, s Shape, r ort.Recording) error {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	next := &plan{recordings: []ort.Recording{r}}
	old := ps.byShape[s]
	if old != nil && old.recalled {
		old = nil // it does not hold
	}
	if old != nil {
		if slices.ContainsFunc(old.recordings, func(o ort.Recording) bool { return slices.Equal(o, r) }) {
			return nil
		}
		next.recordings = append(slices.Clone(old.recordings), r)
	}
	if err := next.solve(ctx, ps.check); err != nil {
		return err
	}
	if ps.room > 0 && next.solution.Height > ps.room && old != nil {
		next.schedule, next.solution, next.outgrown = old.schedule, old.solution, true
	}
	ps.byShape[s] = next
	return nil
}

// solve plans for all recordings. A search that ctx has ended is an error: its plan may be far from the lowest, and
// would be kept for the next start.
func (p *plan) solve(ctx context.Context, check bool) (err error) {
	if p.schedule, err = ort.NewSchedule(check, p.recordings...); err != nil {
		return err
	}
	if p.solution, err = memplan.Solve(ctx, p.schedule.Problem(), memplan.MaxNodes(MaxNodes)); err != nil {
		return err
	}
	return ctx.Err()
}

// place tells the plans how large an arena is that was made for them, or is to be replaced by a larger one: 0.
func (ps *plans) place(room int64) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.room = room
}

// leave notes that a run has left its plan, and says whether it is to be recorded again. After maxRecordings
// times the shape is left to the spill block. Recordings of an earlier run that does not hold do not count.
func (ps *plans) leave(s Shape) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.left[s]++
	p := ps.byShape[s]
	return ps.left[s] <= maxRecordings && (p.recalled || len(p.recordings) < maxRecordings)
}

// confirm notes that a run has kept to the plan of a shape.
func (ps *plans) confirm(s Shape) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p := ps.byShape[s]; p != nil && p.recalled {
		held := *p
		held.recalled = false
		ps.byShape[s] = &held
	}
}

// need returns the arena's bytes for batches up to n. Outputs that the library allocates stay in the spill
// block until their binding runs again, one of each input buffer, and bindings of maxVariants input sizes are kept; as
// much again keeps pieces large enough.
func (ps *plans) need(n int) (slots, spill int64) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	spills := map[int][]int64{} // by batch size
	for s, p := range ps.byShape {
		if s.Batch <= n {
			slots = max(slots, p.solution.Height)
			spills[s.Batch] = append(spills[s.Batch], p.schedule.Spill())
		}
	}
	for _, list := range spills {
		slices.Sort(list)
		for _, bytes := range list[max(len(list)-maxVariants, 0):] {
			spill += 2 * Inputs * bytes
		}
	}
	if len(ps.byShape) > 0 {
		spill = max(spill, minSpill)
	}
	return slots, spill
}

// highest returns the plan for a batch up to n that needs the most of the arena, nil if there is none.
func (ps *plans) highest(n int) *plan {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	var top *plan
	for s, p := range ps.byShape {
		if s.Batch <= n && (top == nil || p.solution.Height > top.solution.Height) {
			top = p
		}
	}
	return top
}

// saved returns what the next start is to know.
func (ps *plans) saved(ctx context.Context) (*Saved, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	s := &Saved{}
	for shape, p := range ps.byShape {
		if p.outgrown || ps.check {
			whole := &plan{recordings: p.recordings}
			if err := whole.solve(ctx, false); err != nil {
				return nil, err
			}
			p = whole
		}
		s.Plans = append(s.Plans, SavedPlan{shape, p.recordings, p.solution})
	}
	slices.SortFunc(s.Plans, func(a, b SavedPlan) int {
		return cmp.Or(cmp.Compare(a.Batch, b.Batch), cmp.Compare(a.H, b.H), cmp.Compare(a.W, b.W))
	})
	return s, nil
}

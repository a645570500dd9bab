package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"

	"github.com/eyas-edge/eyas/memplan"
	"github.com/eyas-edge/eyas/runtime/lane"
)

// build makes the lanes of a setting, with the batch sizes of each model, and takes their memory: every model has run
// at every batch size on every lane. Lanes that are there and are the same stay; others are taken down before.
func (rt *Runtime) build(ctx context.Context, s Setting, ladders [][]int) error {
	same := len(rt.lanes) == s.Lanes && rt.setting == s && rt.laid != nil
	for i, m := range rt.models {
		same = same && slices.Equal(m.ladder, ladders[i])
		m.ladder = ladders[i]
	}
	if same {
		return nil
	}
	rt.unload()
	rt.setting = s
	if err := rt.learn(ctx); err != nil {
		return err
	}
	return rt.settle(ctx)
}

// unload takes the lanes down. What is known of the models' runs is kept for others with as many threads.
func (rt *Runtime) unload() {
	for _, m := range rt.models {
		m.remember()
	}
	for _, l := range slices.Backward(rt.lanes) {
		l.Close()
	}
	rt.lanes, rt.laid = nil, nil
	for _, m := range rt.models {
		m.program, m.programs, m.kept = nil, nil, 0
		if m.quota != nil {
			m.quota.Close()
			m.quota = nil
		}
	}
}

// learn loads the models and finds out what each run of them takes, on the first lane; the others run the same.
func (rt *Runtime) learn(ctx context.Context) error {
	first := lane.New(lane.Options{Check: rt.cfg.CheckArena, Warn: rt.warnOf, Longest: rt.longest})
	rt.lanes = append(rt.lanes, first)
	for _, m := range rt.models {
		if err := m.load(ctx, first); err != nil {
			return err
		}
	}
	if err := rt.precheck(ctx); err != nil {
		return err
	}
	if err := first.Record(ctx); err != nil {
		return cmp.Or(ctx.Err(), asRun(err))
	}
	for _, m := range rt.models {
		m.probe()
		m.info.ONNX.DropWeights() // the session has its own
	}
	rt.prechecked = true // and what other lanes take is known before they take it
	debug.FreeOSMemory() // the files that were read, at once: the plan is made of what stays
	return nil
}

// settle plans the memory, checks that it is there, takes it, and runs everything once.
func (rt *Runtime) settle(ctx context.Context) error {
	rt.foresee()
	rt.cut()
	if err := rt.place(); err != nil {
		return err
	}
	if err := rt.multiply(); err != nil {
		return asRun(err)
	}
	for _, m := range rt.models {
		m.limit()
	}
	planned := rt.need(math.MaxInt)
	// Most often one round is enough. A saved plan that does not hold, or a run that went another way on one lane than
	// on the first, makes a larger plan, for all of them; models of bounded plans bound the rounds.
	for !rt.placed() {
		for i, l := range rt.lanes {
			if err := l.Place(ctx, rt.laid.Where(memplan.Arena, rt.laneName(i)) == memplan.Shared); err != nil {
				return cmp.Or(ctx.Err(), asRun(err))
			}
		}
	}
	if planned != rt.need(math.MaxInt) {
		if err := rt.place(); err != nil {
			return err
		}
	}
	if err := rt.checkLocks(); err != nil {
		return err
	}
	for _, m := range rt.models {
		m.before = m.counts()
	}
	rt.save()
	return nil
}

// placed says whether every lane has an arena as large as the plans need.
func (rt *Runtime) placed() bool {
	return !slices.ContainsFunc(rt.lanes, func(l *lane.Lane) bool { return !l.Placed() })
}

// multiply makes the lanes beside the first.
func (rt *Runtime) multiply() error {
	for len(rt.lanes) < rt.setting.Lanes {
		l, err := lane.Beside(rt.lanes[0])
		if err != nil {
			return err
		}
		rt.lanes = append(rt.lanes, l)
	}
	for i, m := range rt.models {
		m.programs = m.programs[:0]
		for _, l := range rt.lanes {
			m.programs = append(m.programs, l.Programs()[i])
		}
	}
	return nil
}

// laneName returns what regions of a lane are called: where there is one only, it needs no name.
func (rt *Runtime) laneName(i int) string {
	if rt.setting.Lanes == 1 {
		return ""
	}
	return fmt.Sprintf("lane %d", i)
}

// need returns what each lane takes for batches up to n.
func (rt *Runtime) need(n int) lane.Need { return rt.lanes[0].Need(n) }

// cut takes batches off ladders that are ours to choose until the plan fits. What does not fit even then is said by
// who places it.
func (rt *Runtime) cut() {
	if !rt.free() {
		return
	}
	var batches []int
	for _, m := range rt.models {
		batches = append(batches, m.program.Ladder()...)
	}
	slices.Sort(batches)
	for _, n := range slices.Backward(slices.Compact(batches)) {
		rt.lanes[0].Cut(n)
		if _, err := rt.fit(); err == nil {
			return
		}
	}
}

// take waits for an input buffer of any lane for the model, the first free one.
func (m *Model) take(ctx context.Context) (*lane.Set, error) {
	next := int(m.rt.next.Add(1))
	for i := range m.programs {
		if s := m.programs[(next+i)%len(m.programs)].TryTake(); s != nil {
			return s, nil
		}
	}
	return m.programs[next%len(m.programs)].Take(ctx)
}

// abortWith lets ctx end all runs. What it returns calls that off.
func (rt *Runtime) abortWith(ctx context.Context) func() bool {
	lanes := slices.Clone(rt.lanes) // which may be gone when ctx is done
	return context.AfterFunc(ctx, func() {
		for _, l := range lanes {
			l.Abort()
		}
	})
}

// startError says why a start has failed in a run.
func startError(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, ErrBudget) || errors.Is(err, ErrModel) {
		return err
	}
	return cmp.Or(ctx.Err(), asRun(err))
}

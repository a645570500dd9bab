package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// DefaultSLO is the limit on the time from capture to result where live sources are configured and no limit is named.
const DefaultSLO = 100 * time.Millisecond

// limit returns the SLO in force, 0 for none, and whether it was asked for.
func (rt *Runtime) limit() (slo time.Duration, asked bool) {
	switch {
	case rt.cfg.SLO > 0:
		return rt.cfg.SLO, true
	case rt.cfg.SLO == 0 && len(rt.rings) > 0: // live sources
		return DefaultSLO, false
	}
	return 0, false
}

// free says whether ladders are ours to choose: where an SLO was asked for and no ladder. The one that cameras have by default
// is worth no search at every start.
func (rt *Runtime) free() bool {
	_, asked := rt.limit()
	return asked && len(rt.cfg.Batch) == 0
}

// Choice is how a runtime has decided to run, and why.
type Choice struct {
	Setting
	SLO    time.Duration `json:"slo_ns,omitempty"` // 0 for none
	FPS    float64       `json:"fps,omitempty"`    // pictures a second through every model that keep the SLO, as measured
	P99    time.Duration `json:"p99_ns,omitempty"` // of such a picture, from its arrival to its last result
	Why    string        `json:"why,omitempty"`    // in a sentence; empty where there was nothing to choose
	Models []ModelChoice `json:"models"`
	// Trials are the settings that were measured to choose one.
	Trials []Trial `json:"trials,omitempty"`
	// Saved says that the profiles are those of an earlier start, and were found to hold.
	Saved bool `json:"saved"`
}

// ModelChoice is the part of one model.
type ModelChoice struct {
	Model    string    `json:"model"`    // its key
	Ladder   []int     `json:"ladder"`   // batch sizes, ascending
	Profiles []Profile `json:"profiles"` // of each
}

// Trial is a setting that was measured.
type Trial struct {
	Setting
	FPS float64       `json:"fps"`
	P99 time.Duration `json:"p99_ns"`
}

// Choice returns lanes, ladders and their profiles. It must not be changed.
func (rt *Runtime) Choice() *Choice { return &rt.choice }

// prepare decides on lanes and ladders, and makes them ready.
func (rt *Runtime) prepare(ctx context.Context) error {
	if ready, err := rt.resume(ctx); ready || err != nil {
		return err
	}
	slo, asked := rt.limit()
	e := brief
	if asked {
		e = thorough
	}
	trials, err := rt.try(ctx, e)
	if err != nil {
		return err
	}
	best, p, why := choose(slo, trials)
	if best < 0 {
		return trials[0].short
	}
	if err := rt.checkSLO(ctx, slo, asked, trials); err != nil {
		return err
	}
	ladders := rt.asked()
	for i := range ladders {
		if rt.free() {
			ladders[i] = ladderFor(slo, trials[best].models[i])
		}
	}
	measured := rt.lanes
	if err := rt.build(ctx, trials[best].Setting, ladders); err != nil {
		return err
	}
	if !slices.Equal(rt.lanes, measured) {
		if err := rt.warmAll(ctx); err != nil {
			return err
		}
	}
	rt.choice = Choice{Setting: trials[best].Setting, SLO: slo}
	if slo > 0 {
		rt.choice.FPS, rt.choice.P99 = p.fps, p.p99
		if asked {
			rt.choice.Why = why
		}
		for i := range trials {
			if t := &trials[i]; t.short == nil {
				p, _ := t.best(slo)
				rt.choice.Trials = append(rt.choice.Trials, Trial{t.Setting, p.fps, p.p99})
			}
		}
	}
	for i, m := range rt.models {
		c := ModelChoice{Model: m.key, Ladder: m.program.Ladder()}
		for _, p := range trials[best].models[i] {
			if slices.Contains(c.Ladder, p.Batch) {
				c.Profiles = append(c.Profiles, p)
			}
		}
		rt.choice.Models = append(rt.choice.Models, c)
	}
	rt.saveChoice()
	return nil
}

// resume goes by the choice of an earlier start, if there is one and a few runs agree with its profiles.
func (rt *Runtime) resume(ctx context.Context) (ready bool, err error) {
	saved := rt.recallChoice()
	if saved == nil {
		return false, nil
	}
	ladders := rt.asked()
	for i := range ladders {
		if rt.free() {
			ladders[i] = saved.Models[i].Ladder
		}
	}
	err = rt.build(ctx, saved.Setting, ladders)
	if errors.Is(err, ErrBudget) && rt.free() {
		return false, nil // there is less memory than at that start
	}
	if err != nil {
		return false, err
	}
	defer rt.abortWith(ctx)()
	for i, m := range rt.models {
		for _, p := range saved.Models[i].Profiles {
			ok, err := m.check(ctx, p)
			if err != nil {
				return false, startError(ctx, err)
			}
			if !ok {
				rt.note(fmt.Sprintf("model %s runs %d at once in another time than at the last start: it is measured anew", m.key, p.Batch))
				return false, nil
			}
		}
	}
	rt.choice = *saved
	rt.choice.Saved = true
	return true, nil
}

// checkSLO refuses an SLO that no picture can keep, however idle the machine is. One that nobody asked for is only
// told of.
func (rt *Runtime) checkSLO(ctx context.Context, slo time.Duration, asked bool, trials []trial) error {
	best := &trials[0]
	for i := range trials {
		if t := &trials[i]; t.short == nil && (best.short != nil || t.fastest() < best.fastest()) {
			best = t
		}
	}
	if slo == 0 || best.fastest() <= slo {
		return nil
	}
	fastest, err := rt.again(ctx, best)
	if err != nil || fastest <= slo {
		return err
	}
	err = fmt.Errorf("slo: %s from capture to result, the fastest measured p99 is %s (%v): raise the SLO, or take a smaller model or input",
		millis(slo), millis(fastest), best.Setting)
	if asked {
		return as(ErrSLO, err)
	}
	rt.warn("", "", err.Error())
	return nil
}

// again measures the smallest batch of each model twice more under a setting, and returns the fastest p99 of all three
// times: who is refused for it should not be refused for what else the machine had to do.
func (rt *Runtime) again(ctx context.Context, t *trial) (time.Duration, error) {
	fastest := t.fastest()
	if err := rt.build(ctx, t.Setting, rt.asked()); err != nil {
		return 0, err
	}
	defer rt.abortWith(ctx)()
	for range 2 {
		var longest time.Duration
		for _, m := range rt.models {
			alone, err := m.repeat(ctx, m.program, m.program.Ladder()[0], thorough)
			if err != nil {
				return 0, startError(ctx, err)
			}
			longest = max(longest, spreadOf(alone, allTime).P99)
		}
		fastest = min(fastest, longest)
	}
	return fastest, nil
}

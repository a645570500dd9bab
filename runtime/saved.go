package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/eyas-edge/eyas/internal/machine"
	"github.com/eyas-edge/eyas/memplan"
	"github.com/eyas-edge/eyas/runtime/cache"
	"github.com/eyas-edge/eyas/runtime/lane"
)

// savedVersion is the version of what is saved between runs.
const savedVersion = 1

// savedModel is what is kept of one model.
type savedModel struct {
	Version int `json:"version"`
	// Sizes says whether a model that declares height and width dynamic was found to run at other sizes than its own.
	Sizes bool `json:"sizes"`
	lane.Saved
}

// savedRun is what is kept of a set of models that ran together: what it took beside the plan, in bytes.
type savedRun struct {
	Version int   `json:"version"`
	Engine  int64 `json:"engine"`
	Go      int64 `json:"go"`
}

// planKey names what a model's runs allocate: it depends on the model, the dimensions that are fixed
// in it, its input size, the library, the processor and the threads. Plans of a larger input would make the arena
// larger than this one needs.
func (m *Model) planKey() cache.Key {
	facts := []string{"plan", m.id(), cache.Engine(m.rt.library), m.rt.threads(), m.size()}
	return cache.NewKey(append(facts, cache.Dimensions(m.fixed)...)...)
}

// runKey names a set of models with their batch sizes.
func (rt *Runtime) runKey() cache.Key {
	facts := []string{"run", cache.Engine(rt.library), rt.setting.String(), rt.cfg.Placement}
	for _, m := range rt.models {
		facts = append(facts, m.id(), m.size(), fmt.Sprint(m.program.Ladder()))
	}
	return cache.NewKey(facts...)
}

// size returns the model's input size, the largest that it is fed.
func (m *Model) size() string { return fmt.Sprintf("%dx%d", m.info.H, m.info.W) }

// recall returns what an earlier run has found out about the model's runs, nil if there was none. That is good for
// the optimised model that it was made with: ONNX Runtime orders the operators otherwise each time.
func (m *Model) recall() *lane.Saved {
	var s savedModel
	if m.built || !m.hashed() || !m.rt.recall(m.planKey(), &s) || s.Version != savedVersion {
		return nil
	}
	m.saved = &s
	return &s.Saved
}

// recall reads a document from the cache.
func (rt *Runtime) recall(key cache.Key, doc any) bool {
	data, ok := rt.cache.Plan(key)
	return ok && json.Unmarshal(data, doc) == nil
}

func (rt *Runtime) keep(key cache.Key, doc any) error {
	data, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	return rt.cache.SavePlan(key, data)
}

// foresee adds to the plan what others take: as an earlier run has measured it, or as this start does, once the
// models have run.
func (rt *Runtime) foresee() {
	var s savedRun
	if rt.recall(rt.runKey(), &s) && s.Version == savedVersion && s.Engine > 0 && s.Go > 0 {
		rt.others = []memplan.Region{
			{Kind: memplan.Engine, Bytes: s.Engine, Basis: memplan.EarlierRun},
			{Kind: memplan.Go, Bytes: s.Go, Basis: memplan.EarlierRun},
		}
		return
	}
	rt.others = []memplan.Region{
		{Kind: memplan.Engine, Bytes: rt.engineBytes(), Basis: measuredNow},
		{Kind: memplan.Go, Bytes: goBytes(), Basis: measuredNow},
	}
	// Sources have not run yet: what they will take of the Go heap is not there to be measured.
	for _, r := range allowances(rt.ep, len(rt.models)) {
		if r.Kind == memplan.Go && r.Bytes > rt.others[1].Bytes {
			rt.others[1] = r
		}
	}
}

// save keeps what this run has found out for the next. What cannot be kept is found out again.
func (rt *Runtime) save() {
	ctx := context.Background()
	for _, m := range rt.models {
		n := m.recordings()
		if !m.hashed() || n == m.kept {
			continue // nothing new
		}
		m.kept = n
		saved, err := m.program.Saved(ctx)
		if err == nil {
			err = rt.keep(m.planKey(), savedModel{savedVersion, m.info.DynamicSize, *saved})
		}
		if err != nil && !rt.cacheTold {
			rt.cacheTold = true
			rt.warn("", "", err.Error())
		}
	}
}

// saveUse keeps what a run of some length took beside the plan. The optimisation of a model leaves holes all
// over the heap: what such a run took says nothing of the next one.
func (rt *Runtime) saveUse() {
	if !rt.hashed() || rt.cold {
		return
	}
	// Where it cannot be kept the next start measures for itself: not worth a warning at the end of every run from a
	// cache that was filled for it and is read-only.
	_ = rt.keep(rt.runKey(), savedRun{savedVersion, rt.engineBytes(), goBytes()})
}

func (rt *Runtime) hashed() bool {
	for _, m := range rt.models {
		if !m.hashed() {
			return false
		}
	}
	return true
}

// threads returns the threads of a run, on which depends what it allocates.
func (rt *Runtime) threads() string { return strconv.Itoa(rt.setting.pool()) }

// savedChoice is what is kept of a choice, with the profiles that it comes from.
type savedChoice struct {
	Version int `json:"version"`
	Choice
}

// choiceKey names everything that a choice depends on: what is to run, what was set by hand, and how fast the machine
// may be.
func (rt *Runtime) choiceKey() cache.Key {
	slo, _ := rt.limit()
	facts := []string{
		"choice", cache.Engine(rt.library), rt.ep, machine.Clocks("/"), strconv.Itoa(machine.CPUs()),
		fmt.Sprint(slo, rt.cfg.Lanes, rt.cfg.Threads, rt.cfg.Batch, rt.cfg.Budget, rt.cfg.Headroom, rt.cfg.CheckArena), rt.cfg.Placement,
	}
	for _, m := range rt.models {
		facts = append(facts, m.key, m.id(), m.size(), fmt.Sprint(m.cfg.Quota))
	}
	return cache.NewKey(facts...)
}

// recallChoice returns the choice of an earlier start, nil if there is none that is whole.
func (rt *Runtime) recallChoice() *Choice {
	var s savedChoice
	if !rt.hashed() || !rt.recall(rt.choiceKey(), &s) || s.Version != savedVersion || !s.whole(rt.models) {
		return nil
	}
	return &s.Choice
}

// whole says whether a choice that was read is one that could have been made for the models.
func (c *Choice) whole(list []*Model) bool {
	ok := c.Lanes >= 1 && c.Lanes <= maxLanes && c.Threads >= 1 && c.Threads <= maxThreads && len(c.Models) == len(list)
	for i := 0; ok && i < len(list); i++ {
		m := c.Models[i]
		ok = m.Model == list[i].key && len(m.Ladder) > 0 && len(m.Ladder) == len(m.Profiles) && slices.IsSorted(m.Ladder) &&
			m.Ladder[0] >= 1 && m.Ladder[len(m.Ladder)-1] <= maxBatch
		ok = ok && m.Timings().Check() == nil
		for k := 0; ok && k < len(m.Profiles); k++ {
			ok = m.Profiles[k].Batch == m.Ladder[k] && m.Profiles[k].Alone.P50 > 0
		}
	}
	return ok
}

// saveChoice keeps the choice for the next start, which makes it again where that is not possible.
func (rt *Runtime) saveChoice() {
	if rt.hashed() {
		_ = rt.keep(rt.choiceKey(), savedChoice{savedVersion, rt.choice})
	}
}

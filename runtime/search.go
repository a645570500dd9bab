package runtime

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/eyas-edge/eyas/internal/machine"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// A machine that others use, too, is slower for seconds at a time, and whoever is measured then loses. Where there is a choice
// the settings take turns in being measured, in so many rounds as long as the search has not taken roundsWithin, and of each batch
// size the round in the middle counts.
const (
	mostRounds   = 5
	roundsWithin = 12 * time.Second
)

// nearby is the share of the most pictures a second from which on a setting, or a batch size of one, is measured again.
const nearby = 0.75

// trial is a setting with what was measured of it.
type trial struct {
	Setting
	models [][]Profile   // of each model, by ascending batch: what counts
	rounds [][][]Profile // of each model and batch, in ascending order of pictures a second
	short  error         // why the setting cannot be had; nil where it was measured
}

// add takes in what a round measured of a batch size of a model. The first round begins with the smallest.
func (t *trial) add(model int, p Profile) {
	for len(t.models) <= model {
		t.models, t.rounds = append(t.models, nil), append(t.rounds, nil)
	}
	k := slices.IndexFunc(t.models[model], func(known Profile) bool { return known.Batch == p.Batch })
	if k < 0 {
		k = len(t.models[model])
		t.models[model], t.rounds[model] = append(t.models[model], p), append(t.rounds[model], nil)
	}
	rounds := &t.rounds[model][k]
	at, _ := slices.BinarySearchFunc(*rounds, p, func(a, b Profile) int { return cmp.Compare(a.FPS, b.FPS) })
	*rounds = slices.Insert(*rounds, at, p)
	t.models[model][k] = (*rounds)[len(*rounds)/2]
}

// most returns the most pictures a second that any batch size brings through all models, in time or not.
func (t *trial) most() (fps float64) {
	for _, n := range t.batches() {
		fps = max(fps, t.at(n).fps)
	}
	return fps
}

// doubtful returns the batch sizes of each model that may turn out to be what is wanted after all: the smallest always may.
func (t *trial) doubtful() [][]int {
	ladders := make([][]int, len(t.models))
	for i, ladder := range t.models {
		best := 0.0
		for _, p := range ladder {
			best = max(best, p.FPS)
		}
		for k, p := range ladder {
			if k == 0 || p.FPS >= nearby*best {
				ladders[i] = append(ladders[i], p.Batch)
			}
		}
	}
	return ladders
}

// rivals returns the trials between which, or between the batch sizes of which, another round may decide.
func rivals(trials []trial) (list []*trial) {
	best := 0.0
	for i := range trials {
		if t := &trials[i]; t.short == nil {
			best = max(best, t.most())
		}
	}
	for i := range trials {
		if t := &trials[i]; t.short == nil && t.most() >= nearby*best {
			list = append(list, t)
		}
	}
	if len(list) == 1 && len(list[0].batches()) == 1 {
		return nil
	}
	return list
}

// try measures every setting that there is to choose from.
func (rt *Runtime) try(ctx context.Context, e effort) ([]trial, error) {
	slo, asked := rt.limit()
	settings := settingsFor(machine.CPUs(), rt.cfg.Lanes, rt.cfg.Threads, asked && rt.ep == ort.EPCPU)
	rt.longest = 2 * slo // the first run of a size is no measure yet
	defer func() { rt.longest = 0 }()
	rounds := 1
	if asked {
		rounds = mostRounds
	}
	b, start := rt.newProgress(len(settings), rounds), time.Now()
	trials := make([]trial, len(settings))
	for i, s := range settings {
		t := &trials[i]
		t.Setting = s
		err := rt.build(ctx, s, rt.asked())
		if errors.Is(err, ErrBudget) && len(settings) > 1 && ctx.Err() == nil {
			t.short = err
			b.turns, b.sure = b.turns-rounds, b.sure-1
			continue
		}
		if err == nil {
			err = rt.measure(ctx, e, t, b)
		}
		if err != nil {
			return nil, err
		}
	}
	for round := 1; round < rounds && time.Since(start) < roundsWithin; round++ {
		again := rivals(trials)
		if len(again) == 1 && !rt.free() {
			break // no setting and no ladder to choose
		}
		b.turns = len(again) * (rounds - round)
		if round%2 == 1 {
			slices.Reverse(again) // begins with the one that is built
		}
		for _, t := range again {
			err := rt.build(ctx, t.Setting, t.doubtful())
			if err == nil {
				err = rt.measure(ctx, e, t, b)
			}
			if errors.Is(err, ErrBudget) && ctx.Err() == nil {
				return trials, nil // memory has become scarce: what is known has to do
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return trials, nil
}

// asked returns the batch sizes that there are to choose from, of each model.
func (rt *Runtime) asked() [][]int {
	ladders := make([][]int, len(rt.models))
	for i, m := range rt.models {
		ladders[i] = m.asked
	}
	return ladders
}

// measure takes the profile of every batch size that is built; in the first round, where the ladder is free, until larger ones are
// of no use.
func (rt *Runtime) measure(ctx context.Context, e effort, t *trial, b *progress) error {
	defer rt.abortWith(ctx)()
	slo, _ := rt.limit()
	first, sizes := t.models == nil, 0
	for _, m := range rt.models {
		sizes += len(m.program.Ladder())
	}
	b.begin(sizes)
	for i, m := range rt.models {
		ladder := m.program.Ladder()
		for k, n := range ladder {
			p, err := m.profile(ctx, n, e)
			if err != nil {
				return startError(ctx, err)
			}
			t.add(i, p)
			if first && rt.free() && exhausted(slo, t.models[i]) {
				b.step(len(ladder) - k - 1)
				break
			}
			b.step(0)
		}
	}
	return nil
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// facts opens a model to say which provider is in effect.
func (q request) facts(ctx context.Context, s *setup) (reply, error) {
	first := s.models[sortedKeys(s.models)[0]]
	session, err := s.lib.OpenFile(first.Path, s.options())
	if err != nil {
		return reply{}, fromEngine(err)
	}
	e := Engine{ONNXRuntime: s.lib.Version(), Library: s.lib.Path(), EP: session.EP(), Threads: s.threads()}
	return reply{Facts: &e}, session.Close()
}

// cycles is how often the ladder is run for resident memory: pools that grow have grown.
const cycles = 3

// resident opens the models, has them run all batch sizes, in turns, and says what memory that took.
func (q request) resident(ctx context.Context, s *setup) (reply, error) {
	idle, err := status()
	if err != nil {
		return reply{}, err
	}
	c, err := s.open(ctx, q.Candidate, s.options())
	if err != nil {
		return reply{}, err
	}
	kept, err := s.runLadders(ctx, c)
	var after Status
	if err == nil {
		after, err = status()
	}
	for _, r := range kept {
		err = errors.Join(err, r.Close())
	}
	if err = errors.Join(err, c.Close()); err != nil {
		return reply{}, err
	}
	return reply{Usage: &Usage{Idle: idle, After: after, Above: after.Resident - idle.Resident}}, nil
}

// runLadders runs every batch size of every model, and returns the runners of the last ones.
func (s *setup) runLadders(ctx context.Context, c candidate) (map[string]runner, error) {
	kept := map[string]runner{}
	for range cycles {
		for _, key := range sortedKeys(s.models) {
			for _, batch := range s.ladder(key) {
				if ctx.Err() != nil {
					return kept, ctx.Err()
				}
				if old, ok := kept[key]; ok { // its tensors go before the next ones come
					delete(kept, key)
					if err := old.Close(); err != nil {
						return kept, err
					}
				}
				r, err := s.ready(c, key, batch)
				if err != nil {
					return kept, err
				}
				kept[key] = r
			}
		}
	}
	return kept, nil
}

// Each figure of a start is the median of so many.
const (
	coldStarts = 3
	warmStarts = 5
)

// start measures how soon a model can run.
func (q request) start(ctx context.Context, s *setup) (reply, error) {
	batch := s.ladder(q.Model)[0]
	once := func(candidate, cache string) (float64, error) {
		one := *s
		one.cache = cache
		if err := os.MkdirAll(cache, 0o700); err != nil {
			return 0, err
		}
		start := time.Now()
		c, err := one.open(ctx, candidate, one.options())
		if err != nil {
			return 0, err
		}
		r, err := c.runner(q.Model, batch)
		took := milliseconds(time.Since(start))
		if err == nil {
			err = r.Close()
		}
		return took, errors.Join(err, c.Close())
	}
	many := func(n int, candidate string, cache func(i int) string) (float64, error) {
		var took []float64
		for i := range n {
			ms, err := once(candidate, cache(i))
			if err != nil {
				return 0, err
			}
			took = append(took, ms)
		}
		return median(took), nil
	}
	fresh := func(i int) string { return filepath.Join(q.Cache, fmt.Sprintf("start-%s-%d", q.Model, i)) }
	first := func(int) string { return fresh(0) }
	m := Start{Model: q.Model}
	var err error
	if m.Default, err = many(coldStarts, standard, first); err != nil {
		return reply{}, err
	}
	if m.Cold, err = many(coldStarts, planned, fresh); err != nil {
		return reply{}, err
	}
	if !s.cfg.NoCache {
		if m.Warm, err = many(warmStarts, planned, first); err != nil {
			return reply{}, err
		}
		m.Ratio = ratio(m.Warm, m.Cold)
	}
	return reply{Start: &m}, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

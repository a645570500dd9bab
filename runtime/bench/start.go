package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	eyas "github.com/eyas-edge/eyas/runtime"
	"github.com/eyas-edge/eyas/runtime/cache"
	"github.com/eyas-edge/eyas/runtime/lane"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// Each figure of a session's start is the median of so many; a whole runtime is started cold once and warm three times.
const (
	coldStarts = 3
	warmStarts = 5
)

// starts measures how soon sessions are ready.
func (b *bench) starts(ctx context.Context) error {
	for _, m := range b.report.Models {
		b.say("start of", m.Key)
		rep, err := b.ask(ctx, request{Job: jobStart, Model: m.Key})
		if err != nil {
			return err
		}
		b.report.Start = append(b.report.Start, *rep.Start)
	}
	return nil
}

// opener makes something ready and returns what closes it. It may use the folder for its cache.
type opener func(dir string) (closer func() error, err error)

// start measures how soon a model is ready, with an empty cache and with a full one.
func (q request) start(ctx context.Context, s *setup) (reply, error) {
	base := filepath.Join(q.Cache, "start")
	defer os.RemoveAll(base)
	m := Start{Model: q.Model, Library: milliseconds(s.loading), Read: milliseconds(s.reading)}
	var err error
	if m.Default, err = starts(coldStarts, base, false, s.plainSession(q.Model)); err != nil {
		return reply{}, err
	}
	if m.Open, err = q.coldAndWarm(s, 1, 3, filepath.Join(base, "open"), s.wholeRuntime(ctx)); err != nil {
		return reply{}, err
	}
	if m.Plan, err = q.coldAndWarm(s, 1, 3, filepath.Join(base, "plan"), s.wholePlan(ctx)); err != nil {
		return reply{}, err
	}
	if ep, err := s.lib.EPFor(s.options(false)); err != nil || ep != ort.EPCPU { // no optimised model is kept for others
		return reply{Start: &m}, fromEngine(err)
	}
	session, err := q.coldAndWarm(s, coldStarts, warmStarts, filepath.Join(base, "session"), s.cachedSession(ctx, q.Model))
	m.Session = &session
	return reply{Start: &m}, err
}

func (q request) coldAndWarm(s *setup, cold, warm int, base string, open opener) (c ColdWarm, err error) {
	if c.Cold, err = starts(cold, base, true, open); err != nil || s.cfg.NoCache {
		return c, err
	}
	c.Warm, err = starts(warm, filepath.Join(base, "0"), false, open)
	c.Ratio = ratio(c.Warm, c.Cold)
	return c, err
}

// starts returns the median time in milliseconds of so many starts: each in a fresh folder below base, or all in
// base.
func starts(n int, base string, fresh bool, open opener) (float64, error) {
	var took []float64
	for i := range n {
		dir := base
		if fresh {
			dir = filepath.Join(base, strconv.Itoa(i))
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return 0, err
		}
		start := time.Now()
		closer, err := open(dir)
		if err != nil {
			return 0, err
		}
		took = append(took, milliseconds(time.Since(start)))
		if err := closer(); err != nil {
			return 0, err
		}
	}
	return median(took), nil
}

// plainSession makes a session of the library by itself.
func (s *setup) plainSession(key string) opener {
	return func(string) (func() error, error) {
		session, err := s.lib.OpenFile(s.models[key].Path, s.options(false))
		if err != nil {
			return nil, fromEngine(err)
		}
		return session.Close, nil
	}
}

// cachedSession makes a session of the optimised model, as the runtime does: with the hash of the model's file and the
// check of what was kept.
func (s *setup) cachedSession(ctx context.Context, key string) opener {
	return func(dir string) (func() error, error) {
		m, o := s.models[key].ONNX, s.options(false)
		o.OwnAllocator = true
		o.Fixed = lane.Fixed(s.models[key], s.cfg.Batch)
		c, err := cache.Open(dir)
		if err != nil {
			return nil, err
		}
		sum, err := cache.HashModel(m)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		weights, _, err := c.Weights(ctx, cache.WeightsKey(s.lib, sum, cache.Dimensions(o.Fixed)...), cache.SaveWeights(s.lib, m, sum, o))
		if err != nil {
			return nil, errors.Join(fromEngine(err), c.Close())
		}
		session, err := s.lib.OpenORT(key, weights.Bytes(), o)
		if err != nil {
			return nil, errors.Join(fromEngine(err), weights.Close(), c.Close())
		}
		return func() error { return errors.Join(session.Close(), weights.Close(), c.Close()) }, nil
	}
}

// wholeRuntime opens the runtime: the model is read, its memory planned, every batch size has run.
func (s *setup) wholeRuntime(ctx context.Context) opener {
	return func(dir string) (func() error, error) {
		if err := os.Setenv("EYAS_HOME", dir); err != nil {
			return nil, err
		}
		rt, err := eyas.Open(ctx, s.cfg)
		if err != nil {
			return nil, err
		}
		return rt.Close, nil
	}
}

// wholePlan plans the memory as the runtime does: the model is read, its session made, its runs are recorded and placed.
func (s *setup) wholePlan(ctx context.Context) opener {
	return func(dir string) (func() error, error) {
		if err := os.Setenv("EYAS_HOME", dir); err != nil {
			return nil, err
		}
		_, err := eyas.Plan(ctx, s.cfg, eyas.PlanOptions{})
		return func() error { return nil }, err
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

package bench

import (
	"context"
	"errors"
	"time"
)

const (
	rounds    = 5
	leastRuns = 1    // of each candidate and batch size in a round
	mostRuns  = 5000 // bounds the samples that are kept
)

// contestants are the candidates whose runs are timed against each other.
var contestants = [...]string{standard, planned, shared}

// times holds figures of each contestant.
type times [len(contestants)][]float64

// duel is all contestants of one model at one batch size.
type duel struct {
	batch   int
	picture []byte
	runners [len(contestants)]runner
	// steady and turns are the times of one round in milliseconds: the one batch size alone, and the ladder in turns.
	steady, turns times
	p50, p99, alt times     // one of each round; alt against p50
	r50, r99      []float64 // planned against default
	shared        []float64 // p50 of shared against planned
}

// time lets the contestants run in turns, in this process, and compares their outputs.
func (q request) time(ctx context.Context, s *setup) (reply, error) {
	duels, closeAll, err := s.duels(ctx, q.Model)
	if err == nil {
		err = measure(ctx, duels, q.Duration, q.Model)
	}
	if err = errors.Join(err, closeAll()); err != nil {
		return reply{}, err
	}
	var r reply
	for _, d := range duels {
		r.Time = append(r.Time, d.result(q.Model))
	}
	return r, nil
}

// duels opens the contestants and makes their runners ready. What it returns to close is to be called, also after an
// error.
func (s *setup) duels(ctx context.Context, key string) (duels []*duel, closeAll func() error, err error) {
	var open []func() error
	closeAll = func() error {
		var err error
		for i := len(open) - 1; i >= 0; i-- {
			err = errors.Join(err, open[i]())
		}
		return err
	}
	for _, batch := range s.ladder(key) {
		data, err := picture(s.models[key], batch)
		if err != nil {
			return nil, closeAll, err
		}
		duels = append(duels, &duel{batch: batch, picture: data})
	}
	for i, name := range contestants {
		c, err := s.open(ctx, name, true)
		if err != nil {
			return nil, closeAll, err
		}
		open = append(open, c.Close)
		for _, d := range duels {
			if d.runners[i], err = s.ready(ctx, c, key, d.batch); err != nil {
				return nil, closeAll, err
			}
			open = append(open, d.runners[i].Close)
		}
	}
	return duels, closeAll, nil
}

// measure runs the rounds, as many runs in each as fit into the duration, and compares the outputs before and after.
func measure(ctx context.Context, duels []*duel, duration time.Duration, key string) error {
	start := time.Now()
	if err := compareOutputs(ctx, duels, key); err != nil {
		return err
	}
	unit := time.Since(start)
	if len(duels) > 1 {
		unit *= 2 // steady, and in turns
	}
	n := min(max(int(duration/rounds/max(unit, 1)), leastRuns), mostRuns)
	for range rounds {
		for _, d := range duels {
			d.begin(n)
		}
		for _, d := range duels {
			for range n {
				if err := errors.Join(ctx.Err(), d.run(ctx, &d.steady)); err != nil {
					return err
				}
			}
		}
		for range n {
			if len(duels) == 1 {
				break
			}
			if err := errors.Join(ctx.Err(), runTurns(ctx, duels)); err != nil {
				return err
			}
		}
		for _, d := range duels {
			d.end()
		}
	}
	return compareOutputs(ctx, duels, key)
}

// compareOutputs runs each batch size once and fails if the candidates do not give the same.
func compareOutputs(ctx context.Context, duels []*duel, key string) error {
	for _, d := range duels {
		if err := d.run(ctx, &d.turns); err != nil {
			return err
		}
		for _, r := range d.runners[1:] {
			if err := same(key, d.batch, d.runners[0], r); err != nil {
				return err
			}
		}
	}
	return nil
}

// runTurns runs each batch size once.
func runTurns(ctx context.Context, duels []*duel) error {
	for _, d := range duels {
		if err := d.run(ctx, &d.turns); err != nil {
			return err
		}
	}
	return nil
}

func (d *duel) begin(n int) {
	for i := range d.runners {
		d.steady[i] = make([]float64, 0, n)
		d.turns[i] = make([]float64, 0, n)
	}
}

// run runs each contestant once, with the picture put in anew, and appends how long each run took.
func (d *duel) run(ctx context.Context, took *times) error {
	for i, r := range d.runners {
		if err := r.Fill(ctx, d.picture); err != nil {
			return err
		}
		start := time.Now()
		if err := r.Run(); err != nil {
			return err
		}
		took[i] = append(took[i], milliseconds(time.Since(start)))
	}
	return nil
}

// end sums up a round.
func (d *duel) end() {
	var p50, p99 [len(contestants)]float64
	for i := range d.runners {
		p50[i], p99[i] = percentile(d.steady[i], 0.5), percentile(d.steady[i], 0.99)
		d.p50[i] = append(d.p50[i], p50[i])
		d.p99[i] = append(d.p99[i], p99[i])
		if len(d.turns[i]) > 0 {
			d.alt[i] = append(d.alt[i], ratio(percentile(d.turns[i], 0.5), p50[i]))
		}
	}
	d.r50 = append(d.r50, ratio(p50[1], p50[0]))
	d.r99 = append(d.r99, ratio(p99[1], p99[0]))
	d.shared = append(d.shared, ratio(p50[2], p50[1]))
}

func (d *duel) result(key string) Time {
	of := func(i int) Latency { return Latency{median(d.p50[i]), median(d.p99[i]), median(d.alt[i])} }
	return Time{
		Model: key, Batch: d.batch, Rounds: rounds, Runs: len(d.steady[0]),
		Default: of(0), Planned: of(1), RatioP50: median(d.r50), RatioP99: median(d.r99),
		Shared: of(2), RatioShared: median(d.shared),
	}
}

package bench

import (
	"context"
	"errors"
)

// facts opens a model to say which provider is in effect.
func (q request) facts(ctx context.Context, s *setup) (reply, error) {
	first := s.models[sortedKeys(s.models)[0]]
	session, err := s.lib.OpenFile(first.Path, s.options(false))
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
	c, err := s.open(ctx, q.Candidate, false)
	if err != nil {
		return reply{}, err
	}
	kept, err := s.runLadders(ctx, c)
	var after Status
	if err == nil {
		after, err = status()
	}
	memory := c.usage()
	for _, r := range kept {
		err = errors.Join(err, r.Close())
	}
	if err = errors.Join(err, c.Close()); err != nil {
		return reply{}, err
	}
	return reply{Usage: &Usage{Idle: idle, After: after, Above: after.Resident - idle.Resident}, Memory: memory}, nil
}

// runLadders runs every batch size of every model, and returns the runners. They are kept meanwhile: what is compared is
// ready for every batch size, in both cases.
func (s *setup) runLadders(ctx context.Context, c candidate) (kept []runner, err error) {
	for cycle := range cycles {
		at := 0
		for _, key := range sortedKeys(s.models) {
			for _, batch := range s.ladder(key) {
				if cycle == 0 {
					r, err := s.ready(ctx, c, key, batch)
					if err != nil {
						return kept, err
					}
					kept = append(kept, r)
				} else if err := s.warm(ctx, kept[at], key, batch); err != nil {
					return kept, err
				}
				if at++; ctx.Err() != nil {
					return kept, ctx.Err()
				}
			}
		}
	}
	return kept, nil
}

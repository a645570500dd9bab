package bench

import (
	"context"
	"time"
)

func (b *bench) soaks(ctx context.Context) error {
	for _, m := range b.report.Models {
		b.say("soak of", m.Key)
		s, err := b.steady(ctx, m.Key, planned, soakDuration)
		if err != nil {
			return err
		}
		b.report.Soak = append(b.report.Soak, s)
	}
	return nil
}

// steady lets a child run one model for so many runs, or for a duration.
func (b *bench) steady(ctx context.Context, model, candidate string, otherwise time.Duration) (Steady, error) {
	d := b.Duration
	if d == 0 && b.Runs == 0 {
		d = otherwise
	}
	rep, err := b.ask(ctx, request{Job: jobSteady, Model: model, Candidate: candidate, Runs: b.Runs, Duration: d})
	if err != nil {
		return Steady{}, err
	}
	return *rep.Steady, nil
}

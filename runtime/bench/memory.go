package bench

import (
	"context"
)

func (b *bench) residents(ctx context.Context) error {
	// What is compared is a start that finds its cache and plan, as every start but the first: this one fills them.
	b.say("resident memory, first start")
	if _, err := b.ask(ctx, request{Job: jobResident, Candidate: planned}); err != nil {
		return err
	}
	r := Resident{}
	for _, c := range []struct {
		candidate string
		to        *Usage
	}{{standard, &r.Default}, {planned, &r.Planned}} {
		b.say("resident memory,", c.candidate)
		rep, err := b.ask(ctx, request{Job: jobResident, Candidate: c.candidate})
		if err != nil {
			return err
		}
		*c.to = *rep.Usage
		if rep.Memory != nil {
			r.Memory = rep.Memory
		}
	}
	r.Ratio = ratio(float64(r.Planned.Above), float64(r.Default.Above))
	b.report.Resident = &r
	return nil
}

func (b *bench) times(ctx context.Context) error {
	for _, m := range b.report.Models {
		b.say("time of", m.Key)
		rep, err := b.ask(ctx, request{Job: jobTime, Model: m.Key, Duration: b.timed(defaultDuration)})
		if err != nil {
			return err
		}
		b.report.Time = append(b.report.Time, rep.Time...)
	}
	return nil
}

func (b *bench) steadies(ctx context.Context) error {
	for _, m := range b.report.Models {
		for _, candidate := range []string{standard, planned} {
			b.say("steady state of", m.Key+",", candidate)
			s, err := b.steady(ctx, m.Key, candidate, defaultDuration)
			if err != nil {
				return err
			}
			b.report.Steady = append(b.report.Steady, s)
		}
	}
	return nil
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	eyas "github.com/eyas-edge/eyas/runtime"
)

// widest is the ladder of what is measured where none is asked for and the model runs several pictures at once.
var widest = []int{1, 2, 4, 8}

// Frontier is what lanes and batch sizes of a model are worth, and what an SLO picks among them.
type Frontier struct {
	Model  string      `json:"model"`
	Choice eyas.Choice `json:"choice"` // under the SLO
	Took   float64     `json:"choice_ms"`
	Points []Point     `json:"points"`
}

// Point is one setting of lanes and threads at one batch size, its lanes never out of work.
type Point struct {
	eyas.Setting
	Batch int          `json:"batch"`
	FPS   float64      `json:"fps"`   // pictures a second of all lanes together
	Run   Distribution `json:"run"`   // of a batch, the others running
	Alone Distribution `json:"alone"` // of a batch on the first lane, the others idle
	Busy  float64      `json:"busy"`  // share of the lanes' time in which they ran
	// Mark says what the SLO made of it: picked, for the largest batch of the chosen lanes; ladder, for their others.
	Mark string `json:"mark,omitempty"`
}

// The marks.
const (
	picked   = "picked"
	inLadder = "ladder"
)

// chosen is how a runtime has decided to run under an SLO.
type chosen struct {
	Choice eyas.Choice `json:"choice"`
	Took   float64     `json:"took_ms"`
}

// under makes a configuration one with the SLO.
func (b *bench) under(c *eyas.Config) { c.SLO = b.slo }

// fixed makes a configuration one of lanes and ladder that are not searched for.
func fixed(s eyas.Setting, ladder []int) func(*eyas.Config) {
	return func(c *eyas.Config) { c.Lanes, c.Threads, c.Batch = s.Lanes, s.Threads, ladder }
}

// choice returns what the SLO picks for a model, as a first start finds it.
func (b *bench) choice(ctx context.Context, model string) (*chosen, error) {
	if c := b.choices[model]; c != nil {
		return c, nil
	}
	b.say("choice of lanes and batches for", model)
	rep, err := b.ask(ctx, request{Job: jobChoose, Model: model}, b.under)
	if err != nil {
		return nil, err
	}
	b.choices[model] = rep.Choice
	return rep.Choice, nil
}

func (q request) choose(ctx context.Context, s *setup) (reply, error) {
	start := time.Now()
	rt, err := eyas.Open(ctx, s.cfg)
	if err != nil {
		return reply{}, err
	}
	return reply{Choice: &chosen{*rt.Choice(), milliseconds(time.Since(start))}}, rt.Close()
}

// widen is the ladder that is measured: the one that was asked for, else what the model can run, which of one with a fixed batch its
// choice says.
func (b *bench) widen(model string, c *eyas.Choice) ([]int, error) {
	if len(b.Config.Batch) > 0 {
		return b.Config.Batch, nil
	}
	m, err := eyas.Inspect(b.Config.Models[model])
	if err != nil {
		return nil, err
	}
	if m.MixesBatch || m.Input.Batch > 0 {
		return c.Models[0].Ladder, nil
	}
	return widest, nil
}

func (b *bench) frontiers(ctx context.Context) error {
	for _, m := range b.report.Models {
		c, err := b.choice(ctx, m.Key)
		if err != nil {
			return err
		}
		ladder, err := b.widen(m.Key, &c.Choice)
		if err != nil {
			return err
		}
		f := Frontier{Model: m.Key, Choice: c.Choice, Took: c.Took}
		settings := []eyas.Setting{c.Choice.Setting}
		for _, t := range c.Choice.Trials {
			settings = append(settings, t.Setting)
		}
		slices.SortFunc(settings, func(a, b eyas.Setting) int { return a.Lanes - b.Lanes })
		for _, s := range slices.Compact(settings) {
			b.say("frontier of", m.Key+",", s.String())
			rep, err := b.ask(ctx, request{Job: jobFrontier, Model: m.Key, Duration: b.timed(defaultDuration), Runs: b.Runs}, fixed(s, ladder))
			if err != nil {
				return err
			}
			f.Points = append(f.Points, rep.Points...)
		}
		f.mark()
		b.report.Latency = append(b.report.Latency, f)
	}
	return nil
}

// mark marks what was chosen.
func (f *Frontier) mark() {
	ladder := f.Choice.Models[0].Ladder
	for i := range f.Points {
		p := &f.Points[i]
		switch {
		case p.Setting != f.Choice.Setting || !slices.Contains(ladder, p.Batch):
		case p.Batch == slices.Max(ladder):
			p.Mark = picked
		default:
			p.Mark = inLadder
		}
	}
}

// frontier measures all batch sizes of one setting, half of the time with one lane and half with all.
func (q request) frontier(ctx context.Context, s *setup) (r reply, err error) {
	rt, err := eyas.Open(ctx, s.cfg)
	if err != nil {
		return reply{}, err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	c := rt.Choice()
	ladder := c.Models[0].Ladder
	each := q.Duration / time.Duration(2*len(ladder))
	for _, n := range ladder {
		data, err := picture(s.models[q.Model], n)
		if err != nil {
			return reply{}, err
		}
		w := workload{rt.Model(q.Model), n, data, each, q.Runs}
		alone, err := w.crowd(ctx, 1)
		if err != nil {
			return reply{}, err
		}
		all, err := w.crowd(ctx, c.Lanes)
		if err != nil {
			return reply{}, err
		}
		r.Points = append(r.Points, Point{
			Setting: c.Setting, Batch: n, FPS: float64(n) * ratio(float64(len(all.runs)), all.took),
			Run: distribution(all.runs), Alone: distribution(alone.runs), Busy: ratio(all.ran, all.took*float64(c.Lanes)),
		})
	}
	return r, nil
}

// workload is one batch size that runs without a pause.
type workload struct {
	model   *eyas.Model
	batch   int
	picture []byte
	time    time.Duration
	most    int // runs of a lane; 0 for no limit
}

// shift is what lanes have done: milliseconds of each run, seconds that passed, and seconds in which they ran.
type shift struct {
	runs      []float64
	took, ran float64
}

// crowd runs on the first so many lanes at once.
func (w workload) crowd(ctx context.Context, lanes int) (shift, error) {
	var wg sync.WaitGroup
	runs, errs := make([][]float64, lanes), make([]error, lanes)
	start := time.Now()
	for i := range lanes {
		wg.Go(func() { runs[i], errs[i] = w.one(ctx, i) })
	}
	wg.Wait()
	s := shift{runs: slices.Concat(runs...), took: time.Since(start).Seconds()}
	for _, ms := range s.runs {
		s.ran += ms / 1e3
	}
	return s, errors.Join(errs...)
}

// one runs on one lane until the time is over.
func (w workload) one(ctx context.Context, lane int) (runs []float64, err error) {
	r, err := w.model.RunnerOn(ctx, lane, w.batch)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	most := mostRuns
	if w.most > 0 {
		most = min(most, w.most)
	}
	for start := time.Now(); len(runs) < leastRuns || len(runs) < most && time.Since(start) < w.time; {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		copy(r.Input(), w.picture)
		began := time.Now()
		if err := r.Run(); err != nil {
			return nil, err
		}
		runs = append(runs, milliseconds(time.Since(began)))
	}
	return runs, nil
}

func (r *Report) latencyText(w io.Writer) {
	for _, f := range r.Latency {
		fmt.Fprintf(w, "\nfrontier of %s\tbatch\tfps\trun p50\tp95\tp99\talone p50\tp99\tlanes busy\t\n", f.Model)
		for _, p := range f.Points {
			fmt.Fprintf(w, "%v\t%d\t%.1f\t%.2f ms\t%.2f\t%.2f\t%.2f\t%.2f\t%s\t%s\n", p.Setting, p.Batch, p.FPS,
				p.Run.P50, p.Run.P95, p.Run.P99, p.Alone.P50, p.Alone.P99, percent(p.Busy), p.Mark)
		}
		fmt.Fprintf(w, "--slo %v picks %s\n", f.Choice.SLO, f.Choice.Why)
	}
}

func (r *Report) latencyFigures(each func(string, float64)) {
	for _, f := range r.Latency {
		for _, p := range f.Points {
			name := fmt.Sprintf("latency %s %v batch %d ", f.Model, p.Setting, p.Batch)
			each(name+"fps", p.FPS)
			each(name+"p50, ms", p.Run.P50)
			each(name+"p99, ms", p.Run.P99)
			each(name+"lanes busy", p.Busy)
		}
	}
}

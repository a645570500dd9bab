package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	eyas "github.com/eyas-edge/eyas/runtime"
)

// FirstFrame is how fast the first runs are, against the usual ones: medians of fresh processes.
type FirstFrame struct {
	Model string  `json:"model"`
	Batch int     `json:"batch"`
	Usual float64 `json:"usual_ms"` // median of a run
	First float64 `json:"first_ms"` // the first after ready
	Rest  float64 `json:"idle_s"`
	Idle  float64 `json:"after_idle_ms"` // the first after that many idle seconds
	// Ratios of the same process to its usual run, and the worst process.
	FirstRatio float64 `json:"first_ratio"`
	FirstWorst float64 `json:"first_worst"`
	IdleRatio  float64 `json:"idle_ratio"`
	IdleWorst  float64 `json:"idle_worst"`
}

// firstFrame is what one process measures.
type firstFrame struct {
	First float64 `json:"first_ms"`
	Usual float64 `json:"usual_ms"`
	Idle  float64 `json:"idle_ms"`
}

const (
	firstProcesses = 3  // for each batch size
	usualRuns      = 50 // that the median is made of, at most
)

// firstFrames starts a process for each figure: what another batch size has run before would be warm. The caches are full
// by then, as they are in every start but the first.
func (b *bench) firstFrames(ctx context.Context) error {
	for _, m := range b.report.Models {
		for _, n := range m.Batches {
			f := FirstFrame{Model: m.Key, Batch: n, Rest: b.Idle.Seconds()}
			var all []firstFrame
			for range firstProcesses {
				b.say(fmt.Sprintf("first frames of %s, batch %d", m.Key, n))
				rep, err := b.ask(ctx, request{
					Job: jobFirst, Model: m.Key, Runs: n, Duration: b.timed(defaultDuration), Idle: b.Idle,
				})
				if err != nil {
					return err
				}
				all = append(all, rep.First[0])
				f.FirstWorst = max(f.FirstWorst, rep.First[0].first())
				f.IdleWorst = max(f.IdleWorst, rep.First[0].idle())
			}
			f.Usual = medianOf(all, func(f firstFrame) float64 { return f.Usual })
			f.First = medianOf(all, func(f firstFrame) float64 { return f.First })
			f.Idle = medianOf(all, func(f firstFrame) float64 { return f.Idle })
			f.FirstRatio, f.IdleRatio = medianOf(all, firstFrame.first), medianOf(all, firstFrame.idle)
			b.report.FirstFrames = append(b.report.FirstFrames, f)
		}
	}
	return nil
}

func (f firstFrame) first() float64 { return ratio(f.First, f.Usual) }
func (f firstFrame) idle() float64  { return ratio(f.Idle, f.Usual) }

// first runs a batch of so many frames right after ready, as often as gives a median, and after an idle spell.
func (q request) first(ctx context.Context, s *setup) (r reply, err error) {
	data, err := picture(s.models[q.Model], q.Runs)
	if err != nil {
		return reply{}, err
	}
	rt, err := eyas.Open(ctx, s.cfg)
	if err != nil {
		return reply{}, err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	run := func() (float64, error) {
		runner, err := rt.Model(q.Model).Runner(ctx, q.Runs)
		if err != nil {
			return 0, err
		}
		defer runner.Close()
		start := time.Now()
		copy(runner.Input(), data)
		err = runner.Run()
		return milliseconds(time.Since(start)), errors.Join(err, ctx.Err())
	}
	var f firstFrame
	if f.First, err = run(); err != nil {
		return reply{}, err
	}
	var usual []float64
	for start := time.Now(); len(usual) < 5 || len(usual) < usualRuns && time.Since(start) < q.Duration; {
		ms, err := run()
		if err != nil {
			return reply{}, err
		}
		usual = append(usual, ms)
	}
	f.Usual = median(usual)
	select {
	case <-time.After(q.Idle):
	case <-ctx.Done():
		return reply{}, ctx.Err()
	}
	f.Idle, err = run()
	return reply{First: []firstFrame{f}}, err
}

func (r *Report) firstText(w io.Writer) {
	if len(r.FirstFrames) == 0 {
		return
	}
	fmt.Fprintf(w, "\nfirst frame\tbatch\tusual\tafter ready\t/ usual\tworst\tafter idling\t/ usual\tworst\n")
	for _, f := range r.FirstFrames {
		fmt.Fprintf(w, "%s\t%d\t%.2f ms\t%.2f ms\t%.3f\t%.3f\t%.2f ms\t%.3f\t%.3f\n", f.Model, f.Batch, f.Usual,
			f.First, f.FirstRatio, f.FirstWorst, f.Idle, f.IdleRatio, f.IdleWorst)
	}
	fmt.Fprintf(w, "medians of %d processes; idle for %v s\n", firstProcesses, r.FirstFrames[0].Rest)
}

func (r *Report) firstFigures(each func(string, float64)) {
	for _, f := range r.FirstFrames {
		name := fmt.Sprintf("first frame %s batch %d ", f.Model, f.Batch)
		each(name+"after ready / usual", f.FirstRatio)
		each(name+"after idling / usual", f.IdleRatio)
	}
}

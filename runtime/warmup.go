package runtime

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/runtime/lane"
)

// effort bounds the measurement of one batch size on one lane.
type effort struct {
	least, most int // runs
	within      time.Duration
}

// Where lanes and ladder hang on what is measured it takes longer: p99 wants many runs.
var (
	thorough = effort{3, 100, 250 * time.Millisecond}
	brief    = effort{2, 8, 50 * time.Millisecond}
)

// more says whether to go on after so many runs.
func (e effort) more(runs int, start time.Time) bool {
	return runs < e.least || runs < e.most && time.Since(start) < e.within
}

// check says whether a few runs on each lane agree with a profile.
func (m *Model) check(ctx context.Context, p Profile) (agrees bool, err error) {
	for _, program := range m.programs {
		agrees, err = m.warm(ctx, program, p.Batch, p.Alone.trusts)
		if err != nil || !agrees {
			return false, err
		}
	}
	return true, nil
}

// warmRuns is how many runs a batch size has at most to come down to its usual time.
const warmRuns = 5

// warm runs a batch size on a lane until its runs are as they are wanted, and says whether they came to that.
func (m *Model) warm(ctx context.Context, p *lane.Program, n int, wanted func([]time.Duration) bool) (bool, error) {
	var runs []time.Duration
	for len(runs) < warmRuns && !wanted(runs) {
		t, err := p.Rehearse(ctx, n, rehearsal(), m.options)
		if err != nil {
			return false, err
		}
		runs = append(runs, t.Run)
	}
	return wanted(runs), nil
}

// warmAll runs every batch size on every lane until its time is steady.
func (rt *Runtime) warmAll(ctx context.Context) error {
	defer rt.abortWith(ctx)()
	for _, m := range rt.models {
		for _, p := range m.programs {
			for _, n := range p.Ladder() {
				if _, err := m.warm(ctx, p, n, steady); err != nil {
					return startError(ctx, err)
				}
			}
		}
	}
	return nil
}

// profile measures one batch size: alone on the first lane until its time is steady and then for good, and on every lane
// at once, where two batches of each take turns in being filled and run. A brief effort leaves that out for one lane.
func (m *Model) profile(ctx context.Context, n int, e effort) (Profile, error) {
	p := Profile{Batch: n}
	if _, err := m.warm(ctx, m.program, n, steady); err != nil {
		return p, err
	}
	alone, err := m.repeat(ctx, m.program, n, e)
	if err != nil {
		return p, err
	}
	p.Alone, p.Latency = spreadOf(alone, runTime), spreadOf(alone, allTime)
	busy, each := alone, allTime // as if one thread did everything
	if e != brief || len(m.programs) > 1 {
		each = turnTime
		if busy, err = m.crowd(ctx, n, e); err != nil {
			return p, err
		}
	}
	p.Busy, p.Fill, p.Read = spreadOf(busy, runTime), spreadOf(busy, fillTime), spreadOf(busy, readTime)
	p.Turn = spreadOf(busy, turnTime)
	p.FPS = float64(n*len(m.programs)) / spreadOf(busy, each).P50.Seconds()
	p.Runs = len(alone) + len(busy)
	return p, nil
}

// repeat takes batches through a lane, one after the other.
func (m *Model) repeat(ctx context.Context, p *lane.Program, n int, e effort) (all []lane.Times, err error) {
	for start := time.Now(); e.more(len(all), start); {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		t, err := p.Rehearse(ctx, n, rehearsal(), m.options)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// crowd takes batches through all lanes at once, two of each lane side by side.
func (m *Model) crowd(ctx context.Context, n int, e effort) ([]lane.Times, error) {
	var wg sync.WaitGroup
	times := make([][]lane.Times, lane.Inputs*len(m.programs))
	errs := make([]error, len(times))
	for i := range times {
		p := m.programs[i/lane.Inputs]
		wg.Go(func() { times[i], errs[i] = m.repeat(ctx, p, n, e) })
	}
	wg.Wait()
	return slices.Concat(times...), errors.Join(errs...)
}

// The picture of rehearsals: as many cameras give them.
const rehearsalWidth, rehearsalHeight = 640, 480

// rehearsal is a picture in which a detector may see anything.
var rehearsal = sync.OnceValue(func() *frame.Frame {
	format := frame.NV12
	data := make([]byte, format.Bytes(rehearsalWidth, rehearsalHeight))
	for i := range data {
		data[i] = lane.Noise(i)
	}
	luma := rehearsalWidth * rehearsalHeight
	f, err := frame.New(format, rehearsalWidth, rehearsalHeight, []frame.Plane{
		{Data: data[:luma], Stride: rehearsalWidth}, {Data: data[luma:], Stride: rehearsalWidth},
	}, time.Time{}, nil)
	if err != nil {
		panic(err) // a constant
	}
	return f
})

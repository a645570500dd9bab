package bench

import (
	"context"
	"errors"
	"math"
	goruntime "runtime"
	"slices"
	"sync"
	"time"

	"github.com/eyas-edge/eyas/memplan"
)

const (
	warmRuns     = 10
	mostSteady   = 1 << 22 // runs: eight bytes are kept of each
	leastDrift   = 400     // runs
	mostSamples  = 400     // of the resident memory
	leastSamples = 200     // for a slope
)

// steady runs one candidate of one model again and again and counts what that takes. Nothing of the loop itself
// allocates.
func (q request) steady(ctx context.Context, s *setup) (reply, error) {
	// On a thread that is new to it the library sets up variables of the thread, which the C library allocates.
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	c, err := s.open(ctx, q.Candidate, false)
	if err != nil {
		return reply{}, err
	}
	r, err := s.steadyRunner(ctx, c, q)
	return reply{Steady: r}, errors.Join(err, c.Close())
}

func (s *setup) steadyRunner(ctx context.Context, c candidate, q request) (*Steady, error) {
	batch := s.ladder(q.Model)[0]
	r, err := s.ready(ctx, c, q.Model, batch)
	if err != nil {
		return nil, err
	}
	l, err := newLoop(r, q)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	result, err := l.measure(ctx, c)
	if err = errors.Join(err, l.close(), r.Close()); err != nil {
		return nil, err
	}
	result.Model, result.Candidate, result.Batch = q.Model, q.Candidate, batch
	return result, nil
}

// loop is the runs of a steady state with what is written down on the way.
type loop struct {
	runner runner
	rss    *rssReader
	libc   libcCounts
	runs   int       // at most
	until  time.Time // zero: no limit
	every  int       // runs between two samples of the resident memory
	allocs []uint32  // of the C library, by run
	took   []uint32  // microseconds, by run
	at     []float64 // of the samples: runs
	kib    []float64 // and resident memory
}

// newLoop measures a few runs to know how many fit into the duration. Before them Go's collector takes what the opening
// left, so that finalizers are done before anything is counted.
func newLoop(r runner, q request) (*loop, error) {
	spareThreads()
	if err := collectBeside(r); err != nil {
		return nil, err
	}
	start := time.Now()
	for range warmRuns {
		if err := r.Run(); err != nil {
			return nil, err
		}
	}
	l := &loop{runner: r, runs: min(q.Runs, mostSteady)}
	if l.runs == 0 {
		each := max(time.Since(start)/warmRuns, 1)
		l.runs = min(max(int(q.Duration/each), warmRuns), mostSteady)
	}
	if q.Duration > 0 {
		l.until = time.Now().Add(2 * q.Duration) // other work on this machine may slow it down
		if q.Runs > 0 {
			l.until = time.Now().Add(q.Duration)
		}
	}
	l.every = max(l.runs/mostSamples, 1)
	l.allocs, l.took = touched[uint32](l.runs), touched[uint32](l.runs)
	l.at, l.kib = touched[float64](mostSamples * 2)[:0], touched[float64](mostSamples * 2)[:0]
	var err error
	if l.rss, err = newRSSReader(); err != nil {
		return nil, err
	}
	if l.libc, err = openCounts(q.Counts); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// collectBeside has Go's collector run on other threads while the loop is in C, as it does by itself every two minutes: the
// first time, that touches pages of the program and stacks of its workers, some hundred KiB, which are no growth.
func collectBeside(r runner) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 2 { // twice: what the first leaves to finalizers and to the sweep
			goruntime.GC()
		}
	}()
	for {
		if err := r.Run(); err != nil {
			<-done
			return err
		}
		select {
		case <-done:
			return nil
		default:
		}
	}
}

// spareThreads has Go's scheduler make some threads now. One that it made during the loop, to run something in the
// background while the loop is in C, would count as one allocation of Go and one of the C library.
func spareThreads() {
	var blocked, ended sync.WaitGroup
	release := make(chan struct{})
	for range 8 {
		blocked.Add(1)
		ended.Go(func() {
			goruntime.LockOSThread()
			blocked.Done()
			<-release
			goruntime.UnlockOSThread() // the thread stays, idle
		})
	}
	blocked.Wait()
	close(release)
	ended.Wait()
}

// touched returns a slice whose pages are all there: their first use is not to count as a fault of a run.
func touched[T uint32 | float64](n int) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = 1
	}
	return s
}

func (l *loop) close() error {
	l.rss.close()
	return l.libc.close()
}

// tally is the counters of the process that only grow; taking it allocates nothing that it counts.
type tally struct {
	mallocs  uint64 // of Go
	libcLeft int64  // allocations less frees
	faults   int64
}

func (l *loop) tally() (t tally, err error) {
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	t.mallocs = m.Mallocs
	t.libcLeft = int64(l.libc.allocations() - l.libc.frees())
	t.faults, err = faults()
	return t, err
}

// measure runs the loop. What takes memory to read is read outside of the two tallies.
func (l *loop) measure(ctx context.Context, c candidate) (*Steady, error) {
	if _, err := l.tally(); err != nil { // once for nothing: it sets up what it needs
		return nil, err
	}
	usage := c.usage()
	before, err := l.tally()
	if err != nil {
		return nil, err
	}
	runs, err := l.run(ctx)
	if err != nil {
		return nil, err
	}
	after, err := l.tally()
	if err != nil {
		return nil, err
	}
	s := &Steady{
		Runs: runs, Resident: l.rss.bytes(),
		GoAllocations: after.mallocs - before.mallocs,
		FaultsPerRun:  float64(after.faults-before.faults) / float64(runs),
	}
	if l.libc.page != nil {
		s.Libc = l.libcCount(runs, after.libcLeft-before.libcLeft)
	}
	if skip := len(l.at) / 20; len(l.at) >= leastSamples {
		incline := 1000 * slope(l.at[skip:], l.kib[skip:])
		s.SlopeKiB = &incline
	}
	s.Drift = drift(l.took[:runs])
	if usage != nil {
		now := c.usage()
		s.Requests = &Requests{
			now.Arena.Count - usage.Arena.Count, now.Spill.Count - usage.Spill.Count, now.Heap.Count - usage.Heap.Count,
		}
		s.Regions = &Pages{}
		s.Regions.Bytes, s.Regions.Before = regions(usage)
		_, s.Regions.After = regions(now)
	}
	return s, nil
}

// run returns how many runs were made.
func (l *loop) run(ctx context.Context) (int, error) {
	for i := range l.runs {
		before, start := l.libc.allocations(), time.Now()
		if err := l.runner.Run(); err != nil {
			return i, err
		}
		l.took[i] = uint32(min(time.Since(start).Microseconds(), math.MaxUint32))
		l.allocs[i] = uint32(l.libc.allocations() - before)
		if i%l.every == 0 {
			l.at = append(l.at, float64(i))
			l.kib = append(l.kib, float64(l.rss.bytes())/1024)
			switch {
			case ctx.Err() != nil:
				return i, ctx.Err()
			case !l.until.IsZero() && time.Now().After(l.until):
				return i + 1, nil
			}
		}
	}
	return l.runs, nil
}

// drift returns nil where there are too few runs for it. It sorts them.
func drift(took []uint32) *Drift {
	if len(took) < leastDrift {
		return nil
	}
	p99 := func(runs []uint32) float64 {
		slices.Sort(runs)
		return float64(runs[(len(runs)*99+99)/100-1]) / 1e3
	}
	quarter := len(took) / 4
	d := Drift{First: p99(took[:quarter]), Last: p99(took[len(took)-quarter:])}
	d.Ratio = ratio(d.Last, d.First)
	return &d
}

func (l *loop) libcCount(runs int, leaked int64) *LibcCount {
	each := l.allocs[:runs]
	slices.Sort(each)
	least, middle, most := each[0], each[(runs-1)/2], each[runs-1]
	others := 0
	for _, n := range each {
		if n != middle {
			others++
		}
	}
	return &LibcCount{
		Least: uint64(least), Median: uint64(middle), Most: uint64(most), Constant: least == most, Others: others, Leaked: leaked,
	}
}

// regions sums up what is planned of the runtime's own regions, and what of that is in memory.
func regions(u *memplan.Usage) (bytes, present int64) {
	for _, r := range u.Regions {
		switch r.Kind {
		case memplan.Weights, memplan.Arena, memplan.Spill, memplan.Tensors:
			bytes += r.Planned
			present += max(r.Measured, 0)
		}
	}
	return bytes, present
}

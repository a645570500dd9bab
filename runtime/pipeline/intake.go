// Package pipeline brings the frames of many sources to one place: files one after the other
// with back-pressure, live sources side by side with the newest frame winning. It does not look at
// the pixels.
package pipeline

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eyas-edge/eyas/camera"
)

// Item is what Next hands out: a frame, the failure of one item of a source, or a source's end.
type Item struct {
	Source  int           // index of the source
	Frame   *camera.Frame // the taker releases it; nil for the other two
	Arrived time.Time     // when the source handed the frame over
	Err     error         // one item failed, or with Ended the source did
	Ended   bool          // the source gives no more
}

// Intake runs sources until each has ended or its context is cancelled.
type Intake struct {
	feeds  []*feed
	next   int           // where the rotation goes on
	wake   chan struct{} // something may have changed
	states func(source int, to camera.State, err error)
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// feed is one queue: a live source, or all file sources in order.
type feed struct {
	in         *Intake
	ctx        context.Context // ends when the intake is closed
	sources    []int
	live       bool
	queue      chan Item // one frame may wait
	faults     chan Item
	fault      Item        // taken, to be handed out after the frames before it
	over       atomic.Bool // nothing more will be sent
	superseded atomic.Uint64
}

// Start runs the sources: live ones at the same time, the others in the order given. states is told what live ones do,
// from their goroutines. Close must be called.
func Start(ctx context.Context, sources []camera.Source, states func(source int, to camera.State, err error)) *Intake {
	ctx, cancel := context.WithCancel(ctx)
	in := &Intake{wake: make(chan struct{}, 1), states: states, cancel: cancel}
	var files *feed
	for i, s := range sources {
		if s.Live() {
			in.add(&feed{ctx: ctx, sources: []int{i}, live: true})
			continue
		}
		if files == nil {
			files = &feed{ctx: ctx}
			in.add(files)
		}
		files.sources = append(files.sources, i)
	}
	for _, f := range in.feeds {
		in.done.Go(func() { f.run(sources) })
	}
	return in
}

func (in *Intake) add(f *feed) {
	f.in, f.queue = in, make(chan Item, 1)
	f.faults = f.queue // what goes wrong with a file is told between its neighbours
	if f.live {
		f.faults = make(chan Item, 8) // a newer frame must not push it out
	}
	in.feeds = append(in.feeds, f)
}

func (in *Intake) notify() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

// Next returns the next item, taking the sources in rotation. It returns false when all have
// ended or ctx is done.
func (in *Intake) Next(ctx context.Context) (Item, bool) {
	for {
		if ctx.Err() != nil {
			return Item{}, false
		}
		over := true
		for i := range in.feeds {
			at := (in.next + i) % len(in.feeds)
			f := in.feeds[at]
			ended := f.over.Load() // before looking: what was sent before the end is seen
			if item, ok := f.take(); ok {
				in.next = at + 1
				return item, true
			}
			over = over && ended
		}
		if over {
			return Item{}, false
		}
		select {
		case <-in.wake:
		case <-ctx.Done():
		}
	}
}

// Superseded returns the frames that a live source lost to newer ones.
func (in *Intake) Superseded(source int) uint64 {
	for _, f := range in.feeds {
		if f.live && f.sources[0] == source {
			return f.superseded.Load()
		}
	}
	return 0
}

// Close stops the sources, waits for them and releases what still waits. It may be called twice.
func (in *Intake) Close() {
	in.cancel()
	in.done.Wait()
	for _, f := range in.feeds {
		for {
			item, ok := f.take()
			if !ok {
				break
			}
			item.Frame.Release()
		}
	}
}

// take returns what waits: frames before a fault that came after them.
func (f *feed) take() (Item, bool) {
	if item, ok := poll(f.queue); ok {
		return item, true
	}
	if !f.fault.Ended && f.fault.Err == nil {
		var ok bool
		if f.fault, ok = poll(f.faults); !ok {
			return Item{}, false
		}
		// The frame that came before it may have arrived since the first look.
		if item, ok := poll(f.queue); ok {
			return item, true
		}
	}
	item := f.fault
	f.fault = Item{}
	return item, true
}

func poll(from <-chan Item) (Item, bool) {
	select {
	case item := <-from:
		return item, true
	default:
		return Item{}, false
	}
}

func (f *feed) run(sources []camera.Source) {
	ctx := f.ctx
	defer f.in.notify()
	defer f.over.Store(true)
	for _, i := range f.sources {
		if ctx.Err() != nil {
			return
		}
		err := sources[i].Run(ctx, &sink{f, i})
		if ctx.Err() != nil {
			err = nil // a source that was told to stop has not failed
		}
		if f.send(ctx, f.faults, Item{Source: i, Err: err, Ended: true}) != nil {
			return
		}
	}
}

func (f *feed) send(ctx context.Context, to chan Item, item Item) error {
	select {
	case to <- item:
		f.in.notify()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sink is what a source writes to.
type sink struct {
	*feed
	source int
}

func (s *sink) Frame(ctx context.Context, fr *camera.Frame) error {
	item := Item{Source: s.source, Frame: fr, Arrived: time.Now()}
	for s.live {
		select {
		case s.queue <- item:
			s.in.notify()
			return ctx.Err()
		default:
		}
		s.Reclaim() // full: the newer frame wins
	}
	if err := s.send(ctx, s.queue, item); err != nil {
		fr.Release()
		return err
	}
	return nil
}

// Reclaim takes the waiting frame of a live source back.
func (s *sink) Reclaim() bool {
	if !s.live {
		return false
	}
	old, ok := poll(s.queue)
	if ok {
		old.Frame.Release()
		s.superseded.Add(1)
	}
	return ok
}

func (s *sink) State(to camera.State, err error) { s.in.states(s.source, to, err) }

func (s *sink) Fault(err error) {
	s.send(s.ctx, s.faults, Item{Source: s.source, Err: err})
}

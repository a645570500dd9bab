// Package pipeline runs the sources of a stream and puts what becomes of their frames back in order. It does not look at
// the pixels.
package pipeline

import (
	"context"
	"sync"

	"github.com/eyas-edge/eyas/camera"
)

// Receiver takes what sources deliver, each from a goroutine of its own; source is the index in the list given to Start.
type Receiver interface {
	// Frame takes ownership of f, also when it fails. For a file it may wait, until ctx ends.
	Frame(ctx context.Context, source int, f *camera.Frame) error
	// Fault takes the failure of one item.
	Fault(source int, err error)
	// Reclaim releases the oldest frame of a live source that waits, and says whether there was one.
	Reclaim(source int) bool
	// State takes what a live source does now.
	State(source int, to camera.State, err error)
	// Ended says that the source has come to its end, a good one if err is nil.
	Ended(source int, err error)
	// Stopped says instead that it gives no more because it was told to stop.
	Stopped(source int)
}

// Sources are running sources.
type Sources struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// Start runs live sources at the same time, the others one after the other in the order given, until ctx ends. Close must be
// called.
func Start(ctx context.Context, sources []camera.Source, to Receiver) *Sources {
	ctx, cancel := context.WithCancel(ctx)
	s := &Sources{cancel: cancel}
	var files []int
	run := func(i int) {
		err := sources[i].Run(ctx, &sink{to, i})
		if ctx.Err() != nil { // whatever it makes of that
			to.Stopped(i)
		} else {
			to.Ended(i, err)
		}
	}
	for i, source := range sources {
		if source.Live() {
			s.done.Go(func() { run(i) })
		} else {
			files = append(files, i)
		}
	}
	s.done.Go(func() {
		for _, i := range files {
			run(i)
		}
	})
	return s
}

// Close stops the sources and waits for them. It may be called twice.
func (s *Sources) Close() {
	s.cancel()
	s.done.Wait()
}

// Wait waits until each source has ended.
func (s *Sources) Wait() { s.done.Wait() }

// sink is what a source writes to.
type sink struct {
	to     Receiver
	source int
}

func (s *sink) Frame(ctx context.Context, f *camera.Frame) error { return s.to.Frame(ctx, s.source, f) }
func (s *sink) Fault(err error)                                  { s.to.Fault(s.source, err) }
func (s *sink) Reclaim() bool                                    { return s.to.Reclaim(s.source) }
func (s *sink) State(to camera.State, err error)                 { s.to.State(s.source, to, err) }

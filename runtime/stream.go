package runtime

import (
	"context"
	"fmt"
	"iter"
	goruntime "runtime"
	"slices"
	"sync"
	"time"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/models/decode"
	"github.com/eyas-edge/eyas/runtime/lane"
	"github.com/eyas-edge/eyas/runtime/pipeline"
)

// inFlight is the number of frames between the sources and the consumer: one that is filled, one that
// runs, one that is read. More would only add latency.
const inFlight = 3

// Stream looks at all sources until each has ended or ctx is done, and yields one result per
// picture and model: files in order, one source after the other, live ones side by side. An error
// is the trouble of one picture or source; the others go on. Breaking off the loop stops
// the sources. What is in flight when ctx ends is still yielded. Detect and Stream may be called in the
// loop; Close waits for the loop's end, and must not be.
func (rt *Runtime) Stream(ctx context.Context, sources ...camera.Source) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		if err := rt.use(); err != nil {
			yield(nil, err)
			return
		}
		defer rt.users.Done()
		s, err := rt.newStream(sources)
		if err != nil {
			yield(nil, err)
			return
		}
		s.start(ctx)
		defer s.stop()
		s.consume(yield)
	}
}

// stream is one call of Stream. A dispatcher fills input tensors, a runner per model runs them, and
// the consumer's goroutine reads the outputs: each step works on another frame.
type stream struct {
	rt      *Runtime
	sources []camera.Source
	models  [][]int // per source the indices of its models

	cancel  context.CancelFunc
	intake  *pipeline.Intake
	pending chan *job    // in the order of the frames
	spare   chan *job    // jobs to use again: this many frames are in flight
	pairs   []*lane.Pair // per model: the tensors of this stream
	runners []chan *step // per model
	done    sync.WaitGroup

	result  Result
	scratch []decode.Detection
}

// job is one frame with one step per model that looks at it, or the trouble of a source.
type job struct {
	item  pipeline.Item
	frame bool   // the item is a frame, held still or not
	head  Result // what the frame says of itself
	steps []step
	n     int // steps in use
}

type step struct {
	model   int
	set     *lane.Set
	started time.Time     // of filling
	filled  time.Time     // from then on it waits for its run
	waited  time.Duration // between the two
	err     error
	ran     chan struct{} // holds a token once the set has run
}

func (rt *Runtime) newStream(sources []camera.Source) (*stream, error) {
	s := &stream{
		rt: rt, sources: sources,
		pending: make(chan *job, inFlight), spare: make(chan *job, inFlight),
	}
	for _, source := range sources {
		s.models = append(s.models, rt.modelsOf(source.Name()))
	}
	for _, m := range rt.models {
		p, err := m.lane.Pair()
		if err != nil {
			return nil, err
		}
		s.pairs = append(s.pairs, p)
		s.runners = append(s.runners, make(chan *step, lane.Sets))
	}
	for range inFlight {
		j := &job{steps: make([]step, len(rt.models))}
		for i := range j.steps {
			j.steps[i].ran = make(chan struct{}, 1)
		}
		s.spare <- j
	}
	return s, nil
}

// modelsOf returns the indices of the models that look at a source: all, unless the configuration
// names some for it.
func (rt *Runtime) modelsOf(source string) []int {
	var named []string
	for _, c := range rt.cfg.Sources {
		if c.key() == source {
			named = c.Models
		}
	}
	var indices []int
	for i, m := range rt.models {
		if len(named) == 0 || slices.Contains(named, m.key) {
			indices = append(indices, i)
		}
	}
	return indices
}

func (s *stream) start(ctx context.Context) {
	ctx, s.cancel = context.WithCancel(ctx)
	s.intake = pipeline.Start(ctx, s.sources)
	for i, steps := range s.runners {
		s.done.Go(func() { s.rt.models[i].runSteps(steps) })
	}
	s.done.Go(func() { s.dispatch(ctx) })
	for _, source := range s.sources {
		s.rt.event(Event{Kind: "source", Source: source.Name(), State: "open"})
	}
}

// stop ends everything and gives back what is in flight.
func (s *stream) stop() {
	s.cancel()
	for j := range s.pending {
		s.finish(j)
	}
	s.done.Wait()
	s.intake.Close()
	for i, p := range s.pairs {
		s.rt.models[i].lane.Return(p)
	}
}

// dispatch hands frames to the models. It ends when the sources do or ctx is done.
func (s *stream) dispatch(ctx context.Context) {
	defer func() {
		for _, steps := range s.runners {
			close(steps)
		}
		close(s.pending)
	}()
	for {
		item, ok := s.intake.Next(ctx)
		if !ok {
			return
		}
		select {
		case j := <-s.spare:
			j.item, j.n, j.frame = item, 0, item.Frame != nil
			if j.frame {
				j.head = header(item.Frame)
				if j.head.Source == "" {
					j.head.Source = s.sources[item.Source].Name()
				}
				s.fill(ctx, j)
			}
			s.pending <- j // never blocks: it has room for all jobs
		case <-ctx.Done():
			item.Frame.Release()
			return
		}
	}
}

func (s *stream) fill(ctx context.Context, j *job) {
	for _, i := range s.models[j.item.Source] {
		set, err := s.pairs[i].Take(ctx)
		if err != nil {
			return // told to stop: the models that have the frame already finish it
		}
		st := &j.steps[j.n]
		j.n++
		st.model, st.set, st.started = i, set, time.Now()
		if st.err = set.Fill(j.item.Frame); st.err != nil {
			st.ran <- struct{}{}
			continue
		}
		st.filled = time.Now()
		s.runners[i] <- st // never blocks: it has room for all sets
	}
	if !s.rt.cfg.Pictures {
		j.release() // the pixels are in the tensors: the source may have its buffer back
	}
}

// runSteps is the model's lane: a locked thread that runs one filled set after the other.
func (m *Model) runSteps(steps <-chan *step) {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	for st := range steps {
		st.err = st.set.Run()
		st.waited = max(time.Since(st.filled)-st.set.Infer, 0)
		st.ran <- struct{}{}
	}
}

func (s *stream) consume(yield func(*Result, error) bool) {
	for j := range s.pending {
		if !s.yieldJob(j, yield) {
			return
		}
	}
}

// yieldJob yields what a job has to say, in the order of the models, and recycles it.
func (s *stream) yieldJob(j *job, yield func(*Result, error) bool) bool {
	defer s.finish(j)
	if !j.frame {
		return s.yieldSource(j.item, yield)
	}
	for i := range j.n {
		st := &j.steps[i]
		<-st.ran
		res, err := s.read(j, st)
		s.pairs[st.model].Put(st.set)
		st.set = nil
		if err != nil {
			err = fmt.Errorf("%s: frame %d: %w", j.head.Source, j.head.Frame, err)
		}
		if !yield(res, err) {
			return false
		}
	}
	return true
}

func (s *stream) yieldSource(item pipeline.Item, yield func(*Result, error) bool) bool {
	if item.Ended {
		e := Event{Kind: "source", Source: s.sources[item.Source].Name(), State: "ended"}
		if item.Err != nil {
			e.State, e.Text = "failed", item.Err.Error()
		}
		s.rt.event(e)
	}
	return item.Err == nil || yield(nil, item.Err)
}

func (s *stream) read(j *job, st *step) (*Result, error) {
	if st.err != nil {
		return nil, st.err
	}
	found := s.result.Detections[:0]
	s.result = j.head
	s.result.Detections = found
	if err := s.rt.models[st.model].finish(st.set, &s.result, &s.scratch); err != nil {
		return nil, err
	}
	s.result.Timing.Queue = max(st.started.Sub(j.item.Arrived), 0) + st.waited
	if s.rt.cfg.Pictures {
		s.result.Picture = j.item.Frame
	}
	return &s.result, nil
}

// finish waits for the steps of a job that nobody has read, gives everything back, and makes the
// job free for another frame.
func (s *stream) finish(j *job) {
	for i := range j.n {
		if st := &j.steps[i]; st.set != nil {
			<-st.ran
			s.pairs[st.model].Put(st.set)
			st.set = nil
		}
	}
	j.release()
	s.spare <- j
}

// release gives the frame back, once: a source uses the same Frame again for another picture, which
// is not ours to release.
func (j *job) release() {
	j.item.Frame.Release()
	j.item.Frame = nil
}

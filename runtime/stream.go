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
		s := rt.newStream(sources)
		s.start(ctx)
		defer s.stop()
		s.consume(yield)
	}
}

// stream is one call of Stream. A dispatcher fills input tensors, a runner runs them and reads the outputs, and
// the consumer's goroutine takes the results: each works on another frame.
type stream struct {
	rt      *Runtime
	sources []camera.Source
	models  [][]int  // per source the indices of its models
	tracks  []*track // per source

	cancel  context.CancelFunc
	intake  *pipeline.Intake
	pending chan *job  // in the order of the frames
	spare   chan *job  // jobs to use again: this many frames are in flight
	steps   chan *step // filled, in the order of the frames and of their models
	done    sync.WaitGroup

	result Result
}

// job is one frame with one step per model that looks at it, or the trouble of a source.
type job struct {
	item  pipeline.Item
	frame bool   // the item is a frame, held still or not
	head  Result // what the frame says of itself
	steps []step
	n     int // steps in use
}

// step is one model's look at a frame.
type step struct {
	model   *Model
	set     *lane.Set // until it has run
	started time.Time // of filling
	filled  time.Time // from then on it waits for its run
	looked  look
	err     error
	ran     chan struct{} // holds a token once the step is done
	taken   bool          // the token was taken
}

func (rt *Runtime) newStream(sources []camera.Source) *stream {
	s := &stream{
		rt: rt, sources: sources,
		pending: make(chan *job, inFlight), spare: make(chan *job, inFlight), steps: make(chan *step, lane.Inputs),
	}
	for _, source := range sources {
		s.models = append(s.models, rt.modelsOf(source.Name()))
	}
	for range inFlight {
		j := &job{steps: make([]step, len(rt.models))}
		for i := range j.steps {
			j.steps[i].ran = make(chan struct{}, 1)
		}
		s.spare <- j
	}
	return s
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
	for _, source := range s.sources {
		e := Event{Kind: "source", Source: source.Name(), State: camera.StateOpen.String()}
		if m, ok := source.(camera.Monitored); ok && source.Live() {
			e.State = camera.StateConnecting.String()
			m.Reserve(func(bytes int64) error { return s.rt.reserve(source.Name(), bytes) })
		}
		s.rt.event(e)
	}
	s.intake = pipeline.Start(ctx, s.sources, s.state)
	for i, source := range s.sources {
		s.tracks = append(s.tracks, &track{source: source, superseded: func() uint64 { return s.intake.Superseded(i) }})
	}
	s.rt.mu.Lock()
	s.rt.tracks = s.tracks
	s.rt.mu.Unlock()
	s.done.Go(s.run)
	s.done.Go(func() { s.dispatch(ctx) })
}

// state tells what a live source does now.
func (s *stream) state(source int, to camera.State, err error) {
	e := Event{Kind: "source", Source: s.sources[source].Name(), State: to.String()}
	if err != nil {
		e.Text = err.Error()
		s.rt.log.Warn(fmt.Sprintf("source %s: %s: %v; trying again", e.Source, to, err))
	}
	s.rt.event(e)
}

// stop ends everything and gives back what is in flight.
func (s *stream) stop() {
	s.cancel()
	for j := range s.pending {
		s.finish(j)
	}
	s.done.Wait()
	s.intake.Close()
	for _, t := range s.tracks {
		t.over.Store(true)
	}
}

// dispatch hands frames to the models. It ends when the sources do or ctx is done.
func (s *stream) dispatch(ctx context.Context) {
	defer func() {
		close(s.steps)
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
		m := s.rt.models[i]
		set, err := m.program.Take(ctx)
		if err != nil {
			return // told to stop: the models that have the frame already finish it
		}
		st := &j.steps[j.n]
		j.n++
		st.model, st.set, st.started, st.taken = m, set, time.Now(), false
		if st.err = set.Fill(j.item.Frame); st.err != nil {
			set.Put()
			st.ran <- struct{}{}
			continue
		}
		st.filled = time.Now()
		s.steps <- st // never blocks: it has room for all sets
	}
	if !s.rt.cfg.Pictures && (s.rt.cfg.Wanted == nil || !s.rt.cfg.Wanted(s.sources[j.item.Source].Name())) {
		j.release() // the pixels are in the tensors: the source may have its buffer back
	}
}

// run is the lane's thread: it runs one filled set after the other, and reads what each found, so that the
// next run may overwrite the outputs.
func (s *stream) run() {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	// What has been filled is run, also after the end was called.
	ctx := context.Background()
	for st := range s.steps {
		st.err = st.model.look(ctx, st.set, &st.looked)
		st.looked.timing.Queue = max(time.Since(st.filled)-st.looked.timing.Infer-st.looked.timing.Post, 0)
		st.set.Put()
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
	s.rt.meter.frame()
	delivered := false
	for i := range j.n {
		st := &j.steps[i]
		<-st.ran
		st.taken = true
		res, err := s.read(j, st)
		if err != nil {
			err = fmt.Errorf("%s: frame %d: %w", j.head.Source, j.head.Frame, err)
		} else if !delivered {
			delivered = true
			s.tracks[j.item.Source].deliver(res.Age)
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
		s.tracks[item.Source].ended(item.Err)
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
	st.model.finish(&st.looked, &s.result)
	s.result.Timing.Queue += max(st.started.Sub(j.item.Arrived), 0)
	s.result.Picture = j.item.Frame // still there if it is wanted
	return &s.result, nil
}

// finish waits for the steps of a job that nobody has read, gives everything back, and makes the
// job free for another frame.
func (s *stream) finish(j *job) {
	for i := range j.n {
		if st := &j.steps[i]; !st.taken {
			<-st.ran
			st.taken = true
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

package runtime

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/runtime/pipeline"
)

// Stream looks at all sources until each has ended or ctx is done, and yields one result per
// picture and model: files in order, one source after the other, live ones side by side. An error
// is the trouble of one picture or source; the others go on. Breaking off the loop stops
// the sources. What runs when ctx ends is still yielded. Detect and Stream may be called in the
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
		for j := s.flow.next(); j != nil; j = s.flow.next() {
			if !s.yieldJob(j, yield) {
				return
			}
			s.watch()
		}
	}
}

// stream is one call of Stream.
type stream struct {
	rt      *Runtime
	flow    *flow
	sources *pipeline.Sources
	unwatch func() bool
	leave   func() // the squeeze
	lanes   sync.WaitGroup
	load    load
	result  Result
}

func (rt *Runtime) newStream(sources []camera.Source) (*stream, error) {
	f, err := newFlow(rt, sources)
	return &stream{rt: rt, flow: f}, err
}

// modelsOf returns the indices of the models that look at a source: all, unless the configuration
// names some for it.
func (rt *Runtime) modelsOf(source string) []int {
	var named []string
	if c := rt.sourceConfig(source); c != nil {
		named = c.Models
	}
	var indices []int
	for i, m := range rt.models {
		if len(named) == 0 || slices.Contains(named, m.key) {
			indices = append(indices, i)
		}
	}
	return indices
}

// weightOf returns the share of a source under overload, 0 for the default.
func (rt *Runtime) weightOf(source string) float64 {
	if c := rt.sourceConfig(source); c != nil {
		return c.Weight
	}
	return 0
}

func (rt *Runtime) sourceConfig(source string) *SourceConfig {
	for i := range rt.cfg.Sources {
		if c := &rt.cfg.Sources[i]; c.key() == source {
			return c
		}
	}
	return nil
}

func (s *stream) start(ctx context.Context) {
	f := s.flow
	for _, source := range f.sources {
		e := Event{Kind: "source", Source: source.Name(), State: camera.StateOpen.String()}
		if m, ok := source.(camera.Monitored); ok && source.Live() {
			e.State = camera.StateConnecting.String()
			m.Wait(f.slo, f.rt.largest())
			m.Reserve(func(bytes int64) error { return s.rt.reserve(source.Name(), bytes) })
		}
		s.rt.event(e)
	}
	s.rt.mu.Lock()
	s.rt.tracks = f.tracks
	s.rt.mu.Unlock()
	for i := range s.rt.lanes {
		s.lanes.Go(func() { f.serve(i) })
	}
	s.leave = s.rt.squeeze.join(f)
	s.unwatch = context.AfterFunc(ctx, f.stop)
	s.sources = pipeline.Start(ctx, f.sources, f)
}

// stop ends everything and gives back what is in flight.
func (s *stream) stop() {
	s.unwatch()
	s.flow.stop()
	s.sources.Close()
	s.lanes.Wait()
	s.leave()
	for j := s.flow.next(); j != nil; j = s.flow.next() {
		if !j.trouble {
			s.flow.tracks[j.source].drop(j.lost())
		}
		s.flow.done(j)
	}
	for _, t := range s.flow.tracks {
		t.over.Store(true)
	}
}

// yieldJob yields what a job has to say, in the order of the models.
func (s *stream) yieldJob(j *job, yield func(*Result, error) bool) bool {
	defer s.flow.done(j)
	if j.trouble {
		return s.yieldTrouble(j, yield)
	}
	if !j.ran() {
		s.flow.tracks[j.source].drop(j.lost())
		return true
	}
	s.rt.meter.frame()
	delivered := false
	for i := range j.n {
		st := &j.steps[i]
		if st.dropped {
			continue
		}
		res, err := s.read(j, st)
		if err != nil {
			err = fmt.Errorf("%s: frame %d: %w", j.head.Source, j.head.Frame, err)
		} else if !delivered {
			delivered = true
			s.deliver(j.source, res)
		}
		if !yield(res, err) {
			return false
		}
	}
	return true
}

// deliver counts a result that is about to be yielded, the first of its frame.
func (s *stream) deliver(source int, res *Result) {
	f := s.flow
	f.tracks[source].deliver(res.Age)
	if f.slo > 0 && f.sources[source].Live() {
		f.delivered(res.Age, res.Timing.Batch)
	}
}

func (s *stream) yieldTrouble(j *job, yield func(*Result, error) bool) bool {
	if j.ended {
		e := Event{Kind: "source", Source: s.flow.sources[j.source].Name(), State: "ended"}
		if j.err != nil {
			e.State, e.Text = "failed", j.err.Error()
		}
		s.flow.tracks[j.source].ended(j.err)
		s.rt.event(e)
	}
	return j.err == nil || yield(nil, j.err)
}

// read makes the result of a step, which is valid until the next.
func (s *stream) read(j *job, st *step) (*Result, error) {
	if st.err != nil {
		return nil, st.err
	}
	found := s.result.Detections[:0]
	s.result = j.head
	s.result.Detections = found
	s.rt.models[st.model].finish(&st.looked, &s.result)
	s.result.Picture = j.frame // still there if it is wanted
	return &s.result, nil
}

package runtime

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/rate"
)

// SourceStatus is how a source of Stream does.
type SourceStatus struct {
	Name   string
	Live   bool
	State  string // connecting, open, lost, ended or failed
	Error  string // the last trouble, "" for none
	Format string // of its frames, as frame.Format names it; "" while that is not known
	Width  int    // of its frames, in pixels; 0 while that is not known
	Height int

	Captured  uint64       // frames, whatever became of them
	Delivered uint64       // frames whose results were yielded
	Dropped   camera.Drops // frames by cause
	Connects  uint64       // connections of a live source that gave a frame

	FPSIn  float64       // captured a second, over the last few
	FPSOut float64       // delivered a second
	Age    time.Duration // from capture to result, of the last delivered frame; 0 for files
}

// appendJSON appends the status as an object of a summary.
func (s *SourceStatus) appendJSON(dst []byte) []byte {
	dst = appendString(append(dst, `{"source":`...), s.Name)
	dst = appendString(append(dst, `,"state":`...), s.State)
	for _, n := range []struct {
		key   string
		value uint64
	}{{"captured", s.Captured}, {"delivered", s.Delivered}, {"connects", s.Connects}} {
		dst = append(append(append(dst, `,"`...), n.key...), `":`...)
		dst = strconv.AppendUint(dst, n.value, 10)
	}
	dst = append(dst, `,"dropped":{`...)
	first := true
	s.Dropped.Each(func(cause string, n uint64) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendString(dst, cause), ':')
		dst = strconv.AppendUint(dst, n, 10)
	})
	dst = append(dst, '}')
	if s.Error != "" {
		dst = appendString(append(dst, `,"error":`...), s.Error)
	}
	return append(dst, '}')
}

// Status returns how the sources of the last call of Stream do, in their order. It may be called at any time.
func (rt *Runtime) Status() []SourceStatus {
	rt.mu.Lock()
	tracks := rt.tracks
	rt.mu.Unlock()
	all := make([]SourceStatus, len(tracks))
	for i, t := range tracks {
		all[i] = t.status()
	}
	return all
}

// track follows one source through a call of Stream.
type track struct {
	source     camera.Source
	superseded func() uint64
	over       atomic.Bool // the call of Stream has ended: its memory is given back

	mu        sync.Mutex
	end       string // ended or failed, "" while it runs
	trouble   string
	delivered uint64
	out       rate.Meter
	age       time.Duration
}

// deliver counts a frame whose results are about to be yielded.
func (t *track) deliver(age time.Duration) {
	t.out.Add(time.Now())
	t.mu.Lock()
	t.delivered++
	t.age = age
	t.mu.Unlock()
}

func (t *track) ended(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = "ended"
	if err != nil {
		t.end, t.trouble = "failed", err.Error()
	}
}

func (t *track) status() SourceStatus {
	s := SourceStatus{Name: t.source.Name(), Live: t.source.Live(), State: camera.StateOpen.String(), FPSOut: t.out.PerSecond(time.Now())}
	if m, ok := t.source.(camera.Monitored); ok {
		st := m.Stats()
		if s.Live {
			s.State = st.State.String()
		}
		if st.Width > 0 && st.Format != frame.Unknown { // else it is what the camera is asked for
			s.Format, s.Width, s.Height = st.Format.String(), st.Width, st.Height
		}
		if st.Err != nil {
			s.Error = st.Err.Error()
		}
		s.Captured, s.Dropped, s.Connects, s.FPSIn = st.Captured, st.Dropped, st.Connects, st.Rate
	}
	s.Dropped[camera.Superseded] += t.superseded()
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Delivered, s.Age = t.delivered, t.age
	if t.end != "" {
		s.State = t.end
	}
	if t.trouble != "" {
		s.Error = t.trouble
	}
	return s
}

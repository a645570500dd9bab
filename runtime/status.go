package runtime

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

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

	// Of all delivered frames of a live source: how their ages spread, within 1 %, and how many missed the SLO.
	Ages   Spread
	Missed uint64
}

// appendJSON appends the status as an object of a summary.
func (s *SourceStatus) appendJSON(dst []byte) []byte {
	dst = appendString(append(dst, `{"source":`...), s.Name)
	dst = appendString(append(dst, `,"state":`...), s.State)
	for _, n := range []struct {
		key   string
		value uint64
	}{{"captured", s.Captured}, {"delivered", s.Delivered}, {"missed", s.Missed}, {"connects", s.Connects}} {
		dst = append(append(append(dst, `,"`...), n.key...), `":`...)
		dst = strconv.AppendUint(dst, n.value, 10)
	}
	dst = appendMillis(append(dst, `,"age_ms":{"p50":`...), s.Ages.P50)
	dst = appendMillis(append(dst, `,"p95":`...), s.Ages.P95)
	dst = appendMillis(append(dst, `,"p99":`...), s.Ages.P99)
	dst = append(dst, `},"dropped":{`...)
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
	source camera.Source
	over   atomic.Bool // the call of Stream has ended: its memory is given back

	slo time.Duration // 0 for none

	mu        sync.Mutex
	end       string // ended or failed, "" while it runs
	trouble   string
	delivered uint64
	dropped   camera.Drops // beside those that the source counts
	out       rate.Meter
	age       time.Duration
	ages      *hdrhistogram.Histogram // in microseconds; nil for a file
	missed    uint64
}

// oldest is the age up to which ages are told apart.
const oldest = time.Minute

func newTrack(source camera.Source, slo time.Duration) *track {
	t := &track{source: source, slo: slo}
	if source.Live() {
		t.ages = hdrhistogram.New(1, oldest.Microseconds(), 2)
	}
	return t
}

// deliver counts a frame whose results are about to be yielded.
func (t *track) deliver(age time.Duration) {
	t.out.Add(time.Now())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.delivered++
	t.age = age
	if t.ages != nil {
		_ = t.ages.RecordValue(min(max(age, 0), oldest).Microseconds()) // it is within the histogram's bounds
		if t.slo > 0 && age > t.slo {
			t.missed++
		}
	}
}

// inTime returns how many frames were delivered and kept the SLO.
func (t *track) inTime() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.delivered - t.missed
}

// spread returns how ages spread.
func (t *track) spread() Spread {
	at := func(percent float64) time.Duration {
		return time.Duration(t.ages.ValueAtQuantile(percent)) * time.Microsecond
	}
	return Spread{P50: at(50), P95: at(95), P99: at(99)}
}

// drop counts a frame that no model looked at.
func (t *track) drop(c camera.Cause) {
	t.mu.Lock()
	t.dropped[c]++
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
	t.mu.Lock()
	defer t.mu.Unlock()
	for cause, n := range t.dropped {
		s.Dropped[cause] += n
	}
	s.Delivered, s.Age, s.Missed = t.delivered, t.age, t.missed
	if t.ages != nil {
		s.Ages = t.spread()
	}
	if t.end != "" && !(t.end == "ended" && s.State == camera.StateLost.String()) { // what was lost when the run ended was not well
		s.State = t.end
	}
	if t.trouble != "" {
		s.Error = t.trouble
	}
	return s
}

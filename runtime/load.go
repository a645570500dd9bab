package runtime

import (
	"fmt"
	"time"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/runtime/batch"
)

const (
	loadSpan  = 5 * time.Second // over which rates are compared
	overShare = 0.95            // of the frames in time: fewer are an overload
	heldShare = 0.1             // of the span in which the consumer held lanes up: more is its overload, not the machine's
)

// load compares what live sources ask for with what is done in time, over one span of time after the other.
type load struct {
	since           time.Time
	offered, inTime uint64 // at since
	held            time.Duration
	told            bool
}

// over looks at what was offered and delivered in time by now, and for how long the consumer has held lanes up, and says once when
// too little was done.
func (l *load) over(now time.Time, offered, inTime uint64, held time.Duration) string {
	span := now.Sub(l.since)
	if l.told || span < loadSpan {
		return ""
	}
	before := *l
	l.since, l.offered, l.inTime, l.held = now, offered, inTime, held
	d := batch.Demand{Needs: float64(offered-before.offered) / span.Seconds(), Does: float64(inTime-before.inTime) / span.Seconds()}
	if before.since.IsZero() || d.Does >= overShare*d.Needs {
		return ""
	}
	l.told = true
	if held-before.held > time.Duration(heldShare*float64(span)) {
		return fmt.Sprintf("overload: %v, since results are taken too slowly: read them faster, or write them to a file", d)
	}
	return fmt.Sprintf("overload: %v: use fewer or slower cameras, --every, or a smaller model or input", d)
}

// watch warns once of an overload, in figures. Who has no SLO has asked for the newest frames, and is not told that others are dropped.
func (s *stream) watch() {
	if s.flow.slo == 0 || s.load.told || time.Since(s.load.since) < loadSpan {
		return
	}
	s.flow.mu.Lock()
	offered, held := s.flow.offered, s.flow.held
	s.flow.mu.Unlock()
	var inTime uint64
	for _, t := range s.flow.tracks {
		if m, ok := t.source.(camera.Monitored); ok && t.source.Live() {
			offered += m.Stats().Dropped[camera.NoSlot]
			inTime += t.inTime()
		}
	}
	if text := s.load.over(time.Now(), offered, inTime, held); text != "" {
		s.rt.warn("", "", text)
	}
}

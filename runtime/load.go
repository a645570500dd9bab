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
)

// load compares what live sources ask for with what is done in time, over one span of time after the other.
type load struct {
	since           time.Time
	offered, inTime uint64 // at since
	told            bool
}

// over looks at what was offered and delivered in time by now, and says once when too little was.
func (l *load) over(now time.Time, offered, inTime uint64) (d batch.Demand, is bool) {
	span := now.Sub(l.since)
	if l.told || span < loadSpan {
		return d, false
	}
	first := l.since.IsZero()
	d = batch.Demand{Needs: float64(offered-l.offered) / span.Seconds(), Does: float64(inTime-l.inTime) / span.Seconds()}
	l.since, l.offered, l.inTime = now, offered, inTime
	l.told = !first && d.Does < overShare*d.Needs
	return d, l.told
}

// watch warns once of an overload, in figures. Who has no SLO has asked for the newest frames, and is not told that others are dropped.
func (s *stream) watch() {
	if s.flow.slo == 0 || s.load.told || time.Since(s.load.since) < loadSpan {
		return
	}
	s.flow.mu.Lock()
	offered := s.flow.offered
	s.flow.mu.Unlock()
	var inTime uint64
	for _, t := range s.flow.tracks {
		if m, ok := t.source.(camera.Monitored); ok && t.source.Live() {
			offered += m.Stats().Dropped[camera.NoSlot]
			inTime += t.inTime()
		}
	}
	if d, is := s.load.over(time.Now(), offered, inTime); is {
		s.rt.warn("", "", fmt.Sprintf("overload: %v: use fewer or slower cameras, --every, or a smaller model or input", d))
	}
}

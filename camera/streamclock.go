package camera

import (
	"math"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
)

const (
	// clockWindow is how long a least delay counts. A camera's crystal is off by up to 100 millionths: 3 ms in this time.
	clockWindow = 30
	// clockPatience is the lateness that no live connection keeps up: the stream's clock does not run as ours does.
	clockPatience = 5 * time.Second
)

// streamClock turns the times in a stream into times of capture. The stream counts from an unknown moment: the frame that took the
// least time to come here, of the last half minute, counts as captured when it came, and each other one as much earlier
// as it came later than that. So jitter and backlog show in a frame's age, and the constant part of the way does not.
//
// It uses nothing of an arrival but its monotonic reading. Captured times never run backwards.
type streamClock struct {
	base  time.Time     // what arrivals are counted from; zero before the first
	last  time.Duration // the stream's time of the frame before
	least [clockWindow]leastDelay
}

// leastDelay is the least difference between arrival and stream time within one second.
type leastDelay struct {
	second int64
	delay  time.Duration
}

// at returns when a frame was captured that has time pts in its stream, if known, and arrived at arrival.
func (c *streamClock) at(pts time.Duration, known bool, arrival time.Time) (time.Time, frame.CapturedBy) {
	if c.base.IsZero() {
		c.base, c.last = arrival, -1
		c.restart()
	}
	if !known || pts == c.last { // a time that stands still tells nothing
		return arrival, frame.ByArrival
	}
	if pts < c.last {
		c.restart() // the stream counts anew; a jump ahead gives a new least delay by itself
	}
	c.last = pts
	now := arrival.Sub(c.base)
	late := now - pts - c.note(now, now-pts)
	if late > clockPatience {
		c.restart()
		c.note(now, now-pts)
		late = 0
	}
	return arrival.Add(-late), frame.ByStream
}

// note takes a delay into account and returns the least one of the window.
func (c *streamClock) note(now, delay time.Duration) time.Duration {
	second := int64(now / time.Second)
	slot := &c.least[second%clockWindow]
	if slot.second != second || delay < slot.delay {
		*slot = leastDelay{second, delay}
	}
	for _, l := range c.least {
		if l.second > second-clockWindow {
			delay = min(delay, l.delay)
		}
	}
	return delay
}

// restart forgets all delays.
func (c *streamClock) restart() {
	for i := range c.least {
		c.least[i].second = math.MinInt64
	}
}

// Package rate measures how often something happens, over the last few seconds, without allocating.
package rate

import (
	"sync"
	"time"
)

const (
	kept   = 64              // events that are remembered
	window = 5 * time.Second // older ones do not count
)

// Meter measures a rate. The zero value is ready; its methods may be called from any goroutine.
type Meter struct {
	mu    sync.Mutex
	times [kept]time.Time
	n     int // events so far
}

// Add counts an event at the time now.
func (m *Meter) Add(now time.Time) {
	m.mu.Lock()
	m.times[m.n%kept] = now
	m.n++
	m.mu.Unlock()
}

// PerSecond returns the rate at the time now: the events of the last five seconds, but at most the last 64, over the time
// that they took. When nothing has come for longer than that, the silence counts, so that the rate falls to 0.
func (m *Meter) PerSecond(now time.Time) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	intervals := -1
	var oldest, newest time.Time
	for i := range min(m.n, kept) {
		at := m.times[(m.n-1-i)%kept]
		if now.Sub(at) > window {
			break
		}
		if i == 0 {
			newest = at
		}
		oldest = at
		intervals++
	}
	if intervals < 1 {
		return 0
	}
	span := newest.Sub(oldest)
	if silent := now.Sub(newest); silent > 2*span/time.Duration(intervals) {
		span += silent
	}
	if span <= 0 {
		return 0
	}
	return float64(intervals) / span.Seconds()
}

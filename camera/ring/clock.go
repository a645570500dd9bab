package ring

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock turns times with a monotonic reading into nanoseconds of CLOCK_MONOTONIC, which all processes of a machine
// share, and back. Go's reading is of the same clock from another zero.
type clock struct {
	start time.Time
	ns    int64 // at start
}

func newClock() clock {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // the clock is always there
	return clock{start: time.Now(), ns: ts.Nano()}
}

func (c clock) now() int64           { return c.ns + int64(time.Since(c.start)) }
func (c clock) at(t time.Time) int64 { return c.ns + int64(t.Sub(c.start)) }

// time returns the time of a reading, whose wall clock is as the clock goes now.
func (c clock) time(ns int64) time.Time { return time.Now().Add(time.Duration(ns - c.now())) }

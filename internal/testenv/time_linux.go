package testenv

import (
	"testing"

	"golang.org/x/sys/unix"
)

// ThreadTime returns the processor time of this thread in nanoseconds, which is the wall's on an idle machine.
func ThreadTime(t testing.TB) float64 {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		t.Fatal(err)
	}
	return float64(ts.Nano())
}

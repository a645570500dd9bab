package ring

import (
	"errors"
	"math"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The operations of futex(2), not the private ones: waker and waiter are different processes.
const (
	futexOpWait = 0
	futexOpWake = 1
)

// futexWake wakes whoever waits on the word. It never blocks.
func futexWake(word *uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexOpWake, math.MaxInt32, 0, 0, 0)
}

// futexWait waits until the word is no longer value, for at most the time given, and may return early. The word may
// lie in a mapping that can only be read.
func futexWait(word *uint32, value uint32, most time.Duration) error {
	ts := unix.NsecToTimespec(int64(most))
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexOpWait, uintptr(value), uintptr(unsafe.Pointer(&ts)), 0, 0)
	if errno == 0 || errors.Is(errno, unix.EAGAIN) || errors.Is(errno, unix.EINTR) || errors.Is(errno, unix.ETIMEDOUT) {
		return nil
	}
	return errno
}

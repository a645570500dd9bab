package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// fullPipe returns a pipe that takes no more bytes, and how many it holds.
func fullPipe(t *testing.T) (r, w *os.File, held int) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	if held, err = unix.FcntlInt(w.Fd(), unix.F_GETPIPE_SZ, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, held)); err != nil {
		t.Fatal(err)
	}
	return r, w, held
}

func TestStdoutThatNobodyReads(t *testing.T) {
	_, w, _ := fullPipe(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := newStdout(ctx, w)
	for range 3 { // only the first waits
		if n, err := out.Write([]byte("line\n")); n != 0 || !errors.Is(err, errUnread) {
			t.Errorf("%d bytes written, %v", n, err)
		}
	}
}

func TestStdoutWaitsForItsReader(t *testing.T) {
	r, w, held := fullPipe(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	line := []byte(strings.Repeat("0123456789", 20_000)) // longer than the pipe
	got := make(chan []byte)
	go func() {
		b := make([]byte, held+len(line))
		n, _ := io.ReadFull(r, b)
		cancel() // does not matter to what was written
		got <- b[held:n]
	}()
	if n, err := newStdout(ctx, w).Write(line); n != len(line) || err != nil {
		t.Errorf("%d of %d bytes written, %v", n, len(line), err)
	}
	if !bytes.Equal(<-got, line) {
		t.Error("the reader got something else")
	}
}

// A run whose results nobody reads ends in order when it is told to, and says what is lost.
func TestSignalWhileNobodyReads(t *testing.T) {
	for _, c := range []struct {
		name, source string
		want         int
	}{
		{"live", "test:pattern?size=64x64&fps=1000", exitFailed},
		{"file", "test:pattern?size=64x64&frames=1000000", 143},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer w.Close()
			// A pipe of one page takes no more once there is a line in it.
			if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, pipeWrite); err != nil {
				t.Skipf("the pipe cannot be made smaller: %v", err)
			}
			errs := newTail()
			run := command(fast(t, c.source)...)
			run.Stdout, run.Stderr = w, errs
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			for free := 1; free > 0; {
				free, _ = unix.Poll([]unix.PollFd{{Fd: int32(w.Fd()), Events: unix.POLLOUT}}, 0)
				runtime.Gosched()
			}
			if err := run.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			code := ends(t, run)
			if !strings.Contains(errs.String(), errUnread.Error()) && c.want == exitFailed {
				c.want = 0 // it was told before there was another result
			}
			if code != c.want {
				t.Errorf("exit code %d, want %d: %s", code, c.want, errs)
			}
			if c.want != 0 && !regexp.MustCompile(`eyas: warning: write results: \d+ lines are lost`).MatchString(errs.String()) {
				t.Errorf("standard error: %s", errs)
			}
		})
	}
}

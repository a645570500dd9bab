package main

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// readerPatience is how long a run that was told to stop waits for whoever reads its results.
	readerPatience = 500 * time.Millisecond
	stdoutSlice    = 50 * time.Millisecond // between two looks at whether it was told
	// pipeWrite is what a pipe that can be written to takes at once: PIPE_BUF.
	pipeWrite = 4096
)

var errUnread = errors.New("nobody reads standard output")

// stdoutWriter writes results to a file that may be a pipe which nobody reads. While the run lasts it waits for the
// reader; once ctx is over it gives up after readerPatience, so that the run can end in order. The file stays
// blocking: others may share it.
type stdoutWriter struct {
	ctx  context.Context
	file *os.File
	fd   int
	end  time.Time // when to give up; zero before ctx is over
}

// newStdout returns where results go: w, and w alone where it cannot block.
func newStdout(ctx context.Context, w io.Writer) io.Writer {
	file, ok := w.(*os.File)
	if !ok {
		return w
	}
	if info, err := file.Stat(); err != nil || info.Mode().IsRegular() {
		return w
	}
	return &stdoutWriter{ctx: ctx, file: file, fd: int(file.Fd())}
}

func (s *stdoutWriter) Write(line []byte) (written int, err error) {
	for written < len(line) {
		if err := s.wait(); err != nil {
			return written, err
		}
		n, err := s.file.Write(line[written:min(len(line), written+pipeWrite)])
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// wait returns once the file takes bytes or has an error that writing tells.
func (s *stdoutWriter) wait() error {
	slice := stdoutSlice
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLOUT}}, int(slice.Milliseconds()))
		if n != 0 && !errors.Is(err, unix.EINTR) {
			return nil
		}
		switch {
		case s.ctx.Err() == nil:
			continue
		case s.end.IsZero():
			s.end = time.Now().Add(readerPatience)
		}
		if slice = min(stdoutSlice, time.Until(s.end)); slice < time.Millisecond {
			return errUnread
		}
	}
}

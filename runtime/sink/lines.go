// Package sink writes what a run finds: results as JSON lines, annotated pictures and clips. A fault
// of a sink is reported and counted; it does not end the run.
package sink

import (
	"errors"
	"fmt"
	"io"
	"os"

	eyas "github.com/eyas-edge/eyas/runtime"
)

// Lines writes one JSON line per result and event. Each line is one write, so that a reader never
// sees half of one. It is not for several goroutines at once.
type Lines struct {
	w       io.Writer
	file    *os.File  // nil for a stream
	closer  io.Closer // of a stream that is ours
	maxSize int64
	size    int64 // of the file, up to the last whole line
	moved   bool  // the file has its suffix already, and there is no new one yet
	torn    bool  // a stream holds part of a line
	buf     []byte
	failed  error
	lost    uint64
}

// NewLines writes to a stream, such as standard output.
func NewLines(w io.Writer) *Lines { return &Lines{w: w} }

// OpenLines appends to a file, which is made where it is not there: what an earlier run has found is kept.
// When the next line would make it larger than maxSize bytes the file gets the suffix .1, replacing an older one,
// and a new one begins; 0 for no limit.
func OpenLines(path string, maxSize int64) (*Lines, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if errors.Is(err, os.ErrPermission) { // a device that may only be written
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	}
	if err != nil {
		return nil, fmt.Errorf("write results: %w", err)
	}
	l := &Lines{w: f, file: f, maxSize: maxSize}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		l.file = nil // nothing can be cut off
		l.closer = f
		return l, nil
	}
	if l.size, err = f.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(fmt.Errorf("write results: %w", err), f.Close())
	}
	last := []byte{'\n'}
	if l.size > 0 {
		_, err = f.ReadAt(last, l.size-1)
	}
	if err == nil && last[0] != '\n' { // a run was killed in the middle of a line
		l.torn = true
	}
	return l, nil
}

// Result writes a result. After an error the writer goes on with the next line.
func (l *Lines) Result(r *eyas.Result) error {
	l.buf = append(r.AppendJSON(l.buf[:0]), '\n')
	return l.write()
}

// Event writes an event.
func (l *Lines) Event(e *eyas.Event) error {
	l.buf = append(e.AppendJSON(l.buf[:0]), '\n')
	return l.write()
}

// Lost returns the number of lines that could not be written.
func (l *Lines) Lost() uint64 { return l.lost }

// Close closes what OpenLines has opened; another stream stays open.
func (l *Lines) Close() error {
	switch {
	case l.file != nil:
		return l.file.Close()
	case l.closer != nil:
		return l.closer.Close()
	}
	return nil
}

// write writes the buffer. The first error of a row of errors is returned, so that a full disk is
// said once and not for every line.
func (l *Lines) write() error {
	full := l.rotate() // without a new file the old one goes on growing
	err := l.put()
	if err == nil {
		l.size += int64(len(l.buf))
		err = full
	} else {
		l.lost++
	}
	first := l.failed == nil
	l.failed = err
	if err == nil || !first {
		return nil
	}
	return fmt.Errorf("write results: %w; the run goes on", err)
}

// put writes the buffer so that later lines stand alone if only part of it gets there: a full disk
// takes what fits. In a file the part is cut off, in a stream its line is ended.
func (l *Lines) put() error {
	if l.torn {
		if _, err := l.w.Write([]byte{'\n'}); err != nil {
			return err
		}
		l.torn = false
		l.size++
	}
	n, err := l.w.Write(l.buf)
	switch {
	case err == nil:
	case l.file == nil:
		l.torn = n > 0
	case l.file.Truncate(l.size) == nil:
		_, _ = l.file.Seek(l.size, io.SeekStart) // the error to tell is that of the write
	}
	return err
}

func (l *Lines) rotate() error {
	if l.file == nil || l.maxSize <= 0 || l.size == 0 || l.size+int64(len(l.buf)) <= l.maxSize {
		return nil
	}
	path := l.file.Name()
	if !l.moved {
		if err := os.Rename(path, path+".1"); err != nil {
			return err
		}
		l.moved = true
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	l.file.Close()
	l.w, l.file, l.size, l.moved = f, f, 0, false
	return nil
}

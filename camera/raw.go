package camera

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/fserr"
)

// raw is a file of frames, tightly packed, one behind the other.
type raw struct {
	base
	path   string
	format frame.Format
	w, h   int
	fps    float64
	frames int // whole frames in the file
}

// openRaw opens FILE?format=nv12&size=320x240&fps=30.
func openRaw(b base, rest string) (Source, error) {
	i := strings.LastIndexByte(rest, '?')
	if i < 0 {
		return nil, badSpec("format and size are missing: write raw:FILE?format=nv12&size=320x240&fps=30")
	}
	p, err := parseParams(rest[i+1:], "format", "size", "fps")
	if err != nil {
		return nil, err
	}
	s := &raw{base: b, path: rest[:i]}
	s.live = b.opts.realtime
	if s.format, err = frame.ParseFormat(p.or("format", "")); err != nil {
		return nil, specError{err}
	}
	if s.w, s.h, err = p.size("", &b.opts); err != nil {
		return nil, err
	}
	if s.fps, err = p.fps(); err != nil {
		return nil, err
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return nil, fserr.Bare(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a file")
	}
	s.monitor.s = Stats{Format: s.format, Width: s.w, Height: s.h, FPS: s.fps}
	s.frames = int(info.Size() / int64(s.format.Bytes(s.w, s.h)))
	return s, nil
}

// Total returns the number of whole frames.
func (s *raw) Total() int { return s.opts.total(s.frames) }

func (s *raw) Run(ctx context.Context, sink Sink) error {
	f, err := os.Open(s.path)
	if err != nil {
		return fmt.Errorf("raw %s: %w", s.path, fserr.Bare(err))
	}
	defer f.Close()
	out := newOutput(&s.base, sink)
	defer out.close()
	if err := out.Format(s.format, frame.Colour{}, s.w, s.h, s.fps); err != nil {
		return fmt.Errorf("raw %s: %w", s.path, err)
	}
	size := int64(out.size)
	for {
		at := timeOf(out.next, s.fps)
		if err := out.pace(ctx, at); err != nil {
			return err
		}
		if out.next < uint64(s.frames) && out.Skip() { // the end is found by reading: one can seek beyond it
			_, err = f.Seek(size, io.SeekCurrent)
		} else {
			err = s.deliver(ctx, f, out, at)
		}
		if err != nil {
			return ended(err)
		}
	}
}

// deliver reads one frame; at the end of the file it returns errEnough.
func (s *raw) deliver(ctx context.Context, file *os.File, out *Output, at time.Duration) error {
	f, err := out.take(ctx)
	if err != nil {
		return err
	}
	if f == nil {
		_, err := file.Seek(int64(out.size), io.SeekCurrent)
		return err
	}
	n, err := io.ReadFull(file, out.Packed(f))
	if err != nil {
		f.Release()
		switch {
		case errors.Is(err, io.EOF):
			return errEnough
		case errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("raw %s: the file ends within frame %d: %d of %d bytes; is it really %s of %dx%d?",
				s.path, out.next, n, out.size, s.format, s.w, s.h)
		}
		return fmt.Errorf("raw %s: %w", s.path, fserr.Bare(err))
	}
	f.PTS, f.HasPTS = at, true
	return out.put(ctx, f)
}

package camera

import (
	"context"

	"github.com/eyas-edge/eyas/camera/picture"
)

// pictures are files, read one after the other.
type pictures struct {
	base
	paths  []string
	named  bool // frames carry the source's name, not their paths
	single bool // one picture is the whole source: its fault is the source's
}

// Total returns the number of pictures.
func (s *pictures) Total() int { return s.opts.total(len(s.paths)) }

// decoded is a picture, or why there is none.
type decoded struct {
	*Frame
	err error
}

// Run decodes one picture ahead of the sink, so that decoding and inference overlap.
func (s *pictures) Run(ctx context.Context, sink Sink) error {
	if s.single {
		f, err := s.read(s.paths[0])
		if err != nil {
			return err
		}
		return ended(newOutput(&s.base, sink).put(ctx, f))
	}
	ctx, cancel := context.WithCancel(ctx)
	ahead := make(chan decoded) // unbuffered: one waits here while one is at the sink
	go s.decode(ctx, ahead)
	err := s.deliver(ctx, ahead, sink)
	cancel()
	for d := range ahead { // until the decoder is gone
		d.Release()
	}
	return ended(err)
}

// decode reads the wanted pictures in order.
func (s *pictures) decode(ctx context.Context, out chan<- decoded) {
	defer close(out)
	for i := 0; i < len(s.paths) && ctx.Err() == nil; i += s.opts.every {
		f, err := s.read(s.paths[i])
		select {
		case out <- decoded{f, err}:
		case <-ctx.Done():
			f.Release()
			return
		}
	}
}

func (s *pictures) deliver(ctx context.Context, ahead <-chan decoded, sink Sink) error {
	out := newOutput(&s.base, sink)
	for {
		select {
		case d, ok := <-ahead:
			if !ok {
				return ctx.Err()
			}
			for out.Skip() { // those before it
			}
			switch {
			case d.err != nil:
				out.count()
				sink.Fault(d.err)
			default:
				if err := out.put(ctx, d.Frame); err != nil {
					return err
				}
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *pictures) read(path string) (*Frame, error) {
	f, err := picture.ReadFile(path, picture.Limits{MaxPixels: s.opts.maxPixels})
	if err != nil {
		return nil, err
	}
	f.Source = path
	if s.named {
		f.Source = s.name
	}
	return f, nil
}

package camera

import (
	"context"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
)

// pool is a bounded set of frames of one shape, used again after their Release: nothing is
// allocated per frame once all are made.
type pool struct {
	free   chan *Frame
	unmade int // frames that may still be made
	shape  shape
}

func newPool(n int, s shape) *pool {
	return &pool{free: make(chan *Frame, n), unmade: n, shape: s}
}

// get returns a frame that nobody holds, waiting for one if all are in use.
func (p *pool) get(ctx context.Context) (*Frame, error) {
	select {
	case f := <-p.free:
		return renew(f), nil
	default:
	}
	if p.unmade > 0 {
		p.unmade--
		return p.make()
	}
	select {
	case f := <-p.free:
		return renew(f), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pool) make() (f *Frame, err error) {
	s := p.shape
	pix := make([]byte, s.format.Bytes(s.w, s.h))
	planes, err := frame.Split(s.format, s.w, s.h, pix)
	if err != nil {
		return nil, err
	}
	planes[0].Data = pix[:len(planes[0].Data)] // with room to the end: see Output.Packed
	// A frame comes back at most once per get, and free has room for all.
	f, err = frame.New(s.format, s.w, s.h, planes, time.Time{}, func() { p.free <- f })
	if err != nil {
		return nil, err
	}
	f.Colour = s.colour
	return f, nil
}

func renew(f *Frame) *Frame {
	f.Recycle()
	f.Seq, f.PTS, f.HasPTS = 0, 0, false
	f.Captured, f.CapturedBy = time.Time{}, frame.ByNone
	return f
}

package camera

import (
	"context"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
)

// pool is a bounded set of frames of one size, used again after their Release: nothing is
// allocated per frame once all are made.
type pool struct {
	free   chan *packed
	unmade int // frames that may still be made
	format frame.Format
	colour frame.Colour
	w, h   int
	bytes  int // of one frame
}

// packed is a frame whose planes lie one behind the other in pix.
type packed struct {
	*Frame
	pix []byte
}

func newPool(n int, format frame.Format, colour frame.Colour, w, h int) *pool {
	return &pool{
		free: make(chan *packed, n), unmade: n,
		format: format, colour: colour, w: w, h: h, bytes: format.Bytes(w, h),
	}
}

// get returns a frame that nobody holds, waiting for one if all are in use.
func (p *pool) get(ctx context.Context) (*packed, error) {
	select {
	case f := <-p.free:
		return f.renew(), nil
	default:
	}
	if p.unmade > 0 {
		p.unmade--
		return p.make()
	}
	select {
	case f := <-p.free:
		return f.renew(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pool) make() (*packed, error) {
	f := &packed{pix: make([]byte, p.bytes)}
	planes, err := frame.Split(p.format, p.w, p.h, f.pix)
	if err != nil {
		return nil, err
	}
	// A frame comes back at most once per get, and free has room for all.
	f.Frame, err = frame.New(p.format, p.w, p.h, planes, time.Time{}, func() { p.free <- f })
	if err != nil {
		return nil, err
	}
	f.Colour = p.colour
	return f, nil
}

func (f *packed) renew() *packed {
	f.Recycle()
	f.Seq, f.PTS, f.HasPTS = 0, 0, false
	f.Captured, f.CapturedBy = time.Time{}, frame.ByNone
	return f
}

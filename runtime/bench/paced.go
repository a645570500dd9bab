package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/camera/frame"
)

// paced is a camera whose schedule does not slip: frame n is captured at start + n/fps, and carries that instant also where
// the machine was too busy to hand it over in time. What a wait costs is therefore counted in every frame that waited, and
// none is left out because an earlier one was slow (coordinated omission).
type paced struct {
	name    string
	fps     float64
	frames  int
	start   time.Time // of the first frame
	offered atomic.Int64
}

var _ camera.Monitored = (*paced)(nil)

// lead is the time from the making of cameras to their first frame: their receivers are set up by then.
const lead = 50 * time.Millisecond

// newCameras returns cameras that send so many frames each. Their first frames are spread evenly over a period, as those of
// cameras that know nothing of each other are on average.
func newCameras(n int, fps float64, frames int) []*paced {
	start := time.Now().Add(lead)
	period := float64(time.Second) / fps
	all := make([]*paced, n)
	for i := range all {
		all[i] = &paced{
			name: fmt.Sprintf("camera %d", i), fps: fps, frames: frames,
			start: start.Add(time.Duration(float64(i) * period / float64(n))),
		}
	}
	return all
}

func (p *paced) Name() string              { return p.name }
func (p *paced) Live() bool                { return true }
func (p *paced) RingBytes() int64          { return 0 } // all frames show the same pixels
func (p *paced) Reserve(func(int64) error) {}
func (p *paced) Wait(time.Duration, int)   {}

func (p *paced) Stats() camera.Stats {
	return camera.Stats{
		State: camera.StateOpen, Format: frame.RGB24, Width: streetWidth, Height: streetHeight,
		FPS: p.fps, Captured: uint64(p.offered.Load()),
	}
}

func (p *paced) Run(ctx context.Context, sink camera.Sink) error {
	sink.State(camera.StateOpen, nil)
	timer := time.NewTimer(time.Until(p.start))
	defer timer.Stop()
	for n := range p.frames {
		at := p.start.Add(time.Duration(float64(n) * float64(time.Second) / p.fps))
		timer.Reset(time.Until(at))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		f, err := street(at)
		if err != nil {
			return err
		}
		f.Source, f.Seq, f.CapturedBy = p.name, uint64(n), frame.ByDriver
		p.offered.Add(1)
		if err := sink.Frame(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// offered returns the frames that all cameras have sent.
func offered(cameras []*paced) (n int) {
	for _, c := range cameras {
		n += int(c.offered.Load())
	}
	return n
}

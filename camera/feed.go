package camera

import (
	"context"
	"errors"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
)

// errEnough ends a source that delivered as many frames as were asked for.
var errEnough = errors.New("enough frames")

// feed numbers, thins out, paces and hands over the frames of one source.
type feed struct {
	*base
	sink  Sink
	next  uint64    // Seq of the next frame
	sent  int       // frames handed over
	start time.Time // of frame time 0, for pacing
}

// skip says whether the frame that comes next is not wanted, and counts it if so.
func (f *feed) skip() bool {
	if f.next%uint64(f.opts.every) == 0 {
		return false
	}
	f.next++
	return true
}

// put hands over the next frame. at is its time since the beginning, which is what a live
// source waits for.
func (f *feed) put(ctx context.Context, fr *Frame, at time.Duration) error {
	fr.Seq = f.next
	f.next++
	if fr.Source == "" {
		fr.Source = f.name
	}
	if f.live {
		if err := f.pace(ctx, at); err != nil {
			fr.Release()
			return err
		}
		fr.Captured, fr.CapturedBy = time.Now(), frame.ByArrival
	}
	if err := f.sink.Frame(ctx, fr); err != nil {
		return err
	}
	f.sent++
	if f.sent == f.opts.maxFrames {
		return errEnough
	}
	return nil
}

// pace waits until the time of a frame has come.
func (f *feed) pace(ctx context.Context, at time.Duration) error {
	if f.start.IsZero() {
		f.start = time.Now().Add(-at)
	}
	wait := time.NewTimer(time.Until(f.start.Add(at)))
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ended turns errEnough into the source's good end.
func ended(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

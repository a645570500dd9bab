package camera

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/camera/ring"
)

// errEnough ends a source that delivered as many frames as were asked for.
var errEnough = errors.New("enough frames")

// Output is where a source puts its frames, one after the other. It makes the memory they lie in, numbers and thins
// them out, and hands them to the sink. It is for one goroutine.
//
// The frames of a live source lie in a ring in shared memory: the source never waits for their readers. Those of a file
// lie in a pool, and the source waits.
type Output struct {
	base    *base
	sink    Sink
	monitor *monitor
	heard   func(whole bool) // told of each frame, and of what comes before; nil for nobody

	made  shape        // what the memory below is for
	size  int          // bytes of a frame
	ring  *ring.Ring   // of a live source
	pool  *pool        // of a file
	share *ring.Server // nil while other processes do not get the ring
	next  uint64       // Seq of the next frame
	sent  int          // frames handed over
	start time.Time    // of frame time 0, for pacing
	pacer *time.Timer
}

// shape is what the frames of a store have in common.
type shape struct {
	format frame.Format
	colour frame.Colour
	w, h   int
}

// ring is what a ring of frames looks like.
func (s shape) ring(slots int) ring.Layout {
	return ring.Layout{Format: s.format, Colour: s.colour, Width: s.w, Height: s.h, Slots: slots}
}

func newOutput(b *base, sink Sink) *Output {
	return &Output{base: b, sink: sink, monitor: b.monitor}
}

// Format says what the next frames are: it is called before the first, and again when anything of it changes; fps is 0 if
// nobody knows. Frames of another shape that are still held stay as they are. The error is for Connect to return:
// trying again will not help.
func (o *Output) Format(f frame.Format, c frame.Colour, w, h int, fps float64) error {
	s := shape{f, c, w, h}
	o.monitor.set(func(st *Stats) { st.Format, st.Width, st.Height, st.FPS = f, w, h, fps })
	o.hear(false)
	if o.heard == nil && o.base.live { // nobody supervises it: it has no other states
		o.turn(StateOpen, nil)
	}
	if s == o.made {
		return nil
	}
	if f.PlanesOf(w, h) == nil {
		return Permanent(fmt.Errorf("there is no %s picture of %dx%d pixels", f, w, h))
	}
	if o.base.opts.tooLarge(w, h) {
		return Permanent(fmt.Errorf("frames of %dx%d have more than %d pixels: raise the limit with --max-pixels", w, h, o.base.opts.maxPixels))
	}
	if o.base.live {
		if err := o.makeRing(s); err != nil {
			return Permanent(err)
		}
	} else {
		o.pool = newPool(cmp.Or(o.base.opts.buffers, defaultBuffers), s)
	}
	o.made, o.size = s, f.Bytes(w, h)
	return nil
}

// ask asks whether frames of a shape may take their memory, before any is taken to find out what a picture holds. What it was
// granted counts until the next Format or ask; unask counts what there is again.
func (o *Output) ask(f frame.Format, w, h int) error {
	if max(w, h) > ring.MaxSide {
		return Permanent(fmt.Errorf("a side of live frames has at most %d pixels, not those of %dx%d: set a smaller size in the camera", ring.MaxSide, w, h))
	}
	if o.base.reserve == nil {
		return nil
	}
	l := shape{format: f, w: w, h: h}.ring(o.base.opts.slots(o.monitor.Stats().FPS))
	if err := o.base.reserve(l.Bytes()); err != nil {
		return Permanent(err)
	}
	return nil
}

// unask takes back what was asked for, for the ring that there is.
func (o *Output) unask() {
	if o.base.reserve != nil && o.ring != nil {
		_ = o.base.reserve(o.monitor.Stats().Memory) // which is there already
	}
}

// makeRing takes the memory for live frames of a shape, and gives up what there was: in this order, so that processes
// which are told that the old ring is over find the new one.
func (o *Output) makeRing(s shape) error {
	l := s.ring(o.base.opts.slots(o.monitor.Stats().FPS))
	if o.base.reserve != nil {
		if err := o.base.reserve(l.Bytes()); err != nil {
			return err
		}
	}
	made, err := ring.New(o.base.name, l)
	if err != nil {
		return err
	}
	if o.share == nil && o.base.opts.share != "" {
		if o.share, err = ring.Serve(o.base.opts.share, o.base.name); err != nil {
			o.base.opts.log.Warn(fmt.Sprintf("source %s: other processes cannot see its frames: %v", o.base.name, err))
			o.base.opts.share = "" // once is enough
		}
	}
	if o.share != nil {
		o.share.Set(made)
	}
	o.closeRing()
	o.ring = made
	o.monitor.set(func(st *Stats) { st.Memory = l.Bytes() })
	return nil
}

func (o *Output) closeRing() {
	if o.ring != nil {
		_ = o.ring.Close() // it can only fail to unmap
		o.ring = nil
	}
}

// Skip says whether the next frame is not wanted, and counts it if so: its bytes are to be skipped.
func (o *Output) Skip() bool {
	if o.next%uint64(o.base.opts.every) == 0 {
		return false
	}
	o.count()
	return true
}

// count gives the next frame its number.
func (o *Output) count() {
	o.next++
	o.monitor.captured(o.next)
}

// Begin returns a frame to write into: the planes are there, one behind the other without gaps. It never waits: a frame
// that no sink has taken yet gives way. Where readers hold every slot it returns nil; the frame is counted as dropped, and its bytes
// are to be skipped. The frame goes to Publish or Drop.
func (o *Output) Begin() *Frame {
	f := o.ring.Begin()
	if f == nil && o.sink.Reclaim() {
		f = o.ring.Begin()
	}
	if f == nil {
		o.count()
		o.monitor.dropped(NoSlot)
		o.hear(true) // the camera is well
	}
	return f
}

// pace waits for frame time at of a file that is played at its own speed, whether the frame is wanted or not, and sees
// the end of ctx in any file.
func (o *Output) pace(ctx context.Context, at time.Duration) error {
	if !o.base.live {
		return ctx.Err()
	}
	if o.start.IsZero() {
		o.start = time.Now().Add(-at)
	}
	wait := time.Until(o.start.Add(at))
	if o.pacer == nil {
		o.pacer = time.NewTimer(wait)
	}
	o.pacer.Reset(wait)
	select {
	case <-o.pacer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take returns a frame of a file to write into. If that is played at its own speed it is Begin; else it waits for a
// frame that nobody holds.
func (o *Output) take(ctx context.Context) (*Frame, error) {
	if o.base.live {
		return o.Begin(), nil
	}
	return o.pool.get(ctx)
}

// put hands on a frame of take.
func (o *Output) put(ctx context.Context, f *Frame) error {
	if o.base.live {
		return o.Publish(ctx, f, time.Now(), frame.ByArrival)
	}
	return o.Publish(ctx, f, time.Time{}, frame.ByNone)
}

// Packed returns the bytes of a frame that Begin returned: all planes, one behind the other.
func (o *Output) Packed(f *Frame) []byte {
	if o.ring != nil {
		return o.ring.Packed(f)
	}
	return f.Planes[0].Data[:o.size] // the pool cuts its planes from one piece
}

// Publish hands a frame of Begin on: readers in other processes see it, and the sink owns it. An error ends the
// connection.
func (o *Output) Publish(ctx context.Context, f *Frame, captured time.Time, by frame.CapturedBy) error {
	f.Captured, f.CapturedBy = captured, by
	f.Seq = o.next
	o.count()
	if f.Source == "" {
		f.Source = o.base.name
	}
	if o.ring != nil {
		o.ring.Publish(f)
	}
	o.hear(true)
	if err := o.sink.Frame(ctx, f); err != nil {
		return err
	}
	o.sent++
	if o.sent == o.base.opts.maxFrames {
		return errEnough
	}
	return nil
}

// Drop counts a frame that came and is of no use, because of err. f, if not nil, is what Begin returned for it.
func (o *Output) Drop(f *Frame, cause Cause, err error) {
	f.Release()
	o.count()
	o.monitor.dropped(cause)
	if err != nil {
		o.base.opts.log.Debug("frame dropped", "source", o.base.name, "cause", cause, "error", err)
	}
}

func (o *Output) hear(whole bool) {
	if o.heard != nil {
		o.heard(whole)
	}
}

// turn tells the sink when the source's state or the reason for it changes.
func (o *Output) turn(to State, err error) {
	changed := false
	o.monitor.set(func(st *Stats) {
		changed = st.State != to || fmt.Sprint(st.Err) != fmt.Sprint(err)
		st.State, st.Err = to, err
	})
	if changed {
		o.sink.State(to, err)
	}
}

// close gives up the memory, which goes with the last frame that is held.
func (o *Output) close() {
	if o.share != nil {
		_ = o.share.Close() // a socket that cannot be removed is replaced by the next
	}
	o.closeRing()
	if o.pacer != nil {
		o.pacer.Stop()
	}
}

// ended turns errEnough into the source's good end.
func ended(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

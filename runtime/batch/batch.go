// Package batch decides which waiting frames run when, in which batch, and which are given up, so that as many as possible
// are done within their deadlines. It is a state machine without goroutines, clocks or I/O: callers tell it the time, as
// a duration since an instant of their choice that never goes back, and it runs in real and in virtual time alike.
//
// A Batcher serves the cameras of one model on one or several lanes. A Scheduler lets several models take turns. Neither is
// safe for concurrent use.
package batch

import (
	"errors"
	"fmt"
	"time"
)

// Cause says why a frame was given up.
type Cause uint8

// The causes.
const (
	Late       Cause = iota // it cannot be done by its deadline any more
	Superseded              // a newer frame of its camera needed its room
	Withdrawn               // its camera was removed
)

func (c Cause) String() string {
	switch c {
	case Late:
		return "late"
	case Superseded:
		return "superseded"
	case Withdrawn:
		return "withdrawn"
	}
	return fmt.Sprintf("cause %d", uint8(c))
}

// Frame is one frame that waits. Handle is the caller's.
type Frame[H any] struct {
	Handle   H
	Camera   int           // what AddCamera returned
	Captured time.Duration // on the caller's clock; never after the time of the offer
	Deadline time.Duration // when its result has to be there; Never: whenever
}

// Drop is a frame that was given up, with the cause.
type Drop[H any] struct {
	Frame[H]
	Cause Cause
}

// Action is what a lane should do.
type Action uint8

// The actions.
const (
	Idle Action = iota // nothing waits
	Wait               // ask again at Until, or after the next offer or finished run, whichever is first
	Run                // run Frames as one batch of Size
)

// Decision is what Decide answers. Its slices are valid until the next call of a method.
type Decision[H any] struct {
	Action Action
	Until  time.Duration // of Wait: after now
	Size   int           // of Run: a size of the ladder; larger than len(Frames) where padding the batch is faster than two runs
	Frames []Frame[H]    // of Run
	Drops  []Drop[H]     // frames that are given up; any action
}

// Camera is what a batcher should know of a camera.
type Camera struct {
	Weight float64 // its share when not all frames can be served, against the others'. It defaults to 1.
	Room   int     // frames that may wait; beyond that a new one supersedes the oldest. It defaults to 1.
}

// Config is what a batcher starts with.
type Config struct {
	Profile Profile // of every size of the ladder; a copy is kept
	Lanes   int     // that run batches of this model at the same time. It defaults to 1.
	Policy  Policy  // It defaults to Deadline().
}

// Batcher holds the waiting frames of one model's cameras.
type Batcher[H any] struct {
	core    core
	handles []H // per slot
	frames  []Frame[H]
	drops   []Drop[H]
}

// New returns a batcher without cameras.
func New[H any](c Config) (*Batcher[H], error) {
	b := &Batcher[H]{}
	if err := b.core.init(c); err != nil {
		return nil, fmt.Errorf("batcher: %w", err)
	}
	return b, nil
}

// maxCameras bounds the cameras of one batcher.
const maxCameras = 1 << 16

// AddCamera makes room for one more camera and returns its number.
func (b *Batcher[H]) AddCamera(c Camera) (int, error) {
	if c.Weight == 0 {
		c.Weight = 1
	}
	if c.Room == 0 {
		c.Room = 1
	}
	if !(c.Weight >= 1e-3 && c.Weight <= 1e3) {
		return 0, fmt.Errorf("camera: weight %v: use 0.001 to 1000", c.Weight)
	}
	if c.Room < 0 || c.Room > 1<<12 {
		return 0, fmt.Errorf("camera: room for %d frames: use 1 to %d", c.Room, 1<<12)
	}
	if len(b.core.queue.cameras) == maxCameras {
		return 0, errors.New("camera: one batcher serves at most 65536")
	}
	return b.core.addCamera(c), nil
}

// RemoveCamera gives up the frames of a camera, which is not offered any more. Its number may be given to another.
func (b *Batcher[H]) RemoveCamera(camera int) []Drop[H] {
	b.drops = b.drops[:0]
	if camera < 0 || camera >= len(b.core.queue.cameras) || b.core.queue.cameras[camera].gone {
		return nil
	}
	for b.core.queue.cameras[camera].n > 0 {
		b.drop(b.core.queue.remove(int32(camera)), Withdrawn)
	}
	b.core.removeCamera(camera)
	return b.drops
}

// Offer hands in a frame that arrived at now. What is given up for it, or that frame itself where it is too late already
// or its camera is unknown, is returned; the slice is valid until the next call.
func (b *Batcher[H]) Offer(f Frame[H], now time.Duration) []Drop[H] {
	b.drops = b.drops[:0]
	c := &b.core
	now = c.tick(now)
	if f.Camera < 0 || f.Camera >= len(c.queue.cameras) || c.queue.cameras[f.Camera].gone {
		return append(b.drops, Drop[H]{f, Withdrawn})
	}
	c.arrived(f.Camera, f.Deadline, now)
	if !c.accepts(f.Deadline, now) {
		b.drops = append(b.drops, Drop[H]{f, Late})
		return b.drops
	}
	if cam := &c.queue.cameras[f.Camera]; cam.n >= cam.room {
		b.drop(c.queue.remove(int32(f.Camera)), Superseded)
	}
	id := c.queue.push(f.Camera, f.Captured, f.Deadline)
	if int(id) == len(b.handles) {
		var zero H
		b.handles = append(b.handles, zero)
	}
	b.handles[id] = f.Handle
	return b.drops
}

// Drain says that no further frames come: nothing that waits is held back for company any more.
func (b *Batcher[H]) Drain() { b.core.draining = true }

// Full says that the camera's next frame would supersede one. Who must not lose frames, a file, waits until it is not.
func (b *Batcher[H]) Full(camera int) bool {
	c := &b.core.queue.cameras[camera]
	return c.n >= c.room
}

// Supersede gives up the oldest frame of a camera whose memory a newer one needs; nothing if none waits.
func (b *Batcher[H]) Supersede(camera int) []Drop[H] {
	b.drops = b.drops[:0]
	if b.core.queue.cameras[camera].n > 0 {
		b.drop(b.core.queue.remove(int32(camera)), Superseded)
	}
	return b.drops
}

// Waiting returns the number of frames that wait.
func (b *Batcher[H]) Waiting() int { return b.core.queue.n }

// Decide says what the lane should do. The lane may still be busy: then the batch is meant to follow the run that it is at,
// so that its input can be prepared meanwhile. After Run the batch counts as the lane's until Finished.
func (b *Batcher[H]) Decide(lane int, now time.Duration) Decision[H] {
	b.drops, b.frames = b.drops[:0], b.frames[:0]
	c := &b.core
	now = c.tick(now)
	d := c.decide(lane, now)
	for _, id := range c.dropped {
		b.drop(id, Late)
	}
	for _, id := range c.taken {
		b.frames = append(b.frames, b.frame(id))
	}
	return Decision[H]{Action: d.action, Until: d.until, Size: d.size, Frames: b.frames, Drops: b.drops}
}

// Finished tells that the oldest run of the lane has ended after took of the lane's time, or with 0 that it did not
// take place.
func (b *Batcher[H]) Finished(lane int, took, now time.Duration) {
	b.core.finished(lane, took, b.core.tick(now))
}

// Limit keeps batches at or below a size, as memory pressure asks for; at least the smallest of the ladder remains. 0 takes the
// limit away.
func (b *Batcher[H]) Limit(size int) { b.core.limit(size) }

// Request says what the batcher would do with a lane that is free now, for a Scheduler.
func (b *Batcher[H]) Request() Request { return b.core.request() }

func (b *Batcher[H]) frame(id int32) Frame[H] {
	var zero H
	s := &b.core.queue.slots[id]
	f := Frame[H]{b.handles[id], int(s.camera), s.captured, s.deadline}
	b.handles[id] = zero
	return f
}

func (b *Batcher[H]) drop(id int32, cause Cause) {
	b.drops = append(b.drops, Drop[H]{b.frame(id), cause})
}

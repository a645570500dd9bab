package batch

import "time"

const (
	// lag is how many frames a camera may be owed: more would let one that was silent push out the others when it comes back.
	lag = 32
	// owing is how many frames a camera must be owed before the turn decides and not the deadlines, which lose less when frames
	// come at random.
	owing = 16
)

// fair shares what a machine can do between cameras that want more, by stride scheduling: a served frame moves its camera on
// by 1/weight, and the camera that is least far goes first.
type fair struct {
	floor float64 // how far the camera was that was served last
	heap  []int32 // cameras that can be served, the least far first; only valid during take
}

// serve takes out the oldest frame of a camera, to be run.
func (c *core) serve(camera int32) {
	s := &c.queue.cameras[camera]
	s.pass = max(s.pass, c.fair.floor-lag*s.stride)
	c.fair.floor = max(c.fair.floor, s.pass)
	s.pass += s.stride
	c.taken = append(c.taken, c.queue.remove(camera))
}

// owes says that some camera with waiting frames is far behind.
func (c *core) owes() bool {
	for i := range c.queue.cameras {
		if s := &c.queue.cameras[i]; s.n > 0 && s.pass < c.fair.floor-owing*s.stride {
			return true
		}
	}
	return false
}

// takeByTurn takes out up to count frames that will be done at done, in time. Frames that will not are given up where they stand in
// the way of others of their camera.
func (c *core) takeByTurn(count int, done time.Duration) {
	f, cameras := &c.fair, c.queue.cameras
	f.heap = f.heap[:0]
	for i := range cameras {
		s := &cameras[i]
		for s.n > 0 && c.queue.slots[s.head].deadline < done {
			c.dropped = append(c.dropped, c.queue.remove(int32(i)))
		}
		if s.n > 0 {
			s.pass = max(s.pass, f.floor-lag*s.stride)
			f.heap = append(f.heap, int32(i))
		}
	}
	heapify(f.heap, c.before)
	for len(c.taken) < count && len(f.heap) > 0 {
		camera := f.heap[0]
		c.serve(camera)
		if s := &cameras[camera]; s.n == 0 {
			f.heap[0] = f.heap[len(f.heap)-1]
			f.heap = f.heap[:len(f.heap)-1]
		}
		sink(f.heap, 0, c.before)
	}
}

// before says that of two cameras a is served first. Of those that are equally far the one whose frame is due first is.
func (c *core) before(a, b int32) bool {
	x, y := &c.queue.cameras[a], &c.queue.cameras[b]
	if x.pass != y.pass {
		return x.pass < y.pass
	}
	return c.queue.slots[x.head].deadline < c.queue.slots[y.head].deadline
}

package batch

import "time"

// lag is how many frames a camera may be owed: more would let one that was silent push out the others when it comes back.
const lag = 4

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

// take takes out count frames, to be done at done: the first ones, or by turn those that will be in time.
func (c *core) take(count int, done time.Duration, byTurn bool) {
	if byTurn && count < c.queue.n {
		c.takeByTurn(count, done)
	}
	if len(c.taken) > 0 {
		return
	}
	for range count {
		c.serve(c.queue.slots[c.queue.first].camera)
	}
}

func (c *core) takeByTurn(count int, done time.Duration) {
	f, cameras := &c.fair, c.queue.cameras
	f.heap = f.heap[:0]
	for i := range cameras {
		if s := &cameras[i]; s.n > 0 && c.queue.slots[s.head].deadline >= done {
			s.pass = max(s.pass, f.floor-lag*s.stride)
			f.heap = append(f.heap, int32(i))
		}
	}
	for i := len(f.heap)/2 - 1; i >= 0; i-- {
		c.sink(i)
	}
	for len(c.taken) < count && len(f.heap) > 0 {
		camera := f.heap[0]
		c.serve(camera)
		if s := &cameras[camera]; s.n == 0 || c.queue.slots[s.head].deadline < done {
			f.heap[0] = f.heap[len(f.heap)-1]
			f.heap = f.heap[:len(f.heap)-1]
		}
		c.sink(0)
	}
}

// sink restores the heap's order below i. Of cameras that are equally far the one whose frame is due first goes first.
func (c *core) sink(i int) {
	heap := c.fair.heap
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && c.before(heap[child+1], heap[child]) {
			child++
		}
		if !c.before(heap[child], heap[i]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}

func (c *core) before(a, b int32) bool {
	x, y := &c.queue.cameras[a], &c.queue.cameras[b]
	if x.pass != y.pass {
		return x.pass < y.pass
	}
	return c.queue.slots[x.head].deadline < c.queue.slots[y.head].deadline
}

package batch

import (
	"math"
	"time"
)

// Never is the deadline of a frame that has none.
const Never time.Duration = math.MaxInt64

// none is the end of a list of slots.
const none int32 = -1

// slot is one waiting frame. Slots are linked twice: all by deadline, and those of one camera in their order.
type slot struct {
	camera             int32
	before, after      int32 // by deadline
	next               int32 // of the same camera; the next free one in the list of free slots
	captured, deadline time.Duration
}

// queue holds all waiting frames by deadline. The order of one camera is kept even where its deadlines
// are not: a frame is never put before an older one of its camera.
type queue struct {
	slots       []slot
	free        int32
	first, last int32
	n           int
	cameras     []cameraState
}

// cameraState is what is known of one camera.
type cameraState struct {
	head, tail int32
	n, room    int
	gone       bool
	stride     float64 // what one served frame costs: 1/weight
	pass       float64 // sum of that: the camera with the least is served first when not all can be
	arrivals
}

func newQueue() queue { return queue{free: none, first: none, last: none} }

// push adds a frame and returns its slot.
func (q *queue) push(camera int, captured, deadline time.Duration) int32 {
	id := q.free
	if id == none {
		id = int32(len(q.slots))
		q.slots = append(q.slots, slot{})
	} else {
		q.free = q.slots[id].next
	}
	c := &q.cameras[camera]
	at := q.last // frames come almost in the order of their deadlines: this loop hardly ever turns
	for at != none && q.slots[at].deadline > deadline && q.slots[at].camera != int32(camera) {
		at = q.slots[at].before
	}
	s := &q.slots[id]
	*s = slot{camera: int32(camera), captured: captured, deadline: deadline, before: at, next: none}
	if at == none {
		s.after, q.first = q.first, id
	} else {
		s.after, q.slots[at].after = q.slots[at].after, id
	}
	if s.after == none {
		q.last = id
	} else {
		q.slots[s.after].before = id
	}
	if c.n == 0 {
		c.head = id
	} else {
		q.slots[c.tail].next = id
	}
	c.tail = id
	c.n++
	q.n++
	return id
}

// remove takes out the oldest frame of a camera; its slot's fields stay readable until the next push.
func (q *queue) remove(camera int32) int32 {
	c := &q.cameras[camera]
	id := c.head
	s := &q.slots[id]
	if s.before == none {
		q.first = s.after
	} else {
		q.slots[s.before].after = s.after
	}
	if s.after == none {
		q.last = s.before
	} else {
		q.slots[s.after].before = s.before
	}
	c.head = s.next
	c.n--
	q.n--
	s.next, q.free = q.free, id
	return id
}

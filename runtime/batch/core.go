package batch

import (
	"errors"
	"slices"
	"time"
)

// ahead is the number of batches that a lane may have: one that runs, and one whose input is being filled.
const ahead = 2

// briefest is the shortest wait: less is not worth waking up for.
const briefest = 50 * time.Microsecond

// probe is how often in a row a free lane may find that nothing can be in time: then a frame is run all the same, to find out
// whether the machine is still as slow as it was when it was last seen.
const probe = 16

// run is a batch that a lane has.
type run struct {
	index    int           // of its size in the ladder
	earliest time.Duration // deadline of its frames
}

type laneState struct {
	runs [ahead]run // the oldest first
	n    int
	free time.Duration // when it should have done them
}

// core is a Batcher without its handles.
type core struct {
	sizes   []int // of the whole ladder
	ladder  int   // the first so many are in use
	learned learned
	queue   queue
	rate    rate
	fair    fair
	alive   int // cameras
	policy  Policy
	view    View
	lanes   []laneState
	now     time.Duration

	draining bool // no further frames come

	barren int // times since the last run that nothing could be in time on a free lane

	dropped, taken []int32 // slots, by the last decision
}

// decision is a Decision without its frames.
type decision struct {
	action Action
	until  time.Duration
	size   int
}

func (c *core) init(cfg Config) error {
	if err := cfg.Profile.Check(); err != nil {
		return err
	}
	if cfg.Lanes < 0 || cfg.Lanes > 1<<10 {
		return errors.New("lanes: use 1 to 1024")
	}
	c.queue, c.learned, c.policy = newQueue(), learn(cfg.Profile), cfg.Policy
	if c.policy == nil {
		c.policy = Deadline()
	}
	for _, t := range cfg.Profile {
		c.sizes = append(c.sizes, t.Batch)
	}
	c.ladder = len(c.sizes)
	c.lanes = make([]laneState, max(cfg.Lanes, 1))
	c.view = View{Time: make([]time.Duration, len(c.sizes)), Lanes: len(c.lanes), core: c}
	c.taken = make([]int32, 0, c.sizes[len(c.sizes)-1])
	return nil
}

// tick keeps time from going back.
func (c *core) tick(now time.Duration) time.Duration {
	c.now = max(c.now, now)
	return c.now
}

func (c *core) addCamera(cam Camera) int {
	i := slices.IndexFunc(c.queue.cameras, func(s cameraState) bool { return s.gone })
	if i < 0 {
		i = len(c.queue.cameras)
		c.queue.cameras = append(c.queue.cameras, cameraState{})
	}
	c.queue.cameras[i] = cameraState{head: none, tail: none, room: cam.Room, stride: 1 / cam.Weight, pass: c.fair.floor}
	c.alive++
	return i
}

func (c *core) removeCamera(i int) {
	c.queue.cameras[i].gone = true
	c.alive--
}

func (c *core) arrived(camera int, deadline, now time.Duration) {
	c.queue.cameras[camera].arrived(now, deadline)
	c.rate.arrived(now, c.alive)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// free returns when the first lane should be free.
func (c *core) free() time.Duration {
	free := c.lanes[0].free
	for i := range c.lanes {
		free = min(free, c.lanes[i].free)
	}
	return free
}

// accepts decides whether a frame may wait: where a lane could do it by its deadline in a run of its own, and where one is to try all
// the same, since by that a machine that has become too slow for anything is seen to recover, and since there is nothing to
// lose where nobody else wants the lane. It counts the frames in whose favour that is.
func (c *core) accepts(deadline, now time.Duration) bool {
	free, took := c.free(), seconds(c.learned.mean(0))
	if deadline == Never || max(now, free)+took <= deadline {
		return true
	}
	if free <= now {
		c.barren++
		if now < deadline && c.queue.n == 0 && c.quiet(now, now+took) {
			c.barren = probe + 1
		}
	}
	return c.barren > probe
}

// quiet says that no camera sends a frame until then. Nobody knows that of one without a period.
func (c *core) quiet(now, until time.Duration) bool {
	for i := range c.queue.cameras {
		if a := &c.queue.cameras[i].arrivals; !c.queue.cameras[i].gone && a.seen > 0 && (!a.steady() || a.next(now) < until) {
			return false
		}
	}
	return true
}

// decide fills dropped and taken.
func (c *core) decide(lane int, now time.Duration) decision {
	c.dropped, c.taken = c.dropped[:0], c.taken[:0]
	l := &c.lanes[lane]
	start := max(now, l.free)
	c.shed(start + seconds(c.learned.mean(0)))
	switch {
	case c.queue.n == 0:
		return decision{action: Idle}
	case l.n == ahead:
		return decision{action: Wait, until: max(l.free, now+briefest)}
	}
	c.look(now, start)
	choice := Choice{Count: 1}
	switch {
	case c.barren > probe:
	case c.draining:
		choice.Index = c.view.Floor(c.queue.n)
		choice.Count = c.sizes[choice.Index]
	default:
		choice = c.policy.Choose(&c.view)
	}
	choice.Fair = choice.Fair && choice.Count > 0 && c.owes()
	if choice.Fair {
		c.takeByTurn(choice.Count, start+c.view.Time[choice.Index])
	}
	if len(c.taken) == 0 {
		if choice.Count <= 0 && choice.Drop >= c.queue.n {
			c.barren++
		}
		for range min(choice.Drop, c.queue.n) {
			c.dropped = append(c.dropped, c.takeFirst())
		}
		if c.queue.n == 0 {
			return decision{action: Idle}
		}
		if choice.Count <= 0 {
			return decision{action: Wait, until: max(choice.Until, now+briefest)}
		}
		for range min(choice.Count, c.sizes[choice.Index], c.queue.n) {
			c.serve(c.queue.slots[c.queue.first].camera)
		}
	}
	index := c.view.Fit(len(c.taken))
	if !choice.Fair {
		index = choice.Index
	}
	took := seconds(c.learned.mean(index))
	r := run{index, Never}
	for _, id := range c.taken {
		r.earliest = min(r.earliest, c.queue.slots[id].deadline)
	}
	c.barren = 0
	l.runs[l.n] = r
	l.n++
	l.free = start + took
	return decision{action: Run, size: c.sizes[index]}
}

// shed gives up frames at the head whose deadline lies before done.
func (c *core) shed(done time.Duration) {
	for c.queue.n > 0 && c.queue.slots[c.queue.first].deadline < done && c.barren <= probe {
		c.dropped = append(c.dropped, c.takeFirst())
	}
}

// takeFirst takes out the frame with the earliest deadline.
func (c *core) takeFirst() int32 { return c.queue.remove(c.queue.slots[c.queue.first].camera) }

// look fills the view.
func (c *core) look(now, start time.Duration) {
	v := &c.view
	v.Now, v.Start, v.Waiting, v.Rate = now, start, c.queue.n, c.rate.perSecond(now)
	v.Sizes, v.Time, v.Due = c.sizes[:c.ladder], v.Time[:c.ladder], v.Due[:0]
	for i := range v.Time {
		mean := c.learned.mean(i)
		v.Time[i] = seconds(mean * (1 + margin*c.learned.sigma))
	}
	v.Oldest = c.queue.slots[c.queue.first].captured
	for id := c.queue.first; id != none && len(v.Due) < shown; id = c.queue.slots[id].after {
		v.Due = append(v.Due, c.queue.slots[id].deadline)
	}
}

func (c *core) finished(lane int, took, now time.Duration) {
	l := &c.lanes[lane]
	if l.n == 0 {
		return
	}
	r := l.runs[0]
	copy(l.runs[:], l.runs[1:])
	l.n--
	if took > 0 {
		c.learned.saw(r.index, took.Seconds())
		c.policy.Done(c.sizes[r.index], now > r.earliest)
	}
	l.free = now
	for i := range l.n {
		l.free += seconds(c.learned.mean(l.runs[i].index))
	}
}

func (c *core) limit(size int) {
	c.ladder = len(c.sizes)
	for size > 0 && c.ladder > 1 && c.sizes[c.ladder-1] > size {
		c.ladder--
	}
}

// request takes what waits as one batch.
func (c *core) request() Request {
	if c.queue.n == 0 {
		return Request{Due: Never}
	}
	i := 0
	for i < c.ladder-1 && c.sizes[i] < c.queue.n {
		i++
	}
	return Request{Ready: true, Took: seconds(c.learned.mean(i) * (1 + margin*c.learned.sigma)), Due: c.queue.slots[c.queue.first].deadline}
}

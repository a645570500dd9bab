package batch

import (
	"testing"
	"time"
)

// world drives a batcher with bytes and keeps book of every frame.
type world struct {
	t       *testing.T
	b       *Batcher[int]
	now     time.Duration
	fate    []int // per handle: 0 waits, 1 runs or ran, 2 given up
	camera  []int
	latest  []int // per camera: the last handle that was run
	waiting int
	busy    []int // per lane
}

func (w *world) settle(h, fate int) {
	if w.fate[h] != 0 {
		w.t.Fatalf("frame %d comes back twice", h)
	}
	w.fate[h] = fate
	w.waiting--
}

func (w *world) drops(list []Drop[int]) {
	for _, d := range list {
		w.settle(d.Handle, 2)
	}
}

func (w *world) offer(camera int, slo time.Duration) {
	h := len(w.fate)
	w.fate, w.camera = append(w.fate, 0), append(w.camera, camera)
	w.waiting++
	w.drops(w.b.Offer(frame(h, camera, w.now, slo), w.now))
}

func (w *world) decide(lane int) Action {
	d := w.b.Decide(lane, w.now)
	w.drops(d.Drops)
	switch d.Action {
	case Wait:
		if d.Until <= w.now {
			w.t.Fatalf("told at %v to wait until %v", w.now, d.Until)
		}
	case Idle:
		if w.waiting != 0 {
			w.t.Fatalf("idle with %d frames waiting", w.waiting)
		}
	case Run:
		w.ran(lane, d)
	}
	if w.b.Waiting() != w.waiting {
		w.t.Fatalf("%d wait, the batcher says %d", w.waiting, w.b.Waiting())
	}
	return d.Action
}

func (w *world) ran(lane int, d Decision[int]) {
	in := false
	for _, s := range w.b.core.sizes[:w.b.core.ladder] {
		in = in || s == d.Size
	}
	if !in || len(d.Frames) == 0 || len(d.Frames) > d.Size {
		w.t.Fatalf("%d frames in a batch of %d", len(d.Frames), d.Size)
	}
	if w.busy[lane]++; w.busy[lane] > ahead {
		w.t.Fatal("a third batch for a lane")
	}
	for _, f := range d.Frames {
		w.settle(f.Handle, 1)
		if w.camera[f.Handle] != f.Camera || w.latest[f.Camera] > f.Handle {
			w.t.Fatalf("camera %d: frame %d after %d", f.Camera, f.Handle, w.latest[f.Camera])
		}
		w.latest[f.Camera] = f.Handle
	}
}

// drain ends all runs and decides until nothing waits: a bounded number of times for frames with deadlines as well as without.
func (w *world) drain() {
	for range 3*len(w.fate) + 100 {
		for lane := range w.busy {
			for ; w.busy[lane] > 0; w.busy[lane]-- {
				w.b.Finished(lane, 5*ms, w.now)
			}
			if w.decide(lane) == Idle {
				return
			}
		}
		w.now += 5 * ms
	}
	w.t.Fatalf("%d frames still wait: the batcher does not get on", w.waiting)
}

// FuzzBatcher: whatever comes when, no frame is lost or comes twice, cameras keep their order, batches are of the ladder, and
// the batcher gets on.
func FuzzBatcher(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 200, 10, 100, 101, 4, 5, 6, 220, 100, 140, 30, 90, 250, 255})
	f.Add([]byte("all cameras at once, and then for a long time nothing at all"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 2 {
			return
		}
		const cameras = 5
		lanes := 1 + int(data[0])%3
		policy := []Policy{Deadline(), Deadline(), AIMD(), EarlyDrop(8), Timeout(8, 20*ms)}[int(data[1])%5]
		b := newTest(t, Config{Lanes: lanes, Policy: policy}, cameras, Camera{Room: 1 + int(data[0])/64})
		w := &world{t: t, b: b, latest: make([]int, cameras), busy: make([]int, lanes)}
		for i, v := range data[2:] {
			lane := i % lanes
			switch {
			case v < 100:
				w.offer(int(v)%cameras, []time.Duration{20 * ms, 60 * ms, 60 * ms, 200 * ms, 0}[int(v)/cameras%5])
			case v < 160:
				w.decide(lane)
			case v < 200:
				if w.busy[lane] > 0 {
					w.busy[lane]--
					b.Finished(lane, time.Duration(v-160)*ms, w.now)
				}
			case v < 210:
				b.Limit(int(v - 200))
			default:
				w.now += time.Duration(v-210) * ms / 2
			}
		}
		w.drain()
		for h, fate := range w.fate {
			if fate == 0 {
				t.Fatalf("frame %d is lost without a count", h)
			}
		}
	})
}

package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/eyas-edge/eyas/runtime/batch"
)

// Setup is one simulation.
type Setup struct {
	Trace   []Arrival
	Cameras int
	Weights []float64 // per camera; nil: all 1
	Machine *Machine
	Lanes   int           // 0: 1
	SLO     time.Duration // from arrival to deadline
	Room    int           // frames of a camera that may wait; 0: as many as can come within the SLO, up to the largest batch, and two
	Policy  batch.Policy  // nil: Eyas' own
	Seed    uint64        // of the noise
}

// Outcome is what became of a trace's frames: Offered = InTime + Overdue + the drops.
type Outcome struct {
	Offered    int
	InTime     int    // delivered within the SLO
	Overdue    int    // delivered late
	Dropped    [3]int // by batch.Cause
	Runs       int
	Busy, Span time.Duration
	PerCamera  []int // in time
	Padded     int   // places of batches that held no frame
}

// lane is one executor: free, or at a run until end.
type lane struct {
	busy       bool
	start, end time.Duration
	frames     []batch.Frame[int]
}

type world struct {
	Setup
	b     *batch.Batcher[int]
	rng   *rand.Rand
	lanes []lane
	warm  map[int]bool
	out   Outcome
	seen  []bool
}

// Simulate runs a trace through the batcher and checks its promises on the way; an error is a broken one.
func Simulate(s Setup) (Outcome, error) {
	w := world{Setup: s, rng: rand.New(rand.NewPCG(s.Seed, 1)), warm: map[int]bool{}, lanes: make([]lane, max(s.Lanes, 1)), seen: make([]bool, len(s.Trace))}
	var err error
	if w.b, err = batch.New[int](batch.Config{Profile: s.Machine.Profile(), Lanes: len(w.lanes), Policy: s.Policy}); err != nil {
		return Outcome{}, err
	}
	room := s.Room
	if room == 0 {
		room = 32
	}
	for i := range s.Cameras {
		c := batch.Camera{Room: room}
		if s.Weights != nil {
			c.Weight = s.Weights[i]
		}
		if _, err := w.b.AddCamera(c); err != nil {
			return Outcome{}, err
		}
	}
	w.out.Offered, w.out.PerCamera = len(s.Trace), make([]int, s.Cameras)
	err = w.run()
	return w.out, err
}

// Room is the number of frames of one camera that may wait, as runtime plans it.
func Room(trace []Arrival, cameras int, slo time.Duration, largest int) int {
	if len(trace) < 2 {
		return 2
	}
	span := trace[len(trace)-1].At - trace[0].At
	within := float64(slo) * float64(len(trace)-1) / float64(max(span, 1)) / float64(cameras)
	return 2 + min(int(within+0.999), largest)
}

func (w *world) run() error {
	wake, next := batch.Never, 0
	for steps := 0; ; steps++ {
		now := wake
		if next < len(w.Trace) {
			now = min(now, w.Trace[next].At)
		}
		for i := range w.lanes {
			if w.lanes[i].busy {
				now = min(now, w.lanes[i].end)
			}
		}
		if now == batch.Never {
			break
		}
		w.out.Span = now
		if steps > 100*len(w.Trace)+1000 {
			return fmt.Errorf("%d steps for %d frames: the batcher does not get on", steps, len(w.Trace))
		}
		for i := range w.lanes {
			if w.lanes[i].busy && w.lanes[i].end <= now {
				w.finish(i)
			}
		}
		for ; next < len(w.Trace) && w.Trace[next].At <= now; next++ {
			at := w.Trace[next]
			drops := w.b.Offer(batch.Frame[int]{Handle: next, Camera: at.Camera, Captured: at.At, Deadline: at.At + w.SLO}, now)
			if err := w.dropped(drops); err != nil {
				return err
			}
		}
		var err error
		if wake, err = w.decide(now); err != nil {
			return err
		}
	}
	if n := w.b.Waiting(); n > 0 { // a policy that waits for a full batch may be left with some
		w.out.Dropped[batch.Late] += n
	}
	return nil
}

// decide gives free lanes work and returns when to ask again.
func (w *world) decide(now time.Duration) (time.Duration, error) {
	wake := batch.Never
	for i := range w.lanes {
		if w.lanes[i].busy {
			continue
		}
		d := w.b.Decide(i, now)
		if err := w.dropped(d.Drops); err != nil {
			return 0, err
		}
		switch d.Action {
		case batch.Wait:
			if d.Until <= now {
				return 0, fmt.Errorf("told to wait until %v at %v", d.Until, now)
			}
			wake = min(wake, d.Until)
		case batch.Run:
			if err := w.start(i, d, now); err != nil {
				return 0, err
			}
		}
	}
	return wake, nil
}

func (w *world) start(i int, d batch.Decision[int], now time.Duration) error {
	if len(d.Frames) == 0 || len(d.Frames) > d.Size || !contains(w.Machine.Sizes, d.Size) {
		return fmt.Errorf("told to run %d frames as a batch of %d", len(d.Frames), d.Size)
	}
	for _, f := range d.Frames {
		if err := w.once(f.Handle); err != nil {
			return err
		}
	}
	l := &w.lanes[i]
	l.busy, l.start = true, now
	l.end = now + w.Machine.took(d.Size, now, !w.warm[d.Size], w.rng)
	l.frames = append(l.frames[:0], d.Frames...)
	w.warm[d.Size] = true
	w.out.Runs++
	w.out.Padded += d.Size - len(d.Frames)
	return nil
}

func contains(sizes []int, size int) bool {
	for _, s := range sizes {
		if s == size {
			return true
		}
	}
	return false
}

func (w *world) once(handle int) error {
	if w.seen[handle] {
		return fmt.Errorf("frame %d comes back twice", handle)
	}
	w.seen[handle] = true
	return nil
}

func (w *world) dropped(drops []batch.Drop[int]) error {
	for _, d := range drops {
		if err := w.once(d.Handle); err != nil {
			return err
		}
		w.out.Dropped[d.Cause]++
	}
	return nil
}

func (w *world) finish(i int) {
	l := &w.lanes[i]
	l.busy = false
	w.out.Busy += l.end - l.start
	for _, f := range l.frames {
		if l.end <= f.Deadline {
			w.out.InTime++
			w.out.PerCamera[f.Camera]++
		} else {
			w.out.Overdue++
		}
	}
	w.b.Finished(i, l.end-l.start, l.end)
}

package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/eyas-edge/eyas/runtime/batch"
)

// Tenant is one model on a shared lane. Without a trace it never rests: its next frame waits whenever one was taken.
type Tenant struct {
	batch.Share
	Machine *Machine
	Trace   []Arrival // of one camera
}

// Result is what became of a tenant.
type Result struct {
	Offered, InTime, Done int
	Held                  time.Duration // of the lane, in all
	Longest               time.Duration // run
}

type tenant struct {
	Tenant
	b    *batch.Batcher[int]
	next int           // frame of the trace
	hold time.Duration // told to wait until then
	Result
}

// SimulateShared runs tenants in turns on one lane for a time.
func SimulateShared(tenants []Tenant, during time.Duration, seed uint64) ([]Result, error) {
	list := make([]tenant, len(tenants))
	var shares []batch.Share
	for _, t := range tenants {
		shares = append(shares, t.Share)
	}
	s, err := batch.NewScheduler(shares...)
	if err != nil {
		return nil, err
	}
	for i, t := range tenants {
		b, err := batch.New[int](batch.Config{Profile: t.Profile})
		if err != nil {
			return nil, err
		}
		b.Limit(s.Limit(i))
		if _, err := b.AddCamera(batch.Camera{Room: 32}); err != nil {
			return nil, err
		}
		list[i] = tenant{Tenant: t, b: b}
	}
	rng := rand.New(rand.NewPCG(seed, 3))
	requests := make([]batch.Request, len(list))
	now := time.Duration(0)
	for now < during {
		wake := during
		for i := range list {
			wake = min(wake, list[i].arrive(now, s.Limit(i)))
			requests[i] = list[i].b.Request()
			if list[i].hold > now {
				requests[i].Ready = false
				wake = min(wake, list[i].hold)
			}
		}
		i := s.Next(now, requests)
		if i < 0 {
			if wake <= now {
				return nil, fmt.Errorf("nothing to do at %v, and nothing to wait for", now)
			}
			now = wake
			continue
		}
		took := list[i].run(now, rng)
		s.Ran(i, took)
		now += took
	}
	results := make([]Result, len(list))
	for i := range list {
		results[i] = list[i].Result
	}
	return results, nil
}

// arrive offers what has come by now and returns when the next frame comes.
func (t *tenant) arrive(now time.Duration, most int) time.Duration {
	if t.Trace == nil {
		for t.b.Waiting() < most {
			t.b.Offer(batch.Frame[int]{Captured: now, Deadline: batch.Never}, now)
			t.Offered++
		}
		return batch.Never
	}
	for ; t.next < len(t.Trace) && t.Trace[t.next].At <= now; t.next++ {
		at := t.Trace[t.next].At
		t.b.Offer(batch.Frame[int]{Handle: t.next, Captured: at, Deadline: at + t.SLO}, at)
		t.Offered++
		t.hold = 0
	}
	if t.next == len(t.Trace) {
		return batch.Never
	}
	return t.Trace[t.next].At
}

// run does what the model's batcher decides and returns how long the lane was held.
func (t *tenant) run(now time.Duration, rng *rand.Rand) time.Duration {
	d := t.b.Decide(0, now)
	if d.Action != batch.Run {
		t.hold = max(d.Until, now+1)
		return 0
	}
	took := t.Machine.took(d.Size, now, false, rng)
	t.b.Finished(0, took, now+took)
	t.Held += took
	t.Longest = max(t.Longest, took)
	for _, f := range d.Frames {
		t.Done++
		if now+took <= f.Deadline {
			t.InTime++
		}
	}
	return took
}

package runtime

import (
	"context"
	goruntime "runtime"
	"time"

	"github.com/eyas-edge/eyas/models/decode"
	"github.com/eyas-edge/eyas/runtime/batch"
	"github.com/eyas-edge/eyas/runtime/lane"
)

// work is a batch on its way through a lane.
type work struct {
	model int
	set   *lane.Set
	steps []*step
	last  bool // of what the batcher decided: frames of other input sizes than the first's make it several
}

// serve moves batches through a lane until nothing more comes: one is filled while the other runs.
func (f *flow) serve(index int) {
	filled, free := make(chan *work, lane.Inputs), make(chan *work, lane.Inputs)
	for range lane.Inputs {
		free <- &work{}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.run(index, filled, free)
	}()
	var batch []*step
	for {
		w := <-free
		model, ok := 0, false
		if model, batch, ok = f.decide(index, batch[:0]); !ok {
			break
		}
		for rest := batch; ; {
			w.model = model
			rest = f.fill(index, w, rest)
			filled <- w
			if len(rest) == 0 {
				break
			}
			w = <-free
		}
	}
	close(filled)
	<-done
}

// decide waits until a model is to run on a lane, and appends the frames of its batch to steps. It returns false when there
// will be none.
func (f *flow) decide(index int, steps []*step) (model int, batch []*step, ok bool) {
	timer := f.timers[index]
	for {
		f.mu.Lock()
		model, steps, until := f.ask(index, steps)
		over := f.stopped || f.running == 0 && f.idle()
		f.mu.Unlock()
		if len(steps) > 0 {
			return model, steps, true
		}
		if over {
			f.wakeLanes() // the others see it, too
			return 0, nil, false
		}
		timer.Reset(until)
		select {
		case <-f.wake[index]:
		case <-timer.C:
		}
	}
}

// idleCheck is how often a lane without anything to do looks again, should nobody wake it.
const idleCheck = time.Second

// ask finds out which model is to run on a lane now, if any, and takes its batch. until is when to ask again.
func (f *flow) ask(index int, steps []*step) (model int, batched []*step, until time.Duration) {
	until = idleCheck
	now := f.now()
	full := f.inLanes+f.order.Ready() >= f.most
	f.hold(full, now)
	if f.stopped || full {
		return 0, steps, until
	}
	for m, b := range f.batchers {
		f.requests[m] = b.Request()
		if rest := f.asleep[m] - now; rest > 0 {
			f.requests[m].Ready = false
			until = min(until, rest)
		}
	}
	for {
		m := f.schedulers[index].Next(now, f.requests)
		if m < 0 {
			return 0, steps, until
		}
		d := f.batchers[m].Decide(index, now)
		f.drop(d.Drops)
		switch d.Action {
		case batch.Run:
			for _, fr := range d.Frames {
				steps = append(steps, fr.Handle)
			}
			f.inLanes += len(steps)
			signal(f.room)
			return m, steps, 0
		case batch.Wait:
			f.asleep[m] = d.Until
			until = min(until, max(d.Until-now, 0))
		}
		f.requests[m].Ready = false
	}
}

// hold adds up how long the consumer holds the lanes up.
func (f *flow) hold(full bool, now time.Duration) {
	if f.heldSince > 0 {
		f.held += now - f.heldSince
	}
	f.heldSince = 0
	if full {
		f.heldSince = max(now, 1)
	}
}

// idle says whether no frame waits.
func (f *flow) idle() bool {
	for _, b := range f.batchers {
		if b.Waiting() > 0 {
			return false
		}
	}
	return true
}

// fill puts the frames of steps into an input of the lane, as many as have the input size of the first, and returns the others.
func (f *flow) fill(index int, w *work, steps []*step) (rest []*step) {
	m := f.rt.models[w.model]
	// Its buffer is free, since its work is, but for a moment in which Detect may have it.
	set, err := m.programs[index].Take(context.Background())
	w.set, w.steps = set, w.steps[:0]
	var h, width int
	for len(steps) > 0 && err == nil {
		st := steps[0]
		fr := st.job.frame
		fh, fw := m.info.InputSize(fr.Width, fr.Height)
		if len(w.steps) == 0 {
			h, width = fh, fw
		} else if fh != h || fw != width {
			break
		}
		st.started = time.Now()
		st.err = set.Fill(fr)
		st.filled = time.Now()
		st.looked.timing.Pre = set.Pre
		steps = steps[1:]
		f.mu.Lock()
		f.letGo(st.job)
		if st.err == nil {
			w.steps = append(w.steps, st)
		} else {
			f.inLanes--
			f.endStep(st)
		}
		f.mu.Unlock()
	}
	w.last = len(steps) == 0
	return steps
}

// run runs what is filled on a thread of its own, and reads what each run found, so that the next may overwrite the outputs.
func (f *flow) run(index int, filled <-chan *work, free chan<- *work) {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	var found [][]decode.Detection
	var took time.Duration // of a decision's works so far
	for w := range filled {
		m := f.rt.models[w.model]
		for len(found) < len(w.steps) {
			found = append(found, nil)
		}
		for i, st := range w.steps {
			found[i] = st.looked.found[:0]
		}
		var err error
		if len(w.steps) > 0 {
			err = m.look(context.Background(), w.set, found[:len(w.steps)])
			took += w.set.Infer + w.set.Post
		}
		f.ended(index, w, found, took, err)
		if w.last {
			took = 0
		}
		w.set.Put()
		free <- w
		f.wakeLanes()
	}
}

// ended hands the results of a run to its frames.
func (f *flow) ended(index int, w *work, found [][]decode.Detection, took time.Duration, err error) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inLanes -= len(w.steps)
	for i, st := range w.steps {
		st.err = err
		st.looked.found = found[i]
		t := &st.looked.timing
		t.Infer, t.Post, t.Batch, t.Lane = w.set.Infer, w.set.Post, len(w.steps), index
		t.Queue = max(now.Sub(st.filled)-t.Infer-t.Post, 0) + max(st.started.Sub(st.job.arrived), 0)
		f.endStep(st)
	}
	if w.last {
		f.batchers[w.model].Finished(index, took, now.Sub(f.epoch))
		f.schedulers[index].Ran(w.model, took)
		f.asleep[w.model] = 0
	}
}

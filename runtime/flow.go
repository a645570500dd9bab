package runtime

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/runtime/batch"
	"github.com/eyas-edge/eyas/runtime/lane"
	"github.com/eyas-edge/eyas/runtime/pipeline"
)

// flow takes the frames of a stream from their sources to the consumer: each waits with its models' batchers, which say when
// it runs and in which batch, is filled into a lane's input and run there, and comes out in the order of its source.
//
// Sources put frames in from their own goroutines; each lane has one goroutine that fills and one that runs; the
// consumer's takes jobs out. What they share is guarded by mu, which nobody holds for longer than a decision takes.
type flow struct {
	rt      *Runtime
	sources []camera.Source
	models  [][]int  // per source the indices of its models
	tracks  []*track // per source
	groups  []int    // per source the group within which its results keep their order
	epoch   time.Time
	slo     time.Duration // of live frames; 0 for none
	ahead   lead

	mu         sync.Mutex
	batchers   []*batch.Batcher[*step] // per model
	fillTime   []time.Duration         // per model: of one frame, before its run
	asleep     []time.Duration         // per model: until when its batcher waits for company
	requests   []batch.Request         // per model, of one decision
	schedulers []*batch.Scheduler      // per lane
	cameras    [][]int                 // per source and place in its models: the number in that model's batcher
	order      *pipeline.Order[*job]
	spare      []*job
	offered    uint64        // frames of live sources
	inLanes    int           // steps
	running    int           // sources
	stopped    bool          // nothing more is taken in, and nothing that waits is run
	held       time.Duration // so long the consumer has held the lanes up
	heldSince  time.Duration // and since when now; 0: it does not
	most       int           // steps in lanes and jobs to be read: a consumer that is slow holds the lanes up, and frames wait where they can be dropped

	room   chan struct{}   // a file's frame may have got room
	ready  chan struct{}   // something is ready, or all is over
	wake   []chan struct{} // per lane: something to decide
	timers []*time.Timer   // per lane
}

// job is one frame with one step for each model that looks at it, or the trouble of a source.
type job struct {
	source  int
	ticket  pipeline.Ticket
	frame   *camera.Frame // nil once it is given back
	held    int           // steps that still need its pixels
	open    int           // steps that have not ended
	arrived time.Time
	head    Result // what the frame says of itself
	steps   []step
	n       int          // steps in use
	cause   camera.Cause // why its last step was dropped

	trouble bool // no frame: err of the source, which has ended or goes on
	ended   bool
	err     error
}

// ran says whether a model has looked at the frame.
func (j *job) ran() bool {
	return slices.ContainsFunc(j.steps[:j.n], func(st step) bool { return !st.dropped })
}

// lost says why nobody reads what became of the frame.
func (j *job) lost() camera.Cause {
	if j.ran() {
		return camera.Unfinished
	}
	return j.cause
}

// step is one model's look at a frame.
type step struct {
	job     *job
	model   int
	dropped bool
	started time.Time // of filling
	filled  time.Time // from then on it waits for its run
	looked  look
	err     error
}

func newFlow(rt *Runtime, sources []camera.Source) (*flow, error) {
	f := &flow{
		rt: rt, sources: sources, epoch: time.Now(), slo: rt.deadline(),
		room: make(chan struct{}, 1), ready: make(chan struct{}, 1),
		running: len(sources),
	}
	for range rt.lanes {
		f.wake = append(f.wake, make(chan struct{}, 1))
		f.timers = append(f.timers, time.NewTimer(idleCheck))
	}
	for i, m := range rt.models {
		c := &rt.choice.Models[i]
		config := batch.Config{Profile: c.Timings(), Lanes: len(rt.lanes)}
		if rt.cfg.Policy != nil {
			config.Policy = rt.cfg.Policy()
		}
		b, err := batch.New[*step](config)
		if err != nil {
			return nil, fmt.Errorf("model %s: %w", m.key, err)
		}
		f.batchers, f.fillTime = append(f.batchers, b), append(f.fillTime, frameFill(c))
		f.most = max(f.most, (lane.Inputs*len(rt.lanes)+1)*m.program.Largest())
	}
	for _, source := range sources {
		f.models = append(f.models, rt.modelsOf(source.Name()))
	}
	if err := f.schedule(); err != nil {
		return nil, err
	}
	f.ahead = f.newLead()
	groups, files := 0, -1
	for i, source := range sources {
		switch {
		case source.Live():
			f.groups = append(f.groups, groups)
			groups++
		case files < 0:
			files = groups
			groups++
			fallthrough
		default:
			f.groups = append(f.groups, files)
		}
		if err := f.admit(i); err != nil {
			return nil, err
		}
	}
	f.order = pipeline.NewOrder[*job](groups)
	f.asleep, f.requests = make([]time.Duration, len(rt.models)), make([]batch.Request, len(rt.models))
	return f, nil
}

// schedule has the models share each lane: those that cameras look at within the SLO, the others as time is left.
func (f *flow) schedule() error {
	shares := make([]batch.Share, len(f.rt.models))
	for i, m := range f.rt.models {
		shares[i] = batch.Share{Name: m.key, Profile: f.rt.choice.Models[i].Timings(), MaxHold: m.cfg.MaxHold, Priority: m.cfg.Priority}
	}
	for i, source := range f.sources {
		for _, m := range f.models[i] {
			if source.Live() {
				shares[m].SLO = f.slo
			}
		}
	}
	for range f.rt.lanes {
		s, err := batch.NewScheduler(shares...)
		if _, asked := f.rt.limit(); err != nil && !asked && f.slo > 0 {
			// Nobody asked for this SLO: the newest frames win instead.
			f.rt.warn("", "", err.Error())
			f.slo = 0
			return f.schedule()
		}
		if err != nil {
			return as(ErrSLO, err)
		}
		f.schedulers = append(f.schedulers, s)
	}
	f.limitBatch(math.MaxInt)
	return nil
}

// limitBatch keeps batches at most so large, and those of each model within the time that it may hold a lane.
func (f *flow) limitBatch(most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, b := range f.batchers {
		b.Limit(min(f.schedulers[0].Limit(i), most))
	}
}

// deadline returns the limit on the age of live results, 0 where the newest frame wins: without an SLO, and where the one
// that nobody asked for cannot be kept.
func (rt *Runtime) deadline() time.Duration {
	if _, asked := rt.limit(); !asked && rt.choice.P99 > rt.choice.SLO {
		return 0
	}
	return rt.choice.SLO
}

// frameFill returns how long a frame of a model takes to be filled in.
func frameFill(m *ModelChoice) time.Duration {
	first := &m.Profiles[0]
	return first.Fill.P50 / time.Duration(first.Batch)
}

// admit makes room for a source with the batchers of its models.
func (f *flow) admit(i int) error {
	source := f.sources[i]
	var numbers []int
	for _, m := range f.models[i] {
		c := batch.Camera{Weight: f.rt.weightOf(source.Name()), Room: f.roomFor(source, m)}
		n, err := f.batchers[m].AddCamera(c)
		if err != nil {
			return as(ErrConfig, fmt.Errorf("source %s: %w", source.Name(), err))
		}
		numbers = append(numbers, n)
	}
	f.cameras = append(f.cameras, numbers)
	f.tracks = append(f.tracks, newTrack(source, f.slo))
	return nil
}

// roomFor returns how many frames of a source may wait for a model. A file's wait until lanes take them: enough that each
// finds a whole batch. A camera's wait as long as they can be in time, and without an SLO the newest wins.
func (f *flow) roomFor(source camera.Source, model int) int {
	most := f.rt.models[model].program.Largest()
	if !source.Live() {
		return most
	}
	return max(waitingFrames(f.slo, fpsOf(source), most), 1)
}

// waitingFrames returns how many frames of a camera can wait: those of the time that the SLO gives, and no more than one run
// takes.
func waitingFrames(slo time.Duration, fps float64, batch int) int {
	return int(min(math.Ceil(slo.Seconds()*fps), float64(batch)))
}

// fpsOf returns the rate of a camera, as far as it is known before it runs.
func fpsOf(source camera.Source) float64 {
	if m, ok := source.(camera.Monitored); ok {
		if fps := m.Stats().FPS; fps > 0 {
			return fps
		}
	}
	return defaultFPS
}

func (f *flow) now() time.Duration { return time.Since(f.epoch) }

// signal wakes who waits on a channel of one place, now or the next time.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (f *flow) wakeLanes() {
	for _, c := range f.wake {
		signal(c)
	}
}

// Frame takes a frame in. A file waits until there is room.
func (f *flow) Frame(ctx context.Context, source int, fr *camera.Frame) error {
	arrived := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for !f.sources[source].Live() && f.full(source) && !f.stopped {
		f.mu.Unlock()
		select {
		case <-f.room:
		case <-ctx.Done():
		}
		f.mu.Lock()
		if ctx.Err() != nil {
			break
		}
	}
	if f.stopped || ctx.Err() != nil {
		fr.Release()
		f.tracks[source].drop(camera.Unfinished)
		return context.Canceled
	}
	f.take(source, fr, arrived)
	f.wakeLanes()
	return nil
}

// full says whether a model has no room for the next frame of a file.
func (f *flow) full(source int) bool {
	for k, m := range f.models[source] {
		if f.batchers[m].Full(f.cameras[source][k]) {
			return true
		}
	}
	return false
}

// take makes a job of a frame and offers it to its models.
func (f *flow) take(source int, fr *camera.Frame, arrived time.Time) {
	j := f.job(source)
	j.frame, j.arrived, j.head = fr, arrived, header(fr)
	if j.head.Source == "" {
		j.head.Source = f.sources[source].Name()
	}
	j.n = len(f.models[source])
	j.held, j.open = j.n, j.n
	now := arrived.Sub(f.epoch)
	captured, deadline := now, batch.Never
	if f.sources[source].Live() {
		f.offered++
		if !fr.Captured.IsZero() {
			captured = min(fr.Captured.Sub(f.epoch), now)
		}
		if f.slo > 0 {
			deadline = captured + f.slo
		}
	}
	for k, m := range f.models[source] {
		st := &j.steps[k]
		*st = step{job: j, model: m, looked: st.looked}
	}
	for k, m := range f.models[source] {
		by := deadline
		if by != batch.Never {
			by -= f.fillTime[m] + f.ahead.now
		}
		f.asleep[m] = 0
		f.drop(f.batchers[m].Offer(batch.Frame[*step]{Handle: &j.steps[k], Camera: f.cameras[source][k], Captured: captured, Deadline: by}, now))
	}
	if j.n == 0 {
		f.settle(j)
	}
}

// job returns one that nobody uses, at the end of its source's order.
func (f *flow) job(source int) *job {
	var j *job
	if n := len(f.spare); n > 0 {
		j, f.spare = f.spare[n-1], f.spare[:n-1]
	} else {
		j = &job{steps: make([]step, len(f.rt.models))}
	}
	steps := j.steps
	*j = job{source: source, steps: steps}
	j.ticket = f.order.Begin(f.groups[source], j)
	return j
}

// drop ends the steps that a batcher has given up.
func (f *flow) drop(drops []batch.Drop[*step]) {
	for _, d := range drops {
		st := d.Handle
		st.dropped = true
		switch d.Cause {
		case batch.Late:
			st.job.cause = camera.Late
		case batch.Superseded:
			st.job.cause = camera.Superseded
		default:
			st.job.cause = camera.Unfinished
		}
		f.letGo(st.job)
		f.endStep(st)
	}
	if len(drops) > 0 {
		signal(f.room)
	}
}

// letGo says that a step does not need the pixels any more.
func (f *flow) letGo(j *job) {
	if j.held--; j.held > 0 {
		return
	}
	c := &f.rt.cfg
	if !c.Pictures && (c.Wanted == nil || !c.Wanted(f.sources[j.source].Name())) {
		j.release() // the pixels are in the tensors: the source may have its buffer back
	}
}

func (f *flow) endStep(st *step) {
	if st.job.open--; st.job.open == 0 {
		f.settle(st.job)
	}
}

// settle says that a job has come to its end.
func (f *flow) settle(j *job) {
	f.order.Done(j.ticket)
	signal(f.ready)
}

func (j *job) release() {
	j.frame.Release()
	j.frame = nil
}

// Fault passes on the trouble of one item, in its place among the frames.
func (f *flow) Fault(source int, err error) { f.tell(source, err, false) }

// Ended passes on the end of a source.
func (f *flow) Ended(source int, err error) { f.tell(source, err, true) }

// Stopped counts a source out that was told to stop.
func (f *flow) Stopped(int) {
	f.mu.Lock()
	f.leave()
	f.mu.Unlock()
	signal(f.ready)
	f.wakeLanes()
}

// leave counts a source out. After the last one nothing waits for company any more.
func (f *flow) leave() {
	if f.running--; f.running > 0 {
		return
	}
	clear(f.asleep)
	for _, b := range f.batchers {
		b.Drain()
	}
}

func (f *flow) tell(source int, err error, ended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ended {
		f.leave()
	}
	j := f.job(source)
	j.trouble, j.ended, j.err = true, ended, err
	f.settle(j)
	f.wakeLanes() // what waits for company need not any more
}

// Reclaim takes the oldest waiting frame of a live source back, for a newer one.
func (f *flow) Reclaim(source int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := false
	for k, m := range f.models[source] {
		drops := f.batchers[m].Supersede(f.cameras[source][k])
		found = found || len(drops) > 0
		f.drop(drops)
	}
	return found
}

// State tells what a live source does now.
func (f *flow) State(source int, to camera.State, err error) {
	e := Event{Kind: "source", Source: f.sources[source].Name(), State: to.String()}
	if err != nil {
		e.Text = err.Error()
		f.rt.log.Warn(fmt.Sprintf("source %s: %s: %v; trying again", e.Source, to, err))
	}
	f.rt.event(e)
}

// stop withdraws what waits: what runs is still yielded.
func (f *flow) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return
	}
	f.stopped = true
	for i := range f.sources {
		for k, m := range f.models[i] {
			f.drop(f.batchers[m].RemoveCamera(f.cameras[i][k]))
		}
	}
	signal(f.room)
	signal(f.ready)
	f.wakeLanes()
}

// next returns the next job that has ended, waiting for it; nil when all have.
func (f *flow) next() *job {
	for {
		f.mu.Lock()
		j, ok := f.order.Next()
		over := f.running == 0 && f.order.Open() == 0
		f.mu.Unlock()
		if ok {
			f.wakeLanes() // there is room for another
			return j
		}
		if over {
			return nil
		}
		<-f.ready
	}
}

// delivered learns from the age of a live result of a batch.
func (f *flow) delivered(age time.Duration, batch int) {
	f.mu.Lock()
	f.ahead.result(age > f.slo, batch)
	f.mu.Unlock()
}

// done gives a job back whose results were read.
func (f *flow) done(j *job) {
	j.release()
	f.mu.Lock()
	f.spare = append(f.spare, j)
	f.mu.Unlock()
}

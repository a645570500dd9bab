package bench

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/models/decode"
	"github.com/eyas-edge/eyas/models/prep"
	eyas "github.com/eyas-edge/eyas/runtime"
	"github.com/eyas-edge/eyas/runtime/batch"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// plainServer serves cameras with one plain session of ONNX Runtime at one batch size, as most programs do: it waits for
// that many frames, puts them into the input with the same pre-processing as Eyas, runs, and reads the boxes. Frames that
// cannot be in time any more are dropped, as for every policy: without that such a program is behind for ever once the load
// is too high.
type plainServer struct {
	size    int
	binding bound
	filler  *prep.Filler
	decoder *decode.Decoder
	options decode.Options
	record  *record

	epoch time.Time
	wake  chan struct{}

	mu      sync.Mutex // guards what follows
	batcher *batch.Batcher[*camera.Frame]
	sending int // cameras that have not ended
}

// plainProfile is how many runs the profile of a plain session is made of.
const plainProfile = 20

func (s *setup) serveStandard(ctx context.Context, q request, open func() []*paced, r *record) error {
	session, err := s.lib.OpenFile(s.models[q.Model].Path, s.options(false))
	if err != nil {
		return fromEngine(err)
	}
	p, err := s.newPlainServer(session, q.Model, r)
	if err == nil {
		r.served.Lanes, r.served.Threads, r.served.Ladder = 1, s.threads(), []int{p.size}
		err = p.serve(ctx, open, s.cfg.SLO)
		err = errors.Join(err, p.binding.Close())
	}
	return errors.Join(err, session.Close())
}

// newPlainServer makes everything ready, and learns how long runs take.
func (s *setup) newPlainServer(session *ort.Session, key string, r *record) (p *plainServer, err error) {
	m := s.models[key]
	p = &plainServer{size: slices.Max(s.ladder(key)), record: r, wake: make(chan struct{}, 1)}
	p.options = decode.Options{Conf: cmp.Or(m.Conf, eyas.DefaultConf), IoU: m.IoU, MaxDet: eyas.DefaultMaxDet}
	if p.decoder, err = decode.New(m.Head); err != nil {
		return nil, err
	}
	if p.filler, err = prep.NewFiller(m.Recipe, m.W, m.H); err != nil {
		return nil, err
	}
	p.binding.image = m.Input.Index
	if err = p.binding.inputs(m, session, p.size); err == nil {
		p.binding.Binding, err = session.Bind(p.binding.in, nil)
	}
	var runs []float64
	for i := 0; err == nil && i < warmRuns+plainProfile; i++ {
		start := time.Now()
		if err = p.binding.Run(); i >= warmRuns {
			runs = append(runs, milliseconds(time.Since(start)))
		}
	}
	if err == nil {
		d, ms := distribution(runs), float64(time.Millisecond)
		p.batcher, err = batch.New[*camera.Frame](batch.Config{
			Policy:  batch.Fixed(p.size),
			Profile: batch.Profile{{Batch: p.size, P50: time.Duration(d.P50 * ms), P95: time.Duration(d.P95 * ms), P99: time.Duration(d.P99 * ms)}},
		})
	}
	if err != nil {
		return nil, errors.Join(err, p.binding.Close())
	}
	return p, nil
}

// serve runs the cameras until each has sent its frames.
func (p *plainServer) serve(ctx context.Context, open func() []*paced, slo time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	cameras := open()
	p.epoch, p.sending = time.Now(), len(cameras)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for range cameras {
		if _, err := p.batcher.AddCamera(batch.Camera{Room: p.size}); err != nil {
			return err
		}
	}
	for i, c := range cameras {
		wg.Go(func() {
			_ = c.Run(ctx, &plainSink{p, i, slo}) // a street is always a good frame
			p.mu.Lock()
			p.sending--
			p.mu.Unlock()
			p.signal()
		})
	}
	err := p.run(ctx)
	p.record.served.Offered, p.record.began = offered(cameras), cameras[0].start
	return err
}

func (p *plainServer) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// drop gives frames up.
func (p *plainServer) drop(drops []batch.Drop[*camera.Frame]) {
	for _, d := range drops {
		d.Handle.Release()
		p.record.drop(d.Cause.String(), 1)
	}
}

// run takes batches until no more come. Too few frames for a last one are left.
func (p *plainServer) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var frames []batch.Frame[*camera.Frame]
	for {
		p.mu.Lock()
		d := p.batcher.Decide(0, time.Since(p.epoch))
		p.drop(d.Drops)
		frames = append(frames[:0], d.Frames...)
		over := p.sending == 0 && d.Action != batch.Run
		p.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case over:
			p.record.drop("unfinished", uint64(p.batcher.Waiting()))
			return nil
		case d.Action == batch.Run:
			if err := p.look(frames); err != nil {
				return err
			}
			continue
		}
		wait := time.Hour
		if d.Action == batch.Wait && d.Until != batch.Never {
			wait = d.Until - time.Since(p.epoch)
		}
		timer.Reset(wait)
		select {
		case <-p.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// look runs one batch and writes its results down.
func (p *plainServer) look(frames []batch.Frame[*camera.Frame]) error {
	start := time.Now()
	at := make([]prep.Transform, len(frames))
	for i, f := range frames {
		var err error
		if at[i], err = p.filler.Fill(p.binding.in[p.binding.image], i, f.Handle); err != nil {
			return err
		}
	}
	filled := time.Now()
	if err := p.binding.Run(); err != nil {
		return err
	}
	ran := time.Now()
	for i := range frames {
		if _, err := p.decoder.Decode(nil, p.binding.Outputs(), i, at[i], p.options); err != nil {
			return err
		}
	}
	read := time.Now()
	for _, f := range frames {
		t := eyas.Timing{
			Queue: max(start.Sub(f.Handle.Captured), 0), Pre: filled.Sub(start) / time.Duration(len(frames)),
			Infer: ran.Sub(filled), Post: read.Sub(ran), Batch: len(frames),
		}
		p.record.add(f.Handle.Captured, &t)
		f.Handle.Release()
	}
	p.mu.Lock()
	p.batcher.Finished(0, read.Sub(filled), time.Since(p.epoch))
	p.mu.Unlock()
	return nil
}

// plainSink takes the frames of one camera.
type plainSink struct {
	*plainServer
	camera int
	slo    time.Duration
}

func (s *plainSink) Frame(ctx context.Context, f *camera.Frame) error {
	s.mu.Lock()
	now := time.Since(s.epoch)
	captured := min(f.Captured.Sub(s.epoch), now)
	s.drop(s.batcher.Offer(batch.Frame[*camera.Frame]{Handle: f, Camera: s.camera, Captured: captured, Deadline: captured + s.slo}, now))
	s.mu.Unlock()
	s.signal()
	return ctx.Err()
}

func (s *plainSink) Fault(error)               {}
func (s *plainSink) Reclaim() bool             { return false }
func (s *plainSink) State(camera.State, error) {}

// Package lane is one executor: a session of ONNX Runtime with sets of bound tensors. A user has a pair of
// them, so that one is filled or read while the other runs. A lane runs one set at a time.
package lane

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/models"
	"github.com/eyas-edge/eyas/models/decode"
	"github.com/eyas-edge/eyas/models/prep"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// Sets is the number of tensor sets of a pair: one runs, one is filled or read.
const Sets = 2

// Lane runs one model. Its methods may be called from several goroutines.
type Lane struct {
	model   *models.Model
	session *ort.Session
	turn    *sync.Mutex // held during a run; shared by the lanes that take turns
	single  chan *Set   // the set for one picture at a time; bound when it is first used
	aborted atomic.Bool

	mu       sync.Mutex
	sets     []*Set // all
	idle     []*Pair
	inferred bool // bind outputs whose shape was inferred
}

// Open makes a lane of the session, binds a pair of sets at the model's default size, and runs a grey
// picture, so that the first frame finds everything in place. turn is shared by lanes that must not
// run at the same time. The lane owns the session from then on.
func Open(m *models.Model, session *ort.Session, turn *sync.Mutex) (*Lane, error) {
	l := &Lane{model: m, session: session, turn: turn, single: make(chan *Set, 1), inferred: true}
	if err := l.open(); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Lane) open() error {
	err := l.warmPair()
	if err != nil {
		// The library is the judge of output shapes: without what was inferred it may run.
		l.inferred = false
		if l.warmPair() != nil {
			return err // the first says more
		}
	}
	single, err := l.newSet()
	if err == nil {
		l.single <- single
	}
	return err
}

func (l *Lane) warmPair() error {
	p, err := l.Pair()
	if err != nil {
		return err
	}
	for i := range Sets {
		s := <-p.free
		if err := s.warm(l.model.H, l.model.W, i == 0); err != nil {
			return err
		}
		p.free <- s
	}
	l.Return(p)
	return nil
}

func (l *Lane) newSet() (*Set, error) {
	d, err := decode.New(l.model.Head)
	if err != nil {
		return nil, err
	}
	s := &Set{lane: l, decoder: d}
	l.mu.Lock()
	l.sets = append(l.sets, s)
	l.mu.Unlock()
	return s, nil
}

// Pair is the sets of one user: a stream of frames.
type Pair struct {
	free chan *Set
}

// Pair returns a pair that nobody else uses, to be given back with Return. The first one is warm;
// others are made as streams run side by side, and kept.
func (l *Lane) Pair() (*Pair, error) {
	l.mu.Lock()
	if n := len(l.idle); n > 0 {
		p := l.idle[n-1]
		l.idle = l.idle[:n-1]
		l.mu.Unlock()
		return p, nil
	}
	l.mu.Unlock()
	p := &Pair{free: make(chan *Set, Sets)}
	for range Sets {
		s, err := l.newSet()
		if err != nil {
			return nil, err
		}
		p.free <- s
	}
	return p, nil
}

// Return gives a pair back. Both its sets must have been put back.
func (l *Lane) Return(p *Pair) {
	l.mu.Lock()
	l.idle = append(l.idle, p)
	l.mu.Unlock()
}

// Take waits for a free set of the pair. The caller gives it back with Put.
func (p *Pair) Take(ctx context.Context) (*Set, error) { return take(ctx, p.free) }

// Put gives a set back to the pair.
func (p *Pair) Put(s *Set) { p.free <- s }

// TakeSingle waits for the set that serves single pictures, which no stream holds. The caller gives it
// back with PutSingle.
func (l *Lane) TakeSingle(ctx context.Context) (*Set, error) { return take(ctx, l.single) }

// PutSingle gives the set back.
func (l *Lane) PutSingle(s *Set) { l.single <- s }

func take(ctx context.Context, from chan *Set) (*Set, error) {
	select {
	case s := <-from:
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Probe says whether the model runs at another input size of h x w pixels.
func (l *Lane) Probe(h, w int) error {
	v, err := newVariant(l.model, l.session, h, w, l.inferred)
	if err != nil {
		return err
	}
	defer v.close()
	l.turn.Lock()
	defer l.turn.Unlock()
	return v.binding.Run()
}

// TensorBytes returns the bytes of all bound tensors.
func (l *Lane) TensorBytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var n int64
	for _, s := range l.sets {
		n += s.bytes.Load()
	}
	return n
}

// Abort makes the run that is under way return soon, and every later one fail.
func (l *Lane) Abort() {
	l.aborted.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.sets {
		s.abort()
	}
}

// Close frees the tensors and the session. All sets must have been given back.
func (l *Lane) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.sets {
		for _, v := range s.variants {
			v.close()
		}
		s.variants = nil
	}
	l.sets = nil
	l.session.Close()
}

// Set is one set of bound tensors with what fills and reads them. One goroutine uses it at a
// time.
type Set struct {
	lane     *Lane
	decoder  *decode.Decoder
	variants []*variant // by input size, the last used first
	now      *variant   // what Fill chose
	at       prep.Transform

	Pre, Infer, Post time.Duration // of the last Fill, Run and Decode

	bytes   atomic.Int64 // of the variants' tensors
	mu      sync.Mutex   // guards running
	running *variant
}

// Fill puts a frame into the input tensor. It returns once the frame's pixels are no longer
// needed. Its errors and those of Run name the model.
func (s *Set) Fill(f *frame.Frame) error {
	start := time.Now()
	h, w := s.lane.model.InputSize(f.Width, f.Height)
	if err := s.choose(h, w); err != nil {
		return err
	}
	var err error
	if s.at, err = s.now.fill(f); err != nil {
		err = fmt.Errorf("model %s: %w", s.lane.model.Name, err)
	}
	s.Pre = time.Since(start)
	return err
}

// Run runs the model on what Fill put in, waiting for the lane's turn.
func (s *Set) Run() error {
	s.lane.turn.Lock()
	defer s.lane.turn.Unlock()
	s.setRunning(s.now)
	defer s.setRunning(nil)
	if s.lane.aborted.Load() { // looked at after setRunning: Abort sees the one or the other
		return fmt.Errorf("model %s: %w", s.lane.model.Name, ort.ErrTerminated)
	}
	start := time.Now()
	err := s.now.binding.Run()
	s.Infer = time.Since(start)
	return err
}

// Decode appends what the run found in the frame.
func (s *Set) Decode(dst []decode.Detection, o decode.Options) ([]decode.Detection, decode.Stats, error) {
	start := time.Now()
	dst, err := s.decoder.Decode(dst, s.now.binding.Outputs(), 0, s.at, o)
	s.Post = time.Since(start)
	return dst, s.decoder.Stats(), err
}

func (s *Set) setRunning(v *variant) {
	s.mu.Lock()
	s.running = v
	s.mu.Unlock()
}

func (s *Set) abort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		s.running.binding.Terminate()
	}
}

// warm binds a set, touches its input and, for one set of a lane, runs: what a first run sets up belongs to
// the session that the sets share.
func (s *Set) warm(h, w int, run bool) error {
	if err := s.choose(h, w); err != nil {
		return err
	}
	grey, err := frame.New(frame.Gray, 1, 1, []frame.Plane{{Data: []byte{114}, Stride: 1}}, time.Time{}, nil)
	if err != nil {
		return err
	}
	if s.at, err = s.now.fill(grey); err != nil || !run {
		return err
	}
	if err := s.Run(); err != nil {
		return err
	}
	_, _, err = s.Decode(nil, decode.Options{Conf: 1, IoU: 1, MaxDet: 1})
	s.decoder.Reset() // what a grey picture scores is no evidence
	return err
}

// maxVariants bounds the tensors kept for a model with dynamic height and width: sources of more
// shapes than this make the least used one anew.
const maxVariants = 8

// choose makes the variant of an input size the current one.
func (s *Set) choose(h, w int) error {
	for i, v := range s.variants {
		if v.h == h && v.w == w {
			copy(s.variants[1:i+1], s.variants[:i])
			s.variants[0], s.now = v, v
			return nil
		}
	}
	v, err := newVariant(s.lane.model, s.lane.session, h, w, s.lane.inferred)
	if err != nil {
		return err
	}
	if len(s.variants) == maxVariants {
		s.bytes.Add(-s.variants[maxVariants-1].bytes())
		s.variants[maxVariants-1].close()
		s.variants = s.variants[:maxVariants-1]
	}
	s.bytes.Add(v.bytes())
	s.variants = append([]*variant{v}, s.variants...)
	s.now = v
	return nil
}

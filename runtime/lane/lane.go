// Package lane is one executor: a session of ONNX Runtime with two sets of bound tensors, so that
// one is filled or read while the other runs. A lane runs one set at a time.
package lane

import (
	"context"
	"sync"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/models"
	"github.com/eyas-edge/eyas/models/decode"
	"github.com/eyas-edge/eyas/models/prep"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// Sets is the number of tensor sets of a lane: one runs, one is filled or read.
const Sets = 2

// Lane runs one model. Its methods may be called from several goroutines.
type Lane struct {
	model   *models.Model
	session *ort.Session
	turn    *sync.Mutex // held during a run; shared by the lanes that take turns
	free    chan *Set
	sets    []*Set
}

// Open makes a lane of the session, binds its sets at the model's default size, and runs a grey picture, so
// that the first frame finds everything in place. turn is shared by lanes that must not
// run at the same time. The lane owns the session from then on.
func Open(m *models.Model, session *ort.Session, turn *sync.Mutex) (*Lane, error) {
	l := &Lane{model: m, session: session, turn: turn, free: make(chan *Set, Sets)}
	for i := range Sets {
		d, err := decode.New(m.Head)
		if err != nil {
			l.Close()
			return nil, err
		}
		s := &Set{lane: l, decoder: d}
		l.sets = append(l.sets, s)
		if err := s.warm(m.H, m.W, i == 0); err != nil {
			l.Close()
			return nil, err
		}
		l.free <- s
	}
	return l, nil
}

// Probe says whether the model runs at another input size of h x w pixels.
func (l *Lane) Probe(h, w int) error {
	v, err := newVariant(l.model, l.session, h, w)
	if err != nil {
		return err
	}
	defer v.close()
	l.turn.Lock()
	defer l.turn.Unlock()
	return v.binding.Run()
}

// Take waits for a free set. The caller gives it back with Put.
func (l *Lane) Take(ctx context.Context) (*Set, error) {
	select {
	case s := <-l.free:
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Put gives a set back.
func (l *Lane) Put(s *Set) { l.free <- s }

// TensorBytes returns the bytes of all bound tensors.
func (l *Lane) TensorBytes() int64 {
	var n int64
	for _, s := range l.sets {
		for _, v := range s.variants {
			n += v.bytes()
		}
	}
	return n
}

// Abort makes a run that is under way return soon.
func (l *Lane) Abort() {
	for _, s := range l.sets {
		s.abort()
	}
}

// Close frees the tensors and the session. All sets must have been given back.
func (l *Lane) Close() {
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
	mu               sync.Mutex    // guards running
	running          *variant
}

// Fill puts a frame into the input tensor. It returns once the frame's pixels are no longer
// needed.
func (s *Set) Fill(f *frame.Frame) error {
	start := time.Now()
	h, w := s.lane.model.InputSize(f.Width, f.Height)
	if err := s.choose(h, w); err != nil {
		return err
	}
	var err error
	s.at, err = s.now.fill(f)
	s.Pre = time.Since(start)
	return err
}

// Run runs the model on what Fill put in, waiting for the lane's turn.
func (s *Set) Run() error {
	s.lane.turn.Lock()
	defer s.lane.turn.Unlock()
	s.setRunning(s.now)
	defer s.setRunning(nil)
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
	v, err := newVariant(s.lane.model, s.lane.session, h, w)
	if err != nil {
		return err
	}
	if len(s.variants) == maxVariants {
		s.variants[maxVariants-1].close()
		s.variants = s.variants[:maxVariants-1]
	}
	s.variants = append([]*variant{v}, s.variants...)
	s.now = v
	return nil
}

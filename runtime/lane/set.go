package lane

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/models/decode"
	"github.com/eyas-edge/eyas/models/prep"
)

type transform = prep.Transform

// Set is an input buffer of the lane in the hands of one model. One goroutine uses it at a time, from Take
// to Put.
type Set struct {
	program  *Program
	index    int        // of the lane's input buffer
	variants []*variant // by input size, the last used first
	now      *variant   // of the pictures that are in
	at       []transform
	filled   int // pictures that are in
	ran      *bound

	Pre, Infer, Post time.Duration // of the last Fill, of the last run and of reading what it found
}

// Put gives the buffer back to the lane.
func (s *Set) Put() { s.program.lane.free <- s.index }

// Fill puts the next frame into the batch, the first one after Take. It returns once the frame's
// pixels are no longer needed. Frames of a batch have to have the same input size. Errors name the model.
func (s *Set) Fill(f *frame.Frame) error {
	start := time.Now()
	h, w := s.program.model.InputSize(f.Width, f.Height)
	err := s.next(f, h, w)
	s.Pre = time.Since(start)
	if err != nil {
		return fmt.Errorf("model %s: %w", s.program.model.Name, err)
	}
	return nil
}

func (s *Set) next(f *frame.Frame, h, w int) error {
	switch {
	case s.filled == s.program.Largest():
		return fmt.Errorf("a batch holds %d pictures", s.filled)
	case s.filled == 0:
		if err := s.choose(h, w); err != nil {
			return err
		}
	case s.now.h != h || s.now.w != w:
		return fmt.Errorf("a picture for an input of %dx%d cannot join a batch of %dx%d (height x width)", h, w, s.now.h, s.now.w)
	}
	at, err := s.now.filler.Fill(s.now.image, s.filled, f)
	if err != nil {
		return err
	}
	s.at[s.filled] = at
	s.filled++
	return nil
}

// fill makes a batch of n times the same picture, at the model's own input size.
func (s *Set) fill(f *frame.Frame, n int) error {
	s.filled = 0
	for range n {
		if err := s.next(f, s.program.model.H, s.program.model.W); err != nil {
			return fmt.Errorf("model %s: %w", s.program.model.Name, err)
		}
	}
	return nil
}

// Blank fills the batch with n grey pictures of the model's own input size. n is one of the ladder.
func (s *Set) Blank(n int) error {
	if !slices.Contains(s.program.ladder, n) {
		return fmt.Errorf("it is ready for batches of %v", s.program.ladder)
	}
	return s.fill(greyPicture, n)
}

// Input returns the bytes of the pictures that are in, which a caller may change.
func (s *Set) Input() []byte {
	return s.now.image.Data[:s.now.one*s.filled]
}

// Run runs the model on what is in, waiting for the lane's turn.
func (s *Set) Run(ctx context.Context) error {
	s.program.lane.turn.Lock()
	defer s.program.lane.turn.Unlock()
	_, err := s.run(ctx)
	return err
}

// Outputs returns the outputs of the last Run, nil before one. The next run of any model on the lane overwrites them.
func (s *Set) Outputs() []*tensor.Tensor {
	if s.ran == nil {
		return nil
	}
	return s.ran.binding.Outputs()
}

// Detect runs the model on what is in, waiting for the lane's turn, and appends to each of dst what was found
// in the picture of that number.
func (s *Set) Detect(ctx context.Context, dst [][]decode.Detection, o decode.Options) (decode.Stats, error) {
	s.program.lane.turn.Lock()
	defer s.program.lane.turn.Unlock()
	return s.detect(ctx, dst, o)
}

// detect is Detect for the owner of the turn.
func (s *Set) detect(ctx context.Context, dst [][]decode.Detection, o decode.Options) (decode.Stats, error) {
	b, err := s.run(ctx)
	if err != nil {
		return decode.Stats{}, err
	}
	start := time.Now()
	d := s.program.decoder
	for i := range dst {
		if dst[i], err = d.Decode(dst[i], b.binding.Outputs(), i, s.at[i], o); err != nil {
			err = fmt.Errorf("model %s: %w", s.program.model.Name, err)
			break
		}
	}
	s.Post = time.Since(start)
	return d.Stats(), err
}

// run is Run for the owner of the turn. A batch that the ladder does not have is filled up with its first
// picture.
func (s *Set) run(ctx context.Context) (*bound, error) {
	n := s.program.fit(s.filled)
	b, err := s.now.at(n)
	if err != nil {
		return nil, err
	}
	one := s.now.one
	for i := s.filled; i < n; i++ {
		copy(s.now.image.Data[i*one:(i+1)*one], s.now.image.Data[:one])
	}
	start := time.Now()
	err = s.program.exec(ctx, b)
	s.Infer = time.Since(start)
	s.ran = b
	return b, err
}

// verify runs what is in and says whether the run kept to its plan. If not, a run that was recorded within
// the arena has made a better one.
func (s *Set) verify(ctx context.Context) (held bool, err error) {
	p := s.program
	p.lane.turn.Lock()
	defer p.lane.turn.Unlock()
	before := p.recorded.Load()
	b, err := s.run(ctx)
	if err != nil {
		return false, err
	}
	// What a first picture sets up in the decoder is set up now; what it scores is no evidence.
	_, err = p.decoder.Decode(nil, b.binding.Outputs(), 0, s.at[0], decode.Options{Conf: 1, IoU: 1, MaxDet: 1})
	p.decoder.Reset()
	return p.recorded.Load() == before, err
}

// record plans for what runs allocate, on a grey picture, where there is nothing to find, and on noise. The
// memory comes from the heap.
func (s *Set) record(ctx context.Context, b *bound) error {
	for _, picture := range []*frame.Frame{greyPicture, noisePicture} {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.fill(picture, b.shape.Batch); err != nil {
			return err
		}
		r, err := s.program.lane.record(b.binding, s.program.model.Name)
		s.program.recorded.Add(1)
		if err == nil {
			err = s.program.plans.add(ctx, b.shape, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// choose makes the variant of an input size the current one.
func (s *Set) choose(h, w int) error {
	for i, v := range s.variants {
		if v.h == h && v.w == w {
			copy(s.variants[1:i+1], s.variants[:i])
			s.variants[0], s.now = v, v
			return nil
		}
	}
	v, err := newVariant(s, h, w)
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

// maxVariants bounds the bindings kept for a model with dynamic height and width: sources of more
// shapes than this make the least used one anew.
const maxVariants = 8

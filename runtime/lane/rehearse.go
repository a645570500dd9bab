package lane

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/models/decode"
)

// Times are what one batch took.
type Times struct {
	Fill time.Duration // of all its pictures into the input
	Run  time.Duration // of the model, without the wait for the lane's turn
	Read time.Duration // of what was found in all its pictures
}

// Rehearse takes a batch of n times the same picture the way of real ones: it is filled in, run and read. n is one of the
// ladder. What is found counts for nothing. Two goroutines that rehearse on a lane fill and run at the same time.
func (p *Program) Rehearse(ctx context.Context, n int, f *frame.Frame, o decode.Options) (Times, error) {
	if !slices.Contains(p.ladder, n) {
		return Times{}, fmt.Errorf("model %s is ready for batches of %v, not of %d", p.model.Name, p.ladder, n)
	}
	s, err := p.Take(ctx)
	if err != nil {
		return Times{}, err
	}
	defer s.Put()
	var t Times
	for range n {
		if err := s.Fill(f); err != nil {
			return Times{}, err
		}
		t.Fill += s.Pre
	}
	p.lane.turn.Lock()
	defer p.lane.turn.Unlock()
	// Nobody else's counts are in the decoder yet: those of real pictures come after the last rehearsal.
	defer p.decoder.Reset()
	_, err = s.detect(ctx, make([][]decode.Detection, n), o)
	t.Run, t.Read = s.Infer, s.Post
	return t, err
}

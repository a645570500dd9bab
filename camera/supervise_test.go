package camera

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
)

// scripted is a connector with one step for each connection; the last one repeats.
type scripted struct {
	steps []func(ctx context.Context, out *Output) error
	at    []time.Time // when it was called
}

func (s *scripted) Connect(ctx context.Context, out *Output) error {
	step := s.steps[min(len(s.at), len(s.steps)-1)]
	s.at = append(s.at, time.Now())
	return step(ctx, out)
}

// give delivers n frames of w x 2 pixels, 40 ms apart, and ends with err.
func give(n, w int, err error) func(context.Context, *Output) error {
	return func(ctx context.Context, out *Output) error {
		if err := out.Format(frame.Gray, frame.Colour{}, w, 2, 25); err != nil {
			return err
		}
		for range n {
			time.Sleep(40 * time.Millisecond)
			f := out.Begin()
			if f == nil {
				continue
			}
			if err := out.Publish(ctx, f, time.Now(), frame.ByDriver); err != nil {
				return err
			}
		}
		return err
	}
}

func fails(err error) func(context.Context, *Output) error {
	return func(context.Context, *Output) error { return err }
}

// hangs delivers n frames and then nothing, until it is told to end.
func hangs(n int) func(context.Context, *Output) error {
	return func(ctx context.Context, out *Output) error {
		if err := give(n, 4, nil)(ctx, out); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

func mute(ctx context.Context, _ *Output) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestSupervise(t *testing.T) {
	refused := errors.New("connection refused")
	tests := []struct {
		name   string
		steps  []func(context.Context, *Output) error
		want   error // of Run; nil for a good end
		states string
		drops  Drops
	}{
		{"ends by itself", steps(give(3, 4, io.EOF)), nil, "[open:<nil>]", Drops{}},
		{"cannot go on", steps(fails(Permanent(refused))), refused, "[]", Drops{}},
		{"comes back", steps(give(2, 4, refused), fails(refused), fails(refused), give(1, 4, io.EOF)), nil,
			"[open:<nil> lost:connection refused open:<nil>]", Drops{}},
		{"another trouble", steps(fails(refused), fails(io.ErrUnexpectedEOF), give(1, 4, io.EOF)), nil,
			"[lost:connection refused lost:unexpected EOF open:<nil>]", Drops{}},
		{"says too much", steps(fails(errors.New(strings.Repeat("x", 490)+" rtsp://me:geheim@h/"+strings.Repeat("y", 99))), give(1, 4, io.EOF)), nil,
			"[lost:" + strings.Repeat("x", 490) + " rtsp://h/... open:<nil>]", Drops{}},
		{"never answers", steps(mute, give(1, 4, io.EOF)), nil,
			"[lost:no answer within 10s: check the address and that the camera is on open:<nil>]", Drops{}},
		{"no first picture", steps(hangs(0), give(1, 4, io.EOF)), nil,
			"[lost:connected, but no picture came within 10s open:<nil>]", Drops{}},
		{"goes silent", steps(hangs(2), give(1, 4, io.EOF)), nil,
			"[open:<nil> lost:no picture for 5s open:<nil>]", Drops{Stalled: 1}},
		{"the connection just ends", steps(give(1, 4, nil), give(1, 4, io.EOF)), nil,
			"[open:<nil> lost:the connection ended open:<nil>]", Drops{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := Supervise("cam", &scripted{steps: tt.steps}).(*supervised)
				got := &stated{}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if err := s.Run(ctx, got); !errors.Is(err, tt.want) {
					t.Errorf("ended with %v, want %v", err, tt.want)
				}
				if fmt.Sprint(got.states) != tt.states {
					t.Errorf("states %v, want %v", got.states, tt.states)
				}
				if d := s.Stats().Dropped; d != tt.drops {
					t.Errorf("dropped %v, want %v", d, tt.drops)
				}
			})
		})
	}
}

func steps(s ...func(context.Context, *Output) error) []func(context.Context, *Output) error {
	return s
}

// stated notes states with their reasons, and the sequence numbers of frames.
type stated struct {
	states []string
	seqs   []uint64
	sizes  []int
}

func (s *stated) Frame(_ context.Context, f *Frame) error {
	s.seqs, s.sizes = append(s.seqs, f.Seq), append(s.sizes, f.Width)
	f.Release()
	return nil
}
func (*stated) Fault(error)   {}
func (*stated) Reclaim() bool { return false }
func (s *stated) State(to State, err error) {
	s.states = append(s.states, fmt.Sprintf("%v:%v", to, err))
}

// The waits grow up to a limit, whose half and one and a half times are the bounds of the jitter, and begin anew after
// frames have come.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := fails(io.ErrUnexpectedEOF)
		c := &scripted{steps: steps(failed, failed, failed, failed, failed, failed, failed, give(1, 4, nil), failed, give(1, 4, io.EOF))}
		if err := Supervise("cam", c, Times(Timing{MaxBackoff: 4 * time.Second})).Run(t.Context(), &stated{}); err != nil {
			t.Fatal(err)
		}
		for i, limit := range []time.Duration{500, 1000, 2000, 4000, 4000, 4000, 4000, 500, 1000} {
			limit *= time.Millisecond
			wait := c.at[i+1].Sub(c.at[i])
			if i == 7 {
				wait -= 40 * time.Millisecond // the frame
			}
			if wait < limit/2 || wait > limit/2+limit {
				t.Errorf("wait %d was %v, want %v to %v", i, wait, limit/2, limit/2+limit)
			}
		}
	})
}

// Numbers of frames go on over connections and sizes, and a time-out of a slow camera is longer.
func TestNumbersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, out *Output) error {
			if err := out.Format(frame.Gray, frame.Colour{}, 6, 2, 0.25); err != nil {
				return err
			}
			for range 2 {
				time.Sleep(7 * time.Second)
				if err := out.Publish(ctx, out.Begin(), time.Now(), frame.ByDriver); err != nil {
					return err
				}
			}
			return io.EOF
		}
		got := &stated{}
		s := Supervise("cam", &scripted{steps: steps(give(2, 4, io.ErrUnexpectedEOF), slow)}, Every(1)).(*supervised)
		if err := s.Run(t.Context(), got); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.seqs, []uint64{0, 1, 2, 3}) || !slices.Equal(got.sizes, []int{4, 4, 6, 6}) {
			t.Errorf("frames %v of width %v", got.seqs, got.sizes)
		}
		if st := s.Stats(); st.Captured != 4 || st.Connects != 2 || st.Width != 6 || st.State != StateOpen {
			t.Errorf("%+v", st)
		}
	})
}

// A consumer that holds frames costs frames, not time, and what waits gives way to what is newer.
func TestSlotsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keep := &keeper{}
		s := Supervise("cam", &scripted{steps: steps(give(10, 4, io.EOF))}).(*supervised)
		if err := s.Run(t.Context(), keep); err != nil {
			t.Fatal(err)
		}
		if keep.reclaimed != 8 {
			t.Errorf("%d frames gave way, want 8", keep.reclaimed)
		}
		if st := s.Stats(); st.Captured != 10 || st.Dropped[NoSlot] != 0 {
			t.Errorf("%+v", st)
		}
		keep.stubborn = true
		held := keep.frames
		if err := s.Run(t.Context(), keep); err != nil {
			t.Fatal(err)
		}
		for _, f := range append(held, keep.frames...) {
			f.Release()
		}
		if st := s.Stats(); st.Dropped[NoSlot] != 8 {
			t.Errorf("%+v", st)
		}
	})
}

// keeper holds all frames, and gives the oldest back when asked unless it is stubborn.
type keeper struct {
	stated
	frames    []*Frame
	reclaimed int
	stubborn  bool
}

func (k *keeper) Frame(_ context.Context, f *Frame) error {
	k.frames = append(k.frames, f)
	return nil
}

func (k *keeper) Reclaim() bool {
	if k.stubborn || len(k.frames) == 0 {
		return false
	}
	k.frames[0].Release()
	k.frames = k.frames[1:]
	k.reclaimed++
	return true
}

func TestReserveRefuses(t *testing.T) {
	full := errors.New("the budget is spent")
	s := Supervise("cam", &scripted{steps: steps(give(1, 640, io.EOF))}).(*supervised)
	var asked int64
	s.Reserve(func(bytes int64) error {
		asked = bytes
		return full
	})
	if err := s.Run(t.Context(), &stated{}); !errors.Is(err, full) {
		t.Errorf("ended with %v", err)
	}
	if asked < 2*640*2 {
		t.Errorf("asked for %d bytes", asked)
	}
}

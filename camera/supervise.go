package camera

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
)

// Connector is one way to a live camera.
type Connector interface {
	// Connect opens the camera and puts its frames into out until it fails or ctx ends. It is called again after a
	// failure. io.EOF says that the source has come to its end, and Permanent that trying again is of no use. It
	// returns within a second of ctx's end and leaves no goroutine, child process or descriptor.
	Connect(ctx context.Context, out *Output) error
}

// Sized is a connector that knows what its camera will give before it is there, so that memory can be planned. Zero
// values stand for what it does not know.
type Sized interface {
	Expect() (f frame.Format, w, h int, fps float64)
}

// Permanent marks an error of Connect after which trying again is of no use: it ends the source.
func Permanent(err error) error { return permanent{err} }

type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Supervise makes a live source of a connector, which is called until ctx ends: with time-outs for connecting, the first
// frame and silence, and with waits between the attempts that grow. The trouble of a camera is told to the sink as its state.
func Supervise(name string, c Connector, opts ...Option) Source {
	return supervise(newBase(name, collect(opts)), c)
}

func supervise(b base, c Connector) Source {
	b.live = true
	s := &supervised{base: b, connector: c, timing: b.opts.timing.orDefaults()}
	if sized, ok := c.(Sized); ok {
		st := &s.monitor.s
		st.Format, st.Width, st.Height, st.FPS = sized.Expect()
	}
	return s
}

// supervised is a source that is connected again and again.
type supervised struct {
	base
	connector Connector
	timing    Timing
}

func (s *supervised) Run(ctx context.Context, sink Sink) error {
	out := newOutput(&s.base, sink)
	defer out.close()
	backoff := s.timing.MinBackoff
	for {
		opened, err := s.connect(ctx, out)
		var last permanent
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errEnough), errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &last):
			return fmt.Errorf("source %s: %w", s.name, brief(last.error))
		case err == nil:
			err = errors.New("the connection ended")
		}
		if opened {
			backoff = s.timing.MinBackoff
		}
		out.turn(StateLost, brief(err))
		if err := pause(ctx, backoff/2+rand.N(backoff)); err != nil {
			return err
		}
		backoff = min(2*backoff, s.timing.MaxBackoff)
	}
}

// connect makes one connection, and ends it when nothing comes. opened says that frames came.
func (s *supervised) connect(ctx context.Context, out *Output) (opened bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var now atomic.Int32 // which silence would end it
	limits := [...]time.Duration{connecting: s.timing.Connect, first: s.timing.FirstFrame, between: s.timing.Stall}
	timer := time.AfterFunc(limits[connecting], func() {
		at := now.Load()
		cancel(silence{at, limits[at]})
	})
	defer timer.Stop()
	out.heard = func(whole bool) {
		switch {
		case whole && !opened:
			opened = true
			limits[between] = max(limits[between], 5*interval(s.Stats().FPS))
			now.Store(between)
			s.monitor.set(func(st *Stats) { st.Connects++ })
			out.turn(StateOpen, nil)
		case !whole && now.Load() != connecting:
			return // a change in mid-stream is no picture
		case !whole:
			now.Store(first)
		}
		timer.Reset(limits[now.Load()])
	}
	err = s.connector.Connect(ctx, out)
	out.heard = nil
	var silent silence
	if errors.As(context.Cause(ctx), &silent) {
		err = silent
		if silent.at == between {
			s.monitor.dropped(Stalled)
		}
	}
	return opened, err
}

// The silences that end a connection.
const (
	connecting int32 = iota // until the camera said what it gives
	first                   // from then to the first frame
	between                 // between two frames
)

// silence is the error of a connection on which nothing came for too long.
type silence struct {
	at    int32
	limit time.Duration
}

func (s silence) Error() string {
	what := [...]string{
		connecting: "no answer within %v: check the address and that the camera is on",
		first:      "connected, but no picture came within %v",
		between:    "no picture for %v",
	}
	return fmt.Sprintf(what[s.at], s.limit)
}

// shownError is how many bytes of an error are shown: what it quotes of a camera's answer may be of any length, and comes
// with each attempt.
const shownError = 500

// brief cuts the text of an error that is too long.
func brief(err error) error {
	text := Redact(err.Error()) // before the cut, which may hide what tells a password
	if len(text) <= shownError {
		return err
	}
	return cutError{err, strings.ToValidUTF8(text[:shownError], "") + "..."}
}

type cutError struct {
	error
	text string
}

func (c cutError) Error() string { return c.text }
func (c cutError) Unwrap() error { return c.error }

// interval is the time between two frames, 0 if the rate is not known.
func interval(fps float64) time.Duration {
	if !(fps > 0) {
		return 0
	}
	return time.Duration(min(float64(time.Second)/fps, float64(time.Hour)))
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

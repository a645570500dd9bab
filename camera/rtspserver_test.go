package camera

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/internal/rtsptest"
)

// startRTSP starts an RTSP server, which ends with the test.
func startRTSP(t *testing.T, args ...string) *rtsptest.Server {
	t.Helper()
	needGst(t)
	return rtsptest.Start(t, args...)
}

// event is something that a live source told its sink.
type event struct {
	frame *Frame // without its pixels; nil: a state
	state State
	err   error
}

// watcher is a sink that a test follows.
type watcher struct {
	t      *testing.T
	events chan event
	ended  chan error
	stop   context.CancelFunc
	last   *Frame
}

// watch runs a source until the end of the test.
func watch(t *testing.T, s Source) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watcher{t: t, events: make(chan event, 1000), ended: make(chan error, 1), stop: cancel}
	go func() { w.ended <- s.Run(ctx, w) }()
	t.Cleanup(func() { _, _ = w.end() })
	return w
}

// end stops the source and returns how long that took and what Run returned.
func (w *watcher) end() (time.Duration, error) {
	start := time.Now()
	w.stop()
	for {
		select {
		case err := <-w.ended:
			w.ended <- err
			return time.Since(start), err
		case <-w.events:
		}
	}
}

func (w *watcher) Frame(ctx context.Context, f *Frame) error {
	seen := &Frame{Format: f.Format, Colour: f.Colour, Width: f.Width, Height: f.Height, Source: f.Source, Seq: f.Seq, Captured: f.Captured, CapturedBy: f.CapturedBy}
	f.Release()
	select {
	case w.events <- event{frame: seen}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *watcher) Fault(err error) { w.t.Errorf("fault: %v", err) }
func (*watcher) Reclaim() bool     { return false }
func (w *watcher) State(s State, err error) {
	w.events <- event{state: s, err: err}
}

// limit ends what hangs.
const limit = 40 * time.Second

// next waits for an event for which ok says true. Frames have to come in order, of number and of time.
func (w *watcher) next(what string, ok func(event) bool) event {
	w.t.Helper()
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		select {
		case e := <-w.events:
			if f := e.frame; f != nil {
				if w.last != nil && (f.Seq <= w.last.Seq || f.Captured.Before(w.last.Captured)) {
					w.t.Errorf("frame %d of %v comes after frame %d of %v", f.Seq, f.Captured, w.last.Seq, w.last.Captured)
				}
				w.last = f
			} else {
				w.t.Logf("%s: %v", e.state, e.err)
				if e.err != nil && (strings.Contains(e.err.Error(), "geheim") || strings.ContainsAny(e.err.Error(), "\n\x1b")) {
					w.t.Errorf("this is not one line without a password: %q", e.err)
				}
			}
			if ok(e) {
				return e
			}
		case err := <-w.ended:
			w.ended <- err
			w.t.Fatalf("the source ended while the test waits for %s: %v", what, err)
		case <-late.C:
			w.t.Fatalf("no %s within %v", what, limit)
		}
	}
}

// frames waits for n frames of w x h pixels in a row.
func (w *watcher) frames(n, width, height int) *Frame {
	w.t.Helper()
	return w.next(fmt.Sprintf("frames of %dx%d", width, height), func(e event) bool {
		if e.frame == nil || e.frame.Width != width || e.frame.Height != height {
			return false
		}
		n--
		return n <= 0
	}).frame
}

// lost waits until the source says that it is lost for a reason that has a text in it.
func (w *watcher) lost(text string) {
	w.t.Helper()
	w.next("loss: "+text, func(e event) bool {
		return e.frame == nil && e.state == StateLost && strings.Contains(e.err.Error(), text)
	})
}

// quick are time-outs for tests.
func quick() Option {
	return Times(Timing{Connect: 8 * time.Second, FirstFrame: 8 * time.Second, Stall: 2 * time.Second, MinBackoff: 20 * time.Millisecond, MaxBackoff: 200 * time.Millisecond})
}

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/eyas-edge/eyas/camera"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a source that does what a function says.
type fake struct {
	name string
	live bool
	run  func(ctx context.Context, sink camera.Sink) error
}

func (f fake) Name() string                                    { return f.name }
func (f fake) Live() bool                                      { return f.live }
func (f fake) Run(ctx context.Context, sink camera.Sink) error { return f.run(ctx, sink) }

// noted is a receiver that writes everything down.
type noted struct {
	mu   sync.Mutex
	said []string
}

func (n *noted) note(source int, format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.said = append(n.said, fmt.Sprintf("%d ", source)+fmt.Sprintf(format, args...))
}

func (n *noted) Frame(_ context.Context, source int, f *camera.Frame) error {
	f.Release()
	n.note(source, "frame")
	return nil
}
func (n *noted) Fault(source int, err error) { n.note(source, "fault %v", err) }
func (n *noted) Reclaim(source int) bool     { n.note(source, "reclaim"); return true }
func (n *noted) State(source int, to camera.State, err error) {
	n.note(source, "%v %v", to, err)
}
func (n *noted) Ended(source int, err error) { n.note(source, "ended %v", err) }
func (n *noted) Stopped(source int)          { n.note(source, "stopped") }

func TestSourcesTellTheReceiver(t *testing.T) {
	broken := errors.New("broken")
	says := func(ctx context.Context, sink camera.Sink) error {
		sink.State(camera.StateOpen, nil)
		if err := sink.Frame(ctx, nil); err != nil {
			return err
		}
		sink.Fault(broken)
		sink.Reclaim()
		return broken
	}
	got := &noted{}
	s := Start(t.Context(), []camera.Source{fake{name: "a", run: says}, fake{name: "b", run: says}}, got)
	s.Wait()
	s.Close()
	want := []string{"0 open <nil>", "0 frame", "0 fault broken", "0 reclaim", "0 ended broken",
		"1 open <nil>", "1 frame", "1 fault broken", "1 reclaim", "1 ended broken"} // files one after the other
	if !slices.Equal(got.said, want) {
		t.Errorf("told %q", got.said)
	}
}

// Live sources run side by side, beside the files, and each ends when it is told to.
func TestSourcesRunSideBySide(t *testing.T) {
	var all sync.WaitGroup
	all.Add(3)
	meet := func(ctx context.Context, _ camera.Sink) error {
		all.Done()
		all.Wait() // hangs unless all three run
		<-ctx.Done()
		return ctx.Err()
	}
	got := &noted{}
	s := Start(t.Context(), []camera.Source{
		fake{name: "a", live: true, run: meet}, fake{name: "b", run: meet}, fake{name: "c", live: true, run: meet},
	}, got)
	all.Wait()
	s.Close()
	s.Close()
	slices.Sort(got.said)
	if want := []string{"0 stopped", "1 stopped", "2 stopped"}; !slices.Equal(got.said, want) {
		t.Errorf("told %q", got.said)
	}
}

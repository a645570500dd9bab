package pipeline

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/camera/frame"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a source that runs a function.
type fake struct {
	name string
	live bool
	run  func(ctx context.Context, sink camera.Sink) error
}

func (f fake) Name() string                                    { return f.name }
func (f fake) Live() bool                                      { return f.live }
func (f fake) Run(ctx context.Context, sink camera.Sink) error { return f.run(ctx, sink) }

func grey(t *testing.T, seq int, released *int) *camera.Frame {
	f, err := camera.NewFrame(frame.Gray, 1, 1, []frame.Plane{{Data: []byte{0}, Stride: 1}}, time.Time{}, func() {
		if released != nil {
			*released++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Seq = uint64(seq)
	return f
}

func counting(t *testing.T, n int) func(context.Context, camera.Sink) error {
	return func(ctx context.Context, sink camera.Sink) error {
		for i := range n {
			if err := sink.Frame(ctx, grey(t, i, nil)); err != nil {
				return err
			}
		}
		return nil
	}
}

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// What goes wrong with a file, and the end of a source, come where they happened.
func TestFaultsKeepTheirPlace(t *testing.T) {
	ctx := bounded(t)
	mixed := func(ctx context.Context, sink camera.Sink) error {
		for i := range 40 {
			if i%2 == 0 {
				sink.Fault(fmt.Errorf("bad %d", i))
			} else if err := sink.Frame(ctx, grey(t, i, nil)); err != nil {
				return err
			}
		}
		return nil
	}
	in := Start(ctx, []camera.Source{fake{name: "a", run: mixed}, fake{name: "b", run: counting(t, 1)}}, nil)
	defer in.Close()
	for i := range 43 {
		item, ok := in.Next(ctx)
		fault := i < 40 && i%2 == 0
		if !ok || (item.Err != nil) != fault || item.Ended != (i == 40 || i == 42) {
			t.Fatalf("item %d is %+v, %v", i, item, ok)
		}
		item.Frame.Release()
	}
}

// Files come whole and in order, one source after the other.
func TestFilesKeepTheirOrder(t *testing.T) {
	ctx := bounded(t)
	in := Start(ctx, []camera.Source{
		fake{name: "a", run: counting(t, 50)}, fake{name: "b", run: counting(t, 30)},
	}, nil)
	defer in.Close()
	var got []string
	for {
		item, ok := in.Next(ctx)
		if !ok {
			break
		}
		if item.Frame != nil {
			got = append(got, fmt.Sprint(item.Source, item.Frame.Seq))
			item.Frame.Release()
		}
	}
	if len(got) != 80 {
		t.Fatalf("%d frames, want 80", len(got))
	}
	for i, g := range got {
		want := fmt.Sprint(0, i)
		if i >= 50 {
			want = fmt.Sprint(1, i-50)
		}
		if g != want {
			t.Fatalf("frame %d is %s, want %s", i, g, want)
		}
	}
}

// A live source never waits: what nobody takes is replaced by the newest, released and counted.
func TestLiveKeepsTheNewest(t *testing.T) {
	ctx := bounded(t)
	released := 0
	sent := make(chan struct{})
	in := Start(ctx, []camera.Source{fake{name: "cam", live: true, run: func(ctx context.Context, sink camera.Sink) error {
		for i := range 10 {
			if err := sink.Frame(ctx, grey(t, i, &released)); err != nil {
				return err
			}
		}
		close(sent)
		<-ctx.Done()
		return ctx.Err()
	}}}, nil)
	<-sent
	item, ok := in.Next(ctx)
	if !ok || item.Frame.Seq != 9 {
		t.Fatalf("got %+v, want the newest frame, 9", item)
	}
	if in.Superseded(0) != 9 || released != 9 {
		t.Errorf("%d superseded and %d released, want 9 and 9", in.Superseded(0), released)
	}
	item.Frame.Release()
	in.Close()
	in.Close()
}

// One source's fault and end do not touch the others.
func TestFaultsAreHandedOut(t *testing.T) {
	ctx := bounded(t)
	broken := errors.New("broken")
	in := Start(ctx, []camera.Source{
		fake{name: "bad", run: func(_ context.Context, sink camera.Sink) error {
			sink.Fault(errors.New("one picture"))
			return broken
		}},
		fake{name: "good", run: counting(t, 3)},
	}, nil)
	defer in.Close()
	var frames, faults, ends int
	for {
		item, ok := in.Next(ctx)
		if !ok {
			break
		}
		switch {
		case item.Frame != nil:
			frames++
			item.Frame.Release()
		case item.Ended:
			ends++
			if item.Source == 0 && !errors.Is(item.Err, broken) || item.Source == 1 && item.Err != nil {
				t.Errorf("source %d ended with %v", item.Source, item.Err)
			}
		default:
			faults++
		}
	}
	if frames != 3 || faults != 1 || ends != 2 {
		t.Errorf("%d frames, %d faults, %d ends, want 3, 1, 2", frames, faults, ends)
	}
}

// The last frame of a source comes before the source's end.
func TestEndComesLast(t *testing.T) {
	ctx := bounded(t)
	for range 200 {
		in := Start(ctx, []camera.Source{fake{name: "cam", live: true, run: counting(t, 1)}}, nil)
		var got []string
		for {
			item, ok := in.Next(ctx)
			if !ok {
				break
			}
			if item.Frame != nil {
				got = append(got, "frame")
				item.Frame.Release()
			} else {
				got = append(got, "end")
			}
		}
		in.Close()
		if fmt.Sprint(got) != "[frame end]" {
			t.Fatalf("got %v", got)
		}
	}
}

// Close ends sources that are blocked in either kind of hand-over, and releases what waits.
func TestCloseWhileSourcesAreBlocked(t *testing.T) {
	released := 0
	second := make(chan struct{})
	in := Start(context.Background(), []camera.Source{
		fake{name: "frames", run: func(ctx context.Context, sink camera.Sink) error {
			for i := 0; ; i++ {
				if i == 2 {
					close(second) // one was taken, one waits
				}
				if err := sink.Frame(ctx, grey(t, i, &released)); err != nil {
					return err
				}
			}
		}},
		fake{name: "faults", live: true, run: func(ctx context.Context, sink camera.Sink) error {
			for ctx.Err() == nil {
				sink.Fault(errors.New("again"))
			}
			return ctx.Err()
		}},
	}, nil)
	for ctx := bounded(t); ; {
		item, ok := in.Next(ctx)
		if !ok {
			t.Fatal("no frame came")
		}
		if item.Frame != nil {
			break
		}
	}
	<-second
	in.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, ok := in.Next(ctx); ok {
		t.Error("an item after Close")
	}
	if released == 0 {
		t.Error("the waiting frame was not released")
	}
}

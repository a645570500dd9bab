package runtime_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/memplan"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// growing is a camera whose frames are of the given sizes, one connection each, until ctx ends.
type growing struct {
	sizes []int
	now   int
}

func (*growing) Expect() (frame.Format, int, int, float64) { return frame.Gray, 320, 240, 10 }

func (g *growing) Connect(ctx context.Context, out *camera.Output) error {
	size := g.sizes[g.now]
	if g.now < len(g.sizes)-1 {
		g.now++
	}
	if err := out.Format(frame.Gray, frame.Colour{}, size, size, 10); err != nil {
		return err
	}
	if f := out.Begin(); f != nil {
		if err := out.Publish(ctx, f, time.Now(), frame.ByDriver); err != nil {
			return err
		}
	}
	if g.now < len(g.sizes)-1 {
		return errors.New("another size")
	}
	<-ctx.Done()
	return ctx.Err()
}

// A camera that gives larger frames than were planned gets them as long as the budget holds them, and is refused with both
// figures when it does not; the others go on.
func TestFramesBeyondThePlan(t *testing.T) {
	model := face(t)
	open := func(budget int64) *eyas.Runtime {
		rt, err := eyas.Open(t.Context(), eyas.Config{
			Models: map[string]eyas.ModelConfig{"face": {Path: model}}, EP: "cpu", Budget: eyas.Size(budget),
			Sources: eyas.Sources{{Name: "small", URL: "test:pattern?size=320x240"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return rt
	}
	rt := open(0)
	// One is written, one read, and with the SLO that nobody named one may wait for a run of one.
	if n := rt.Plan().Of(memplan.Frames); n < 3*3*320*240 || n > 3*3*320*240+64<<10 {
		t.Errorf("%d bytes planned for three frames of 320x240 in rgb24", n)
	}
	total := rt.Plan().Total()
	rt.Close()

	rt = open(total + 64<<20)
	defer rt.Close()
	wait := camera.Times(camera.Timing{MinBackoff: time.Millisecond})
	cam := camera.Supervise("cam", &growing{sizes: []int{320, 1024, 8000, 8000}}, wait)
	small := openSource(t, "small=test:pattern?size=320x240&fps=30")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	widths := map[int]bool{}
	after := 0
	var refused error
	for res, err := range rt.Stream(ctx, cam, small) {
		switch {
		case err != nil && refused == nil:
			refused = err
		case err != nil:
			t.Fatal(err)
		case res.Source == "cam":
			widths[res.Width] = true
		case refused != nil:
			after++
		}
		if after == 3 {
			break
		}
	}
	if !errors.Is(refused, eyas.ErrBudget) || !strings.Contains(refused.Error(), "needed") || !strings.Contains(refused.Error(), "cam") {
		t.Errorf("refused with %v", refused)
	}
	if !widths[320] || !widths[1024] || widths[8000] {
		t.Errorf("frames of widths %v", widths)
	}
	if after < 3 {
		t.Error("the other camera did not go on")
	}
	status := rt.Status()
	if len(status) != 2 || status[0].Name != "cam" || status[0].State != "failed" || status[0].Error == "" ||
		status[0].Width != 8000 || status[1].Delivered < 3 || status[1].FPSOut <= 0 || status[1].Age <= 0 {
		t.Errorf("%+v", status)
	}
	if n := rt.Plan().Of(memplan.Frames); n < 2*1024*1024+2*3*320*240 {
		t.Errorf("%d bytes planned for frames in the end", n)
	}
}

// The picture comes with a result when it is wanted, of live sources, too.
func TestWantedPictures(t *testing.T) {
	asked := 0
	rt, err := eyas.Open(t.Context(), eyas.Config{
		Models: map[string]eyas.ModelConfig{"face": {Path: face(t)}}, EP: "cpu",
		Wanted: func(source string) bool { asked++; return source == "cam" && asked%2 == 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	with, without := 0, 0
	for res, err := range rt.Stream(ctx, openSource(t, "cam=test:pattern?size=320x240&fps=100")) {
		if err != nil {
			t.Fatal(err)
		}
		if res.Picture == nil {
			without++
		} else if with++; res.Picture.Width != 320 || res.Picture.Seq != res.Frame {
			t.Errorf("picture %dx%d of frame %d with the result of frame %d", res.Picture.Width, res.Picture.Height, res.Picture.Seq, res.Frame)
		}
		if with >= 3 && without >= 3 {
			break
		}
	}
	if with < 3 || without < 3 {
		t.Errorf("%d results with a picture, %d without", with, without)
	}
}

// Package media takes frames from the drivers of pion/mediadevices, for platforms and devices that package camera does
// not know by itself. Which drivers there are is the program's choice: it imports them for their side effects, for example
// github.com/pion/mediadevices/pkg/driver/camera, which opens every camera of the machine at once.
//
// Those drivers have no deadlines: a call that does not come back within a second of being told to end is left behind, with a
// warning, and the camera is not opened again before it has come back.
package media

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/pion/mediadevices/pkg/driver"
	mediaframe "github.com/pion/mediadevices/pkg/frame"
	"github.com/pion/mediadevices/pkg/prop"

	"github.com/eyas-edge/eyas/camera"
)

// Scheme has camera.Open open media:NAME?size=1280x720&fps=30&format=mjpeg, where NAME is the label or the name of a driver,
// or one of the parts between their semicolons.
func Scheme() camera.Option { return camera.Scheme("media:", New) }

// New returns the connector of a camera. The driver is looked up for each connection. l takes warnings.
func New(name string, want camera.Request, l *slog.Logger) (camera.Connector, error) {
	return &connector{name: name, want: want.OrDefaults(), log: l}, nil
}

// connector is a camera of mediadevices.
type connector struct {
	name string
	want camera.Request
	log  *slog.Logger
	left <-chan struct{} // closed once the calls that were left behind have come back; nil if there are none
}

// Connect implements camera.Connector.
func (c *connector) Connect(ctx context.Context, out *camera.Output) error {
	if c.left != nil {
		select {
		case <-c.left:
			c.left = nil
		default:
			return errors.New("its driver has not come back from an earlier call: unplug the camera, or start eyas anew")
		}
	}
	d, err := find(c.name)
	if err != nil {
		return err
	}
	s := start(d, c.want)
	defer func() {
		if c.left = s.end(); c.left != nil {
			c.log.Warn("the camera's driver does not come back: a call is left behind", "camera", c.name)
		}
	}()
	w := writer{out: out}
	for {
		select {
		case p := <-s.pictures:
			if err := w.write(ctx, p); err != nil {
				return err
			}
			s.taken <- struct{}{}
		case <-s.done:
			return s.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// find returns the driver of a name. Drivers look for cameras once, so that trying again is of no use.
func find(name string) (driver.Driver, error) {
	all := driver.GetManager().Query(driver.FilterVideoRecorder())
	slices.SortFunc(all, func(a, b driver.Driver) int {
		return cmp.Or(cmp.Compare(a.Info().Label, b.Info().Label), cmp.Compare(a.Info().Name, b.Info().Name))
	})
	var matches []driver.Driver
	var known []string
	for _, d := range all {
		known = append(known, d.Info().Label)
		if is(d.Info(), name) {
			matches = append(matches, d)
		}
	}
	switch {
	case len(matches) == 1:
		return matches[0], nil
	case len(all) == 0:
		return nil, camera.Permanent(errors.New("mediadevices found no camera when eyas started"))
	case len(matches) > 1:
		return nil, camera.Permanent(fmt.Errorf("mediadevices found %d cameras of this name: use a label, one of %s", len(matches), strings.Join(known, ", ")))
	}
	return nil, camera.Permanent(fmt.Errorf("mediadevices found no such camera when eyas started, only %s", strings.Join(known, ", ")))
}

// is says whether a driver goes by a name. Cameras put several into one text, between semicolons.
func is(info driver.Info, name string) bool {
	for _, text := range []string{info.Label, info.Name} {
		for _, part := range append(strings.Split(text, ";"), text) {
			if strings.EqualFold(part, name) {
				return true
			}
		}
	}
	return false
}

// choose returns what to ask a driver for: of what it offers the nearest size, as package v4l2 chooses it, then the rate if it
// is reached or else the higher, then uncompressed pictures before MJPEG.
func choose(offers []prop.Media, want camera.Request) (prop.Media, error) {
	ask := prop.Media{Video: prop.Video{Width: want.Width, Height: want.Height, FrameRate: float32(want.FPS), FrameFormat: mediaframe.Format(strings.ToUpper(want.Format))}}
	if len(offers) == 0 {
		return ask, nil
	}
	var usable []prop.Media
	var formats []string
	for _, o := range offers {
		format := string(o.FrameFormat)
		if !slices.Contains(formats, format) {
			formats = append(formats, format)
		}
		if want.Format != "" && !strings.EqualFold(format, want.Format) {
			continue
		}
		if o.FrameFormat != mediaframe.FormatZ16 { // depth is no picture
			usable = append(usable, o)
		}
	}
	if len(usable) == 0 {
		return ask, camera.Permanent(fmt.Errorf("the camera offers %s: choose one of them with format=", strings.ToLower(strings.Join(formats, ", "))))
	}
	return slices.MinFunc(usable, func(a, b prop.Media) int {
		return cmp.Or(
			want.CompareSizes(a.Width, a.Height, b.Width, b.Height),
			cmp.Compare(want.Reach(float64(b.FrameRate)), want.Reach(float64(a.FrameRate))),
			cmp.Compare(mjpeg(a), mjpeg(b)),
		)
	}), nil
}

func mjpeg(o prop.Media) int {
	if o.FrameFormat == mediaframe.FormatMJPEG {
		return 1
	}
	return 0
}

package camera

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/camera/picture"
	"github.com/eyas-edge/eyas/camera/v4l2"
)

// openDevice opens N?... of /dev/videoN, or what else begins with /dev/video.
func openDevice(b base, rest string) (Source, error) { return openV4L2(b, "/dev/video"+rest) }

// openV4L2 opens ID?size=1280x720&fps=30&format=mjpeg, where ID is a number, a path, a name in /dev/v4l/by-id or by-path, or
// the camera's own name.
func openV4L2(b base, rest string) (Source, error) {
	s, err := newV4L2(&b, v4l2.Here(), rest)
	if err != nil {
		return nil, err
	}
	return supervise(b, s), nil
}

func newV4L2(b *base, host v4l2.Host, rest string) (*v4l2Source, error) {
	id, want, err := parseRequest(rest, &b.opts)
	if err != nil {
		return nil, err
	}
	if want.Format != "" && !slices.Contains(v4l2.FormatNames(), want.Format) {
		return nil, badSpec("format %q is not known: use %s", want.Format, strings.Join(v4l2.FormatNames(), ", "))
	}
	return &v4l2Source{
		camera: host.Camera(id, want), want: want,
		log: b.opts.log.With("source", b.name), limits: picture.Limits{MaxPixels: b.opts.maxPixels},
	}, nil
}

// v4l2Source is a camera on V4L2.
type v4l2Source struct {
	camera *v4l2.Camera
	want   Request // as the user said, without defaults
	log    *slog.Logger
	limits picture.Limits
	path   string // where the camera was last
}

// Expect implements Sized. A camera whose format is not given is planned as the largest.
func (s *v4l2Source) Expect() (f frame.Format, w, h int, fps float64) {
	f, _ = frame.ParseFormat(s.want.Format) // mjpeg is unknown, too
	return f, s.want.Width, s.want.Height, s.want.FPS
}

// Connect implements Connector.
func (s *v4l2Source) Connect(ctx context.Context, out *Output) error {
	in, err := s.camera.Open(ctx)
	if err != nil {
		if errors.As(err, new(v4l2.Unusable)) {
			return Permanent(err)
		}
		return err
	}
	defer in.Close()
	f := in.Format()
	s.say(in.Path(), f)
	put := func(c *v4l2.Captured) error { return copyFrame(ctx, out, f, c) }
	if f.MJPEG() {
		p := &mjpegPlayer{out: out, limits: s.limits, fps: f.FPS}
		defer p.decoder.Close()
		put = func(c *v4l2.Captured) error { return p.play(ctx, c.Data, c.At, capturedBy(c)) }
	} else if err := out.Format(f.Pixels, f.Colour, f.Width, f.Height, f.FPS); err != nil {
		return err
	}
	var c v4l2.Captured // one for all frames: put's would be allocated for each
	for {
		if c, err = in.Next(); err != nil {
			return err
		}
		count(out, &c)
		if c.Data != nil {
			if err := put(&c); err != nil {
				return err
			}
		}
	}
}

// say tells what the camera gives, and warns where that is not what was asked for.
func (s *v4l2Source) say(path string, f *v4l2.Format) {
	if s.path != "" && s.path != path {
		s.log.Info("the camera came back under another name", "device", path, "was", s.path)
	}
	s.path = path
	s.log.Debug("camera opened", "device", path, "format", f.Name(), "width", f.Width, "height", f.Height, "fps", f.FPS)
	if w := s.want; w.Width > 0 && (w.Width != f.Width || w.Height != f.Height) {
		s.log.Warn(fmt.Sprintf("the camera gives %dx%d instead of %dx%d: eyas doctor lists its sizes", f.Width, f.Height, w.Width, w.Height))
	}
	if w := s.want; w.FPS > 0 && f.FPS > 0 && math.Abs(w.FPS-f.FPS) > 0.05*w.FPS {
		s.log.Warn(fmt.Sprintf("the camera gives %.4g frames a second instead of %.4g: eyas doctor lists its rates", f.FPS, w.FPS))
	}
}

var errLeftOut = errors.New("the driver left frames out")

// count counts the frames that are not handed on. Those that the driver left out mostly had no free buffer.
func count(out *Output, c *v4l2.Captured) {
	for range c.Lost {
		out.Drop(nil, NoSlot, errLeftOut)
	}
	for range c.Corrupt {
		out.Drop(nil, Corrupt, c.Why)
	}
	for range c.Superseded {
		out.Drop(nil, Superseded, nil)
	}
}

// copyFrame copies an uncompressed frame from the driver's memory into a slot, its only copy, and hands it on.
func copyFrame(ctx context.Context, out *Output, f *v4l2.Format, c *v4l2.Captured) error {
	if out.Skip() {
		return nil
	}
	slot := out.Begin()
	if slot == nil {
		return nil
	}
	f.Copy(out.Packed(slot), c.Data)
	return out.Publish(ctx, slot, c.At, capturedBy(c))
}

func capturedBy(c *v4l2.Captured) frame.CapturedBy {
	if c.ByDriver {
		return frame.ByDriver
	}
	return frame.ByArrival
}

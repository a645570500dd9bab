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
	id, query, _ := strings.Cut(rest, "?")
	if id == "" {
		return nil, badSpec("which camera is missing: write v4l2:0, v4l2:NAME or /dev/video0; eyas doctor lists them")
	}
	p, err := parseParams(query, "size", "fps", "format")
	if err != nil {
		return nil, err
	}
	s := &v4l2Source{log: b.opts.log, name: b.name, limits: picture.Limits{MaxPixels: b.opts.maxPixels}}
	if p.Has("size") {
		if s.want.Width, s.want.Height, err = p.size("", &b.opts); err != nil {
			return nil, err
		}
	}
	if p.Has("fps") {
		if s.want.FPS, err = p.fps(); err != nil {
			return nil, err
		}
	}
	if s.want.Format = p.Get("format"); p.Has("format") && !slices.Contains(v4l2.FormatNames(), s.want.Format) {
		return nil, badSpec("format %q is not known: use %s", s.want.Format, strings.Join(v4l2.FormatNames(), ", "))
	}
	s.camera = host.Camera(id, s.want)
	return s, nil
}

// v4l2Source is a camera on V4L2.
type v4l2Source struct {
	camera *v4l2.Camera
	want   v4l2.Request // as the user said, without defaults
	log    *slog.Logger
	name   string
	limits picture.Limits
	path   string // where the camera was last
	jpeg   picture.MJPEGDecoder
	shape  picture.JPEGInfo // of the JPEGs of this connection
	sure   bool             // one of that shape was decoded
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
	defer s.jpeg.Close()
	f := in.Format()
	s.say(in.Path(), f)
	s.shape, s.sure = picture.JPEGInfo{}, false
	if !f.MJPEG() {
		if err := out.Format(f.Pixels, f.Colour, f.Width, f.Height, f.FPS); err != nil {
			return err
		}
	}
	for {
		c, err := in.Next()
		if err != nil {
			return err
		}
		count(out, &c)
		if c.Data == nil || out.Skip() {
			continue
		}
		if err := s.put(ctx, out, f, &c); err != nil {
			return err
		}
	}
}

// say tells what the camera gives, and warns where that is not what was asked for.
func (s *v4l2Source) say(path string, f *v4l2.Format) {
	if s.path != "" && s.path != path {
		s.log.Info("the camera came back under another name", "source", s.name, "device", path, "was", s.path)
	}
	s.path = path
	s.log.Debug("camera opened", "source", s.name, "device", path, "format", f.Name(), "width", f.Width, "height", f.Height, "fps", f.FPS)
	if w := s.want; w.Width > 0 && (w.Width != f.Width || w.Height != f.Height) {
		s.log.Warn(fmt.Sprintf("the camera gives %dx%d instead of %dx%d: eyas doctor lists its sizes", f.Width, f.Height, w.Width, w.Height), "source", s.name)
	}
	if w := s.want; w.FPS > 0 && f.FPS > 0 && math.Abs(w.FPS-f.FPS) > 0.05*w.FPS {
		s.log.Warn(fmt.Sprintf("the camera gives %.4g frames a second instead of %.4g: eyas doctor lists its rates", f.FPS, w.FPS), "source", s.name)
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

// put copies a frame into a slot, or decodes it there, and hands it on.
func (s *v4l2Source) put(ctx context.Context, out *Output, f *v4l2.Format, c *v4l2.Captured) error {
	if f.MJPEG() {
		if ok, err := s.fits(out, f, c.Data); !ok {
			return err
		}
	}
	slot := out.Begin()
	if slot == nil {
		return nil
	}
	if !f.MJPEG() {
		f.Copy(out.Packed(slot), c.Data)
	} else if err := s.jpeg.Decode(slot, c.Data); err != nil {
		out.Drop(slot, Corrupt, err)
		return nil
	}
	s.sure = true
	by := frame.ByArrival
	if c.ByDriver {
		by = frame.ByDriver
	}
	return out.Publish(ctx, slot, c.At, by)
}

// fits says whether a JPEG has the shape of the slots, and counts it as damaged if not. The first sets the shape, until
// one was decoded: while a camera streams it does not change, so that another is damage.
func (s *v4l2Source) fits(out *Output, f *v4l2.Format, jpg []byte) (bool, error) {
	info, err := s.jpeg.Probe(jpg, s.limits)
	switch {
	case err != nil:
	case info == s.shape:
		return true, nil
	case s.sure:
		err = fmt.Errorf("the picture is %s of %dx%d, those before were %s of %dx%d",
			info.Format, info.Width, info.Height, s.shape.Format, s.shape.Width, s.shape.Height)
	default:
		s.shape = info
		err := out.Format(info.Format, info.Colour, info.Width, info.Height, f.FPS)
		return err == nil, err
	}
	out.Drop(nil, Corrupt, err)
	return false, nil
}

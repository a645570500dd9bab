package sink

import (
	"context"
	"errors"
	"fmt"
	"image"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/eyas-edge/eyas/runtime/annotate"

	eyas "github.com/eyas-edge/eyas/runtime"
)

const (
	// stopWithin bounds the finishing of clips once the run was told to stop: the process has to end in less than
	// two seconds, and an encoder that has only just started needs one.
	stopWithin = 1500 * time.Millisecond
	// closeWithin bounds it at a run's own end: the encoder may have two seconds of pictures before it,
	// which takes a small board a while.
	closeWithin = time.Minute
)

// Saver writes annotated pictures and clips into a folder: NAME.jpg or NAME.png for a picture, NAME.mp4
// for a clip or a live source; NAME-annotated where the source itself lies in that folder. The boxes
// of all models go on one picture. Results must carry their pictures (Config.Pictures). It is
// not for several goroutines at once.
type Saver struct {
	dir    string
	log    *slog.Logger
	files  map[string]int // how often a file name was given out
	clips  map[string]*clip
	canvas *image.RGBA
	open   *saved // drawn on, not yet written
}

// saved is one picture with the boxes of the models seen so far.
type saved struct {
	source string
	frame  uint64
	model  string        // the last one that looked at it
	time   time.Duration // in the clip
	moving bool
	boxes  []annotate.Box
}

// clip is the video of one source.
type clip struct {
	video *annotate.VideoWriter // nil after a failure
	start time.Duration
	last  uint64 // number of the last frame
	w, h  int
}

// NewSaver makes the folder if it is not there.
func NewSaver(dir string, log *slog.Logger) (*Saver, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("save: %w", err)
	}
	return &Saver{dir: dir, log: log, files: map[string]int{}, clips: map[string]*clip{}}, nil
}

// Result draws a result. The picture is written when the next one begins, since other models may have
// boxes for it. Once ctx has ended a stalled encoder is not waited for.
func (s *Saver) Result(ctx context.Context, r *eyas.Result) error {
	var err error
	// Models come in the order of their keys: an earlier or equal one begins another picture, as when
	// the same file is given twice.
	if s.open == nil || s.open.source != r.Source || s.open.frame != r.Frame || s.open.model >= r.Model {
		err = s.flush(ctx)
		if s.canvas, err = join(err)(annotate.Picture(s.canvas, r.Picture)); s.canvas == nil {
			s.open = nil
			return err
		}
		s.open = &saved{source: r.Source, frame: r.Frame, time: r.PTS, moving: r.HasPTS}
		if !r.Captured.IsZero() {
			s.open.time, s.open.moving = time.Duration(r.Captured.UnixNano()), true
		}
	}
	s.open.model = r.Model
	for _, d := range r.Detections {
		s.open.boxes = append(s.open.boxes, annotate.Box{Rect: d.Box, Class: d.ClassID, Label: annotate.Label(d.Class, d.Score)})
	}
	return err
}

// join adds an earlier error to that of a call.
func join(earlier error) func(*image.RGBA, error) (*image.RGBA, error) {
	return func(img *image.RGBA, err error) (*image.RGBA, error) { return img, errors.Join(earlier, err) }
}

// flush writes the open picture.
func (s *Saver) flush(ctx context.Context) error {
	p := s.open
	s.open = nil
	if p == nil {
		return nil
	}
	annotate.Draw(s.canvas, p.boxes)
	if !p.moving {
		ext := ".jpg"
		if strings.EqualFold(filepath.Ext(p.source), ".png") {
			ext = ".png"
		}
		return annotate.Save(s.path(p.source, ext), s.canvas)
	}
	return s.write(ctx, p)
}

// write appends a picture to its source's clip. A clip that failed is said once and left alone.
func (s *Saver) write(ctx context.Context, p *saved) error {
	size := s.canvas.Bounds().Size()
	c := s.clips[p.source]
	if c != nil && p.frame <= c.last { // the same clip again, as a source of its own
		if err := c.close(ctx); err != nil {
			return err
		}
		c = nil
	}
	if c == nil {
		c = &clip{start: p.time, w: size.X, h: size.Y}
		s.clips[p.source] = c
		var err error
		if c.video, err = annotate.NewVideo(context.WithoutCancel(ctx), s.path(p.source, ".mp4"), size.X, size.Y, s.log); err != nil {
			return err
		}
	}
	c.last = p.frame
	if c.video == nil {
		return nil
	}
	if c.w != size.X || c.h != size.Y {
		err := fmt.Errorf("save %s: the picture is now %dx%d instead of %dx%d: the clip ends here", p.source, size.X, size.Y, c.w, c.h)
		return errors.Join(err, c.close(ctx))
	}
	if err := c.video.Write(ctx, s.canvas, p.time-c.start); err != nil {
		_ = c.close(ctx) // says the same
		return err
	}
	return nil
}

// close finishes the clip, with little time once ctx has ended.
func (c *clip) close(ctx context.Context) error {
	if c.video == nil {
		return nil
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(stopWithin, cancel) })()
	v := c.video
	c.video = nil
	return v.Close(bounded)
}

// path returns a file in the folder that no other source has: the second photo.jpg becomes
// photo-2.jpg.
func (s *Saver) path(source, ext string) string {
	name := filepath.Base(strings.TrimRight(source, "/"))
	if i := strings.IndexByte(name, '?'); i > 0 {
		name = name[:i]
	}
	name = strings.TrimSuffix(name, filepath.Ext(name))
	name = strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`/\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, name)
	name = strings.TrimLeft(name, ".")
	if name == "" {
		name = "picture"
	}
	if s.holds(source) {
		name += "-annotated"
	}
	s.files[name+ext]++
	if n := s.files[name+ext]; n > 1 {
		name += "-" + strconv.Itoa(n)
	}
	return filepath.Join(s.dir, name+ext)
}

// holds says whether a source lies in the folder: its own name would overwrite it, or its neighbour.
func (s *Saver) holds(source string) bool {
	if _, err := os.Stat(source); err != nil {
		return false
	}
	own, err1 := os.Stat(s.dir)
	beside, err2 := os.Stat(filepath.Dir(source))
	return err1 == nil && err2 == nil && os.SameFile(own, beside)
}

// Close writes what is open and finishes the clips, all at once. It is quick once ctx has ended.
func (s *Saver) Close(ctx context.Context) error {
	errs := []error{s.flush(ctx)}
	ends := make(chan error)
	for _, c := range s.clips {
		go func() { ends <- c.close(ctx) }()
	}
	for range s.clips {
		errs = append(errs, <-ends)
	}
	clear(s.clips)
	return errors.Join(errs...)
}

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

	"github.com/eyas-edge/eyas/camera"
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
// for a clip or a live source; NAME-annotated for all where a source lies in that folder, so that none is
// overwritten. The boxes of all models go on one picture. Results must carry their pictures (Config.Pictures). It is
// not for several goroutines at once.
type Saver struct {
	dir      string
	suffix   string // of all names
	log      *slog.Logger
	given    map[string]bool // file names given out
	clips    map[string]*clip
	canvas   *image.RGBA
	sequence Sequence
	open     *saved // drawn on, not yet written
}

// saved is one picture with the boxes of the models seen so far.
type saved struct {
	source string
	frame  uint64
	time   time.Duration // in the clip
	moving bool
	live   bool
	boxes  []annotate.Box
}

// clip is the video of one source.
type clip struct {
	video *annotate.VideoWriter // nil after a failure
	start time.Duration
	last  uint64 // number of the last frame
	live  bool   // it may run beside others; files come one after the other
	w, h  int
}

// NewSaver makes the folder if it is not there. sources are those of the run, none of which is
// overwritten.
func NewSaver(dir string, sources []camera.Source, log *slog.Logger) (*Saver, error) {
	if strings.Contains(dir, "://") {
		return nil, errors.New("save: pictures go into a folder, and this is an address")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("save: %w", err)
	}
	s := &Saver{dir: dir, log: log, given: map[string]bool{}, clips: map[string]*clip{}}
	own, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("save: %w", err)
	}
	for _, source := range sources {
		for _, file := range camera.Files(source) {
			if beside, err := os.Stat(filepath.Dir(file)); err == nil && os.SameFile(own, beside) {
				s.suffix = "-annotated"
			}
		}
	}
	return s, nil
}

// Result draws a result. The picture is written when the next one begins, since other models may have
// boxes for it. Once ctx has ended a stalled encoder is not waited for.
func (s *Saver) Result(ctx context.Context, r *eyas.Result) error {
	var err error
	if s.sequence.Begins(r) || s.open == nil {
		err = s.flush(ctx)
		if s.canvas, err = join(err)(annotate.Picture(s.canvas, r.Picture)); s.canvas == nil {
			s.open = nil
			return err
		}
		s.open = &saved{source: r.Source, frame: r.Frame, time: r.PTS, moving: r.HasPTS}
		if !r.Captured.IsZero() {
			s.open.time, s.open.moving, s.open.live = time.Duration(r.Captured.UnixNano()), true, true
		}
	}
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
	err := s.finishOthers(ctx, p)
	if !p.moving {
		ext := ".jpg"
		if strings.EqualFold(filepath.Ext(p.source), ".png") {
			ext = ".png"
		}
		return errors.Join(err, annotate.Save(s.path(p.source, ext), s.canvas))
	}
	return errors.Join(err, s.write(ctx, p))
}

// finishOthers ends the clips of files before this one: files come one after the other, and each clip
// that is open has an encoder.
func (s *Saver) finishOthers(ctx context.Context, p *saved) error {
	var errs []error
	for source, c := range s.clips {
		if source != p.source && !c.live && !p.live {
			errs = append(errs, c.close(ctx))
		}
	}
	return errors.Join(errs...)
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
		c = &clip{start: p.time, live: p.live, w: size.X, h: size.Y}
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
	name += s.suffix
	file := name + ext
	for n := 2; s.given[file]; n++ {
		file = name + "-" + strconv.Itoa(n) + ext
	}
	s.given[file] = true
	return filepath.Join(s.dir, file)
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

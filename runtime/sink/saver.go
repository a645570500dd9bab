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

// closeWithin bounds the finishing of a clip, so that a signal ends the process in time.
const closeWithin = time.Second

// Saver writes annotated pictures and clips into a folder: NAME.jpg or NAME.png for a picture, NAME.mp4
// for a clip or a live source. The boxes of all models go on one picture. Results must carry their
// pictures (Config.Pictures). It is not for several goroutines at once.
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
	time   time.Duration // in the clip
	moving bool
	boxes  []annotate.Box
}

// clip is the video of one source.
type clip struct {
	video *annotate.VideoWriter // nil after a failure
	start time.Duration
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
// boxes for it.
func (s *Saver) Result(r *eyas.Result) error {
	var err error
	if s.open == nil || s.open.source != r.Source || s.open.frame != r.Frame {
		err = s.flush()
		if s.canvas, err = join(err)(annotate.Picture(s.canvas, r.Picture)); s.canvas == nil {
			s.open = nil
			return err
		}
		s.open = &saved{source: r.Source, frame: r.Frame, time: r.PTS, moving: r.HasPTS}
		if !r.Captured.IsZero() {
			s.open.time, s.open.moving = time.Duration(r.Captured.UnixNano()), true
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
func (s *Saver) flush() error {
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
		if err := annotate.Save(s.path(p.source, ext), s.canvas); err != nil {
			return fmt.Errorf("save %s: %w", p.source, err)
		}
		return nil
	}
	if err := s.write(p); err != nil {
		return fmt.Errorf("save %s: %w", p.source, err)
	}
	return nil
}

// write appends a picture to its source's clip. A clip that failed is said once and left alone.
func (s *Saver) write(p *saved) error {
	ctx := context.Background()
	size := s.canvas.Bounds().Size()
	c := s.clips[p.source]
	if c == nil {
		c = &clip{start: p.time, w: size.X, h: size.Y}
		s.clips[p.source] = c
		var err error
		if c.video, err = annotate.NewVideo(ctx, s.path(p.source, ".mp4"), size.X, size.Y, s.log); err != nil {
			return err
		}
	}
	if c.video == nil {
		return nil
	}
	if c.w != size.X || c.h != size.Y {
		err := fmt.Errorf("the picture is now %dx%d instead of %dx%d: the clip ends here", size.X, size.Y, c.w, c.h)
		return errors.Join(err, c.close())
	}
	if err := c.video.Write(ctx, s.canvas, p.time-c.start); err != nil {
		c.close()
		return err
	}
	return nil
}

func (c *clip) close() error {
	if c.video == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	v := c.video
	c.video = nil
	return v.Close(ctx)
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
	s.files[name+ext]++
	if n := s.files[name+ext]; n > 1 {
		name += "-" + strconv.Itoa(n)
	}
	return filepath.Join(s.dir, name+ext)
}

// Close writes what is open and finishes the clips.
func (s *Saver) Close() error {
	err := s.flush()
	for source, c := range s.clips {
		if e := c.close(); e != nil {
			err = errors.Join(err, fmt.Errorf("save %s: %w", source, e))
		}
	}
	clear(s.clips)
	return err
}

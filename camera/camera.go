// Package camera is where pictures come from: files, folders, clips, raw frames, a test
// pattern, and (in a later version) live cameras. Open turns the text that a user writes into a
// Source; a source hands frames to a Sink. docs/sources.md describes the texts.
//
// Files are read with back-pressure: every picture, in order, once. Clips are decoded by
// ffmpeg as a child process, for which the program ffmpeg has to be installed.
package camera

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/camera/picture"
	"github.com/eyas-edge/eyas/internal/regular"
)

// Frame is one picture with what is known about it. Whoever is handed one calls Release
// once done with it.
type Frame = frame.Frame

// NewFrame makes a frame over pixels that the caller owns: w x h pixels in the given format, one
// frame.Plane per plane. release, if not nil, is called once, when the frame is released.
// captured is the capture time of a live frame, zero for others.
func NewFrame(format frame.Format, w, h int, planes []frame.Plane, captured time.Time, release func()) (*Frame, error) {
	return frame.New(format, w, h, planes, captured, release)
}

// ReadFile decodes one picture: JPEG, PNG, WebP, GIF (the first picture) or BMP, upright. Of the
// options only MaxPixels matters.
func ReadFile(path string, opts ...Option) (*Frame, error) {
	f, err := picture.ReadFile(path, picture.Limits{MaxPixels: collect(opts).maxPixels})
	if err != nil {
		return nil, err
	}
	f.Source = path
	return f, nil
}

// FileSize returns the size of a picture as displayed, from its headers alone.
func FileSize(path string) (w, h int, err error) {
	f, err := regular.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	const most = 8 << 20 // a header with thumbnails and profiles is below that
	head, err := io.ReadAll(io.LimitReader(f, most))
	if err == nil {
		w, h, err = picture.Size(head)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("picture %s: %w", path, err)
	}
	return w, h, nil
}

// Source is something that frames come from.
type Source interface {
	// Name is the name that results show: the one that was given, else the text that was
	// opened, without user and password. The frames of a folder without a name carry their
	// own paths instead.
	Name() string
	// Live says that time does not wait for the receiver: frames come at their pace and
	// carry a capture time.
	Live() bool
	// Run delivers frames until the source ends (nil), fails, or ctx ends (its error). It
	// leaves no goroutine and no child process behind. A source runs once at a time.
	Run(ctx context.Context, sink Sink) error
}

// Sink receives what a source delivers, from the goroutine that runs it.
type Sink interface {
	// Frame takes ownership of f, also when it returns an error. It may block: a file waits.
	// An error ends the source, whose Run returns it.
	Frame(ctx context.Context, f *Frame) error
	// Fault reports that one item failed, for example one picture of a folder; the source
	// goes on.
	Fault(err error)
	// Reclaim releases the oldest frame of a live source that waits to be taken, and says whether there was one: the source has
	// no room for a newer one.
	Reclaim() bool
	// State reports what a live source does now; err says why it is StateLost.
	State(s State, err error)
}

// Counter is a source that knows, or estimates, how many frames it will deliver.
type Counter interface {
	// Total returns that number, 0 while it is not known. A clip's is an estimate from its
	// duration that is there once the first frame is.
	Total() int
}

// Files returns the files that a source reads: one for a picture, clip or raw file, those of a folder or
// glob; none for other sources.
func Files(s Source) []string {
	switch s := s.(type) {
	case *pictures:
		return slices.Clone(s.paths)
	case *clip:
		return []string{s.path}
	case *raw:
		return []string{s.path}
	}
	return nil
}

// ErrSpec is matched by Open's error when the text itself is wrong, whatever files there are.
var ErrSpec = errors.New("the text of the source is wrong")

// specError is an error that is ErrSpec, too, without saying so.
type specError struct{ error }

func (e specError) Is(target error) bool { return target == ErrSpec }
func (e specError) Unwrap() error        { return e.error }

func badSpec(format string, args ...any) error { return specError{fmt.Errorf(format, args...)} }

// base is what all sources have in common.
type base struct {
	name    string // as results show it
	opts    options
	live    bool
	reserve func(bytes int64) error // nil for nobody to ask
	monitor *monitor
}

func newBase(name string, o options) base { return base{name: name, opts: o, monitor: &monitor{}} }

func (b *base) Name() string { return b.name }
func (b *base) Live() bool   { return b.live }

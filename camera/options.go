package camera

import (
	"log/slog"
	"math"
	"time"

	"github.com/eyas-edge/eyas/camera/v4l2"
)

const (
	defaultMaxPixels = 100_000_000
	defaultBuffers   = 8
	defaultFPS       = 30
	liveSlots        = 2 // one is written while the other is read
)

// Option changes how a source is read.
type Option func(*options)

type options struct {
	maxPixels int // width times height
	every     int
	maxFrames int // 0: no limit
	realtime  bool
	buffers   int           // 0: the kind's default
	wait      time.Duration // of a live frame
	mostWait  int           // frames
	held      int           // live frames, by the receiver
	name      string
	log       *slog.Logger
	timing    Timing
	schemes   []scheme
	share     string // folder of the sockets
}

func collect(opts []Option) options {
	o := options{maxPixels: defaultMaxPixels, every: 1, log: slog.New(slog.DiscardHandler)}
	for _, set := range opts {
		set(&o)
	}
	return o
}

// MaxPixels refuses pictures and clips of more than n pixels (width times height), before
// memory is allocated for them. It defaults to 100 million.
func MaxPixels(n int) Option {
	return func(o *options) {
		if n > 0 {
			o.maxPixels = n
		}
	}
}

// Every delivers only every nth frame, the first included. Frame.Seq counts all of them.
func Every(n int) Option {
	return func(o *options) { o.every = max(n, 1) }
}

// MaxFrames ends the source after it delivered n frames. 0 means no limit.
func MaxFrames(n int) Option {
	return func(o *options) { o.maxFrames = max(n, 0) }
}

// Realtime plays clips, raw frames and the test pattern at their own pace, as if they were
// live: Live says so, and frames carry a capture time.
func Realtime() Option {
	return func(o *options) { o.realtime = true }
}

// Buffers sets how many frames of one source exist at most. A file waits for a Release when all are in use, so a receiver that
// holds n frames needs n+1; it defaults to 8, made as they are needed. A live source drops frames then; it
// defaults to 2, of which one is written and the other waits or is read, and those that Monitored.Wait asks for.
func Buffers(n int) Option {
	return func(o *options) { o.buffers = max(n, 1) }
}

// Held makes room for n more frames of a live source, which its receiver holds.
func Held(n int) Option {
	return func(o *options) { o.held = max(n, 0) }
}

// Times sets the time-outs of live sources.
func Times(t Timing) Option {
	return func(o *options) { o.timing = t }
}

// Share gives the frames of live sources to other processes of this user, through a socket for each in the folder dir:
// docs/frames.md.
func Share(dir string) Option {
	return func(o *options) { o.share = dir }
}

// Request is what a camera is asked for by ?size=1280x720&fps=30&format=mjpeg behind its name. Zero values stand for what
// was not said; the format is a word that the kind of camera knows.
type Request = v4l2.Request

// Scheme adds a kind of live source, or takes the place of one: its texts begin with prefix, for example media: of package
// camera/media, and have id behind it. l takes what the connector has to say.
func Scheme(prefix string, open func(id string, want Request, l *slog.Logger) (Connector, error)) Option {
	return func(o *options) {
		o.schemes = append(o.schemes, scheme{prefix, func(b base, rest string) (Source, error) {
			id, want, err := parseRequest(rest, &b.opts)
			if err != nil {
				return nil, err
			}
			c, err := open(id, want, b.opts.log.With("source", b.name))
			if err != nil {
				return nil, err
			}
			return supervise(b, c), nil
		}})
	}
}

// Name names the source, whatever characters the name has: the text given to Open is then all WHAT.
func Name(name string) Option {
	return func(o *options) { o.name = name }
}

// Logger receives notes, for example about files that were skipped. Without one they are
// dropped.
func Logger(l *slog.Logger) Option {
	return func(o *options) {
		if l != nil {
			o.log = l
		}
	}
}

// tooLarge says whether a picture has more pixels than allowed, without overflow.
func (o *options) tooLarge(w, h int) bool {
	return w > 0 && h > o.maxPixels/w
}

// slots is how many frames of a live source with so many a second there may be.
func (o *options) slots(fps float64) int {
	if o.buffers > 0 {
		return o.buffers
	}
	if !(fps > 0) {
		fps = defaultFPS
	}
	return liveSlots + o.held + int(min(math.Ceil(o.wait.Seconds()*fps), float64(o.mostWait)))
}

// total is what remains of n frames after Every and MaxFrames.
func (o *options) total(n int) int {
	if n > 0 {
		n = (n-1)/o.every + 1
	}
	if o.maxFrames > 0 {
		n = min(n, o.maxFrames)
	}
	return n
}

package camera

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/child"
)

// clip is a video file, decoded by ffmpeg.
type clip struct {
	base
	path   string // as given
	url    string // as ffmpeg gets it
	ffmpeg string // absolute path of the program
	total  atomic.Int64
	// wait is how long the first frame waits for ffmpeg's lines about the clip.
	wait time.Duration
	// stall is how long ffmpeg may give nothing while its output is waited for.
	stall time.Duration
}

// describeWait is far above the microseconds that ffmpeg's lines take after the header of its
// output, and all that a version with other words costs: its colour is guessed then.
const describeWait = time.Second

// stallLimit is far above what the slowest of sound clips takes for a frame: the search of a
// large file for its index on a slow disk takes seconds.
const stallLimit = 30 * time.Second

// clipFormats are the demuxers that ffmpeg may take for a clip: containers and streams of
// video. Left out are those that read further files (hls, concat, dash, ...), that take
// nearly anything for a picture (tty), and devices. Subtitles are in AVI files.
const clipFormats = "mov,mp4,matroska,webm,avi,mpegts,mpeg,mpegvideo,h261,h263,h264,hevc,vvc,av1,obu,vc1,vc1test,m4v," +
	"mjpeg,jpeg_pipe,mpjpeg,flv,asf,asf_o,ogg,nut,ivf,yuv4mpegpipe,mxf,gxf,dv,dhav,wtv,rm,srt,ass"

// errOldFFmpeg means that ffmpeg does not know an option that newer ones want.
var errOldFFmpeg = errors.New("ffmpeg is too old for this option")

// clipPipe is the wanted size of the pipe from ffmpeg: a 1080p frame takes 3 of them instead
// of 48 of the default size.
const clipPipe = 1 << 20

func openClip(b base, path string) (Source, error) {
	program, err := child.Look("ffmpeg")
	if err != nil {
		return nil, errors.New("clips are decoded by ffmpeg, which is not installed: apt-get install ffmpeg")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	b.live = b.opts.realtime
	// With "file:" in front and an absolute path no name is taken for an option or a protocol.
	return &clip{base: b, path: path, url: "file:" + abs, ffmpeg: program, wait: describeWait, stall: stallLimit}, nil
}

// Total estimates the number of frames from the duration, once the first frame is there.
func (s *clip) Total() int { return s.opts.total(int(s.total.Load())) }

func (s *clip) Run(ctx context.Context, sink Sink) error {
	err := s.run(ctx, sink, "-fps_mode")
	if errors.Is(err, errOldFFmpeg) { // before 5.1 the same thing had another name
		err = s.run(ctx, sink, "-vsync")
	}
	return ended(err)
}

// args are ffmpeg's: the first video stream that is no cover picture, every frame once with
// its time, upright, as I420 in the range that it has.
func (s *clip) args(syncFlag string) []string {
	return []string{
		"-nostdin", "-hide_banner", "-nostats", "-loglevel", "repeat+level+info",
		"-protocol_whitelist", "file", "-format_whitelist", clipFormats,
		"-max_pixels", strconv.Itoa(s.opts.maxPixels), "-i", s.url,
		"-map", "0:V:0", "-vf", "format=yuv420p|yuvj420p",
		syncFlag, "passthrough", "-enc_time_base", "1/1000000",
		// Without an index the muxer remembers nothing of the frames it wrote.
		"-c:v", "rawvideo", "-f", "nut", "-write_index", "0", "pipe:1",
	}
}

func (s *clip) run(ctx context.Context, sink Sink, syncFlag string) error {
	log := newFFLog(s.url, s.path)
	c, err := child.Start(ctx, child.Spec{Program: s.ffmpeg, Args: s.args(syncFlag), Stdout: true, Stderr: log.line})
	if err != nil {
		return fmt.Errorf("clip %s: %w", s.path, err)
	}
	defer c.Stop()
	c.SizeStdout(clipPipe)
	in, err := newNutReader(&stallReader{in: c.Stdout(), limit: s.stall})
	if err != nil {
		return s.end(ctx, c, log, 0, err)
	}
	if s.opts.tooLarge(in.width, in.height) {
		return s.errTooLarge() // before the wait
	}
	told, err := log.wait(ctx, c.Done(), s.wait)
	if err != nil {
		return err
	}
	if !told {
		s.opts.log.Warn("ffmpeg does not say what the clip's colours are: they are guessed by its size", "clip", s.path)
	}
	s.total.Store(int64(log.frames()))
	out := newOutput(&s.base, sink)
	defer out.close()
	if err := out.Format(frame.I420, log.colour(in.width, in.height), in.width, in.height, 0); err != nil {
		return fmt.Errorf("clip %s: %w", s.path, err)
	}
	return s.deliver(ctx, c, log, in, out)
}

// deliver hands on frame after frame; ffmpeg scales all to the size of the first.
func (s *clip) deliver(ctx context.Context, c *child.Child, log *ffLog, in *nutReader, out *Output) error {
	want := out.size
	for {
		pts, size, err := in.next()
		if err == nil && size != want {
			err = fmt.Errorf("%w: frame of %d bytes instead of %d", errNut, size, want)
		}
		if err != nil {
			return s.end(ctx, c, log, out.next, err)
		}
		if err := out.pace(ctx, pts); err != nil {
			return err
		}
		var f *Frame
		n := out.next
		if !out.Skip() {
			if f, err = out.take(ctx); err != nil {
				return err
			}
		}
		if f == nil {
			if err := in.skip(size); err != nil {
				return s.end(ctx, c, log, n, err)
			}
			continue
		}
		if err := in.fill(out.Packed(f)); err != nil {
			f.Release()
			return s.end(ctx, c, log, n, err)
		}
		f.PTS, f.HasPTS = pts, true
		if err := out.put(ctx, f); err != nil {
			return err
		}
	}
}

// end says what the end of ffmpeg's output after n frames means: nil for a whole clip.
func (s *clip) end(ctx context.Context, c *child.Child, log *ffLog, n uint64, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
		return s.errStalled(n, log)
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		if ctx.Err() != nil { // the pipe was closed under the read
			return ctx.Err()
		}
		return fmt.Errorf("clip %s: after %d frames: output of ffmpeg: %w", s.path, n, err)
	}
	late := time.NewTimer(s.stall)
	defer late.Stop()
	select {
	case <-c.Done():
	case <-late.C: // it closed its output, and goes on
		return s.errStalled(n, log)
	}
	exit := c.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	faults, last := log.fault()
	lines := c.LastErrors()
	said := strings.Join(lines, "; ")
	var status *exec.ExitError
	switch {
	case strings.Contains(said, "'fps_mode'"):
		return errOldFFmpeg
	case strings.Contains(said, "matches no streams"):
		return fmt.Errorf("clip %s: has no video stream", s.path)
	case n == 0 && strings.Contains(said, "Format not on whitelist"):
		return fmt.Errorf("clip %s: is no video file of a known kind (playlists, text and sound are none): give the video itself, "+
			"or convert it with ffmpeg, for example to mp4", s.path)
	case strings.Contains(said, "max pixel count"):
		return s.errTooLarge()
	case exit != nil && n == 0 && said != "":
		said = strings.Join(lines[max(len(lines)-2, 0):], "; ")
		return fmt.Errorf("clip %s: ffmpeg cannot decode it: %s", s.path, said)
	case errors.As(exit, &status):
		return fmt.Errorf("clip %s: after %d frames: ffmpeg ended early: %w %s", s.path, n, status, last)
	case exit != nil:
		return fmt.Errorf("clip %s: after %d frames: %w", s.path, n, exit)
	case faults > 0:
		return fmt.Errorf("clip %s: damaged or cut off: %d frames could be decoded, with %d complaints of ffmpeg, the last: %s",
			s.path, n, faults, last)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("clip %s: after %d frames: ffmpeg ended early", s.path, n)
	case n == 0:
		return fmt.Errorf("clip %s: has no picture", s.path)
	}
	return nil
}

func (s *clip) errTooLarge() error {
	return fmt.Errorf("clip %s: has more than %d pixels a frame: raise the limit with --max-pixels", s.path, s.opts.maxPixels)
}

func (s *clip) errStalled(n uint64, log *ffLog) error {
	err := fmt.Errorf("clip %s: ffmpeg gave nothing for %v after %d frames and was stopped: check the file and its disk", s.path, s.stall, n)
	if _, last := log.fault(); last != "" {
		err = fmt.Errorf("%w; ffmpeg's last line: %s", err, last)
	}
	return err
}

// stallReader ends a read that gets nothing within limit with os.ErrDeadlineExceeded. The time
// between reads, in which ffmpeg has to wait for the detector, does not count.
type stallReader struct {
	in    io.Reader
	limit time.Duration
}

func (r *stallReader) Read(p []byte) (int, error) {
	// The pipe from a child has deadlines; an error of a closed one is Read's too.
	if d, ok := r.in.(interface{ SetReadDeadline(time.Time) error }); ok {
		_ = d.SetReadDeadline(time.Now().Add(r.limit))
	}
	return r.in.Read(p)
}

package camera

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/child"
)

// childGrace is how long a camera's child may take to end: Connect has to be back within a second.
const childGrace = 500 * time.Millisecond

const noGst = "needs gst-launch-1.0, which is not installed: apt-get install gstreamer1.0-tools gstreamer1.0-plugins-good gstreamer1.0-plugins-bad"

// gstPipeline is a source that is a pipeline of GStreamer, as the user wrote it.
type gstPipeline struct {
	words []string
}

// openGst opens the text of a pipeline that ends in a video: what stands behind gst-launch-1.0 on a command line.
func openGst(b base, text string) (Source, error) {
	words, err := splitWords(text)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		return nil, badSpec("the pipeline is empty: write for example gst:videotestsrc is-live=true")
	}
	// gst-launch-1.0 takes options anywhere, and with some ends at once as if all was well.
	if i := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") }); i >= 0 {
		return nil, badSpec("the pipeline holds %s, an option of gst-launch-1.0: leave it out", Redact(words[i]))
	}
	if _, err := child.Look("gst-launch-1.0"); err != nil {
		return nil, errors.New("gst: " + noGst)
	}
	return supervise(b, &gstPipeline{words}), nil
}

func (s *gstPipeline) Connect(ctx context.Context, out *Output) error {
	log := newGstLog(secretsOf(s.words)...)
	err := runGst(ctx, out, append(s.words[:len(s.words):len(s.words)], "!", "videoconvert", "!", gstRaw), log)
	switch {
	case errors.Is(err, errGstFailed):
		return log.explain("the pipeline")
	case errors.Is(err, io.EOF) && out.sent == 0:
		return errors.New("the pipeline ended without a picture: check its source, and that it gives video")
	}
	return err
}

// secretsOf returns the passwords in the words of a pipeline.
func secretsOf(words []string) (secrets []string) {
	for _, w := range words {
		if Redact(w) == w {
			continue
		}
		_, value, _ := strings.Cut(w, "=")
		if _, rest, ok := strings.Cut(value, "://"); ok {
			value = strings.TrimRight(rest[:userinfo(rest)], "@")
			secrets = append(secrets, value)
			_, value, _ = strings.Cut(value, ":")
		}
		if value = strings.Trim(value, `"'`); value != "" {
			secrets = append(secrets, value)
		}
	}
	return secrets
}

// errGstFailed is the end of gst-launch-1.0 with an error, which its log explains.
var errGstFailed = errors.New("gst-launch-1.0 failed")

// runGst runs a pipeline that ends in raw pictures, and puts them into out. It returns io.EOF when the pipeline comes to
// its end by itself, and errGstFailed when it fails.
//
// The pictures come through a descriptor of their own, since some plugins write to stdout. The child is asked to end by SIGINT, on
// which it closes its devices and connections; SIGTERM would kill it.
func runGst(ctx context.Context, out *Output, words []string, log *gstLog) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	child.SizePipe(r, clipPipe)
	args := append([]string{"-q"}, words...)
	args = append(args, "!", "gdppay", "crc-header=false", "!", "fdsink", "fd=3", "sync=false")
	c, err := child.Start(ctx, child.Spec{
		Program: "gst-launch-1.0", Args: args, Stderr: log.line, ExtraFiles: []*os.File{w}, Signal: syscall.SIGINT, Grace: childGrace,
	})
	w.Close()
	if err != nil {
		return err
	}
	defer c.Stop()
	// The reading ends with the context, whoever else holds the pipe.
	defer context.AfterFunc(ctx, func() { r.Close() })()
	if err := settle(ctx, c, pumpGst(ctx, out, newGDPReader(r))); err != nil {
		return err
	}
	if c.Wait() != nil {
		log.exit(c.Wait())
		return errGstFailed
	}
	return io.EOF
}

// settle waits for the end of a child whose output was read up to err. It returns nil when c.Wait tells why the output ended.
func settle(ctx context.Context, c *child.Child, err error) error {
	switch {
	case ctx.Err() != nil: // the pipe was closed under the read
		return ctx.Err()
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	}
	select {
	case <-c.Done():
		return nil
	case <-ctx.Done(): // it closed its output, and goes on
		return ctx.Err()
	}
}

// pumpGst puts the pictures of a stream into out until it ends.
func pumpGst(ctx context.Context, out *Output, in *gdpReader) error {
	var clock streamClock
	want := 0 // bytes of a picture; 0 before the first caps
	for {
		p, err := in.next()
		switch {
		case err != nil:
			return err
		case p.caps != nil:
			if err := out.Format(p.caps.format, p.caps.colour, p.caps.w, p.caps.h, p.caps.fps); err != nil {
				return err
			}
			want = in.layout.bytes()
		case want == 0:
			return fmt.Errorf("%w: a picture before its format", errGDP)
		case p.size != want:
			out.Drop(nil, Corrupt, fmt.Errorf("picture of %d bytes instead of %d", p.size, want))
			err = in.skip(p.size)
		default:
			at, by := clock.at(p.pts, p.hasTime, time.Now())
			err = pass(ctx, out, in, p.size, at, by)
		}
		if err != nil {
			return err
		}
	}
}

// pixelStream is a stream whose next picture was announced.
type pixelStream interface {
	fill(dst []byte) error // reads the picture, tightly packed
	skip(n int) error      // passes over its n bytes
}

// pass reads the next picture of n bytes straight into a slot and hands it on, or skips it.
func pass(ctx context.Context, out *Output, in pixelStream, n int, captured time.Time, by frame.CapturedBy) error {
	var f *Frame
	if !out.Skip() {
		f = out.Begin()
	}
	if f == nil {
		return in.skip(n)
	}
	if err := in.fill(out.Packed(f)); err != nil {
		if ctx.Err() != nil {
			f.Release()
		} else {
			out.Drop(f, Corrupt, err)
		}
		return err
	}
	return out.Publish(ctx, f, captured, by)
}

// gstHas says whether GStreamer has an element here.
func gstHas(ctx context.Context, element string) (bool, error) {
	c, err := child.Start(ctx, child.Spec{Program: "gst-inspect-1.0", Args: []string{"--exists", element}, Grace: childGrace})
	if err != nil {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		return false, Permanent(errors.New(noGst))
	}
	defer c.Stop()
	err = c.Wait()
	return err == nil, ctx.Err()
}

// gstHasAll says whether GStreamer has all of some elements here.
func gstHasAll(ctx context.Context, elements ...string) (bool, error) {
	for _, e := range elements {
		if has, err := gstHas(ctx, e); err != nil || !has {
			return false, err
		}
	}
	return true, nil
}

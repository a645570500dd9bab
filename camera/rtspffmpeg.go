package camera

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/child"
)

// errChanged ends a run of ffmpeg whose pictures became others: it writes the format only once.
var errChanged = errors.New("the picture changed its size or format")

// connectFFmpeg plays the camera by ffmpeg, which is started anew when the picture changes.
func (s *rtsp) connectFFmpeg(ctx context.Context, out *Output) error {
	for {
		err := s.runFFmpeg(ctx, out, "-autoscale", "0", "-fps_mode")
		if errors.Is(err, errOldFFmpeg) { // before 5.1
			err = s.runFFmpeg(ctx, out, "-vsync")
		}
		if !errors.Is(err, errChanged) {
			return err
		}
	}
}

// ffmpegArgs are ffmpeg's: a list on stdin that holds the URL, so that no list of processes shows it; the first video
// stream, every frame once with its time. With hardware the pictures are NV12, as they come from there.
func (s *rtsp) ffmpegArgs(sync ...string) []string {
	format := "format=yuv420p|yuvj420p"
	args := []string{"-nostdin", "-hide_banner", "-nostats", "-loglevel", "repeat+level+verbose"}
	if s.machine.hardware {
		format = "format=nv12"
		args = append(args, "-hwaccel", "auto")
	}
	args = append(args, "-f", "concat", "-safe", "0", "-protocol_whitelist", "pipe,rtp,tcp,tls", "-i", "pipe:0",
		"-map", "0:V:0", "-vf", format)
	args = append(args, sync...)
	return append(args, "passthrough", "-enc_time_base", "1/1000000", "-c:v", "rawvideo", "-f", "nut", "-write_index", "0", "pipe:1")
}

// ffmpegList is the list that ffmpeg reads. "tcp" as a parameter of the URL is for ffmpeg's RTSP client, which
// takes it away, in all of its versions; options in a list are only known to newer ones.
func (s *rtsp) ffmpegList() string {
	u := *s.url
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += "tcp"
	return "ffconcat version 1.0\nfile '" + strings.ReplaceAll(u.String(), "'", `'\''`) + "'\n"
}

func (s *rtsp) runFFmpeg(ctx context.Context, out *Output, sync ...string) error {
	log := newFFLog(s.secrets()...)
	c, err := child.Start(ctx, child.Spec{
		Program: "ffmpeg", Args: s.ffmpegArgs(sync...), Stdin: true, Stdout: true, Stderr: log.line, Grace: childGrace,
	})
	if err != nil {
		return err
	}
	defer c.Stop()
	c.SizeStdout(clipPipe)
	_, err = io.WriteString(c.Stdin(), s.ffmpegList())
	if err == nil {
		err = c.Stdin().Close()
	}
	if err == nil {
		err = s.pumpFFmpeg(ctx, out, c, log)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	select {
	case <-c.Done():
	case <-ctx.Done(): // it closed its output, and goes on
		return ctx.Err()
	}
	said := strings.Join(c.LastErrors(), "; ")
	switch {
	case strings.Contains(said, "'autoscale'"), strings.Contains(said, "'fps_mode'"):
		return errOldFFmpeg
	case c.Wait() == nil:
		return errors.New("the camera ended the stream")
	case said == "":
		said = c.Wait().Error()
	}
	return s.explain("ffmpeg", said)
}

// pumpFFmpeg puts the pictures of ffmpeg into out until they end or change.
func (s *rtsp) pumpFFmpeg(ctx context.Context, out *Output, c *child.Child, log *ffLog) error {
	in, err := newNutReader(c.Stdout())
	if err != nil {
		return err
	}
	described := time.NewTimer(describeWait)
	defer described.Stop()
	select {
	case <-log.ready: // written before the first frame
	case <-c.Done():
	case <-ctx.Done():
		return ctx.Err()
	case <-described.C:
		s.warn("ffmpeg does not say what the camera's colours are: they are guessed by the size", "camera", s.shown)
	}
	format := frame.I420
	if in.fourcc == "NV12" {
		format = frame.NV12
	}
	if err := out.Format(format, log.colour(in.width, in.height), in.width, in.height, log.fps()); err != nil {
		return err
	}
	var clock streamClock
	want := format.Bytes(in.width, in.height)
	for {
		pts, size, err := in.next()
		if err != nil {
			return err
		}
		if size != want || log.changed() {
			return errChanged
		}
		at, by := clock.at(pts, true, time.Now())
		if err := pass(ctx, out, in, size, at, by); err != nil {
			return err
		}
	}
}

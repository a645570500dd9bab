package camera

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/child"
)

// errChanged ends a connection by ffmpeg whose pictures became others: it writes their size and format only once.
var errChanged = errors.New("the picture changed its size or format")

// connectFFmpeg plays the camera by ffmpeg.
func (s *rtsp) connectFFmpeg(ctx context.Context, out *Output) error {
	err := s.runFFmpeg(ctx, out, false)
	if !errors.Is(err, errOldFFmpeg) {
		return err
	}
	if s.url.User != nil {
		s.warn("this ffmpeg is older than 5.1: it gets user and password as arguments, which a list of processes shows", "camera", s.shown)
	}
	return s.runFFmpeg(ctx, out, true)
}

// ffmpegArgs are ffmpeg's: a list on stdin that holds the URL, so that no list of processes shows it; the first video
// stream, every frame once with its time and size. With hardware the pictures are NV12, as they come from there. An old ffmpeg
// cannot take options of a camera from a list, and scales all pictures to the size of the first.
func (s *rtsp) ffmpegArgs(old bool) []string {
	args := []string{"-nostdin", "-hide_banner", "-nostats", "-loglevel", "repeat+level+verbose"}
	format := "format=yuv420p|yuvj420p"
	if s.machine.hardware {
		format = "format=nv12"
		args = append(args, "-hwaccel", "auto")
	}
	args = append(args, "-protocol_whitelist", "pipe,rtp,tcp,tls")
	if old {
		args = append(args, "-rtsp_transport", "tcp", "-i", s.url.String(), "-vsync", "passthrough")
	} else {
		args = append(args, "-f", "concat", "-safe", "0", "-format_whitelist", "concat,rtsp", "-i", "pipe:0",
			"-autoscale", "0", "-fps_mode", "passthrough")
	}
	return append(args, "-map", "0:V:0", "-vf", format, "-enc_time_base", "1/1000000",
		"-c:v", "rawvideo", "-f", "nut", "-write_index", "0", "pipe:1")
}

// ffmpegList is the list that ffmpeg reads.
func (s *rtsp) ffmpegList() string {
	return "ffconcat version 1.0\nfile '" + strings.ReplaceAll(s.url.String(), "'", `'\''`) + "'\n" +
		"option rtsp_transport tcp\noption allowed_media_types video\n"
}

func (s *rtsp) runFFmpeg(ctx context.Context, out *Output, old bool) error {
	log := newFFLog(s.secrets()...)
	c, err := child.Start(ctx, child.Spec{
		Program: "ffmpeg", Args: s.ffmpegArgs(old), Stdin: true, Stdout: true, Stderr: log.line, Grace: childGrace,
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
	if err := settle(ctx, c, err); err != nil {
		return err
	}
	lines := c.LastErrors()
	said := strings.Join(lines[max(len(lines)-3, 0):], "; ")
	switch {
	case strings.Contains(said, "'fps_mode'"): // before 5.1
		return errOldFFmpeg
	case c.Wait() == nil:
		return errors.New("the camera ended the stream")
	case said == "" || killed(c.Wait()):
		said = c.Wait().Error()
	}
	return s.explain(out, "ffmpeg", said)
}

// killed says whether a child ended by a signal, which its last lines do not tell.
func killed(exit error) bool {
	var status *exec.ExitError
	return errors.As(exit, &status) && !status.Exited()
}

// pumpFFmpeg puts the pictures of ffmpeg into out until they end or change.
func (s *rtsp) pumpFFmpeg(ctx context.Context, out *Output, c *child.Child, log *ffLog) error {
	in, err := newNutReader(c.Stdout())
	if err != nil {
		return err
	}
	told, err := log.wait(ctx, c.Done(), describeWait)
	if err != nil {
		return err
	}
	if !told {
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

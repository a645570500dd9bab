package annotate

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/eyas-edge/eyas/internal/child"
)

const (
	// stallLimit bounds how long ffmpeg may take to accept one picture.
	stallLimit = 30 * time.Second
	// stopLimit is the same bound once the caller's context has ended.
	stopLimit = 500 * time.Millisecond
	// stopGrace is what an encoder gets that did not finish in the time that Close had.
	stopGrace = 300 * time.Millisecond
)

// VideoWriter encodes pictures to an MP4 through an ffmpeg process: H.264 with libx264, MPEG-4
// part 2 where ffmpeg lacks that. Every picture is kept, at the time it was given, so that a clip
// of variable frame rate keeps its length and its number of pictures. Odd sizes are padded by
// one pixel, which the formats require.
//
// The index is at the file's end: moving it to the front would rewrite the file, which after
// an hour's recording takes longer than a signal leaves us. Until Close the pictures go to a temporary
// file in the same folder. It is for one goroutine.
type VideoWriter struct {
	path, temp string
	size       image.Point
	ffmpeg     *child.Child
	stdin      pipe
	head       []byte
	first      time.Duration // time of the first picture
	last       uint64        // of the last one, in ticks from the first
	count      int
	err        error // why nothing more can be written
	closed     bool
}

// pipe is what the child's stdin is.
type pipe interface {
	io.WriteCloser
	SetWriteDeadline(time.Time) error
}

// NewVideo starts ffmpeg for a clip of pictures of w x h pixels. path ends with .mp4 and
// its folder exists. The end of ctx stops only the start: a recording ends with Close. A note on the
// encoder goes to log, which may be nil.
func NewVideo(ctx context.Context, path string, w, h int, log *slog.Logger) (*VideoWriter, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if ext := filepath.Ext(path); !strings.EqualFold(ext, ".mp4") {
		return nil, fmt.Errorf("save %s: clips are written as .mp4, not %q", path, ext)
	}
	if w < 1 || h < 1 {
		return nil, fmt.Errorf("save %s: no clip of %dx%d pixels", path, w, h)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("save %s: %w", path, err)
	}
	can, err := ask(ctx)
	if err != nil {
		return nil, fmt.Errorf("save %s: %w", path, err)
	}
	if !can.x264 {
		log.Warn("this ffmpeg has no libx264: the clip is written as MPEG-4 part 2, in larger files", "file", path)
	}
	temp, err := os.CreateTemp(filepath.Dir(abs), "."+filepath.Base(abs)+".*.tmp")
	if err != nil {
		return nil, fmt.Errorf("save %s: %w", path, err)
	}
	temp.Close()
	v := &VideoWriter{path: abs, temp: temp.Name(), size: image.Pt(w, h)}
	v.ffmpeg, err = child.Start(context.WithoutCancel(ctx), child.Spec{
		Program: "ffmpeg", Args: can.arguments(v.temp), Stdin: true, Grace: stopGrace,
	})
	if err != nil {
		os.Remove(v.temp)
		return nil, fmt.Errorf("save %s: %w", path, err)
	}
	v.stdin = v.ffmpeg.Stdin().(pipe) // an *os.File
	v.head = matroskaHeader(w, h)
	return v, nil
}

// abilities is what differs between the versions and builds of ffmpeg.
type abilities struct {
	rateOption string // keeps the pictures' times: -fps_mode from 5.1 on, -vsync before; 9 has only the first
	x264       bool
}

// ask finds out by listing ffmpeg's encoders. The list comes only if ffmpeg knows all options
// beside it.
func ask(ctx context.Context) (abilities, error) {
	var err error
	for _, option := range []string{"-fps_mode", "-vsync"} {
		a := abilities{rateOption: option}
		if a.x264, err = encoders(ctx, option); err == nil {
			return a, nil
		}
	}
	return abilities{}, err
}

// encoders says whether ffmpeg lists libx264; it fails when ffmpeg does not know the option.
func encoders(ctx context.Context, option string) (x264 bool, err error) {
	c, err := child.Start(ctx, child.Spec{
		Program: "ffmpeg", Args: []string{"-hide_banner", "-nostdin", option, "vfr", "-encoders"}, Stdout: true,
	})
	if errors.Is(err, exec.ErrNotFound) {
		return false, errors.New("clips are written by ffmpeg, which is not installed: apt-get install ffmpeg")
	}
	if err != nil {
		return false, err
	}
	defer c.Stop()
	for lines := bufio.NewScanner(c.Stdout()); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && fields[1] == "libx264" {
			x264 = true
		}
	}
	return x264, c.Wait()
}

// arguments makes ffmpeg's command line. Colours are converted to and marked as BT.709, because
// players read an unmarked clip as one or the other by its size.
func (a abilities) arguments(to string) []string {
	encoder := []string{"-c:v", "mpeg4", "-q:v", "4"}
	if a.x264 {
		// A short lookahead: what waits in the encoder has to be finished after a signal. The default waits
		// for twice as many pictures, for no smaller files.
		encoder = []string{"-c:v", "libx264", "-preset", "veryfast", "-crf", "20", "-x264-params", "sync-lookahead=0:rc-lookahead=5"}
	}
	return slices.Concat([]string{
		"-nostdin", "-hide_banner", "-loglevel", "error", "-y",
		"-probesize", "32", "-analyzeduration", "0",
		"-protocol_whitelist", "pipe", "-f", "matroska", "-i", "pipe:0",
		"-vf", "scale=out_color_matrix=bt709:out_range=tv,pad=ceil(iw/2)*2:ceil(ih/2)*2,format=yuv420p",
		"-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709", "-color_range", "tv",
		// The input's ticks: else times are rounded to a guessed frame rate.
		a.rateOption, "vfr", "-enc_time_base", fmt.Sprintf("1:%d", time.Second/tick),
	}, encoder, []string{"-pix_fmt", "yuv420p", "-f", "mp4", "file:" + to})
}

// Write adds a picture that is shown from pts on. A time that is not after the last one's
// counts as just after it. When ctx ends while ffmpeg is busy, Write gives up after half a
// second. After an error only Close makes sense.
func (v *VideoWriter) Write(ctx context.Context, img *image.RGBA, pts time.Duration) error {
	switch {
	case v.closed:
		return fmt.Errorf("save %s: the clip is closed", v.path)
	case v.err != nil:
		return v.err
	case img.Rect.Size() != v.size:
		return fmt.Errorf("save %s: picture of %v in a clip of %v", v.path, img.Rect.Size(), v.size)
	}
	at := uint64(0)
	if v.count == 0 {
		v.first = pts
	} else {
		at = uint64(max((pts-v.first+tick/2)/tick, 0))
		at = max(at, v.last+1)
	}
	n := 4 * v.size.X * v.size.Y
	v.head = appendPictureHeader(v.head, at, n)

	if err := v.stdin.SetWriteDeadline(time.Now().Add(stallLimit)); err != nil {
		return v.fail(err)
	}
	defer context.AfterFunc(ctx, func() { _ = v.stdin.SetWriteDeadline(time.Now().Add(stopLimit)) })()
	if _, err := v.stdin.Write(v.head); err != nil {
		return v.fail(err)
	}
	v.head = v.head[:0]
	row := 4 * v.size.X
	if img.Stride == row {
		row = n
	}
	for from := 0; n > 0; from, n = from+img.Stride, n-row {
		if _, err := v.stdin.Write(img.Pix[from : from+row]); err != nil {
			return v.fail(err)
		}
	}
	v.last = at
	v.count++
	return nil
}

// fail keeps the reason: ffmpeg's own words where it ended, as a broken pipe says.
func (v *VideoWriter) fail(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		select {
		case <-v.ffmpeg.Done():
			if end := v.ffmpeg.Wait(); end != nil {
				err = end
			}
		case <-time.After(stopLimit):
		}
	}
	v.err = fmt.Errorf("save %s: %w", v.path, err)
	return v.err
}

// Close ends the clip and gives it its name. It waits for ffmpeg until ctx ends, then ends
// ffmpeg. An error says that pictures may be missing: a file that plays is kept all the same, for it may be
// an hour's recording. No other file is left, nor one without a picture. Further calls do nothing.
func (v *VideoWriter) Close(ctx context.Context) error {
	if v.closed {
		return nil
	}
	v.closed = true
	defer os.Remove(v.temp) // fails once it is renamed
	v.stdin.Close()
	select {
	case <-v.ffmpeg.Done():
	case <-ctx.Done():
		if err := v.ffmpeg.Stop(); err != nil {
			return fmt.Errorf("save %s: %w", v.path, err)
		}
	}
	err := v.err
	if end := v.ffmpeg.Wait(); err == nil && end != nil && v.count > 0 {
		err = fmt.Errorf("save %s: %w", v.path, end)
	}
	if v.count == 0 || err != nil && !plays(v.temp) {
		return err
	}
	if naming := v.name(); err == nil {
		return naming
	}
	return err
}

// name gives the finished file its name.
func (v *VideoWriter) name() error {
	err := os.Chmod(v.temp, 0o644)
	if err == nil {
		err = os.Rename(v.temp, v.path)
	}
	if err != nil {
		return fmt.Errorf("save %s: %w", v.path, err)
	}
	return nil
}

// plays says whether an MP4 is whole: its boxes fill it to the end, and the index is one of them. ffmpeg
// writes the index last, and its size last of all, so that a killed one leaves no such file.
func plays(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false
	}
	index := false
	for at, end := int64(0), info.Size(); at < end; {
		var head [16]byte
		if n, _ := f.ReadAt(head[:], at); n < 8 {
			return false
		}
		size := int64(binary.BigEndian.Uint32(head[:]))
		if size == 1 { // the real one follows
			size = int64(binary.BigEndian.Uint64(head[8:]))
		}
		if size < 8 || size > end-at {
			return false
		}
		index = index || string(head[4:8]) == "moov"
		at += size
	}
	return index
}

package annotate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/internal/child"
	"github.com/eyas-edge/eyas/internal/testenv"
)

// probe returns the codec, size and the time of each picture that ffprobe decodes.
func probe(t *testing.T, path string) (codec string, size image.Point, times []float64) {
	t.Helper()
	out, err := exec.Command("ffprobe", "-v", "error", "-show_entries", "stream=codec_name,width,height",
		"-show_entries", "frame=pts_time", "-of", "default=noprint_wrappers=1", path).CombinedOutput()
	if err != nil {
		t.Fatalf("ffprobe: %v: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "codec_name":
			codec = value
		case "width":
			size.X, _ = strconv.Atoi(value)
		case "height":
			size.Y, _ = strconv.Atoi(value)
		case "pts_time":
			s, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			times = append(times, s)
		}
	}
	return codec, size, times
}

// A clip of variable frame rate keeps its pictures and their times; odd sizes are padded.
func TestVideoKeepsPicturesAndTimes(t *testing.T) {
	testenv.FFmpeg(t)
	for _, w := range []int{64, 101} {
		path := filepath.Join(t.TempDir(), "clip.mp4")
		v, err := NewVideo(t.Context(), path, w, 67, nil)
		if err != nil {
			t.Fatal(err)
		}
		img := canvas(w, 67)
		var want []float64
		at := 3 * time.Second // where a clip starts does not matter
		for i := range 22 {
			if err := v.Write(t.Context(), img, at); err != nil {
				t.Fatal(err)
			}
			want = append(want, (at - 3*time.Second).Seconds())
			at += []time.Duration{33366700, 33366700, 8 * time.Millisecond, 500 * time.Millisecond, 41 * time.Millisecond}[i%5]
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("the clip has its name before it is whole")
		}
		if err := v.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := v.Close(t.Context()); err != nil {
			t.Fatalf("closed again: %v", err)
		}
		codec, size, got := probe(t, path)
		if size != image.Pt((w+1)/2*2, 68) || codec != "h264" && codec != "mpeg4" {
			t.Errorf("%s of %v", codec, size)
		}
		if len(got) != len(want) {
			t.Fatalf("%d pictures, want %d", len(got), len(want))
		}
		for i := range want {
			if math.Abs(got[i]-want[i]) > 0.001 {
				t.Errorf("picture %d at %.4f s, want %.4f", i, got[i], want[i])
			}
		}
		if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
			t.Errorf("the folder holds %v", entries)
		}
	}
}

// Times that stand still or go back lose no picture.
func TestVideoTimesGoOn(t *testing.T) {
	testenv.FFmpeg(t)
	path := filepath.Join(t.TempDir(), "clip.mp4")
	v, err := NewVideo(t.Context(), path, 32, 32, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, ms := range []int{0, 0, 40, 20, 40, 80, -5} {
		if err := v.Write(t.Context(), canvas(32, 32), time.Duration(ms)*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, times := probe(t, path); len(times) != 7 {
		t.Errorf("%d pictures, want 7", len(times))
	}
}

// standIn puts a shell script in ffmpeg's place; $REAL is the real one.
func standIn(t *testing.T, script string) {
	t.Helper()
	real := testenv.FFmpeg(t)
	dir := t.TempDir()
	body := "#!/bin/sh\nREAL=" + real + "\nPATH=/usr/bin:/bin\n" + script + "\n"
	testenv.Script(t, filepath.Join(dir, "ffmpeg"), body)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func TestVideoWithoutLibx264(t *testing.T) {
	standIn(t, `case "$*" in *-encoders*) echo " V..... mpeg4   MPEG-4 part 2" ;; *) exec $REAL "$@" ;; esac`)
	var log bytes.Buffer
	path := filepath.Join(t.TempDir(), "clip.mp4")
	v, err := NewVideo(t.Context(), path, 64, 48, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if err := v.Write(t.Context(), canvas(64, 48), time.Duration(i)*40*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if codec, _, times := probe(t, path); codec != "mpeg4" || len(times) != 5 {
		t.Errorf("%s with %d pictures", codec, len(times))
	}
	if !strings.Contains(log.String(), "no libx264") {
		t.Errorf("log: %s", log.String())
	}
}

func TestVideoTellsWhyFFmpegEnded(t *testing.T) {
	standIn(t, `case "$*" in *-encoders*) ;; *) echo "no space left on the moon" >&2; exit 3 ;; esac`)
	dir := t.TempDir()
	v, err := NewVideo(t.Context(), filepath.Join(dir, "clip.mp4"), 640, 480, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if err = v.Write(t.Context(), canvas(640, 480), 0); err != nil {
			break
		}
	}
	want := fmt.Sprintf("save %s/clip.mp4: ffmpeg: exit status 3: no space left on the moon", dir)
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := v.Close(t.Context()); err == nil || err.Error() != want {
		t.Errorf("close: got %v, want %s", err, want)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("the folder holds %v", entries)
	}
}

// An ffmpeg that takes nothing more and does not end: both Write and Close come back once their
// contexts have ended.
func TestVideoOfAStalledFFmpeg(t *testing.T) {
	standIn(t, `case "$*" in *-encoders*) ;; *) exec sleep 600 ;; esac`)
	dir := t.TempDir()
	v, err := NewVideo(t.Context(), filepath.Join(dir, "clip.mp4"), 640, 480, nil)
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := v.Write(ended, canvas(640, 480), 0); err == nil {
		t.Error("a picture was taken")
	}
	if err := v.Close(ended); err == nil {
		t.Error("a broken clip was closed without an error")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("the folder holds %v", entries)
	}
}

// An ffmpeg that has written its file but does not end in time: the recording is kept.
func TestVideoOfAStoppedFFmpeg(t *testing.T) {
	dir := t.TempDir()
	written := filepath.Join(dir, "written")
	if err := syscall.Mkfifo(written, 0o600); err != nil {
		t.Fatal(err)
	}
	standIn(t, `case "$*" in *-encoders*) exec $REAL "$@" ;; *) $REAL "$@"; : >`+written+`; exec sleep 600 ;; esac`)
	path := filepath.Join(dir, "clip.mp4")
	v, err := NewVideo(t.Context(), path, 64, 48, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if err := v.Write(t.Context(), canvas(64, 48), time.Duration(i)*40*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer stop()
		if f, err := os.Open(written); err == nil { // waits for the other end
			f.Close()
		}
	}()
	if err := v.Close(ctx); !errors.Is(err, child.ErrStopped) {
		t.Errorf("closed with %v, want that ffmpeg was stopped", err)
	}
	if _, _, times := probe(t, path); len(times) != 5 {
		t.Errorf("%d pictures", len(times))
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("the folder holds %v", entries)
	}
}

func TestPlays(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		want bool
	}{
		"whole":           {"\x00\x00\x00\x08ftyp\x00\x00\x00\x0amdat..\x00\x00\x00\x09moov.", true},
		"long size":       {"\x00\x00\x00\x01mdat\x00\x00\x00\x00\x00\x00\x00\x11.\x00\x00\x00\x08moov", true},
		"no index":        {"\x00\x00\x00\x08ftyp\x00\x00\x00\x0amdat..", false},
		"index cut off":   {"\x00\x00\x00\x08ftyp\x00\x00\x00\x19moov....", false},
		"size not filled": {"\x00\x00\x00\x08ftyp\x00\x00\x00\x00moov", false},
		"rest of a head":  {"\x00\x00\x00\x08moov\x00\x00", false},
		"negative size":   {"\x00\x00\x00\x01moov\xff\xff\xff\xff\xff\xff\xff\xff", false},
		"empty":           {"", false},
	} {
		path := filepath.Join(t.TempDir(), "x.mp4")
		if err := os.WriteFile(path, []byte(c.data), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := plays(path); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if plays(filepath.Join(t.TempDir(), "none")) {
		t.Error("a file that is not there plays")
	}
}

func TestVideoRefuses(t *testing.T) {
	testenv.FFmpeg(t)
	dir := t.TempDir()
	for _, c := range []struct {
		name, path string
		w, h       int
	}{
		{"extension", filepath.Join(dir, "a.avi"), 8, 8},
		{"no size", filepath.Join(dir, "a.mp4"), 0, 8},
		{"no folder", filepath.Join(dir, "none", "a.mp4"), 8, 8},
	} {
		if _, err := NewVideo(t.Context(), c.path, c.w, c.h, nil); err == nil {
			t.Errorf("%s: taken", c.name)
		}
	}
	v, err := NewVideo(t.Context(), filepath.Join(dir, "a.mp4"), 8, 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Write(t.Context(), canvas(8, 10), 0); err == nil {
		t.Error("a picture of another size was taken")
	}
	if err := v.Close(t.Context()); err != nil {
		t.Errorf("a clip without pictures: %v", err)
	}
	if err := v.Write(t.Context(), canvas(8, 8), 0); err == nil {
		t.Error("a closed clip took a picture")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("the folder holds %v", entries)
	}
}

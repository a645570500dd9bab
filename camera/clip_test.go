package camera

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/child"
	"github.com/eyas-edge/eyas/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// asset returns the path of a test asset, and skips the test where the assets are absent.
func asset(t testing.TB, path ...string) string {
	t.Helper()
	return filepath.Join(append([]string{testenv.Assets(t)}, path...)...)
}

// needFFmpeg skips the test where ffmpeg is missing, or fails it where it has to be there.
func needFFmpeg(t testing.TB) {
	t.Helper()
	testenv.FFmpeg(t)
}

// ffmpeg makes a file for a test.
func ffmpeg(t testing.TB, args ...string) {
	t.Helper()
	needFFmpeg(t)
	out, err := exec.Command("ffmpeg", append([]string{"-nostdin", "-v", "error", "-y"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("ffmpeg %v: %v\n%s", args, err, out)
	}
}

// collector is a sink that notes what comes and releases it, or hands it to see.
type collector struct {
	see    func(f *Frame) error
	frames []*Frame // copies without pixels
	faults []error
	states []State
}

func (c *collector) Frame(_ context.Context, f *Frame) error {
	c.frames = append(c.frames, &Frame{
		Format: f.Format, Colour: f.Colour, Width: f.Width, Height: f.Height, Source: f.Source,
		Seq: f.Seq, PTS: f.PTS, HasPTS: f.HasPTS, Captured: f.Captured, CapturedBy: f.CapturedBy,
	})
	defer f.Release()
	if c.see != nil {
		return c.see(f)
	}
	return nil
}

func (*collector) Reclaim() bool { return false }

func (c *collector) State(to State, err error) { c.states = append(c.states, to) }

func (c *collector) Fault(err error) { c.faults = append(c.faults, err) }

func mustOpen(t testing.TB, spec string, opts ...Option) Source {
	t.Helper()
	s, err := Open(spec, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestClips(t *testing.T) {
	needFFmpeg(t)
	full601 := frame.Colour{Matrix: frame.BT601, Full: true}
	hd := frame.Colour{Matrix: frame.BT709}
	tests := []struct {
		file   string
		frames int
		w, h   int
		colour frame.Colour
		last   time.Duration
		err    string
	}{
		{"cars-hevc.mp4", 38, 1280, 720, hd, 1480 * time.Millisecond, ""},
		{"udacity-vehicles.mp4", 38, 1280, 720, hd, 1480 * time.Millisecond, ""},
		{"mmtracking-demo.mp4", 8, 1920, 1080, hd, 2333333 * time.Microsecond, ""},
		{"person-mjpeg.avi", 50, 768, 432, full601, 4900 * time.Millisecond, ""},
		{"person.ts", 50, 768, 432, frame.Colour{}, 4900 * time.Millisecond, ""},
		{"person-rotate90.mp4", 50, 768, 432, frame.Colour{}, 4900 * time.Millisecond, ""},
		{"person-stream.mjpeg", 20, 768, 432, full601, 760 * time.Millisecond, ""},
		{"person-vfr.mp4", 22, 768, 432, frame.Colour{}, 4500 * time.Millisecond, ""},
		{"person-truncated.mp4", 508, 768, 432, frame.Colour{}, 50700 * time.Millisecond, "damaged or cut off: 508 frames could be decoded"},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			path := asset(t, "videos", tt.file)
			s := mustOpen(t, path)
			var got collector
			err := s.Run(t.Context(), &got)
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("Run: %v, want %q", err, tt.err)
			}
			if err != nil && (strings.ContainsAny(err.Error(), "\n\x1b") || !strings.Contains(err.Error(), path)) {
				t.Errorf("not one clear line: %q", err)
			}
			if len(got.frames) != tt.frames || len(got.faults) != 0 {
				t.Fatalf("%d frames, %d faults, want %d and none", len(got.frames), len(got.faults), tt.frames)
			}
			for i := range got.frames {
				f := got.frames[i]
				if f.Width != tt.w || f.Height != tt.h || f.Format != frame.I420 || f.Colour != tt.colour {
					t.Fatalf("frame %d: %s %dx%d %+v", i, f.Format, f.Width, f.Height, f.Colour)
				}
				if f.Seq != uint64(i) || !f.HasPTS || f.Source != path || f.CapturedBy != frame.ByNone || !f.Captured.IsZero() {
					t.Fatalf("frame %d: %+v", i, f)
				}
				if i > 0 && f.PTS <= got.frames[i-1].PTS {
					t.Fatalf("frame %d is at %v after %v", i, f.PTS, got.frames[i-1].PTS)
				}
			}
			if last := got.frames[len(got.frames)-1].PTS; last != tt.last {
				t.Errorf("last frame at %v, want %v", last, tt.last)
			}
		})
	}
}

func TestClipVariableRate(t *testing.T) {
	s := mustOpen(t, "door="+clipAsset(t, "person-vfr.mp4"))
	var got collector
	if err := s.Run(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	var ms []int64
	for _, f := range got.frames {
		ms = append(ms, f.PTS.Milliseconds())
	}
	want := []int64{0, 100, 200, 300, 400, 500, 1000, 1500, 2000, 2100, 2200, 2300, 2400, 2500, 3000, 3500, 4000, 4100, 4200, 4300, 4400, 4500}
	if d := cmp.Diff(want, ms); d != "" {
		t.Error(d)
	}
	if got.frames[0].Source != "door" || s.Name() != "door" || s.Live() {
		t.Errorf("source %q, %q, live %v", got.frames[0].Source, s.Name(), s.Live())
	}
	if n := s.(Counter).Total(); n != 22 {
		t.Errorf("Total %d, want 22", n)
	}
}

func clipAsset(t testing.TB, name string) string {
	t.Helper()
	needFFmpeg(t)
	return asset(t, "videos", name)
}

// TestClipPixels compares the frames of the rotated clip, byte for byte, with what ffmpeg
// writes as plain upright frames.
func TestClipPixels(t *testing.T) {
	path := clipAsset(t, "person-rotate90.mp4")
	want := filepath.Join(t.TempDir(), "want.raw")
	ffmpeg(t, "-noautorotate", "-i", path, "-vf", "transpose=clock", "-pix_fmt", "yuv420p", "-f", "rawvideo", want)
	data, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	other := collector{}
	same := collector{see: func(f *Frame) error {
		for _, p := range f.Planes {
			if len(data) < len(p.Data) || !bytes.Equal(p.Data, data[:len(p.Data)]) {
				other.frames = append(other.frames, &Frame{Seq: f.Seq})
			}
			data = data[min(len(p.Data), len(data)):]
		}
		return nil
	}}
	if err := mustOpen(t, path).Run(t.Context(), &same); err != nil {
		t.Fatal(err)
	}
	if len(other.frames) > 0 || len(data) > 0 {
		t.Errorf("%d planes differ, %d bytes are missing", len(other.frames), len(data))
	}
}

func TestClipOptions(t *testing.T) {
	path := clipAsset(t, "person.ts")
	tests := []struct {
		name string
		opts []Option
		seqs []uint64
	}{
		{"every", []Option{Every(20)}, []uint64{0, 20, 40}},
		{"max", []Option{MaxFrames(2)}, []uint64{0, 1}},
		{"both", []Option{Every(10), MaxFrames(3)}, []uint64{0, 10, 20}},
		{"one buffer", []Option{Every(25), Buffers(1)}, []uint64{0, 25}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := mustOpen(t, path, tt.opts...)
			var got collector
			if err := s.Run(t.Context(), &got); err != nil {
				t.Fatal(err)
			}
			var seqs []uint64
			for i := range got.frames {
				seqs = append(seqs, got.frames[i].Seq)
				if want := time.Duration(got.frames[i].Seq) * 100 * time.Millisecond; got.frames[i].PTS != want {
					t.Errorf("frame %d at %v, want %v", seqs[i], got.frames[i].PTS, want)
				}
			}
			if d := cmp.Diff(tt.seqs, seqs); d != "" {
				t.Error(d)
			}
			if n := s.(Counter).Total(); n != len(tt.seqs) {
				t.Errorf("Total %d, want %d", n, len(tt.seqs))
			}
		})
	}
}

func TestClipRefused(t *testing.T) {
	needFFmpeg(t)
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	list := "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n"
	sound := filepath.Join(dir, "sound.wav")
	ffmpeg(t, "-f", "lavfi", "-i", "sine=duration=0.1", sound)
	soundClip := filepath.Join(dir, "sound.mkv")
	ffmpeg(t, "-i", sound, "-c", "copy", soundClip)
	clip, err := filepath.Abs(asset(t, "videos", "person.ts"))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, path string
		opts       []Option
		err        string
	}{
		{"text named mp4", write("notes.mp4", "these are no pictures at all\n"), nil, "ffmpeg cannot decode it: "},
		{"text", write("notes.txt", strings.Repeat("these are no pictures at all\n", 50)), nil, "is no video file of a known kind"},
		{"playlist of a server", write("net.m3u8", list+"http://127.0.0.1:9/x.ts\n"), nil, "is no video file of a known kind"},
		{"playlist of a file", write("file.m3u8", list+clip+"\n#EXT-X-ENDLIST\n"), nil, "is no video file of a known kind"},
		{"script of files", write("list.ffconcat", "ffconcat version 1.0\nfile '"+clip+"'\n"), nil, "is no video file of a known kind"},
		{"sound", sound, nil, "is no video file of a known kind"},
		{"sound in a video container", soundClip, nil, "has no video stream"},
		{"too large", clip, []Option{MaxPixels(768*432 - 1)}, "--max-pixels"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got collector
			err := mustOpen(t, tt.path, tt.opts...).Run(t.Context(), &got)
			if err == nil || !strings.Contains(err.Error(), tt.err) || len(got.frames) > 0 {
				t.Errorf("%d frames, error %v, want %q", len(got.frames), err, tt.err)
			}
			t.Log(err)
		})
	}
}

// TestClipSizeChange has a stream that changes its size: ffmpeg scales to the first.
func TestClipSizeChange(t *testing.T) {
	dir := t.TempDir()
	a, b, both := filepath.Join(dir, "a.mjpeg"), filepath.Join(dir, "b.mjpeg"), filepath.Join(dir, "odd =:%d name.mjpeg")
	ffmpeg(t, "-f", "lavfi", "-i", "testsrc=size=321x241:rate=5:duration=1", "-pix_fmt", "yuvj420p", a)
	ffmpeg(t, "-f", "lavfi", "-i", "testsrc=size=640x360:rate=5:duration=1", "-pix_fmt", "yuvj420p", b)
	var data []byte
	for _, p := range []string{a, b} {
		d, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, d...)
	}
	if err := os.WriteFile(both, data, 0o600); err != nil {
		t.Fatal(err)
	}
	var got collector
	if err := mustOpen(t, both).Run(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.frames) != 10 {
		t.Fatalf("%d frames, want 10", len(got.frames))
	}
	for _, f := range got.frames {
		if f.Width != 321 || f.Height != 241 || !f.Colour.Full {
			t.Errorf("frame %d: %dx%d, %+v", f.Seq, f.Width, f.Height, f.Colour)
		}
	}
}

// TestClipColours makes clips whose colour ffmpeg has to change or to guess.
func TestClipColours(t *testing.T) {
	dir := t.TempDir()
	tests := []struct {
		name, size, codec string
		more              []string
		want              frame.Colour
	}{
		{"rgb.avi", "1280x720", "rawvideo", []string{"-pix_fmt", "bgr24"}, frame.Colour{}},
		{"unknown-sd.mkv", "320x240", "ffv1", []string{"-pix_fmt", "yuv420p"}, frame.Colour{}},
		{"unknown-hd.mkv", "1280x720", "ffv1", []string{"-pix_fmt", "yuv420p"}, frame.Colour{Matrix: frame.BT709}},
		{"gray.mkv", "321x241", "ffv1", []string{"-pix_fmt", "gray"}, frame.Colour{Full: true}},
		{"j422.avi", "320x240", "mjpeg", []string{"-pix_fmt", "yuvj422p"}, frame.Colour{Full: true}},
		{"full709.mkv", "320x240", "ffv1", []string{"-pix_fmt", "yuv420p", "-color_range", "pc", "-colorspace", "bt709"}, frame.Colour{Matrix: frame.BT709, Full: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(dir, tt.name)
			args := append([]string{"-f", "lavfi", "-i", "testsrc=size=" + tt.size + ":rate=5:duration=0.4", "-c:v", tt.codec}, tt.more...)
			ffmpeg(t, append(args, path)...)
			var got collector
			if err := mustOpen(t, path).Run(t.Context(), &got); err != nil {
				t.Fatal(err)
			}
			if len(got.frames) != 2 || got.frames[0].Colour != tt.want {
				t.Errorf("%d frames, colour %+v, want %+v", len(got.frames), got.frames[0].Colour, tt.want)
			}
		})
	}
}

// TestClipContainers has one short clip in each kind of file that ffmpeg can make here.
func TestClipContainers(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ name, codec string }{
		{"a.mov", "mjpeg"}, {"a.mp4", "mpeg4"}, {"a.3gp", "mpeg4"}, {"a.mkv", "mpeg4"}, {"a.webm", "libvpx"}, {"a.avi", "mpeg4"},
		{"a.m2ts", "mpeg2video"}, {"a.mpg", "mpeg2video"}, {"a.m2v", "mpeg2video"}, {"a.m4v", "mpeg4"}, {"a.flv", "flv"},
		{"a.wmv", "wmv2"}, {"a.ogv", "libtheora"}, {"a.nut", "mpeg4"}, {"a.ivf", "libvpx"}, {"a.y4m", "wrapped_avframe"}, {"a.mxf", "mpeg2video"},
		{"a.rm", "rv10"}, {"a.wtv", "mpeg2video"}, {"a.h263", "h263"}, {"a.mjpg", "mjpeg"}, {"a%d.mjpeg", "mjpeg"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(dir, tt.name)
			if err := exec.Command("ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=352x288:rate=25:duration=0.4",
				"-pix_fmt", "yuv420p", "-strict", "-1", "-c:v", tt.codec, "-f", muxer(tt.name), path).Run(); err != nil {
				t.Skipf("this ffmpeg does not make it: %v", err)
			}
			var got collector
			if err := mustOpen(t, path).Run(t.Context(), &got); err != nil || len(got.frames) != 10 {
				t.Errorf("%d frames, %v, want 10", len(got.frames), err)
			}
		})
	}
}

// muxer returns ffmpeg's name of the format that a file name stands for.
func muxer(name string) string {
	ext := strings.TrimPrefix(filepath.Ext(name), ".")
	if m := map[string]string{
		"mkv": "matroska", "m2ts": "mpegts", "mpg": "mpeg", "m2v": "mpeg2video", "wmv": "asf", "ogv": "ogg",
		"y4m": "yuv4mpegpipe", "mjpg": "mjpeg",
	}[ext]; m != "" {
		return m
	}
	return ext
}

// TestClipElementary reads a stream without any times of its own.
func TestClipElementary(t *testing.T) {
	path := clipAsset(t, "person.ts")
	bare := filepath.Join(t.TempDir(), "bare.h264")
	ffmpeg(t, "-i", path, "-c", "copy", bare)
	var got collector
	if err := mustOpen(t, bare).Run(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.frames) != 50 {
		t.Errorf("%d frames, want 50", len(got.frames))
	}
}

func TestClipCancel(t *testing.T) {
	path := clipAsset(t, "udacity-vehicles.mp4")
	ctx, cancel := context.WithCancel(t.Context())
	got := collector{see: func(f *Frame) error {
		if f.Seq == 2 {
			cancel()
		}
		return nil
	}}
	if err := mustOpen(t, path).Run(ctx, &got); !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
	if len(got.frames) > 10 {
		t.Errorf("%d frames after the end of the context", len(got.frames))
	}
}

func TestClipSinkError(t *testing.T) {
	path := clipAsset(t, "person.ts")
	full := errors.New("disk full")
	got := collector{see: func(*Frame) error { return full }}
	if err := mustOpen(t, path).Run(t.Context(), &got); err != full {
		t.Errorf("Run: %v", err)
	}
	if len(got.frames) != 1 {
		t.Errorf("%d frames after an error", len(got.frames))
	}
}

// TestClipKilled kills ffmpeg in the middle, as the kernel does when memory runs out.
func TestClipKilled(t *testing.T) {
	path := clipAsset(t, "udacity-vehicles.mp4")
	got := collector{see: func(f *Frame) error {
		if f.Seq == 1 {
			for _, pid := range children(t) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		return nil
	}}
	err := mustOpen(t, path).Run(t.Context(), &got)
	if err == nil || !strings.Contains(err.Error(), "ffmpeg ended early: signal: killed") {
		t.Errorf("Run: %v", err)
	}
}

// TestClipMissingProgram opens a clip where no ffmpeg is.
func TestClipMissingProgram(t *testing.T) {
	path := asset(t, "videos", "person.ts")
	t.Setenv("PATH", t.TempDir())
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "apt-get install ffmpeg") {
		t.Errorf("Open: %v", err)
	}
}

// TestOldFFmpeg has a program in ffmpeg's place that does not know -fps_mode.
func TestOldFFmpeg(t *testing.T) {
	path := clipAsset(t, "person.ts")
	real, err := child.Look("ffmpeg")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := "#!/bin/sh\ncase \"$*\" in *-fps_mode*) echo \"Unrecognized option 'fps_mode'.\" >&2; exit 1;; esac\nexec " + real + " \"$@\"\n"
	testenv.Script(t, filepath.Join(dir, "ffmpeg"), script)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	var got collector
	if err := mustOpen(t, path).Run(t.Context(), &got); err != nil || len(got.frames) != 50 {
		t.Errorf("%d frames, %v", len(got.frames), err)
	}
}

// TestStalledFFmpeg has programs in ffmpeg's place that go on without giving anything.
func TestStalledFFmpeg(t *testing.T) {
	path := clipAsset(t, "person.ts")
	c := mustOpen(t, path).(*clip)
	nut, err := exec.Command(c.ffmpeg, c.args("-fps_mode")...).Output()
	if err != nil {
		t.Skipf("this ffmpeg is too old for the test: %v", err)
	}
	start := filepath.Join(t.TempDir(), "start.nut")
	if err := os.WriteFile(start, nut[:768*432*3/2*5/2], 0o600); err != nil { // two frames and a half
		t.Fatal(err)
	}
	tests := []struct {
		name, script string
		frames       int
		err          string
	}{
		{"silent", "exec sleep 600", 0, "after 0 frames"},
		{"says why", "echo '[error] no answer' >&2; exec sleep 600", 0, "last line: no answer"},
		{"output closed", "exec >&-; exec sleep 600", 0, "after 0 frames"},
		{"floods its log", "while :; do echo '[error] again'; done >&2", 0, "last line: again"},
		{"after frames", "cat '" + start + "'; exec sleep 600", 2, "after 2 frames"},
	}
	t.Run("group", func(t *testing.T) { // ends with the last of its parallel tests
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				s := mustOpen(t, path).(*clip)
				s.ffmpeg = filepath.Join(t.TempDir(), "ffmpeg")
				testenv.Script(t, s.ffmpeg, "#!/bin/sh\n"+tt.script+"\n")
				s.wait, s.stall = time.Millisecond, 3*time.Second
				var got collector
				err := s.Run(t.Context(), &got)
				if err == nil || !strings.Contains(err.Error(), "ffmpeg gave nothing for 3s") || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("Run: %v, want %q", err, tt.err)
				}
				if len(got.frames) != tt.frames {
					t.Errorf("%d frames, want %d", len(got.frames), tt.frames)
				}
			})
		}
	})
	if left := children(t); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// deadlines is a stream that notes how long each read may take.
type deadlines struct {
	end  time.Time
	left []time.Duration
}

func (d *deadlines) SetReadDeadline(end time.Time) error { d.end = end; return nil }

func (d *deadlines) Read(p []byte) (int, error) {
	d.left = append(d.left, time.Until(d.end))
	return len(p), nil
}

// TestStallReader waits between reads, as a slow detector does: each has the whole time.
func TestStallReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var in deadlines
		r := &stallReader{in: &in, limit: time.Minute}
		for range 3 {
			if _, err := r.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour) // of the test's own clock
		}
		if d := cmp.Diff([]time.Duration{time.Minute, time.Minute, time.Minute}, in.left); d != "" {
			t.Error(d)
		}
	})
}

// TestRewordedFFmpeg has an ffmpeg whose log is worded otherwise: the clip is whole all the same.
func TestRewordedFFmpeg(t *testing.T) {
	path := clipAsset(t, "person.ts")
	real, err := child.Look("ffmpeg")
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]string{
		"words":  "s/Stream #/Track #/; s/Output #/Target #/; s/Duration/Length/",
		"levels": "s/\\[info\\]/<i>/; s/\\[warning\\]/<w>/",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			script := "#!/bin/sh\n{ " + real + " \"$@\" 2>&1 >&3 3>&- | sed -u '" + edit + "' >&2; } 3>&1\n"
			testenv.Script(t, filepath.Join(dir, "ffmpeg"), script)
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			s := mustOpen(t, path)
			s.(*clip).wait = time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // ends what hangs
			defer cancel()
			var got collector
			if err := s.Run(ctx, &got); err != nil || len(got.frames) != 50 {
				t.Errorf("%d frames, %v", len(got.frames), err)
			}
		})
	}
}

// TestClipMemory runs a clip with two buffers: the frames use the same memory again, and the
// heap does not grow with their number.
func TestClipMemory(t *testing.T) {
	path := clipAsset(t, "person-truncated.mp4")
	seen := map[*byte]int{}
	var before, after runtime.MemStats
	got := collector{see: func(f *Frame) error {
		seen[&f.Planes[0].Data[0]]++
		switch f.Seq {
		case 100:
			runtime.ReadMemStats(&before)
		case 500:
			runtime.ReadMemStats(&after)
		}
		return nil
	}}
	got.frames = make([]*Frame, 0, 600)
	_ = mustOpen(t, path, Buffers(2)).Run(t.Context(), &got)
	if len(seen) > 2 {
		t.Errorf("%d buffers, want 2", len(seen))
	}
	if n := after.Mallocs - before.Mallocs; n > 3*400 {
		t.Errorf("%d allocations of %d bytes in 400 frames", n, after.TotalAlloc-before.TotalAlloc)
	} else {
		t.Logf("%.2f allocations of %.0f bytes a frame", float64(n)/400, float64(after.TotalAlloc-before.TotalAlloc)/400)
	}
}

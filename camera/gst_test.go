package camera

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/testenv"
)

// TestGstSource plays pipelines to their end. Black has luma 16, and every format keeps its own layout.
func TestGstSource(t *testing.T) {
	needGst(t)
	tests := []struct {
		caps   string
		format frame.Format
		first  []byte
	}{
		{"format=NV12", frame.NV12, []byte{16, 16, 16}},
		{"format=I420", frame.I420, []byte{16, 16, 16}},
		{"format=YUY2", frame.YUYV, []byte{16, 128, 16, 128}},
		{"format=GRAY8", frame.Gray, []byte{16, 16, 16}},
		{"format=BGRx", frame.BGRA, []byte{0, 0, 0}},
		{"format=RGB", frame.RGB24, []byte{0, 0, 0}},
		{"format=AYUV64", frame.Unknown, nil}, // converted to anything that is known
	}
	for _, tt := range tests {
		t.Run(tt.caps, func(t *testing.T) {
			s := mustOpen(t, "bars=gst:videotestsrc num-buffers=4 pattern=black ! video/x-raw,"+tt.caps+",width=63,height=47,framerate=25/1")
			var got collector
			got.see = func(f *Frame) error {
				if n := f.Format.Bytes(f.Width, f.Height); n == 0 || f.Width != 63 || f.Height != 47 {
					t.Errorf("%s %dx%d", f.Format, f.Width, f.Height)
				}
				for i, b := range tt.first {
					if f.Planes[0].Data[i] != b {
						t.Errorf("pixels %v, want %v", f.Planes[0].Data[:len(tt.first)], tt.first)
						break
					}
				}
				return nil
			}
			if err := s.Run(t.Context(), &got); err != nil {
				t.Fatal(err)
			}
			if n := len(got.frames); n == 0 || n > 4 || !s.Live() || s.Name() != "bars" {
				t.Fatalf("%d frames, live %v, name %s", n, s.Live(), s.Name())
			}
			if f := got.frames[0]; tt.format != frame.Unknown && f.Format != tt.format || f.CapturedBy != frame.ByStream || f.HasPTS {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestGstFaults has pipelines that cannot work.
func TestGstFaults(t *testing.T) {
	needGst(t)
	tests := []struct{ name, pipeline, want string }{
		{"element", "nosuchsrc", `GStreamer has no element "nosuchsrc" here: check its name`},
		{"property", "videotestsrc pattern=nothing", `the pipeline failed: erroneous pipeline: could not set property "pattern"`},
		{"syntax", "videotestsrc ! !", "the pipeline failed: erroneous pipeline: syntax error"},
		{"sink", "videotestsrc ! fakesink", "the pipeline failed: erroneous pipeline: could not link fakesink0 to videoconvert0"},
		{"sound", "audiotestsrc", "the pipeline failed: erroneous pipeline: could not link audiotestsrc0"},
		{"file", "filesrc location=/no/geheim/such ! decodebin", "the pipeline failed: Resource not found.; No such file \"/no/geheim/such\""},
		{"password", "filesrc location=/no/such name=user-pw=geheim1 ! decodebin", "the pipeline failed"},
		{"nothing", "videotestsrc num-buffers=0", "the pipeline ended without a picture"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := firstLoss(t, mustOpen(t, "gst:"+tt.pipeline, quick()))
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "geheim1") || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("%v, want %s", err, tt.want)
			}
			t.Log(err)
		})
	}
}

// TestGstLog has what GStreamer 1.22 says.
func TestGstLog(t *testing.T) {
	const from = "ERROR: from element /GstPipeline:pipeline0/GstDecodeBin:decodebin0: "
	tests := []struct {
		name  string
		lines []string
		want  string
	}{
		{"no gdppay", []string{`WARNING: erroneous pipeline: no element "gdppay"`}, "GStreamer has no gdppay here: apt-get install gstreamer1.0-plugins-bad"},
		{"no decoder", []string{
			from + "Your GStreamer installation is missing a plug-in.", "Additional debug info:",
			"../gst/playback/gstdecodebin2.c(4704): gst_decode_bin_expose (): /GstPipeline:pipeline0/GstDecodeBin:decodebin0:", "no suitable plugins found:",
			"Missing decoder: H.264 (Constrained Baseline Profile) (video/x-h264, stream-format=(string)avc)",
		}, "GStreamer has no decoder for H.264 here: apt-get install gstreamer1.0-libav"},
		{"Argus", []string{
			"Error generated. /dvs/git/dirty/git-master_linux/multimedia/nvgstreamer/gst-nvarguscamera/gstnvarguscamerasrc.cpp, execute:751 No cameras available",
		}, "the camera failed: Error generated. /dvs/git/dirty/git-master_linux/multimedia/nvgstreamer/gst-nvarguscamera/gstnvarguscamerasrc.cpp, execute:751 No cameras available"},
		{"password", []string{from + "cannot open rtsp://u:geheim@h/s with geheim"}, "the camera failed: cannot open rtsp://h/s with ***"},
		{"flood", strings.Fields(strings.Repeat("again ", 100)), "the camera failed: again"},
		{"nothing", []string{"ERROR: pipeline doesn't want to preroll.", "Setting pipeline to NULL ..."}, "the camera failed: exit status 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newGstLog("geheim")
			for _, line := range tt.lines {
				l.line(line)
			}
			l.exit(errors.New("exit status 1"))
			if got := l.explain("the camera").Error(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestSecretsOf(t *testing.T) {
	words, err := splitWords(`rtspsrc location="rtsp://viewer:geheim@h/s" user-pw='other one' latency=100 ! souphttpsrc location=http://h/s ! x`)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%q", secretsOf(words)); got != `["viewer:geheim" "geheim" "other one"]` {
		t.Error(got)
	}
}

// standIn puts a script in the place of gst-launch-1.0.
func standIn(t *testing.T, body string) {
	t.Helper()
	dir := t.TempDir()
	testenv.Script(t, filepath.Join(dir, "gst-launch-1.0"), "#!/bin/sh\n"+body+"\n")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// someFrames is a file with a stream of n grey pictures of 4x2 pixels.
func someFrames(t *testing.T, n int) string {
	t.Helper()
	data := capsPacket("video/x-raw, format=(string)GRAY8, width=(int)4, height=(int)2, framerate=(fraction)25/1")
	for i := range n {
		data = append(data, packet(gdpBuffer, uint64(i)*40_000_000, make([]byte, 8))...)
	}
	path := filepath.Join(t.TempDir(), "frames.gdp")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestGstStubborn has a child that ends on no signal but SIGKILL: it is gone soon after the source is told to end.
func TestGstStubborn(t *testing.T) {
	standIn(t, "trap '' INT TERM; cat "+someFrames(t, 3)+" >&3; while :; do sleep 1000; done")
	w := watch(t, mustOpen(t, "gst:stubborn", quick()))
	w.frames(3, 4, 2)
	pid := player(t, "gst")
	took, err := w.end()
	if !errors.Is(err, context.Canceled) || took < childGrace || took > 2*time.Second { // one, and what the machine is late by
		t.Errorf("Run: %v after %v", err, took)
	}
	if syscall.Kill(pid, 0) == nil {
		t.Errorf("process %d is left", pid)
	}
	t.Logf("gone after %v", took)
}

// TestGstSilent has a child that stays and gives nothing more: it is gone once the source takes it for dead.
func TestGstSilent(t *testing.T) {
	for name, script := range map[string]string{
		"open":   "trap '' INT TERM; cat FRAMES >&3; while :; do sleep 1000; done",
		"closed": "trap '' INT TERM; cat FRAMES >&3; exec 3>&-; while :; do sleep 1000; done",
	} {
		t.Run(name, func(t *testing.T) {
			standIn(t, strings.ReplaceAll(script, "FRAMES", someFrames(t, 3)))
			w := watch(t, mustOpen(t, "gst:silent", quick()))
			w.frames(3, 4, 2)
			pid := player(t, "gst")
			w.lost("no picture for 2s")
			if syscall.Kill(pid, 0) == nil {
				t.Errorf("process %d is left", pid)
			}
			w.frames(3, 4, 2)
		})
	}
}

// TestGstPrints has a child that writes on stdout and ends: its pictures come through a descriptor of their own.
func TestGstPrints(t *testing.T) {
	standIn(t, "echo GST_ARGUS: Creating output stream; cat "+someFrames(t, 3)+" >&3; echo CONSUMER: done")
	var got collector
	if err := mustOpen(t, "gst:prints").Run(t.Context(), &got); err != nil || len(got.frames) == 0 {
		t.Errorf("%d frames, %v", len(got.frames), err)
	}
}

// TestGstCorrupt has a picture of a wrong size among others, which is counted, and an end in the middle of one.
func TestGstCorrupt(t *testing.T) {
	path := someFrames(t, 2)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data = append(data, packet(gdpBuffer, 80_000_000, make([]byte, 7))...)
	data = append(data, packet(gdpBuffer, 120_000_000, make([]byte, 8))...)
	data = append(data, packet(gdpBuffer, 160_000_000, make([]byte, 8))[:gdpHeader+3]...)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	standIn(t, "cat "+path+" >&3")
	s := mustOpen(t, "gst:corrupt").(Monitored)
	var got collector
	if err := s.Run(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	if st := s.Stats(); st.Dropped[Corrupt] != 2 || len(got.frames) != 3 || st.Captured != 5 {
		t.Errorf("%d frames, %+v", len(got.frames), st)
	}
}

// TestGstRestarts starts and ends a child 200 times: descriptors, processes and memory stay as they were.
func TestGstRestarts(t *testing.T) {
	needGst(t)
	s := mustOpen(t, "gst:videotestsrc num-buffers=2 ! video/x-raw,format=GRAY8,width=64,height=48")
	run := func(n int) {
		for range n {
			var got collector
			if err := s.Run(t.Context(), &got); err != nil || len(got.frames) == 0 {
				t.Fatalf("%d frames, %v", len(got.frames), err)
			}
		}
	}
	run(3)
	fds, procs, rss := openFiles(t), len(children(t)), residentKiB(t)
	run(200)
	if n := openFiles(t); n != fds {
		t.Errorf("%d descriptors, %d before", n, fds)
	}
	if n := len(children(t)); n != procs {
		t.Errorf("%d children, %d before", n, procs)
	}
	after := residentKiB(t)
	if after > rss+8<<10 { // KiB: Go's own heap comes and goes
		t.Errorf("%d KiB resident, %d before", after, rss)
	}
	t.Logf("%d descriptors, %d children, %d KiB resident before and %d after", fds, procs, rss, after)
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func residentKiB(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return 0
}

package camera

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
)

// TestOpenByChildren opens the cameras that need other programs.
func TestOpenByChildren(t *testing.T) {
	needGst(t)
	needFFmpeg(t)
	t.Setenv("EYAS_TEST_PW", "p@ss/wd geheim1")
	tests := []struct {
		spec, name string
		err        string
	}{
		{"csi:0", "csi:0", ""},
		{"door=rtsp://viewer:geheim1@10.0.0.7/s?a=b", "door", ""},
		{"RTSP://viewer:geheim1@h/s", "RTSP://h/s", ""},
		{"rtsp://viewer:${EYAS_TEST_PW}@h/s#latency=0", "rtsp://h/s#latency=0", ""},
		{"rtsps://h:322/s?a=b&c#latency=1s&decoder=gst&verify=off", "rtsps://h:322/s?a=b&c#latency=1s&decoder=gst&verify=off", ""},
		{"rtsp://[fe80::1]:554/s", "rtsp://[fe80::1]:554/s", ""},
		{"gst:rtspsrc location=rtsp://u:geheim1@h/s user-pw=geheim1 ! x", "gst:rtspsrc location=rtsp://h/s user-pw=*** ! x", ""},
		{"rtsp://u:geheim1%zz@[h/s", "", "source rtsp://[h/s: this is no URL like rtsp://host:port/path"},
		{"rtsp://u:ge/heim1@h/s", "", "there is an @ behind the host"},
		{"rtsp://u:ge#heim1@h/s", "", "source rtsp://h/s: there is an @ behind the host"},
		{"rtsp://u:12/geheim1@h/s", "", "source rtsp://h/s: there is an @ behind the host"},
		{"rtsp://h/s#latency=1s@x", "", "user or password has a # in it: write it as %23"},
		{"rtsp://10.0.0.7:554/a@b", "rtsp://10.0.0.7:554/a@b", ""},
		{"rtsp:///s", "", "this is no URL like"},
		{"rtsp://u:geheim1@h/" + strings.Repeat("x", rtspMaxURL), "", "this is no URL like"},
		{"rtsp://h/s#latency=-1s", "", `latency "-1s" is not a time up to 10s, like 200ms`},
		{"rtsp://h/s#latency=200", "", `latency "200" is not a time`},
		{"rtsp://h/s#decoder=vlc", "", `decoder "vlc" is neither gst nor ffmpeg`},
		{"rtsp://h/s#verify=maybe", "", `verify "maybe" is neither on nor off`},
		{"rtsp://h/s#size=1x1", "", `parameter "size" is not known: use latency, decoder, verify`},
		{"gst: ", "", "the pipeline is empty"},
		{"gst:--version", "", "the pipeline holds --version, an option of gst-launch-1.0: leave it out"},
		{"gst:videotestsrc '-v'", "", "the pipeline holds -v, an option of gst-launch-1.0: leave it out"},
		{`gst:videotestsrc "`, "", `the pipeline has a " without its second one`},
	}
	for _, tt := range tests {
		t.Run(tt.spec[:min(len(tt.spec), 40)], func(t *testing.T) {
			s, err := Open(tt.spec)
			if tt.err == "" {
				if err != nil || s.Name() != tt.name || !s.Live() {
					t.Errorf("%v, %v, want %s", s, err, tt.name)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "heim1") || !errors.Is(err, ErrSpec) {
				t.Errorf("error %v, want %s", err, tt.err)
			}
		})
	}
}

// TestOpenWithoutPrograms opens cameras where the programs that play them are missing.
func TestOpenWithoutPrograms(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for spec, want := range map[string]string{
		"csi:0":                      "csi: needs gst-launch-1.0, which is not installed: apt-get install gstreamer1.0-tools",
		"gst:videotestsrc":           "gst: needs gst-launch-1.0, which is not installed: apt-get install gstreamer1.0-tools",
		"rtsp://h/s":                 "RTSP needs GStreamer or ffmpeg, and neither is installed: apt-get install ffmpeg",
		"rtsp://h/s#decoder=gst":     "decoder=gst needs gst-launch-1.0, which is not installed",
		"rtsps://h/s#decoder=ffmpeg": "decoder=ffmpeg needs ffmpeg, which is not installed",
	} {
		if _, err := Open(spec); err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, ErrSpec) {
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
	}
}

// TestRTSPDecoder has what decides between the decoders.
func TestRTSPDecoder(t *testing.T) {
	needGst(t)
	needFFmpeg(t)
	both := rtspMachine{gst: true, ffmpeg: true}
	tests := []struct {
		name, rest string
		scheme     string
		machine    rtspMachine
		gst        bool
	}{
		{"no password", "h/s", "rtsp", both, true},
		{"password", "u:p@h/s", "rtsp", both, false},
		{"password on a Jetson", "u:p@h/s", "rtsp", rtspMachine{gst: true, ffmpeg: true, jetson: true}, true},
		{"password, encrypted", "u:p@h/s", "rtsps", both, true},
		{"password without ffmpeg", "u:p@h/s", "rtsp", rtspMachine{gst: true}, true},
		{"without GStreamer", "h/s", "rtsp", rtspMachine{ffmpeg: true}, false},
		{"named", "u:p@h/s#decoder=gst", "rtsp", both, true},
		{"other named", "h/s#decoder=ffmpeg", "rtsp", both, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := newRTSP(tt.scheme, tt.rest)
			if err != nil {
				t.Fatal(err)
			}
			if s.machine = &tt.machine; s.usesGst() != tt.gst {
				t.Errorf("GStreamer: %v, want %v", s.usesGst(), tt.gst)
			}
		})
	}
}

// TestRTSPWords has the arguments of the children to the word.
func TestRTSPWords(t *testing.T) {
	needGst(t)
	needFFmpeg(t)
	s, err := newRTSP("rtsps", "viewer:ge%27heim@h/a!b?x=1&y='2#latency=250ms&verify=off")
	if err != nil {
		t.Fatal(err)
	}
	const src = `rtspsrc location="rtsps://viewer:ge%27heim@h/a!b?x=1&y='2" protocols=tcp latency=250 drop-on-latency=true do-rtcp=true ` +
		`tls-validation-flags=0 ! application/x-rtp,media=video ! decodebin ! `
	const ff = "-nostdin -hide_banner -nostats -loglevel repeat+level+verbose "
	const out = " -enc_time_base 1/1000000 -c:v rawvideo -f nut -write_index 0 pipe:1"
	tests := []struct{ name, got, want string }{
		{"GStreamer", words(s, rtspMachine{}, s.gstWords), src + "videoconvert ! " + gstRaw},
		{"Jetson", words(s, rtspMachine{jetson: true}, s.gstWords), src + "nvvidconv ! video/x-raw,format=NV12"},
		{"ffmpeg", words(s, rtspMachine{}, func() []string { return s.ffmpegArgs(false) }),
			ff + "-protocol_whitelist pipe,rtp,tcp,tls -f concat -safe 0 -format_whitelist concat,rtsp -i pipe:0 -autoscale 0 -fps_mode passthrough " +
				"-map 0:V:0 -vf format=yuv420p|yuvj420p" + out},
		{"ffmpeg with hardware", words(s, rtspMachine{hardware: true}, func() []string { return s.ffmpegArgs(false) }),
			ff + "-hwaccel auto -protocol_whitelist pipe,rtp,tcp,tls -f concat -safe 0 -format_whitelist concat,rtsp -i pipe:0 -autoscale 0 -fps_mode passthrough " +
				"-map 0:V:0 -vf format=nv12" + out},
		{"old ffmpeg", words(s, rtspMachine{}, func() []string { return s.ffmpegArgs(true) }),
			ff + "-protocol_whitelist pipe,rtp,tcp,tls -rtsp_transport tcp -i rtsps://viewer:ge%27heim@h/a!b?x=1&y='2 -vsync passthrough " +
				"-map 0:V:0 -vf format=yuv420p|yuvj420p" + out},
		{"list", s.ffmpegList(), "ffconcat version 1.0\nfile 'rtsps://viewer:ge%27heim@h/a!b?x=1&y='\\''2'\noption rtsp_transport tcp\noption allowed_media_types video\n"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, tt.got, tt.want)
		}
	}
}

func words(s *rtsp, m rtspMachine, make func() []string) string {
	s.machine = &m
	return strings.Join(make(), " ")
}

// engines are the two programs that play RTSP.
func engines(t *testing.T, test func(t *testing.T, engine string)) {
	for _, engine := range []string{"gst", "ffmpeg"} {
		t.Run(engine, func(t *testing.T) {
			needGst(t)
			needFFmpeg(t)
			t.Parallel()
			test(t, engine)
		})
	}
}

// TestRTSP follows a camera through all that cameras do.
func TestRTSP(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		server := startRTSP(t, "--user", "viewer", "--password", "geheim%1")
		w := watch(t, mustOpen(t, "door=rtsp://viewer:geheim%251@127.0.0.1:"+server.Port+"/cam#decoder="+engine, quick()))
		f := w.frames(10, 320, 240)
		if f.Source != "door" || f.CapturedBy != frame.ByStream || f.Colour != (frame.Colour{}) || f.Format != frame.I420 && f.Format != frame.NV12 {
			t.Errorf("%+v", f)
		}
		if age := time.Since(f.Captured); age < 0 || age > 5*time.Second {
			t.Errorf("a frame is %v old", age)
		}

		server.Do("drop")
		w.lost("the camera ended the stream")
		w.frames(10, 320, 240)

		server.Do("size 640x480")
		w.frames(10, 640, 480)
		server.Do("size 480x640") // as many bytes
		w.frames(10, 480, 640)

		server.Do("hang")
		w.lost("no picture for 2s")
		server.Do("go")
		w.frames(10, 480, 640)

		server.Do("password other")
		server.Do("drop")
		w.lost("refuses the user or the password (401)")
		server.Do("password geheim%1")
		w.frames(10, 480, 640)

		server.Do("away")
		w.lost("cannot reach the camera at 127.0.0.1:" + server.Port + ": connect: connection refused")
		server.Do("back")
		w.frames(10, 480, 640)

		pid := player(t, engine)
		took, err := w.end()
		if !errors.Is(err, context.Canceled) || took > 2*time.Second { // one, and what the machine is late by
			t.Errorf("Run: %v after %v", err, took)
		}
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("process %d is left", pid)
		}
	})
}

// player returns the process id of the child that plays.
func player(t *testing.T, program string) int {
	t.Helper()
	if program == "gst" {
		program = "gst-launch"
	}
	for _, pid := range children(t) {
		if name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm"); strings.HasPrefix(string(name), program) {
			return pid
		}
	}
	t.Fatalf("no process %s", program)
	return 0
}

// TestRTSPKilled kills the child, as the kernel does when memory runs out.
func TestRTSPKilled(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		server := startRTSP(t)
		w := watch(t, mustOpen(t, "rtsp://127.0.0.1:"+server.Port+"/cam#decoder="+engine, quick()))
		w.frames(3, 320, 240)
		_ = syscall.Kill(player(t, engine), syscall.SIGKILL)
		w.lost("signal: killed")
		w.frames(3, 320, 240)
	})
}

// TestRTSPStreams plays other streams than H.264 alone.
func TestRTSPStreams(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		server := startRTSP(t)
		for _, path := range []string{"/both", "/hevc", "/cam?channel=1&subtype=0", "/a!b;(c)$d'e,f=g"} {
			t.Run(path, func(t *testing.T) {
				w := watch(t, mustOpen(t, "rtsp://127.0.0.1:"+server.Port+path+"#latency=50ms&decoder="+engine, quick()))
				w.frames(3, 320, 240)
			})
		}
	})
}

// TestRTSPFaults has what a camera or an address can be wrong in.
func TestRTSPFaults(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		server := startRTSP(t, "--user", "viewer", "--password", "geheim1")
		open := startRTSP(t)
		tests := []struct{ name, url, want string }{
			{"password", "rtsp://viewer:geheim2@127.0.0.1:" + server.Port + "/cam", "the camera refuses the user or the password (401): check them"},
			{"no password", "rtsp://127.0.0.1:" + server.Port + "/cam", "the camera wants a user and a password (401): write USER:${VARIABLE} and an @ before the host"},
			{"path", "rtsp://viewer:geheim1@127.0.0.1:" + server.Port + "/nothing401", "the camera has no stream /nothing401 (404): check the path"},
			{"sound", "rtsp://viewer:geheim1@127.0.0.1:" + server.Port + "/sound", "the camera's stream has no video: check the path"},
			{"not encrypted", "rtsps://viewer:geheim1@127.0.0.1:" + open.Port + "/cam", map[string]string{
				"gst": "the camera gives no encrypted connection", "ffmpeg": "ffmpeg does not check the certificates of cameras"}[engine]},
			{"refused", "rtsp://viewer:geheim1@127.0.0.1:1/cam", "cannot reach the camera at 127.0.0.1:1: connect: connection refused"},
			{"host", "rtsp://viewer:geheim1@nowhere.invalid/cam", "host nowhere.invalid is not known"},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				err := firstLoss(t, mustOpen(t, tt.url+"#decoder="+engine, quick()))
				if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "geheim") || strings.ContainsAny(err.Error(), "\n\x1b") {
					t.Errorf("%v, want %s", err, tt.want)
				}
				t.Log(err)
			})
		}
	})
}

// firstLoss returns why the first connection failed.
func firstLoss(t *testing.T, s Source) (err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	ended := s.Run(ctx, lossFunc(func(lost error) {
		if err == nil {
			err = lost
		}
		cancel()
	}))
	if err == nil {
		return ended
	}
	return err
}

type lossFunc func(error)

func (lossFunc) Frame(_ context.Context, f *Frame) error { f.Release(); return nil }
func (lossFunc) Fault(error)                             {}
func (lossFunc) Reclaim() bool                           { return false }
func (l lossFunc) State(s State, err error) {
	if s == StateLost {
		l(err)
	}
}

// TestRTSPS plays encrypted streams, of a camera that made its certificate itself.
func TestRTSPS(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		server := startRTSP(t, "--certificate", certificate(t), "--user", "viewer", "--password", "geheim1")
		url := "rtsps://viewer:geheim1@127.0.0.1:" + server.Port + "/cam#decoder=" + engine
		t.Run("trusted blindly", func(t *testing.T) {
			watch(t, mustOpen(t, url+"&verify=off", quick())).frames(3, 320, 240)
		})
		t.Run("checked", func(t *testing.T) {
			err := firstLoss(t, mustOpen(t, url, quick()))
			if err == nil || !strings.Contains(err.Error(), "#verify=off") {
				t.Errorf("%v", err)
			}
			t.Log(err)
		})
	})
}

// certificate makes a certificate for 127.0.0.1 that nobody signed, and returns its file, with the key.
func certificate(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "camera.pem")
	out, err := exec.Command("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
		"-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path, "-out", path+".cert").CombinedOutput()
	if err != nil {
		t.Skipf("openssl makes no certificate: %v %s", err, out)
	}
	cert, err := os.ReadFile(path + ".cert")
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(key, cert...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRTSPProcessList looks for the password where every user of the machine may.
func TestRTSPProcessList(t *testing.T) {
	needFFmpeg(t)
	server := startRTSP(t, "--user", "viewer", "--password", "geheim1")
	w := watch(t, mustOpen(t, "rtsp://viewer:geheim1@127.0.0.1:"+server.Port+"/cam", quick())) // the choice is ours
	w.frames(1, 320, 240)
	line, err := os.ReadFile("/proc/" + strconv.Itoa(player(t, "ffmpeg")) + "/cmdline")
	if err != nil || len(line) == 0 || strings.Contains(string(line), "geheim1") || strings.Contains(string(line), "viewer") {
		t.Errorf("%v: the process list shows %q", err, line)
	}
}

// TestRTSPAway has a camera that is away for a minute and one that hangs for as long, with the time-outs that users have, beside
// another one that has to keep its rate. It takes three minutes a decoder: EYAS_LONG=1.
func TestRTSPAway(t *testing.T) {
	if os.Getenv("EYAS_LONG") == "" {
		t.Skip("takes minutes: set EYAS_LONG=1")
	}
	for _, engine := range []string{"gst", "ffmpeg"} {
		t.Run(engine, func(t *testing.T) {
			server := startRTSP(t)
			w := watch(t, mustOpen(t, "rtsp://127.0.0.1:"+server.Port+"/cam#decoder="+engine))
			for _, c := range []struct{ leave, back, loss string }{
				{"away", "back", "cannot reach the camera"},
				{"hang", "go", "no picture for 5s"},
			} {
				w.frames(60, 320, 240)
				server.Do(c.leave)
				w.lost(c.loss)
				before, start := cpuTime(t), time.Now()
				<-time.After(time.Minute)
				used := cpuTime(t) - before
				share := float64(used) / float64(time.Since(start))
				t.Logf("%s with %s: %v of CPU time in a minute, %.2f %%", c.leave, engine, used, 100*share)
				if share > 0.05 {
					t.Errorf("%s: %.1f %% of a core", c.leave, 100*share)
				}
				server.Do(c.back)
				start = time.Now()
				w.frames(1, 320, 240)
				t.Logf("%s after %v", c.back, time.Since(start))
			}
			neighbour := watch(t, mustOpen(t, "gst:videotestsrc is-live=true ! video/x-raw,format=GRAY8,width=64,height=48,framerate=30/1"))
			server.Do("hang")
			neighbour.frames(30, 64, 48)
			start := time.Now()
			neighbour.frames(300, 64, 48)
			t.Logf("the neighbour has %.2f frames a second", 300/time.Since(start).Seconds())
		})
	}
}

// cpuTime is what this process and its children that ended have used.
func cpuTime(t *testing.T) (sum time.Duration) {
	t.Helper()
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}

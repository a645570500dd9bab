package camera

import (
	"strings"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
)

func TestFFLog(t *testing.T) {
	tests := []struct {
		name   string
		lines  []string
		w, h   int
		colour frame.Colour
		frames int
		faults int
		last   string
	}{
		{"ffmpeg 5", []string{
			"[info] Input #0, mov,mp4,m4a,3gp,3g2,mj2, from 'file:/tmp/x.mp4':",
			"[info]   Metadata:",
			"[info]     title           : Stream #0:0: Video: rawvideo, rgb24(pc), 1x1, 9 fps",
			"[info]   Duration: 00:00:04.60, start: 0.000000, bitrate: 111 kb/s",
			"[info]   Stream #0:0[0x1](eng): Video: h264 (High) (avc1 / 0x31637661), yuv420p(tv, smpte170m, progressive), 768x432, 109 kb/s, 4.78 fps, 10 tbr, 10240 tbn (default)",
			"[info] Output #0, nut, to 'pipe:1':",
			"[info]   Stream #0:0: Video: rawvideo (I420 / 0x30323449), yuv420p(tv, smpte170m, progressive), 768x432, q=2-31, 39813 kb/s, 10 fps, 81920 tbn (default)",
		}, 768, 432, frame.Colour{}, 22, 0, ""},
		{"ffmpeg 4", []string{
			"[info] Input #0, avi, from 'x.avi':",
			"[info]   Duration: 00:00:02.00, start: 0.000000, bitrate: 111 kb/s",
			"[info]     Stream #0:0: Video: ignored, depth of four",
			"[info]   Stream #0:0: Video: h264 (High), yuv420p(pc, bt709/bt470m/unknown, top first), 640x480, 25 fps, 25 tbr, 25 tbn, 50 tbc",
			"[info] Output #0, nut, to 'pipe:1':",
			"[info]   Stream #0:0: Video: rawvideo (I420 / 0x30323449), yuv420p, 640x480, q=2-31, 200 kb/s, 25 fps, 51200 tbn, 25 tbc",
		}, 640, 480, frame.Colour{Matrix: frame.BT709, Full: true}, 50, 0, ""},
		{"sound and cover first", []string{
			"[info]   Stream #0:0: Audio: aac (LC), 44100 Hz, stereo, fltp, 128 kb/s",
			"[info]   Stream #0:1: Video: mjpeg (Baseline), yuvj420p(pc, bt470bg/unknown/unknown), 500x500, 90k tbr, 90k tbn (attached pic)",
			"[info]   Stream #0:2: Video: vp9 (Profile 0), yuv420p(tv), 1280x720, 1k fps, 30 tbr, 1k tbn",
			"[info] Output #0, nut, to 'pipe:1':",
			"[info]   Stream #0:0: Video: rawvideo (I420 / 0x30323449), yuv420p(tv), 1280x720",
		}, 1280, 720, frame.Colour{Matrix: frame.BT709}, 0, 0, ""},
		{"converted from RGB", []string{
			"[info]   Stream #0:0: Video: rawvideo, bgr24, 1280x720, 5 fps, 5 tbr, 5 tbn",
			"[info] Output #0, nut, to 'pipe:1':",
			"[info]   Stream #0:0: Video: rawvideo (I420 / 0x30323449), yuv420p(tv, progressive), 1280x720, 5 fps",
		}, 1280, 720, frame.Colour{}, 0, 0, ""},
		{"nothing known", nil, 720, 1280, frame.Colour{Matrix: frame.BT709}, 0, 0, ""},
		{"faults", []string{
			"[mov,mp4,m4a,3gp,3g2,mj2 @ 0x55e03d52fa00] [warning] Packet corrupt (stream = 0, dts = 10140000).",
			"[swscaler @ 0x55] [swscaler @ 0x56] [warning] deprecated pixel format used, make sure you did set range correctly",
			"[warning] file:/tmp/x.mp4: corrupt input packet in stream 0",
			"[vist#0:0/h264 @ 0x55a0] [dec:h264 @ 0x55a1] [error] Error submitting packet to decoder: Invalid data found when processing input",
			"[in#0 @ 000001e8] [fatal] cannot open rtsp://u:geheim@h/s for file:/tmp/x.mp4",
		}, 320, 240, frame.Colour{}, 0, 3, "cannot open rtsp://h/s for x.mp4"},
		{"more lines", []string{"[rtsp @ 0x55] [verbose] SDP:", "v=0", "a=control:*", "[fatal] Stream map '0:V:0' matches no streams.", "To ignore this, add a trailing '?' to the map."},
			320, 240, frame.Colour{}, 0, 1, "To ignore this, add a trailing '?' to the map."},
		{"before the level", []string{"Unrecognized option 'fps_mode'."}, 320, 240, frame.Colour{}, 0, 0, "Unrecognized option 'fps_mode'."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newFFLog("file:/tmp/x.mp4", "x.mp4")
			for _, line := range tt.lines {
				l.line(line)
			}
			select {
			case <-l.ready:
			default:
				if strings.Contains(strings.Join(tt.lines, ""), "Output") {
					t.Error("not ready")
				}
			}
			if got := l.colour(tt.w, tt.h); got != tt.colour {
				t.Errorf("colour %+v, want %+v", got, tt.colour)
			}
			if got := l.frames(); got != tt.frames {
				t.Errorf("%d frames, want %d", got, tt.frames)
			}
			if n, last := l.fault(); n != tt.faults || last != tt.last {
				t.Errorf("%d faults, the last %q", n, last)
			}
		})
	}
}

func TestClock(t *testing.T) {
	tests := []struct {
		h, m, s string
		want    time.Duration
	}{
		{"00", "00", "04.60", 4600 * time.Millisecond},
		{"10", "01", "00", 10*time.Hour + time.Minute},
		{"99999999999999999999", "00", "00", 0},
		{"200000", "00", "00", 0},
	}
	for _, tt := range tests {
		if got := clock(tt.h, tt.m, tt.s); got != tt.want {
			t.Errorf("%s:%s:%s: %v, want %v", tt.h, tt.m, tt.s, got, tt.want)
		}
	}
}

func FuzzFFLog(f *testing.F) {
	f.Add("[info]   Duration: 00:00:04.60, start\n[info]   Stream #0:0: Video: h264, yuv420p(tv, bt709), 10 fps\n[info] Output #0\n[info]   Stream #0:0: Video: rawvideo, yuvj420p(pc)")
	f.Add("[h264 @ 0x1] [error] no frame!\n\n[a @ 0x] [fatal] ")
	f.Fuzz(func(t *testing.T, text string) {
		l := newFFLog("file:/x", "x")
		for line := range strings.SplitSeq(text, "\n") {
			l.line(line)
		}
		if l.frames() < 0 {
			t.Errorf("%d frames", l.frames())
		}
		l.colour(640, 480)
	})
}

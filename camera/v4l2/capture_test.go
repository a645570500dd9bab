package v4l2_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/camera/v4l2"
	"github.com/eyas-edge/eyas/camera/v4l2/internal/abi"
	"github.com/eyas-edge/eyas/camera/v4l2/v4l2test"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// webcam is what most USB cameras are like.
func webcam() *v4l2test.Camera {
	return &v4l2test.Camera{
		Card: "C920", Driver: "uvcvideo", Bus: "usb-1.2", ByID: "usb-C920_123-video-index0", ByPath: "pci-usb-0:1.2-video-index0",
		Modes: []v4l2test.Mode{
			v4l2test.At("YUYV", 640, 480, 30, 15), v4l2test.At("YUYV", 1280, 720, 10, 5),
			v4l2test.At("MJPG", 640, 480, 30), v4l2test.At("MJPG", 1280, 720, 30), v4l2test.At("MJPG", 1920, 1080, 30),
		},
	}
}

// grey is a camera of small pictures.
func grey() *v4l2test.Camera {
	return &v4l2test.Camera{Card: "Grey", Bus: "grey", Modes: []v4l2test.Mode{v4l2test.At("GREY", 4, 2, 30)}}
}

func plug(t testing.TB, c *v4l2test.Camera) (*v4l2test.Host, *v4l2.Camera) {
	t.Helper()
	h := v4l2test.New(t)
	h.Plug(c, 0)
	return h, h.V4L2().Camera("0", v4l2.Request{})
}

func open(t testing.TB, c *v4l2.Camera) *v4l2.Capture {
	t.Helper()
	s, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// pixels returns n bytes that differ from their neighbours.
func pixels(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + seed)
	}
	return b
}

func TestChoice(t *testing.T) {
	tests := []struct {
		name  string
		want  v4l2.Request
		modes []v4l2test.Mode
		got   string
	}{
		{"mjpeg where raw is too slow", v4l2.Request{}, nil, "mjpeg 1280x720"},
		{"raw where it is fast enough", v4l2.Request{FPS: 10}, nil, "yuyv 1280x720"},
		{"raw at a small size", v4l2.Request{Width: 640, Height: 480}, nil, "yuyv 640x480"},
		{"a format that is asked for", v4l2.Request{Format: "yuyv"}, nil, "yuyv 1280x720"},
		{"the size goes before the format", v4l2.Request{Width: 1920, Height: 1080}, nil, "mjpeg 1920x1080"},
		{"the smallest that holds it", v4l2.Request{Width: 800, Height: 600}, nil, "mjpeg 1280x720"},
		{"the largest if none holds it", v4l2.Request{Width: 3840, Height: 2160}, nil, "mjpeg 1920x1080"},
		{"29.97 is 30", v4l2.Request{FPS: 30.5}, []v4l2test.Mode{v4l2test.At("YUYV", 1280, 720, 30), v4l2test.At("MJPG", 1280, 720, 60)}, "yuyv 1280x720"},
		{"the faster if none is fast enough", v4l2.Request{FPS: 60}, []v4l2test.Mode{v4l2test.At("YUYV", 1280, 720, 10), v4l2test.At("MJPG", 1280, 720, 30)}, "mjpeg 1280x720"},
		{"nv12 before yuyv", v4l2.Request{}, []v4l2test.Mode{v4l2test.At("YUYV", 1280, 720), v4l2test.At("NV12", 1280, 720)}, "nv12 1280x720"},
		{"colour before grey", v4l2.Request{}, []v4l2test.Mode{v4l2test.At("GREY", 1280, 720, 30), v4l2test.At("MJPG", 640, 480, 30)}, "mjpeg 640x480"},
		{"unknown formats are passed over", v4l2.Request{}, []v4l2test.Mode{v4l2test.At("H264", 1280, 720, 30), v4l2test.At("GREY", 640, 480, 30)}, "gray 640x480"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := webcam()
			if tt.modes != nil {
				c.Modes = tt.modes
			}
			h := v4l2test.New(t)
			h.Plug(c, 0)
			f := open(t, h.V4L2().Camera("/dev/video0", tt.want)).Format()
			if got := f.Name() + " " + (v4l2.Size{Width: f.Width, Height: f.Height, MaxWidth: f.Width, MaxHeight: f.Height}).String(); got != tt.got {
				t.Errorf("got %s, want %s", got, tt.got)
			}
		})
	}
}

// Whatever the padding, frames come tightly packed.
func TestPixels(t *testing.T) {
	for name, format := range map[string]frame.Format{"YUYV": frame.YUYV, "NV12": frame.NV12, "YU12": frame.I420, "GREY": frame.Gray} {
		for _, pad := range []uint32{0, 6} {
			t.Run(name, func(t *testing.T) {
				const w, h = 6, 4
				c := grey()
				c.Modes, c.Pad = []v4l2test.Mode{v4l2test.At(name, w, h)}, pad
				host, camera := plug(t, c)
				s := open(t, camera)
				want := pixels(format.Bytes(w, h), 1)
				var sent []byte
				rest := want
				for i, g := range format.PlanesOf(w, h) {
					gap := int(pad)
					if i > 0 && format == frame.I420 {
						gap /= 2
					}
					for range g.Rows {
						sent = append(append(sent, rest[:g.RowBytes]...), bytes.Repeat([]byte{0xee}, gap)...)
						rest = rest[g.RowBytes:]
					}
				}
				host.Send(c, v4l2test.Frame{Data: sent})
				got, err := s.Next()
				if err != nil || s.Format().Pixels != format {
					t.Fatal(err, s.Format().Pixels)
				}
				packed := make([]byte, len(want))
				s.Format().Copy(packed, got.Data)
				if !bytes.Equal(packed, want) {
					t.Errorf("got %v\nwant %v", packed, want)
				}
			})
		}
	}
}

func TestColour(t *testing.T) {
	full, hd := frame.Colour{Full: true}, frame.Colour{Matrix: frame.BT709}
	tests := []struct {
		name                 string
		space, enc, quantize uint32
		want                 frame.Colour
	}{
		{"nothing said", 0, 0, 0, frame.Colour{}},
		{"sRGB, as webcams say", 8, 0, 0, frame.Colour{}},
		{"JPEG", abi.ColorspaceJPEG, 0, 0, full},
		{"709", abi.ColorspaceREC709, 0, 0, hd},
		{"709 coded as 601", abi.ColorspaceREC709, abi.Enc601, 0, frame.Colour{}},
		{"sRGB coded as 709", 8, abi.Enc709, 0, hd},
		{"full range", 1, 0, abi.FullRange, full},
		{"limited JPEG", abi.ColorspaceJPEG, 0, abi.LimitedRange, frame.Colour{}},
		{"2020", abi.ColorspaceBT2020, 0, 0, hd},
		{"nonsense", 99, 99, 99, frame.Colour{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := grey()
			c.Modes = []v4l2test.Mode{v4l2test.At("YUYV", 4, 2)}
			c.Colorspace, c.YCbCrEnc, c.Quantization = tt.space, tt.enc, tt.quantize
			_, camera := plug(t, c)
			if got := open(t, camera).Format().Colour; got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// Of what is there the newest whole frame is taken, and all others are counted.
func TestFrames(t *testing.T) {
	whole := v4l2test.Frame{Data: pixels(8, 0)}
	newest := v4l2test.Frame{Data: pixels(8, 1)}
	tests := []struct {
		name string
		sent []v4l2test.Frame
		fail error
		want v4l2.Captured
		why  string
	}{
		{"one", []v4l2test.Frame{newest}, nil, v4l2.Captured{}, ""},
		{"the newest of three", []v4l2test.Frame{whole, whole, newest}, nil, v4l2.Captured{Superseded: 2}, ""},
		{"damaged", []v4l2test.Frame{{Data: pixels(8, 0), Damaged: true}, newest}, nil, v4l2.Captured{Corrupt: 1}, "marked"},
		{"damaged after a whole one", []v4l2test.Frame{newest, {Data: pixels(8, 0), Damaged: true}}, nil, v4l2.Captured{Corrupt: 1}, "marked"},
		{"short", []v4l2test.Frame{{Data: pixels(7, 0)}, newest}, nil, v4l2.Captured{Corrupt: 1}, "the frame has 7 of 8 bytes"},
		{"empty", []v4l2test.Frame{{}, newest}, nil, v4l2.Captured{Corrupt: 1}, "empty"},
		{"left out", []v4l2test.Frame{whole, {Data: newest.Data, Missing: 3}}, nil, v4l2.Captured{Superseded: 1, Lost: 3}, ""},
		{"counted anew", []v4l2test.Frame{whole, {Data: newest.Data, Missing: 1 << 31}}, nil, v4l2.Captured{Superseded: 1}, ""},
		{"read error", []v4l2test.Frame{newest}, unix.EIO, v4l2.Captured{Corrupt: 1}, "could not read"},
		{"nothing there", []v4l2test.Frame{newest}, unix.EAGAIN, v4l2.Captured{}, ""},
		{"interrupted", []v4l2test.Frame{newest}, unix.EINTR, v4l2.Captured{}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := grey()
			host, camera := plug(t, c)
			s := open(t, camera)
			if tt.fail != nil {
				host.Fail(c, tt.fail)
			}
			for _, f := range tt.sent {
				if !host.Send(c, f) {
					t.Fatal("no buffer waits")
				}
			}
			var sum v4l2.Captured
			for sum.Data == nil {
				got, err := s.Next()
				if err != nil {
					t.Fatal(err)
				}
				sum.Data, sum.Lost, sum.Superseded = got.Data, sum.Lost+got.Lost, sum.Superseded+got.Superseded
				if sum.Corrupt += got.Corrupt; got.Why != nil {
					sum.Why = got.Why
				}
			}
			if !bytes.Equal(sum.Data, newest.Data) {
				t.Errorf("got %v", sum.Data)
			}
			if why := sum.Why; (why == nil) != (tt.why == "") || why != nil && !strings.Contains(why.Error(), tt.why) {
				t.Errorf("why: %v, want %s", why, tt.why)
			}
			if sum.Data, sum.Why = nil, nil; sum.Lost != tt.want.Lost || sum.Corrupt != tt.want.Corrupt || sum.Superseded != tt.want.Superseded {
				t.Errorf("got %+v, want %+v", sum, tt.want)
			}
			// The frame that is held is given back with the next call, and so is all else.
			host.Send(c, whole)
			if _, err := s.Next(); err != nil {
				t.Fatal(err)
			}
			host.WaitQueued(c, 3)
		})
	}
}

func TestTime(t *testing.T) {
	tests := []struct {
		name   string
		frame  v4l2test.Frame
		driver bool
	}{
		{"the driver's", v4l2test.Frame{Age: 40 * time.Millisecond}, true},
		{"unknown", v4l2test.Frame{NoStamp: true}, false},
		{"ahead", v4l2test.Frame{Age: -time.Second}, false},
		{"far back", v4l2test.Frame{Age: time.Hour}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := grey()
			host, camera := plug(t, c)
			s := open(t, camera)
			tt.frame.Data = pixels(8, 0)
			before := time.Now()
			host.Send(c, tt.frame)
			got, err := s.Next()
			if err != nil || got.ByDriver != tt.driver {
				t.Fatalf("%v, by driver %v", err, got.ByDriver)
			}
			from := before
			if tt.driver {
				from = before.Add(-tt.frame.Age - time.Microsecond) // the driver counts microseconds
			}
			if got.At.Before(from) || got.At.After(time.Now()) || !strings.Contains(got.At.String(), "m=") {
				t.Errorf("captured at %v, sent at %v", got.At, before)
			}
		})
	}
}

func TestNextEndsWithItsContext(t *testing.T) {
	c := grey()
	_, camera := plug(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	s, err := camera.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	done := make(chan error)
	go func() {
		_, err := s.Next()
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	s.Close() // a second call is allowed
	if _, err := camera.Open(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("open: %v", err)
	}
}

// A camera that fails for good ends the connection instead of the processor's idle time.
func TestFailures(t *testing.T) {
	tests := []struct {
		name string
		do   func(*v4l2test.Host, *v4l2test.Camera)
		want string
	}{
		{"read errors", func(h *v4l2test.Host, c *v4l2test.Camera) {
			for range 12 {
				h.Fail(c, unix.EIO)
			}
		}, "input/output error"},
		{"announced and not there", func(h *v4l2test.Host, c *v4l2test.Camera) {
			for range 12 {
				h.Fail(c, unix.EAGAIN)
			}
		}, "announces frames that do not come"},
		{"unplugged", (*v4l2test.Host).Unplug, "the camera was unplugged"},
		{"stopped", func(h *v4l2test.Host, c *v4l2test.Camera) { h.Fail(c, unix.EINVAL) }, "read from /dev/video0: invalid argument"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := grey()
			host, camera := plug(t, c)
			s := open(t, camera)
			tt.do(host, c)
			for n := 0; ; n++ {
				_, err := s.Next()
				if err != nil {
					if !strings.Contains(err.Error(), tt.want) || errors.As(err, new(v4l2.Unusable)) {
						t.Errorf("got %v, want %s", err, tt.want)
					}
					return
				}
				if n > 20 {
					t.Fatal("it goes on")
				}
			}
		})
	}
}

// In the steady state a frame costs no allocation.
func TestNoAllocation(t *testing.T) {
	c := grey()
	c.Modes, c.Pad = []v4l2test.Mode{v4l2test.At("NV12", 64, 48)}, 32
	host, camera := plug(t, c)
	s := open(t, camera)
	sent := v4l2test.Frame{Data: pixels(8192, 0)}
	dst := make([]byte, frame.NV12.Bytes(64, 48))
	for range 100 { // the driver's lists grow
		host.Send(c, sent)
		_, _ = s.Next()
	}
	driver := testing.AllocsPerRun(100, func() {
		host.Send(c, sent)
		if got, err := s.Next(); err != nil || got.Data == nil {
			t.Fatal(err)
		} else {
			s.Format().Copy(dst, got.Data)
		}
	})
	if driver != 0 {
		t.Errorf("%v allocations a frame", driver)
	}
}

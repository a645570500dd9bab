package v4l2_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/camera/v4l2"
	"github.com/eyas-edge/eyas/camera/v4l2/internal/abi"
	"github.com/eyas-edge/eyas/camera/v4l2/v4l2test"
)

// hook changes or sees an answer of the driver.
type hook func(request uint, arg unsafe.Pointer, err error) error

// change applies f to the answers to one request.
func change[T any](request uint, f func(*T)) hook {
	return func(r uint, arg unsafe.Pointer, err error) error {
		if r == request && err == nil {
			f((*T)(arg))
		}
		return err
	}
}

// fail has one request fail.
func fail(request uint, with error) hook {
	return func(r uint, _ unsafe.Pointer, err error) error {
		if r == request {
			return with
		}
		return err
	}
}

func setFmt(f func(*abi.PixFormat)) hook {
	return change(abi.SetFmt, func(a *abi.Format) { f(&a.Pix) })
}

// What a driver answers when it is set up is checked before it is used.
func TestBadSetUp(t *testing.T) {
	tests := []struct {
		name string
		do   hook
		want string
	}{
		{"another format", setFmt(func(p *abi.PixFormat) { p.PixelFormat = abi.FourCC("H264") }), "the driver gives H264, and only nv12, yuyv, i420, mjpeg, gray can be used"},
		{"format without a name", setFmt(func(p *abi.PixFormat) { p.PixelFormat = 1 }), "the driver gives 0x1,"},
		{"no width", setFmt(func(p *abi.PixFormat) { p.Width = 0 }), "pictures of 0x2 pixels"},
		{"huge width", setFmt(func(p *abi.PixFormat) { p.Width = 1<<32 - 1 }), "pictures of 4294967295x2 pixels"},
		{"huge area", setFmt(func(p *abi.PixFormat) { p.Width, p.Height = 1<<16, 1<<16 }), "pictures of 65536x65536 pixels"},
		{"short rows", setFmt(func(p *abi.PixFormat) { p.BytesPerLine = 3 }), "rows of 3 bytes for gray of 4x2, which needs 4"},
		{"huge rows", setFmt(func(p *abi.PixFormat) { p.BytesPerLine = 1<<32 - 1 }), "rows of 4294967295 bytes for gray of 4x2"},
		{"half pictures", setFmt(func(p *abi.PixFormat) { p.Field = abi.FieldSeqTB }), "half pictures"},
		{"no buffers", change(abi.ReqBufs, func(r *abi.RequestBuffers) { r.Count = 0 }), "offers 0 buffers"},
		{"one buffer", change(abi.ReqBufs, func(r *abi.RequestBuffers) { r.Count = 1 }), "offers 1 buffers"},
		{"many buffers", change(abi.ReqBufs, func(r *abi.RequestBuffers) { r.Count = 1 << 31 }), "offers 2147483648 buffers"},
		{"short buffers", change(abi.QueryBuf, func(b *abi.Buffer) { b.Length = 7 }), "offers 7 bytes for gray of 4x2, which needs 8"},
		{"huge buffers", change(abi.QueryBuf, func(b *abi.Buffer) { b.Length = 1<<32 - 1 }), "offers 4294967295 bytes"},
		{"buffer elsewhere", change(abi.QueryBuf, func(b *abi.Buffer) { b.Offset = 77 }), "map the memory of /dev/video0: invalid argument"},
		{"not a camera", fail(abi.QueryCap, unix.ENOTTY), "/dev/video0 is not a camera"},
		{"set the format", fail(abi.SetFmt, unix.EINVAL), "set the format of /dev/video0: invalid argument"},
		{"busy when it is set", fail(abi.SetFmt, unix.EBUSY), "/dev/video0 is in use by another program"},
		{"busy when memory is taken", fail(abi.ReqBufs, unix.EBUSY), "/dev/video0 is in use by another program"},
		{"busy when it starts", fail(abi.StreamOn, unix.EBUSY), "/dev/video0 is in use by another program"},
		{"no memory", fail(abi.ReqBufs, unix.ENOMEM), "get memory from /dev/video0: cannot allocate memory"},
		{"no power", fail(abi.StreamOn, unix.ENOSPC), "start /dev/video0: no space left on device"},
		{"gone meanwhile", fail(abi.QBuf, unix.ENODEV), "the camera was unplugged"},
		{"no format", fail(abi.EnumFmt, unix.EINVAL), "/dev/video0: it gives no pictures, and only nv12"},
		{"other data", change(abi.QueryCap, func(c *abi.Capability) { c.DeviceCaps = 1 << 23 }), "/dev/video0 (Grey) gives no pictures: a camera often has a second device"},
		{"multi-planar", change(abi.QueryCap, func(c *abi.Capability) { c.DeviceCaps = abi.CapVideoCaptureMPlane | abi.CapStreaming }), "is a multi-planar device: use gst:v4l2src device=/dev/video0"},
		{"no streaming", change(abi.QueryCap, func(c *abi.Capability) { c.DeviceCaps = abi.CapVideoCapture }), "does not stream into memory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := grey()
			c.Answer = tt.do
			_, camera := plug(t, c)
			if s, err := camera.Open(t.Context()); err == nil {
				s.Close()
				t.Fatal("it opens")
			} else if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// Answers that are odd and no reason to give up.
func TestOddSetUp(t *testing.T) {
	wide := func(e *abi.FrameSize) {
		*e = abi.FrameSize{Type: abi.TypeStepwise, MinWidth: 32, MaxWidth: 4096, StepWidth: 32, MinHeight: 16, MaxHeight: 2160}
	}
	tests := []struct {
		name string
		do   hook
		want string // the size that is asked for
	}{
		{"endless formats", func(r uint, _ unsafe.Pointer, err error) error {
			if r == abi.EnumFmt {
				return nil
			}
			return err
		}, "4x2"},
		{"rates of zero", change(abi.EnumFrameIntervals, func(e *abi.FrameInterval) { e.Min = abi.Fract{} }), "4x2"},
		{"rate of zero", change(abi.SetParm, func(p *abi.StreamParm) { p.TimePerFrame = abi.Fract{Numerator: 0, Denominator: 30} }), "4x2"},
		{"no rate", fail(abi.SetParm, unix.ENOTTY), "4x2"},
		{"sizes of zero", change(abi.EnumFrameSizes, func(e *abi.FrameSize) { e.MinWidth = 0 }), "1280x720"},
		{"huge sizes", change(abi.EnumFrameSizes, func(e *abi.FrameSize) { e.MaxWidth = 1<<32 - 1 }), "1280x720"},
		{"no sizes", fail(abi.EnumFrameSizes, unix.ENOTTY), "1280x720"},
		{"steps", change(abi.EnumFrameSizes, wide), "1280x720"},
		{"steps of zero", change(abi.EnumFrameSizes, func(e *abi.FrameSize) { wide(e); e.StepWidth, e.Type = 0, abi.TypeContinuous }), "1280x720"},
		{"steps that do not meet it", change(abi.EnumFrameSizes, func(e *abi.FrameSize) { wide(e); e.StepWidth = 1000; e.StepHeight = 1<<32 - 1 }), "1032x16"},
		{"no padding said", setFmt(func(p *abi.PixFormat) { p.BytesPerLine = 0 }), "4x2"},
		{"old driver", change(abi.QueryCap, func(c *abi.Capability) { c.Capabilities &^= abi.CapDeviceCaps; c.DeviceCaps = 0 }), "4x2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := grey()
			c.Answer = tt.do
			asked := ""
			c.Asked = func(w, h uint32) { asked = fmt.Sprintf("%dx%d", w, h) }
			host, camera := plug(t, c)
			s := open(t, camera)
			host.Send(c, v4l2test.Frame{Data: pixels(8, 0)})
			if got, err := s.Next(); err != nil || !bytes.Equal(got.Data, pixels(8, 0)) {
				t.Error(err)
			}
			if asked != tt.want {
				t.Errorf("asked for %s, want %s", asked, tt.want)
			}
		})
	}
}

// A buffer that the driver names is one that it has.
func TestBadBuffers(t *testing.T) {
	tests := []struct {
		name string
		do   func(*abi.Buffer)
		want string // "" for a corrupt frame
	}{
		{"index out of range", func(b *abi.Buffer) { b.Index = 4 }, "names buffer 4"},
		{"huge index", func(b *abi.Buffer) { b.Index = 1<<32 - 1 }, "names buffer 4294967295"},
		{"the same again", func(b *abi.Buffer) { b.Index = 0 }, "names buffer 0"},
		{"more than fits", func(b *abi.Buffer) { b.BytesUsed = 1<<32 - 1 }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := grey()
			n := 0
			c.Answer = change(abi.DQBuf, func(b *abi.Buffer) {
				if n++; n > 1 {
					tt.do(b)
				}
			})
			host, camera := plug(t, c)
			s := open(t, camera)
			host.Send(c, v4l2test.Frame{Data: pixels(8, 0)})
			host.Send(c, v4l2test.Frame{Data: pixels(8, 0)})
			got, err := s.Next()
			switch {
			case tt.want == "" && (err != nil || got.Corrupt != 1 || got.Data == nil):
				t.Errorf("%+v, %v", got, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// Names come from the kernel as they are.
func TestNames(t *testing.T) {
	c := grey()
	c.Card = strings.Repeat("long ", 6) + "xy" // 32 bytes, without a NUL
	c.Driver = "a\nb\x1b[31mc\xff"
	h := v4l2test.New(t)
	h.Plug(c, 0)
	d := h.V4L2().Devices()
	if len(d) != 1 || d[0].Card != c.Card || d[0].Driver != "ab[31mc" {
		t.Errorf("%+v", d)
	}
}

// No answers of a driver bring the program down or have it wait for what does not come.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte{}, 0)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, 40)
	f.Add([]byte("\x00\x00\x00\x80\x01"), 17)
	f.Fuzz(func(t *testing.T, noise []byte, from int) {
		c := webcam()
		c.Modes = []v4l2test.Mode{v4l2test.At("NV12", 16, 8, 30), v4l2test.At("MJPG", 16, 8, 30)}
		at := 0
		c.Answer = func(r uint, arg unsafe.Pointer, err error) error {
			size := int(r >> 16 & 0x3fff)
			for i := range size {
				if at++; at > from && len(noise) > 0 && r != abi.StreamOff && r != abi.StreamOn {
					*(*byte)(unsafe.Add(arg, i)) ^= noise[0]
					noise = noise[1:]
				}
			}
			return err
		}
		host, camera := plug(t, c)
		host.V4L2().Devices()
		s, err := camera.Open(t.Context())
		if err != nil {
			return
		}
		defer s.Close()
		dst := make([]byte, 1<<16)
		for range 3 {
			if !host.Send(c, v4l2test.Frame{Data: pixels(400, 0)}) {
				return
			}
			got, err := s.Next()
			if err != nil {
				return
			}
			if got.Data != nil && !s.Format().MJPEG() && s.Format().Pixels.Bytes(s.Format().Width, s.Format().Height) <= len(dst) {
				s.Format().Copy(dst, got.Data)
			}
		}
	})
}

func TestUnusable(t *testing.T) {
	c := grey()
	c.OpenErr = unix.EACCES
	_, camera := plug(t, c)
	_, err := camera.Open(t.Context())
	if !errors.As(err, new(v4l2.Unusable)) || !strings.Contains(err.Error(), "no right to open /dev/video0, which belongs to the group video: run `sudo usermod -aG video ") {
		t.Error(err)
	}
	c.OpenErr = unix.EPERM
	if _, err = camera.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "docker run --device /dev/video0") {
		t.Error(err)
	}
	c.OpenErr = unix.EBUSY
	if _, err = camera.Open(t.Context()); err == nil || errors.As(err, new(v4l2.Unusable)) || !strings.Contains(err.Error(), "in use") {
		t.Error(err)
	}
}

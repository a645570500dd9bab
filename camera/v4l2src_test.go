package camera

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/camera/v4l2"
	"github.com/eyas-edge/eyas/camera/v4l2/v4l2test"
)

// deviceSink hands the frames of a camera to a test, one after the other.
type deviceSink struct {
	frames chan *Frame
	states chan string
}

func (s *deviceSink) Frame(ctx context.Context, f *Frame) error {
	select {
	case s.frames <- f:
		return nil
	case <-ctx.Done():
		f.Release()
		return ctx.Err()
	}
}
func (s *deviceSink) Fault(error)   {}
func (s *deviceSink) Reclaim() bool { return false }
func (s *deviceSink) State(to State, err error) {
	s.states <- strings.TrimSuffix(fmt.Sprintf("%v: %v", to, err), ": <nil>")
}

// device is a fake camera with a source that runs on it.
type device struct {
	host   *v4l2test.Host
	camera *v4l2test.Camera
	source *supervised
	sink   *deviceSink
	log    *bytes.Buffer // to be read after stop
	done   chan error    // how the source ended
	stop   func() error  // ends the source and returns its error
}

// run opens spec, behind v4l2:, on a machine with one camera at /dev/video0, and waits for neither.
func run(t testing.TB, c *v4l2test.Camera, spec string, opts ...Option) *device {
	t.Helper()
	d := &device{host: v4l2test.New(t), camera: c, log: new(bytes.Buffer)}
	d.sink = &deviceSink{make(chan *Frame), make(chan string, 100)}
	d.host.Plug(c, 0)
	opts = append(opts, Logger(slog.New(slog.NewTextHandler(d.log, nil))), Times(Timing{MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond}))
	b := newBase("cam", collect(opts))
	s, err := newV4L2(&b, d.host.V4L2(), spec)
	if err != nil {
		t.Fatal(err)
	}
	d.source = supervise(b, s).(*supervised)
	ctx, cancel := context.WithCancel(t.Context())
	d.done = make(chan error, 1)
	go func() { d.done <- d.source.Run(ctx, d.sink); close(d.done) }()
	d.stop = func() error {
		cancel()
		return <-d.done
	}
	t.Cleanup(func() { _ = d.stop() })
	return d
}

// send has the camera send a frame and returns what the source makes of it.
func (d *device) send(t testing.TB, f v4l2test.Frame) *Frame {
	t.Helper()
	d.host.WaitStream(d.camera)
	if !d.host.Send(d.camera, f) {
		t.Fatal("the driver has no buffer")
	}
	return <-d.sink.frames
}

func packedBytes(f *Frame) (b []byte) {
	for _, p := range f.Planes {
		b = append(b, p.Data...)
	}
	return b
}

func grayDevice() *v4l2test.Camera {
	return &v4l2test.Camera{Card: "Grey", Bus: "usb-1", ByID: "usb-Grey", Modes: []v4l2test.Mode{v4l2test.At("GREY", 4, 2, 30)}}
}

func TestV4L2Frames(t *testing.T) {
	c := grayDevice()
	c.Modes, c.Pad = []v4l2test.Mode{v4l2test.At("NV12", 4, 2, 30)}, 4
	c.Colorspace = 3 // 709
	d := run(t, c, "0?size=4x2")
	row := []byte("abcd....")
	data := bytes.Repeat(row, 3)
	f := d.send(t, v4l2test.Frame{Data: data, Age: 50 * time.Millisecond})
	if f.Format != frame.NV12 || f.Width != 4 || f.Height != 2 || f.Colour != (frame.Colour{Matrix: frame.BT709}) || string(packedBytes(f)) != "abcdabcdabcd" {
		t.Errorf("%v %v %dx%d %q", f.Format, f.Colour, f.Width, f.Height, packedBytes(f))
	}
	if age := time.Since(f.Captured); f.CapturedBy != frame.ByDriver || age < 50*time.Millisecond || f.Source != "cam" || f.Seq != 0 {
		t.Errorf("by %v, %v old, %s %d", f.CapturedBy, age, f.Source, f.Seq)
	}
	f.Release()
	f = d.send(t, v4l2test.Frame{Data: data, NoStamp: true, Missing: 2})
	if f.CapturedBy != frame.ByArrival || f.Seq != 3 {
		t.Errorf("by %v, %d", f.CapturedBy, f.Seq)
	}
	f.Release()
	d.host.Send(c, v4l2test.Frame{Data: data[:5]})
	d.host.Fail(c, unix.EIO)
	f = d.send(t, v4l2test.Frame{Data: data})
	f.Release()
	if err := d.stop(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	st := d.source.Stats()
	if st.Dropped != (Drops{Corrupt: 2, NoSlot: 2}) || st.Captured != 7 || st.FPS == 0 || f.Seq != 6 {
		t.Errorf("%+v, last frame %d", st, f.Seq)
	}
	if d.log.Len() > 0 {
		t.Errorf("log:\n%s", d.log)
	}
}

func TestV4L2MJPEG(t *testing.T) {
	encode := func(w, h int, level byte) []byte {
		m := image.NewYCbCr(image.Rect(0, 0, w, h), image.YCbCrSubsampleRatio420)
		for i := range m.Y {
			m.Y[i] = level
		}
		for i := range m.Cb {
			m.Cb[i], m.Cr[i] = 128, 128
		}
		var b bytes.Buffer
		if err := jpeg.Encode(&b, m, nil); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	c := grayDevice()
	c.Modes = []v4l2test.Mode{v4l2test.At("MJPG", 64, 48, 30)}
	d := run(t, c, "0?format=mjpeg&size=64x48&fps=15")
	good := encode(64, 48, 200)
	f := d.send(t, v4l2test.Frame{Data: append(slices.Clone(good), make([]byte, 100)...)})
	if f.Format != frame.I420 || f.Width != 64 || f.Height != 48 || !f.Colour.Full || f.CapturedBy != frame.ByDriver {
		t.Errorf("%v %dx%d %+v %v", f.Format, f.Width, f.Height, f.Colour, f.CapturedBy)
	}
	if y := f.Planes[0].Data[100]; y < 195 || y > 205 {
		t.Errorf("luma %d", y)
	}
	f.Release()
	for _, bad := range [][]byte{good[:len(good)/2], []byte("no picture")} {
		d.host.Send(c, v4l2test.Frame{Data: bad})
		d.host.WaitQueued(c, 3)
		f = d.send(t, v4l2test.Frame{Data: good})
		f.Release()
	}
	_ = d.stop()
	if st := d.source.Stats(); st.Dropped[Corrupt]+st.Dropped[Superseded] != 2 || st.Captured != 5 || st.Connects != 1 {
		t.Errorf("%+v", st)
	}
}

// A camera that is unplugged comes back under another number, and its frames go on.
func TestV4L2Return(t *testing.T) {
	c := grayDevice()
	d := run(t, c, "/dev/video0")
	data := v4l2test.Frame{Data: []byte("12345678")}
	d.send(t, data).Release()
	d.host.Unplug(c)
	d.host.Plug(&v4l2test.Camera{Card: "Stranger", Modes: c.Modes}, 0)
	if got := []string{<-d.sink.states, <-d.sink.states}; !slices.Equal(got, []string{"open", "lost: the camera was unplugged"}) {
		t.Error(got)
	}
	d.host.Plug(c, 3)
	f := d.send(t, data)
	if f.Seq != 1 || string(packedBytes(f)) != "12345678" {
		t.Errorf("frame %d, %q", f.Seq, packedBytes(f))
	}
	f.Release()
	_ = d.stop()
	if st := d.source.Stats(); st.Connects != 2 || st.State != StateOpen {
		t.Errorf("%+v", st)
	}
	if !strings.Contains(d.log.String(), "device=/dev/video3 was=/dev/video0") {
		t.Errorf("log:\n%s", d.log)
	}
}

func TestV4L2Every(t *testing.T) {
	d := run(t, grayDevice(), "0", Every(2), MaxFrames(2))
	data := v4l2test.Frame{Data: []byte("12345678")}
	d.send(t, data).Release()
	d.host.Send(d.camera, data)
	d.host.WaitQueued(d.camera, 4)
	if f := d.send(t, data); f.Seq != 2 {
		t.Errorf("frame %d", f.Seq)
	} else {
		f.Release()
	}
	if err := <-d.done; err != nil {
		t.Error(err)
	}
}

// What the camera does not do is said, and what trying again will not cure ends the source.
func TestV4L2Refusal(t *testing.T) {
	c := grayDevice()
	d := run(t, c, "0?size=640x480&fps=60")
	d.send(t, v4l2test.Frame{Data: []byte("12345678")}).Release()
	_ = d.stop()
	if !strings.Contains(d.log.String(), "the camera gives 4x2 instead of 640x480: eyas doctor lists its sizes") {
		t.Errorf("log:\n%s", d.log)
	}
	for spec, want := range map[string]string{
		"0?format=nv12": "source cam: /dev/video0: it does not give nv12, only gray",
	} {
		s, err := newV4L2(&d.source.base, d.host.V4L2(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := supervise(d.source.base, s).Run(t.Context(), d.sink); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestV4L2Expect(t *testing.T) {
	b := newBase("cam", collect(nil))
	for spec, want := range map[string]string{
		"0":                                "unknown 0x0 0",
		"0?size=640x480&fps=15":            "unknown 640x480 15",
		"0?size=640x480&fps=5&format=yuyv": "yuyv 640x480 5",
		"0?format=mjpeg":                   "unknown 0x0 0",
	} {
		s, err := newV4L2(&b, v4l2.Here(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if f, w, h, fps := s.Expect(); fmt.Sprintf("%v %dx%d %v", f, w, h, fps) != want {
			t.Errorf("%s: %v %dx%d %v, want %s", spec, f, w, h, fps, want)
		}
	}
}

// From the driver to the sink a frame costs no allocation.
func TestV4L2NoAllocation(t *testing.T) {
	d := run(t, grayDevice(), "0")
	sent := v4l2test.Frame{Data: []byte("12345678")}
	one := func() { d.send(t, sent).Release() }
	for range 100 {
		one()
	}
	if n := testing.AllocsPerRun(200, one); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}

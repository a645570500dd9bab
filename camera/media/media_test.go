package media_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/mediadevices/pkg/driver"
	mediaframe "github.com/pion/mediadevices/pkg/frame"
	"github.com/pion/mediadevices/pkg/io/video"
	"github.com/pion/mediadevices/pkg/prop"
	"go.uber.org/goleak"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/camera/media"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a driver of mediadevices. A nil function does what a good one does.
type fake struct {
	offers []prop.Media
	open   func() error
	record func(prop.Media) error
	read   func() (image.Image, error) // io.EOF once closed
	close  func() error

	asked    prop.Media
	given    int // pictures since Open
	released int
	closed   chan struct{}
}

func (f *fake) Open() error {
	f.closed, f.given = make(chan struct{}), 0
	if f.open != nil {
		return f.open()
	}
	return nil
}

func (f *fake) Close() error {
	if f.close != nil {
		return f.close()
	}
	select {
	case <-f.closed:
	default:
		close(f.closed)
	}
	return nil
}

func (f *fake) Properties() []prop.Media { return f.offers }

func (f *fake) VideoRecord(p prop.Media) (video.Reader, error) {
	f.asked = p
	if f.record != nil {
		if err := f.record(p); err != nil {
			return nil, err
		}
	}
	return video.ReaderFunc(func() (image.Image, func(), error) {
		m, err := f.read()
		return m, func() { f.released++ }, err
	}), nil
}

// gives returns a read function for pictures, after which it waits for Close.
func (f *fake) gives(list ...image.Image) {
	f.read = func() (image.Image, error) {
		if f.given == len(list) {
			<-f.closed
			return nil, io.EOF
		}
		f.given++
		return list[f.given-1], nil
	}
}

// register makes a driver known for the time of a test.
func register(t testing.TB, f *fake, label, name string) {
	t.Helper()
	m := driver.GetManager()
	if err := m.Register(f, driver.Info{Label: label, Name: name, DeviceType: driver.Camera}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, d := range m.Query(driver.FilterVideoRecorder()) {
			if d.Info().Label == label {
				m.Delete(d.ID())
			}
		}
	})
}

// sink keeps what comes.
type sink struct {
	frames []string
	states []string
	seen   func()
}

func (s *sink) Frame(_ context.Context, f *camera.Frame) error {
	defer f.Release()
	if f.CapturedBy != frame.ByArrival || time.Since(f.Captured) > time.Hour {
		return fmt.Errorf("captured by %v", f.CapturedBy)
	}
	text := fmt.Sprintf("%v %dx%d", f.Format, f.Width, f.Height)
	if f.Colour.Full {
		text += " full"
	}
	for _, p := range f.Planes {
		text += fmt.Sprintf(" %x", p.Data)
	}
	s.frames = append(s.frames, text)
	if s.seen != nil {
		s.seen()
	}
	return nil
}
func (s *sink) Fault(error)   {}
func (s *sink) Reclaim() bool { return false }
func (s *sink) State(to camera.State, err error) {
	s.states = append(s.states, strings.TrimSuffix(fmt.Sprintf("%v: %v", to, err), ": <nil>"))
}

func source(t testing.TB, spec string, opts ...camera.Option) camera.Monitored {
	t.Helper()
	s, err := camera.Open(spec, append(opts, media.Scheme())...)
	if err != nil {
		t.Fatal(err)
	}
	return s.(camera.Monitored)
}

// pix returns n bytes from 1 on.
func pix(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i + 1)
	}
	return b
}

func ycc(r image.Rectangle, ratio image.YCbCrSubsampleRatio) *image.YCbCr {
	m := image.NewYCbCr(r, ratio)
	copy(m.Y, pix(len(m.Y)))
	copy(m.Cb, bytes.Repeat([]byte{0xb0}, len(m.Cb)))
	copy(m.Cr, bytes.Repeat([]byte{0xc0}, len(m.Cr)))
	return m
}

// own is a picture that is none of image's kinds.
type own struct{ image.Image }

func TestPictures(t *testing.T) {
	small := image.Rect(0, 0, 3, 2)
	rgb := func(m *image.YCbCr) (text string) {
		for y := range 2 {
			for x := range 3 {
				i := m.COffset(x, y)
				r, g, b := color.YCbCrToRGB(m.Y[m.YOffset(x, y)], m.Cb[i], m.Cr[i])
				text += fmt.Sprintf("%02x%02x%02x", r, g, b)
			}
		}
		return "rgb24 3x2 full " + text
	}
	padded := &image.RGBA{Pix: pix(40), Stride: 20, Rect: small}
	cut := ycc(small, image.YCbCrSubsampleRatio420)
	cut.Cr = cut.Cr[:1]
	narrow := ycc(small, image.YCbCrSubsampleRatio420) // as mediadevices' own decoder makes odd widths
	narrow.CStride = 1
	long := ycc(small, image.YCbCrSubsampleRatio444)
	long.Cb = long.Cb[:5]
	tests := []struct {
		name   string
		format mediaframe.Format
		give   image.Image
		want   string // "" for a corrupt one
	}{
		{"4:2:0", mediaframe.FormatI420, ycc(small, image.YCbCrSubsampleRatio420), "i420 3x2 010203040506 b0b0 c0c0"},
		{"4:2:0 of JPEG", mediaframe.FormatMJPEG, ycc(small, image.YCbCrSubsampleRatio420), "i420 3x2 full 010203040506 b0b0 c0c0"},
		{"4:2:2", mediaframe.FormatYUY2, ycc(small, image.YCbCrSubsampleRatio422), "i422 3x2 010203040506 b0b0b0b0 c0c0c0c0"},
		{"4:4:4", mediaframe.FormatMJPEG, ycc(small, image.YCbCrSubsampleRatio444), rgb(ycc(small, image.YCbCrSubsampleRatio444))},
		{"4:4:0", mediaframe.FormatMJPEG, ycc(small, image.YCbCrSubsampleRatio440), rgb(ycc(small, image.YCbCrSubsampleRatio440))},
		{"4:1:1", mediaframe.FormatMJPEG, ycc(small, image.YCbCrSubsampleRatio411), rgb(ycc(small, image.YCbCrSubsampleRatio411))},
		{"4:1:0", mediaframe.FormatMJPEG, ycc(small, image.YCbCrSubsampleRatio410), rgb(ycc(small, image.YCbCrSubsampleRatio410))},
		{"RGBA with padding", mediaframe.FormatRGBA, padded, "rgba 3x2 0102030405060708090a0b0c15161718191a1b1c1d1e1f20"},
		{"NRGBA", mediaframe.FormatRGBA, &image.NRGBA{Pix: pix(8), Stride: 8, Rect: image.Rect(5, 5, 7, 6)}, "rgba 2x1 0102030405060708"},
		{"grey", "", &image.Gray{Pix: pix(6), Stride: 3, Rect: small}, "gray 3x2 010203040506"},
		{"short chroma", mediaframe.FormatI420, cut, ""},
		{"narrow chroma", mediaframe.FormatI420, narrow, ""},
		{"short 4:4:4", mediaframe.FormatMJPEG, long, ""},
		{"short RGBA", "", &image.RGBA{Pix: pix(23), Stride: 12, Rect: small}, ""},
		{"no rows", "", &image.RGBA{Pix: pix(24), Rect: small}, ""},
		{"empty", "", &image.Gray{}, ""},
		{"huge", "", &image.Gray{Pix: pix(6), Stride: 3, Rect: image.Rect(-1<<62, 0, 1<<62, 1)}, ""},
		{"none", "", nil, ""},
		{"nil of a kind", "", (*image.YCbCr)(nil), ""},
		{"own kind that panics", "", own{}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{offers: []prop.Media{{Video: prop.Video{Width: 3, Height: 2, FrameFormat: tt.format, FrameRate: 25}}}}
			register(t, f, "front", "")
			last := &image.Gray{Pix: []byte{9}, Stride: 1, Rect: image.Rect(0, 0, 1, 1)}
			f.gives(tt.give, last)
			s := source(t, "media:front")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			got := &sink{}
			got.seen = func() {
				if strings.HasPrefix(got.frames[len(got.frames)-1], "gray 1x1") {
					cancel()
				}
			}
			if err := s.Run(ctx, got); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			want := []string{tt.want, "gray 1x1 09"}
			corrupt := uint64(0)
			if tt.want == "" {
				want, corrupt = want[1:], 1
			}
			if fmt.Sprint(got.frames) != fmt.Sprint(want) || s.Stats().Dropped[camera.Corrupt] != corrupt {
				t.Errorf("got %q and %v, want %q", got.frames, s.Stats().Dropped, want)
			}
			if f.released != 2 {
				t.Errorf("%d pictures given back", f.released)
			}
			select {
			case <-f.closed:
			default:
				t.Error("not closed")
			}
		})
	}
}

func TestNames(t *testing.T) {
	for label, name := range map[string]string{"usb-C920-index0;video0": "C920;usb-1.2", "usb-Twin-1;video2": "Twin", "usb-Twin-2;video3": "Twin"} {
		f := &fake{}
		f.gives(&image.Gray{Pix: []byte{9}, Stride: 1, Rect: image.Rect(0, 0, 1, 1)})
		register(t, f, label, name)
	}
	const known = "usb-C920-index0;video0, usb-Twin-1;video2, usb-Twin-2;video3"
	for name, want := range map[string]string{
		"usb-C920-index0;video0": "", "usb-c920-index0": "", "video0": "", "C920": "", "C920;usb-1.2": "",
		"Twin":  "mediadevices found 2 cameras of this name: use a label, one of " + known,
		"front": "mediadevices found no such camera when eyas started, only " + known,
	} {
		t.Run(name, func(t *testing.T) {
			err := source(t, "media:"+name, camera.MaxFrames(1)).Run(t.Context(), &sink{})
			if want == "" && err != nil || want != "" && (err == nil || err.Error() != "source media:"+name+": "+want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func TestNoDriver(t *testing.T) {
	err := source(t, "media:x").Run(t.Context(), &sink{})
	if err == nil || err.Error() != "source media:x: mediadevices found no camera when eyas started" {
		t.Error(err)
	}
}

func TestChoice(t *testing.T) {
	at := func(w, h int, f mediaframe.Format, fps float32) prop.Media {
		return prop.Media{Video: prop.Video{Width: w, Height: h, FrameFormat: f, FrameRate: fps}}
	}
	usual := []prop.Media{
		at(640, 480, mediaframe.FormatYUY2, 30), at(1280, 720, mediaframe.FormatYUY2, 10), at(1280, 720, mediaframe.FormatMJPEG, 30),
		at(1280, 720, mediaframe.FormatZ16, 90),
	}
	tests := []struct {
		name, spec string
		offers     []prop.Media
		want       string
	}{
		{"default", "", usual, "1280x720 MJPEG 30"},
		{"slow", "?fps=10", usual, "1280x720 YUY2 10"},
		{"small", "?size=640x480", usual, "640x480 YUY2 30"},
		{"by format", "?format=yuy2", usual, "1280x720 YUY2 10"},
		{"nothing offered", "?size=4x2&fps=5&format=rgba", nil, "4x2 RGBA 5"},
		{"not offered", "?format=nv12", usual, "the camera offers yuy2, mjpeg, z16: choose one of them with format="},
		{"depth only", "", usual[3:], "the camera offers z16"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{offers: tt.offers}
			f.gives(&image.Gray{Pix: []byte{9}, Stride: 1, Rect: image.Rect(0, 0, 1, 1)})
			register(t, f, "front", "")
			got := ""
			if err := source(t, "media:front"+tt.spec, camera.MaxFrames(1)).Run(t.Context(), &sink{}); err != nil {
				got = err.Error()
			} else {
				got = fmt.Sprintf("%dx%d %s %v", f.asked.Width, f.asked.Height, f.asked.FrameFormat, f.asked.FrameRate)
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// A driver that fails or panics, wherever that is, is opened again.
func TestFaults(t *testing.T) {
	once := func(what func()) func() {
		done := false
		return func() {
			if !done {
				done = true
				what()
			}
		}
	}
	breaks := func() { panic("index out of range") }
	failed := errors.New("no signal")
	tests := []struct {
		name string
		set  func(f *fake)
		want string
	}{
		{"open fails", func(f *fake) {
			n := 0
			f.open = func() error {
				if n++; n == 1 {
					return failed
				}
				return nil
			}
		}, "open: no signal"},
		{"open panics", func(f *fake) { p := once(breaks); f.open = func() error { p(); return nil } }, "driver is broken: index out of range"},
		{"start panics", func(f *fake) { p := once(breaks); f.record = func(prop.Media) error { p(); return nil } }, "driver is broken"},
		{"start fails", func(f *fake) {
			n := 0
			f.record = func(prop.Media) error {
				if n++; n == 1 {
					return failed
				}
				return nil
			}
		}, "start: no signal"},
		{"read panics", func(f *fake) {
			p, read := once(breaks), f.read
			f.read = func() (image.Image, error) { p(); return read() }
		}, "driver is broken"},
		{"read fails", func(f *fake) {
			n, read := 0, f.read
			f.read = func() (image.Image, error) {
				if n++; n == 1 {
					return nil, failed
				}
				return read()
			}
		}, "read: no signal"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{}
				f.gives(&image.Gray{Pix: []byte{9}, Stride: 1, Rect: image.Rect(0, 0, 1, 1)})
				tt.set(f)
				register(t, f, "front", "")
				got := &sink{}
				if err := source(t, "media:front", camera.MaxFrames(1)).Run(t.Context(), got); err != nil {
					t.Fatal(err)
				}
				if len(got.states) != 2 || !strings.Contains(got.states[0], "lost: ") || !strings.Contains(got.states[0], tt.want) || got.states[1] != "open" {
					t.Errorf("states %q, want %s", got.states, tt.want)
				}
			})
		})
	}
}

// A driver that hangs is left behind, once, and used again when it has come back.
func TestHang(t *testing.T) {
	for _, where := range []string{"open", "start", "read", "close"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{}
				one := &image.Gray{Pix: []byte{9}, Stride: 1, Rect: image.Rect(0, 0, 1, 1)}
				f.gives(one)
				good := *f
				back := make(chan struct{})
				calls := 0
				hang := func() error {
					calls++
					<-back
					return errors.New("too late")
				}
				switch where {
				case "open":
					f.open = hang
				case "start":
					f.record = func(prop.Media) error { return hang() }
				case "read":
					f.read = func() (image.Image, error) { return nil, hang() }
				case "close":
					f.read = func() (image.Image, error) { return nil, io.ErrUnexpectedEOF }
					f.close = hang
				}
				register(t, f, "front", "")
				var log bytes.Buffer
				s := source(t, "media:front", camera.MaxFrames(1), camera.Logger(slog.New(slog.NewTextHandler(&log, nil))))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				got := &sink{}
				done := make(chan error, 1)
				go func() { done <- s.Run(ctx, got) }()
				time.Sleep(5 * time.Minute) // of the bubble: many attempts
				synctest.Wait()
				if calls != 1 || strings.Count(log.String(), "a call is left behind") != 1 {
					t.Errorf("%d calls, log:\n%s", calls, log.String())
				}
				if last := got.states[len(got.states)-1]; last != "lost: its driver has not come back from an earlier call: unplug the camera, or start eyas anew" {
					t.Errorf("states %q", got.states)
				}
				f.open, f.record, f.read, f.close = good.open, good.record, good.read, good.close
				close(back)
				if err := <-done; err != nil || len(got.frames) != 1 {
					t.Errorf("%v, frames %q", err, got.frames)
				}
			})
		})
	}
}

// The end does not wait for a driver for longer than a second.
func TestEndIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		back := make(chan struct{})
		f.read = func() (image.Image, error) { <-back; return nil, io.EOF }
		register(t, f, "front", "")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		if err := source(t, "media:front").Run(ctx, &sink{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("took %v", took)
		}
		close(back)
		synctest.Wait()
	})
}

func TestNoAllocation(t *testing.T) {
	f := &fake{}
	next, seen := make(chan struct{}), make(chan struct{})
	m := ycc(image.Rect(0, 0, 64, 48), image.YCbCrSubsampleRatio420)
	f.read = func() (image.Image, error) {
		select {
		case <-next:
			return m, nil
		case <-f.closed:
			return nil, io.EOF
		}
	}
	register(t, f, "front", "")
	s := source(t, "media:front")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, quiet(seen)) }()
	one := func() { next <- struct{}{}; <-seen }
	for range 100 {
		one()
	}
	if n := testing.AllocsPerRun(200, one); n > 1 { // the fake's function that gives a picture back
		t.Errorf("%v allocations a frame", n)
	}
	cancel()
	<-done
}

// quiet is a sink that keeps nothing.
type quiet chan struct{}

func (q quiet) Frame(_ context.Context, f *camera.Frame) error {
	f.Release()
	q <- struct{}{}
	return nil
}
func (quiet) Fault(error)               {}
func (quiet) Reclaim() bool             { return false }
func (quiet) State(camera.State, error) {}

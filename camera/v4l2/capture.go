package v4l2

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/camera/v4l2/internal/abi"
)

// buffersWanted is how many pictures the driver may be ahead: one is read, and at 30 fps three more wait for 100 ms.
const buffersWanted = 4

// Capture is an open camera that streams. Close gives it back. It is for one goroutine.
type Capture struct {
	ctx    context.Context
	stop   func() bool // the watch on ctx
	host   Host
	dev    handle
	path   string
	caps   capability
	format *Format
	wake   *wake
	polls  [2]unix.PollFd // the camera, and wake
	memory [][]byte       // of the driver's buffers
	queued []bool         // the driver has it
	buffer abi.Buffer     // for the calls: one that is passed to the kernel would be allocated for each

	streaming bool
	held      int    // the buffer that the caller reads, -1 for none
	sequence  uint32 // of the last frame
	counting  bool   // there was one
	failures  int    // in a row, without a frame
}

// Open finds the camera, sets it to the format that comes nearest to the request, and starts it. Next ends when ctx does. An
// error that is Unusable stays when one tries again.
func (c *Camera) Open(ctx context.Context) (*Capture, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	first := !c.tried
	c.tried = true
	path, err := c.find()
	if err != nil {
		return nil, err
	}
	dev, err := c.host.open(path)
	if err != nil {
		if errors.Is(err, unix.EACCES) && first {
			return nil, Unusable{c.host.explain(path, err)} // one that is plugged in has no rights for a moment
		}
		return nil, c.host.explain(path, err)
	}
	s := &Capture{ctx: ctx, host: c.host, dev: dev, path: path, held: -1}
	if err := s.start(c.want); err != nil {
		s.Close()
		return nil, err
	}
	c.remember(path, s.caps)
	return s, nil
}

// Path returns the device, which for a camera that came back may be another than was asked for.
func (s *Capture) Path() string { return s.path }

// Format returns what the frames are.
func (s *Capture) Format() *Format { return s.format }

func (s *Capture) start(want Request) error {
	var err error
	if s.caps, err = s.dev.capability(); err != nil {
		return s.failed("ask", err)
	}
	if err := s.caps.refusal(s.path); err != nil {
		return err
	}
	if err := s.setFormat(want); err != nil {
		return err
	}
	s.setRate(want.FPS)
	if err := s.allocate(); err != nil {
		return err
	}
	if s.wake, err = newWake(); err != nil {
		return err
	}
	s.stop = context.AfterFunc(s.ctx, s.wake.signal)
	s.polls = [2]unix.PollFd{{Fd: int32(s.dev.fd), Events: unix.POLLIN}, {Fd: int32(s.wake.fd), Events: unix.POLLIN}}
	kind := int32(abi.TypeVideoCapture)
	if err := s.dev.ioctl(abi.StreamOn, unsafe.Pointer(&kind)); err != nil {
		return s.failed("start", err)
	}
	s.streaming = true
	return nil
}

// failed words an error of the driver's.
func (s *Capture) failed(what string, err error) error {
	if known := s.host.explain(s.path, err); known != err {
		return known
	}
	return fmt.Errorf("%s %s: %w", what, s.path, err)
}

func (s *Capture) setFormat(want Request) error {
	modes := s.dev.modes()
	best, err := s.dev.choose(modes, want)
	if err != nil {
		return Unusable{fmt.Errorf("%s: %w", s.path, err)}
	}
	f := abi.Format{Type: abi.TypeVideoCapture, Pix: abi.PixFormat{
		Width: uint32(best.w), Height: uint32(best.h), PixelFormat: best.fourCC, Field: abi.FieldNone, Priv: abi.PrivMagic,
	}}
	if err := s.dev.ioctl(abi.SetFmt, unsafe.Pointer(&f)); err != nil {
		return s.failed("set the format of", err)
	}
	if s.format, err = newFormat(&f.Pix); err != nil {
		return Unusable{fmt.Errorf("%s: %w", s.path, err)}
	}
	return nil
}

// setRate asks for a rate and notes what the driver makes of it. A camera without that setting has its own rate.
func (s *Capture) setRate(fps float64) {
	p := abi.StreamParm{Type: abi.TypeVideoCapture, TimePerFrame: abi.Fract{Numerator: 1000, Denominator: uint32(fps*1000 + 0.5)}}
	if s.dev.ioctl(abi.SetParm, unsafe.Pointer(&p)) != nil || p.Capability&abi.CapTimePerFrame == 0 {
		return
	}
	if t := p.TimePerFrame; t.Numerator > 0 && t.Denominator > 0 {
		s.format.FPS = float64(t.Denominator) / float64(t.Numerator)
	}
}

// allocate has the driver make buffers, maps them and hands them to it.
func (s *Capture) allocate() error {
	r := abi.RequestBuffers{Count: buffersWanted, Type: abi.TypeVideoCapture, Memory: abi.MemoryMap}
	if err := s.dev.ioctl(abi.ReqBufs, unsafe.Pointer(&r)); err != nil {
		return s.failed("get memory from", err)
	}
	if r.Count < 2 || r.Count > abi.MaxBuffers {
		return fmt.Errorf("get memory from %s: the driver offers %d buffers", s.path, r.Count)
	}
	for i := range r.Count {
		b := &s.buffer
		*b = abi.Buffer{Index: i, Type: abi.TypeVideoCapture, Memory: abi.MemoryMap}
		if err := s.dev.ioctl(abi.QueryBuf, unsafe.Pointer(b)); err != nil {
			return s.failed("get memory from", err)
		}
		if int(b.Length) < s.format.need || int(b.Length) > s.format.most() {
			return fmt.Errorf("get memory from %s: the driver offers %d bytes for %s of %dx%d, which needs %d",
				s.path, b.Length, s.format.Name(), s.format.Width, s.format.Height, s.format.need)
		}
		mem, err := s.dev.sys.Map(s.dev.fd, int64(b.Offset), int(b.Length))
		if err != nil {
			return s.failed("map the memory of", err)
		}
		s.memory = append(s.memory, mem)
		s.queued = append(s.queued, false)
		if err := s.queue(int(i)); err != nil {
			return err
		}
	}
	return nil
}

// queue hands a buffer to the driver.
func (s *Capture) queue(i int) error {
	s.buffer = abi.Buffer{Index: uint32(i), Type: abi.TypeVideoCapture, Memory: abi.MemoryMap}
	if err := s.dev.ioctl(abi.QBuf, unsafe.Pointer(&s.buffer)); err != nil {
		return s.failed("hand memory to", err)
	}
	s.queued[i] = true
	return nil
}

// Close stops the camera and gives back all that Open took. It may be called again.
func (s *Capture) Close() {
	if s.stop != nil {
		s.stop()
	}
	if s.streaming {
		kind := int32(abi.TypeVideoCapture)
		_ = s.dev.ioctl(abi.StreamOff, unsafe.Pointer(&kind)) // one that was unplugged has stopped
		s.streaming = false
	}
	for _, mem := range s.memory {
		_ = s.dev.sys.Unmap(mem) // what was mapped can be unmapped
	}
	s.memory = nil
	if s.wake != nil {
		s.wake.close()
	}
	if s.dev.fd >= 0 {
		_ = s.dev.close() // nothing was written
		s.dev.fd = -1
	}
}

// wake is a descriptor that ends a poll when it is signalled.
type wake struct {
	mu sync.Mutex
	fd int // -1 once closed
}

func newWake() (*wake, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	return &wake{fd: fd}, nil
}

func (w *wake) signal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fd >= 0 {
		_, _ = unix.Write(w.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // it can only be full, which wakes as well
	}
}

func (w *wake) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fd >= 0 {
		_ = unix.Close(w.fd)
		w.fd = -1
	}
}

// stamp returns the capture time of a filled buffer. A driver's time that lies ahead, or further back than a minute,
// is no capture time.
func stamp(b *abi.Buffer) (at time.Time, byDriver bool) {
	now := time.Now()
	if b.Flags&abi.BufTimestampMask != abi.BufMonotonic || b.Seconds < 0 || b.Microseconds < 0 || b.Microseconds >= 1e6 {
		return now, false
	}
	var clock unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &clock); err != nil {
		return now, false
	}
	if b.Seconds < clock.Sec-60 || b.Seconds > clock.Sec {
		return now, false
	}
	age := time.Duration(clock.Sec-b.Seconds)*time.Second + time.Duration(clock.Nsec-b.Microseconds*1000)
	if age < 0 {
		return now, false
	}
	return now.Add(-age), true
}

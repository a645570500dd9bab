// Package v4l2test is a machine with cameras for tests: it stands in place of the system calls of package v4l2 and behaves as
// drivers do, or as none should.
package v4l2test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/camera/v4l2"
	"github.com/eyas-edge/eyas/camera/v4l2/internal/abi"
)

// Mode is a pixel format, by its four characters, at one size.
type Mode struct {
	FourCC string
	W, H   uint32
	FPS    []uint32 // the rates; none if the driver does not say
}

// At returns a Mode.
func At(fourCC string, w, h uint32, fps ...uint32) Mode { return Mode{fourCC, w, h, fps} }

// Camera is a camera that can be plugged in. Its fields are set before.
type Camera struct {
	Card, Driver, Bus                  string
	ByID, ByPath                       string // names of links, "" for none
	Caps                               uint32 // 0 stands for those of a camera
	Modes                              []Mode
	Pad                                uint32 // bytes behind each row
	Colorspace, YCbCrEnc, Quantization uint32
	NoSizes                            bool                                                    // the driver does not enumerate sizes
	OpenErr                            error                                                   // what opening it returns
	Answer                             func(request uint, arg unsafe.Pointer, err error) error // sees and changes each answer

	Asked func(w, h uint32) // sees the size that is asked for

	path    string // "" while it is not plugged in
	stream  int    // the descriptor that streams, 0 for none
	format  abi.PixFormat
	buffers [][]byte
	queue   []uint32 // buffers that wait to be filled
	events  []event  // what DQBUF returns
	seq     uint32
}

// event is a filled buffer, or the error in place of one.
type event struct {
	buffer abi.Buffer
	err    error
}

// Frame is a picture that a camera sends.
type Frame struct {
	Data    []byte        // copied into the buffer; the length is its bytesused
	Age     time.Duration // of its time stamp
	NoStamp bool          // the driver does not know the time
	Damaged bool          // the driver marks it so
	Missing uint32        // frames that it left out before
}

// Host is the machine. When the test ends everything has to be given back.
type Host struct {
	t    testing.TB
	root string

	mu      sync.Mutex
	changed *sync.Cond
	cameras map[string]*Camera // by path
	open    map[int]*device    // by descriptor
	mapped  int
	one     [1]byte // through the pipes; the race detector would have it allocated for each frame
}

// device is an open descriptor, the reading end of a pipe that is readable while there are events.
type device struct {
	camera *Camera
	ready  int // the writing end, -1 once the camera is gone
}

// New makes a machine without cameras.
func New(t testing.TB) *Host {
	h := &Host{t: t, root: t.TempDir(), cameras: make(map[string]*Camera), open: make(map[int]*device)}
	h.changed = sync.NewCond(&h.mu)
	for _, dir := range []string{"dev/v4l/by-id", "dev/v4l/by-path"} {
		h.must(os.MkdirAll(filepath.Join(h.root, dir), 0o755))
	}
	t.Cleanup(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.open) > 0 || h.mapped > 0 {
			t.Errorf("%d descriptors and %d mappings are left", len(h.open), h.mapped)
		}
	})
	return h
}

// V4L2 returns the machine as package v4l2 sees it.
func (h *Host) V4L2() v4l2.Host { return v4l2.With(h.root, h) }

// Root is the machine's file tree.
func (h *Host) Root() string { return h.root }

func (h *Host) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// Plug makes a camera /dev/videoN.
func (h *Host) Plug(c *Camera, n int) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	c.path = fmt.Sprintf("/dev/video%d", n)
	h.cameras[c.path] = c
	h.must(os.WriteFile(filepath.Join(h.root, c.path), nil, 0o600))
	for dir, name := range map[string]string{"by-id": c.ByID, "by-path": c.ByPath} {
		if name != "" {
			h.must(os.Symlink("../../"+filepath.Base(c.path), filepath.Join(h.root, "dev/v4l", dir, name)))
		}
	}
}

// Unplug takes a camera away; what has it open finds it gone.
func (h *Host) Unplug(c *Camera) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.must(os.Remove(filepath.Join(h.root, c.path)))
	for dir, name := range map[string]string{"by-id": c.ByID, "by-path": c.ByPath} {
		if name != "" {
			h.must(os.Remove(filepath.Join(h.root, "dev/v4l", dir, name)))
		}
	}
	delete(h.cameras, c.path)
	c.path, c.events, c.queue = "", nil, nil
	for _, d := range h.open {
		if d.camera == c {
			h.must(unix.Close(d.ready))
			d.ready = -1
		}
	}
}

// WaitStream waits until somebody streams from the camera.
func (h *Host) WaitStream(c *Camera) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c.stream == 0 {
		h.changed.Wait()
	}
}

// WaitQueued waits until n buffers of the camera wait to be filled.
func (h *Host) WaitQueued(c *Camera, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(c.queue) < n {
		h.changed.Wait()
	}
}

// Send has a camera that streams fill a buffer. It says whether there was one; else the frame is left out.
func (h *Host) Send(c *Camera, f Frame) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.seq += 1 + f.Missing
	if len(c.queue) == 0 || c.stream == 0 {
		return false
	}
	i := c.queue[0]
	c.queue = slices.Delete(c.queue, 0, 1) // in place, so that nothing is allocated per frame
	b := abi.Buffer{Index: i, Type: abi.TypeVideoCapture, Memory: abi.MemoryMap, Sequence: c.seq, BytesUsed: uint32(copy(c.buffers[i], f.Data))}
	if !f.NoStamp {
		var now unix.Timespec
		h.must(unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
		at := time.Duration(now.Nano()) - f.Age
		b.Seconds, b.Microseconds = int64(at/time.Second), int64(at%time.Second/time.Microsecond)
		b.Flags |= abi.BufMonotonic
	}
	if f.Damaged {
		b.Flags |= abi.BufError
	}
	h.push(c, event{buffer: b})
	return true
}

// Fail has the next attempt to take a buffer return an error.
func (h *Host) Fail(c *Camera, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.push(c, event{err: err})
}

func (h *Host) push(c *Camera, e event) {
	c.events = append(c.events, e)
	if d := h.open[c.stream]; d != nil {
		_, err := unix.Write(d.ready, h.one[:])
		h.must(err)
	}
}

// Open implements the system call.
func (h *Host) Open(path string) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.cameras[strings.TrimPrefix(path, h.root)]
	if c == nil {
		return -1, unix.ENOENT
	}
	if c.OpenErr != nil {
		return -1, c.OpenErr
	}
	var ends [2]int
	h.must(unix.Pipe2(ends[:], unix.O_NONBLOCK|unix.O_CLOEXEC))
	h.open[ends[0]] = &device{c, ends[1]}
	return ends[0], nil
}

// Close implements the system call.
func (h *Host) Close(fd int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.open[fd]
	if d == nil {
		return unix.EBADF
	}
	if d.camera.stream == fd {
		h.t.Error("closed while it streams")
	}
	delete(h.open, fd)
	if d.ready >= 0 {
		h.must(unix.Close(d.ready))
	}
	return unix.Close(fd)
}

// Map implements the system call.
func (h *Host) Map(fd int, offset int64, length int) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.open[fd]
	if d == nil || offset < 0 || offset >= int64(len(d.camera.buffers)) {
		return nil, unix.EINVAL
	}
	mem := d.camera.buffers[offset]
	if length > len(mem) {
		return nil, unix.EINVAL
	}
	h.mapped++
	return mem[:length], nil
}

// Unmap implements the system call.
func (h *Host) Unmap([]byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mapped--
	return nil
}

// Ioctl implements the system call.
func (h *Host) Ioctl(fd int, request uint, arg unsafe.Pointer) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.open[fd]
	if d == nil {
		return unix.EBADF
	}
	err := h.ioctl(fd, d, request, arg)
	if d.camera.Answer != nil {
		err = d.camera.Answer(request, arg, err)
	}
	if request == abi.StreamOn && err == nil {
		d.camera.stream = fd
	}
	h.changed.Broadcast()
	return err
}

func (h *Host) ioctl(fd int, d *device, request uint, arg unsafe.Pointer) error {
	c := d.camera
	if request == abi.StreamOff && c.stream == fd {
		c.stream, c.events, c.queue = 0, nil, nil
		return nil
	}
	if d.ready < 0 {
		return unix.ENODEV
	}
	switch request {
	case abi.QueryCap:
		c.queryCap((*abi.Capability)(arg))
	case abi.EnumFmt:
		return c.enumFmt((*abi.FormatDesc)(arg))
	case abi.EnumFrameSizes:
		return c.enumSizes((*abi.FrameSize)(arg))
	case abi.EnumFrameIntervals:
		return c.enumIntervals((*abi.FrameInterval)(arg))
	case abi.SetFmt:
		return c.setFmt((*abi.Format)(arg))
	case abi.SetParm:
		(*abi.StreamParm)(arg).Capability = abi.CapTimePerFrame
	case abi.ReqBufs:
		if c.stream != 0 {
			return unix.EBUSY
		}
		c.buffers, c.queue = nil, nil
		for range (*abi.RequestBuffers)(arg).Count {
			c.buffers = append(c.buffers, make([]byte, c.format.SizeImage))
		}
	case abi.QueryBuf:
		b := (*abi.Buffer)(arg)
		b.Length, b.Offset = c.format.SizeImage, b.Index
	case abi.QBuf:
		c.queue = append(c.queue, (*abi.Buffer)(arg).Index)
	case abi.DQBuf:
		if len(c.events) == 0 {
			return unix.EAGAIN
		}
		_, err := unix.Read(fd, h.one[:])
		h.must(err)
		return c.take((*abi.Buffer)(arg))
	case abi.StreamOn:
	default:
		return unix.ENOTTY
	}
	return nil
}

func (c *Camera) take(b *abi.Buffer) error {
	e := c.events[0]
	c.events = slices.Delete(c.events, 0, 1)
	if e.err != nil {
		return e.err
	}
	*b = e.buffer
	return nil
}

func (c *Camera) queryCap(a *abi.Capability) {
	copy(a.Card[:], c.Card)
	copy(a.Driver[:], c.Driver)
	copy(a.BusInfo[:], c.Bus)
	a.DeviceCaps = c.Caps
	if c.Caps == 0 {
		a.DeviceCaps = abi.CapVideoCapture | abi.CapStreaming
	}
	a.Capabilities = abi.CapDeviceCaps | abi.CapVideoCapture | abi.CapStreaming
}

// fourCCs lists the pixel formats, each once.
func (c *Camera) fourCCs() (list []string) {
	for i, m := range c.Modes {
		if i == 0 || m.FourCC != c.Modes[i-1].FourCC {
			list = append(list, m.FourCC)
		}
	}
	return list
}

func (c *Camera) enumFmt(a *abi.FormatDesc) error {
	list := c.fourCCs()
	if int(a.Index) >= len(list) {
		return unix.EINVAL
	}
	a.PixelFormat = abi.FourCC(list[a.Index])
	return nil
}

func (c *Camera) enumSizes(a *abi.FrameSize) error {
	if c.NoSizes {
		return unix.ENOTTY
	}
	n := a.Index
	for _, m := range c.Modes {
		if abi.FourCC(m.FourCC) != a.PixelFormat {
			continue
		}
		if n == 0 {
			a.Type, a.MinWidth, a.MaxWidth = abi.TypeDiscrete, m.W, m.H
			return nil
		}
		n--
	}
	return unix.EINVAL
}

func (c *Camera) enumIntervals(a *abi.FrameInterval) error {
	for _, m := range c.Modes {
		if abi.FourCC(m.FourCC) == a.PixelFormat && m.W == a.Width && m.H == a.Height && int(a.Index) < len(m.FPS) {
			a.Type, a.Min = abi.TypeDiscrete, abi.Fract{Numerator: 1, Denominator: m.FPS[a.Index]}
			return nil
		}
	}
	return unix.EINVAL
}

// setFmt takes the mode that was asked for, else the first.
func (c *Camera) setFmt(a *abi.Format) error {
	if c.stream != 0 {
		return unix.EBUSY
	}
	if c.Asked != nil {
		c.Asked(a.Pix.Width, a.Pix.Height)
	}
	mode := c.Modes[0]
	for _, m := range c.Modes {
		if abi.FourCC(m.FourCC) == a.Pix.PixelFormat && m.W == a.Pix.Width && m.H == a.Pix.Height {
			mode = m
		}
	}
	bits := map[string]uint32{"NV12": 12, "YU12": 12, "YUYV": 16, "GREY": 8, "MJPG": 16}[mode.FourCC]
	row := mode.W * map[string]uint32{"YUYV": 2}[mode.FourCC]
	if row == 0 {
		row = mode.W
	}
	f := abi.PixFormat{
		Width: mode.W, Height: mode.H, PixelFormat: abi.FourCC(mode.FourCC), Field: abi.FieldNone, Priv: abi.PrivMagic,
		Colorspace: c.Colorspace, YCbCrEnc: c.YCbCrEnc, Quantization: c.Quantization,
	}
	f.SizeImage = (mode.W+c.Pad)*(mode.H+1)*bits/8 + 4096
	if mode.FourCC != "MJPG" {
		f.BytesPerLine = row + c.Pad
	}
	c.format, a.Pix = f, f
	return nil
}

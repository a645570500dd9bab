// Package v4l2 captures frames from Video4Linux2 cameras without C: it finds cameras by names that stay the same when they
// are plugged in again, lists what they give, chooses a format, and reads frames from memory that it shares with the
// driver. What the driver answers is checked before it is used.
//
// It captures uncompressed pictures as YUYV, NV12, I420 and grey, and MJPEG, whose pictures it hands on undecoded, from
// devices of the single-planar kind that stream into mapped memory.
package v4l2

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/camera/v4l2/internal/abi"
)

// Host is a machine with cameras.
type Host struct {
	root string // its file tree: /dev, /proc
	sys  abi.System
}

// Here returns this machine.
func Here() Host { return Host{"/", abi.Kernel{}} }

// At returns this machine with another file tree: names are looked up and devices opened below root.
func At(root string) Host { return Host{root, abi.Kernel{}} }

// With returns a machine for tests.
func With(root string, sys abi.System) Host { return Host{root, sys} }

// file returns where a path of the machine lies.
func (h Host) file(path string) string { return filepath.Join(h.root, path) }

// Unusable is an error that opening the camera again will not cure.
type Unusable struct{ error }

// Unwrap returns the error without the mark.
func (u Unusable) Unwrap() error { return u.error }

// handle is an open device.
type handle struct {
	sys abi.System
	fd  int
}

func (h Host) open(path string) (handle, error) {
	var fd int
	err := retry(func() (err error) {
		fd, err = h.sys.Open(h.file(path))
		return err
	})
	return handle{h.sys, fd}, err
}

func (d handle) close() error { return d.sys.Close(d.fd) }

func (d handle) ioctl(request uint, arg unsafe.Pointer) error {
	return retry(func() error { return d.sys.Ioctl(d.fd, request, arg) })
}

// retry makes a call again that a signal broke off, up to a hundred times.
func retry(call func() error) error {
	err := call()
	for n := 0; n < 100 && errors.Is(err, unix.EINTR); n++ {
		err = call()
	}
	return err
}

// capability is what a device says of itself.
type capability struct {
	driver, card, bus string
	caps              uint32 // of this node
}

func (d handle) capability() (capability, error) {
	var c abi.Capability
	if err := d.ioctl(abi.QueryCap, unsafe.Pointer(&c)); err != nil {
		return capability{}, err
	}
	caps := c.Capabilities
	if caps&abi.CapDeviceCaps != 0 {
		caps = c.DeviceCaps
	}
	return capability{text(c.Driver[:]), text(c.Card[:]), text(c.BusInfo[:]), caps}, nil
}

// captures says whether pictures come from the node, of whatever kind.
func (c capability) captures() bool {
	return c.caps&(abi.CapVideoCapture|abi.CapVideoCaptureMPlane) != 0
}

// refusal says why the device cannot be used, nil if it can.
func (c capability) refusal(path string) error {
	switch {
	case !c.captures():
		return Unusable{fmt.Errorf("%s (%s) gives no pictures: a camera often has a second device for other data; eyas doctor lists the right ones", path, c.card)}
	case c.caps&abi.CapVideoCapture == 0:
		return Unusable{fmt.Errorf("%s (%s) is a multi-planar device: use gst:v4l2src device=%[1]s, or csi:0 for a camera of the board", path, c.card)}
	case c.caps&abi.CapStreaming == 0:
		return Unusable{fmt.Errorf("%s (%s) does not stream into memory: use gst:v4l2src device=%[1]s", path, c.card)}
	}
	return nil
}

// text reads a string of the kernel's, which may lack its NUL, for one line of a terminal.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\ufffd' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(b), "")))
}

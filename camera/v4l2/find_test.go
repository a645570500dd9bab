package v4l2_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/camera/v4l2"
	"github.com/eyas-edge/eyas/camera/v4l2/v4l2test"
)

// reopen opens a camera, closes it and returns where it was.
func reopen(t *testing.T, c *v4l2.Camera) (string, error) {
	t.Helper()
	s, err := c.Open(t.Context())
	if err != nil {
		return "", err
	}
	s.Close()
	return s.Path(), nil
}

func TestNamesOfACamera(t *testing.T) {
	h := v4l2test.New(t)
	front, back, twin := webcam(), grey(), grey()
	back.ByPath, twin.ByPath = "pci-back", "pci-twin"
	meta := &v4l2test.Camera{Card: front.Card, Bus: front.Bus, Caps: 1 << 23}
	h.Plug(front, 2)
	h.Plug(meta, 3)
	h.Plug(back, 10)
	h.Plug(twin, 11)
	if err := os.Symlink("video10", filepath.Join(h.Root(), "dev/video-yard")); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ id, want, err string }{
		{"2", "/dev/video2", ""},
		{"/dev/video2", "/dev/video2", ""},
		{"/dev/video-yard", "/dev/video10", ""},
		{"/dev/v4l/by-id/" + front.ByID, "/dev/video2", ""},
		{front.ByID, "/dev/video2", ""},
		{front.ByPath, "/dev/video2", ""},
		{"pci-twin", "/dev/video11", ""},
		{"C920", "/dev/video2", ""},
		{"c920", "/dev/video2", ""},
		{"Grey", "", "2 cameras are called so: use one of pci-back, pci-twin"},
		{"C921", "", "there is no such camera; there are /dev/video2 (C920), /dev/video10 (Grey), /dev/video11 (Grey)"},
		{"../video2", "", "there is no such camera"},
		{"7", "", "there is no /dev/video7: plug the camera in; there are /dev/video2, /dev/video3, /dev/video10, /dev/video11"},
		{"/dev/v4l/by-id/x", "", "there is no /dev/v4l/by-id/x: plug the camera in"},
		{"3", "", "/dev/video3 (C920) gives no pictures"},
		{"99999999999", "", "there is no such camera"},
	}
	for _, tt := range tests {
		t.Run(tt.id, func(t *testing.T) {
			got, err := reopen(t, h.V4L2().Camera(tt.id, v4l2.Request{}))
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) || got != tt.want {
				t.Errorf("got %s, %v, want %s, %s", got, err, tt.want, tt.err)
			}
		})
	}
}

func TestNoCamera(t *testing.T) {
	h := v4l2test.New(t)
	if d := h.V4L2().Devices(); len(d) != 0 {
		t.Errorf("%+v", d)
	}
	for id, want := range map[string]string{"0": "this machine has no camera", "C920": "there is no such camera, and no other"} {
		if _, err := reopen(t, h.V4L2().Camera(id, v4l2.Request{})); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// A camera that was unplugged is found again, and no other is taken for it.
func TestReturn(t *testing.T) {
	anonymous := func(c *v4l2test.Camera) { c.ByID, c.ByPath = "", "" }
	elsewhere := func(c *v4l2test.Camera) { c.Bus, c.ByPath = "usb-9", "pci-usb-9" }
	tests := []struct {
		name   string
		twin   bool                   // there is another one of its kind, without a serial number
		before func(*v4l2test.Camera) // how it is known
		change func(*v4l2test.Camera) // how it comes back
		want   string                 // where, "" if it is not found
		denied bool                   // the stranger that takes its number cannot be asked
	}{
		{"at the same place", false, nil, nil, "/dev/video5", false},
		{"beside one that cannot be asked", false, nil, nil, "/dev/video5", true},
		{"at another place", false, nil, elsewhere, "/dev/video5", false},
		{"without links", false, anonymous, nil, "/dev/video5", false},
		{"without links at another place", false, anonymous, elsewhere2, "/dev/video5", false},
		{"another model", false, nil, func(c *v4l2test.Camera) { c.Card = "C930" }, "", false},
		{"another serial number elsewhere", false, nil, func(c *v4l2test.Camera) { elsewhere(c); c.ByID = "usb-C920_124" }, "", false},
		{"beside a twin", true, anonymous, nil, "/dev/video5", false},
		{"beside a twin at another place", true, anonymous, elsewhere2, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := webcam()
			if tt.before != nil {
				tt.before(c)
			}
			h, camera := plug(t, c)
			if tt.twin {
				other := webcam()
				other.ByID, other.ByPath, other.Bus = "", "", "usb-7"
				h.Plug(other, 1)
			}
			if got, err := reopen(t, camera); err != nil || got != "/dev/video0" {
				t.Fatal(got, err)
			}
			h.Unplug(c)
			if _, err := reopen(t, camera); err == nil || err.Error() != "the camera was unplugged" {
				t.Errorf("while it is away: %v", err)
			}
			if !tt.twin { // a stranger takes its number
				stranger := grey()
				if tt.denied {
					stranger.OpenErr = unix.EACCES
				}
				h.Plug(stranger, 0)
				if _, err := reopen(t, camera); err == nil {
					t.Error("a stranger was taken for it")
				}
			}
			if tt.change != nil {
				tt.change(c)
			}
			h.Plug(c, 5)
			got, err := reopen(t, camera)
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
			if tt.want == "" {
				return
			}
			c.OpenErr = unix.EACCES // udev gives the rights a moment later
			if _, err := reopen(t, camera); err == nil {
				t.Error("it opens without rights")
			}
			c.OpenErr = nil
			if got, err := reopen(t, camera); err != nil || got != tt.want {
				t.Errorf("with rights: %s, %v", got, err)
			}
		})
	}
}

func elsewhere2(c *v4l2test.Camera) { c.Bus = "usb-9" }

// A camera that was open, or was not there yet, is tried again when it has no rights: udev gives them a moment after it came. One
// that has none at the start waits for its user.
func TestRightsComeLater(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before func(t *testing.T, h *v4l2test.Host, c *v4l2test.Camera, camera *v4l2.Camera)
		again  bool
	}{
		{"no rights", func(*testing.T, *v4l2test.Host, *v4l2test.Camera, *v4l2.Camera) {}, false},
		{"was open", func(t *testing.T, _ *v4l2test.Host, _ *v4l2test.Camera, camera *v4l2.Camera) {
			if _, err := reopen(t, camera); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"was missing", func(t *testing.T, h *v4l2test.Host, c *v4l2test.Camera, camera *v4l2.Camera) {
			h.Unplug(c)
			if _, err := reopen(t, camera); err == nil || errors.As(err, new(v4l2.Unusable)) {
				t.Fatal(err)
			}
			h.Plug(c, 0)
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := webcam()
			h, camera := plug(t, c)
			tt.before(t, h, c, camera)
			c.OpenErr = unix.EACCES
			if _, err := reopen(t, camera); err == nil || errors.As(err, new(v4l2.Unusable)) == tt.again {
				t.Error(err)
			}
		})
	}
}

func TestHolder(t *testing.T) {
	c := grey()
	c.OpenErr = unix.EBUSY
	h, camera := plug(t, c)
	process := func(pid int, name string, fds ...string) {
		dir := filepath.Join(h.Root(), "proc", strconv.Itoa(pid))
		if err := os.MkdirAll(filepath.Join(dir, "fd"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "comm"), []byte(name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, fd := range fds {
			if err := os.Symlink("/dev/video0", filepath.Join(dir, "fd", fd)); err != nil {
				t.Fatal(err)
			}
		}
	}
	wants := func(want string) {
		t.Helper()
		if _, err := camera.Open(t.Context()); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	process(os.Getpid(), "eyas", "9")
	wants("/dev/video0 is in use by another program")
	process(7, "cheese", "3")
	wants("/dev/video0 is in use by cheese (process 7): stop that first")
	if err := os.RemoveAll(filepath.Join(h.Root(), "proc/7")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/video0", filepath.Join(h.Root(), "proc", strconv.Itoa(os.Getpid()), "fd/10")); err != nil {
		t.Fatal(err)
	}
	wants("/dev/video0 is in use by another source of this run: stop that first")
}

func TestDevices(t *testing.T) {
	h := v4l2test.New(t)
	front, denied, busy := webcam(), grey(), grey()
	denied.OpenErr = unix.EACCES
	h.Plug(front, 0)
	h.Plug(denied, 1)
	busy.Caps = 0x1000 | 0x04000000
	h.Plug(busy, 12)
	d := h.V4L2().Devices()
	if len(d) != 3 {
		t.Fatalf("%+v", d)
	}
	if d[0].Card != "C920" || d[0].Driver != "uvcvideo" || d[0].ByID != front.ByID || d[0].ByPath != front.ByPath || d[0].Err != nil || len(d[0].Modes) != 2 {
		t.Errorf("%+v", d[0])
	}
	if m := d[0].Modes[0]; m.Format != "yuyv" || len(m.Sizes) != 2 || m.Sizes[1].String() != "1280x720" || len(m.Sizes[1].FPS) != 2 || m.Sizes[1].FPS[0] != 10 {
		t.Errorf("%+v", m)
	}
	if d[1].Err == nil || !strings.Contains(d[1].Err.Error(), "usermod") || d[1].Path != "/dev/video1" {
		t.Errorf("%+v", d[1])
	}
	if d[2].Err == nil || !strings.Contains(d[2].Err.Error(), "multi-planar") {
		t.Errorf("%+v", d[2])
	}
}

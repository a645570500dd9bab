package doctor

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/google/go-cmp/cmp"

	"github.com/eyas-edge/eyas/camera/v4l2/v4l2test"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestCameras(t *testing.T) {
	h := v4l2test.New(t)
	h.Plug(&v4l2test.Camera{
		Card: "HD Pro Webcam C920", Driver: "uvcvideo", Bus: "usb-0000:00:14.0-1", ByID: "usb-046d_C920_123-video-index0", ByPath: "pci-0000:00:14.0-usb-0:1-video-index0",
		Modes: []v4l2test.Mode{v4l2test.At("YUYV", 640, 480, 30, 15), v4l2test.At("YUYV", 1280, 720, 10), v4l2test.At("MJPG", 1280, 720, 30)},
	}, 0)
	h.Plug(&v4l2test.Camera{OpenErr: unix.EACCES}, 1)
	h.Plug(&v4l2test.Camera{Card: "vi-output", Driver: "tegra-video", ByPath: "platform-vi", Modes: []v4l2test.Mode{v4l2test.At("RG10", 3280, 2464)}}, 2)
	h.Plug(&v4l2test.Camera{Card: "HD Pro Webcam C920", Caps: 1 << 23}, 3) // its other data
	h.Plug(&v4l2test.Camera{Card: "ISP", Caps: 0x1000 | 0x04000000}, 4)
	var r Report
	r.cameras(h.V4L2())
	if !strings.HasPrefix(r.Findings[1].Do, "run `sudo usermod -aG video ") {
		t.Fatalf("%+v", r)
	}
	r.Cameras[1].Error, r.Findings[1].Do = "rights", "cure" // they name the user
	var got bytes.Buffer
	if err := r.Text(&got); err != nil {
		t.Fatal(err)
	}
	if err := r.JSON(&got); err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/cameras.golden"
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Error(d)
	}
}

func TestNoCamera(t *testing.T) {
	var r Report
	r.cameras(v4l2test.New(t).V4L2())
	if len(r.Findings) != 1 || r.Findings[0].Found != "none on V4L2" || r.Cameras == nil {
		t.Errorf("%+v", r)
	}
}

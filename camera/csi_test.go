package camera

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/camera/frame"
)

func csiOf(t *testing.T, text string) (*csi, error) {
	t.Helper()
	standIn(t, "exit 1")
	s, err := openCSI(newBase(text, collect(nil)), text)
	if err != nil {
		return nil, err
	}
	return s.(*supervised).connector.(*csi), nil
}

// TestCSIPipelines has the pipelines to the word: there is no such camera here to try them on.
func TestCSIPipelines(t *testing.T) {
	tests := []struct{ text, argus, libcamera, expect string }{
		{"0",
			"nvarguscamerasrc sensor-id=0 ! video/x-raw(memory:NVMM),format=NV12,width=1920,height=1080,framerate=30/1 ! " +
				"nvvidconv ! video/x-raw,format=NV12,width=1920,height=1080",
			"libcamerasrc ! video/x-raw,format=NV12,width=1920,height=1080,framerate=30/1", "nv12 1920x1080 30"},
		{"1?size=640x360&capture=1280x720&fps=59.94&flip=180",
			"nvarguscamerasrc sensor-id=1 ! video/x-raw(memory:NVMM),format=NV12,width=1280,height=720,framerate=2997/50 ! " +
				"nvvidconv flip-method=2 ! video/x-raw,format=NV12,width=640,height=360",
			"libcamerasrc ! video/x-raw,format=NV12,width=640,height=360,framerate=2997/50 ! videoflip method=rotate-180", "nv12 640x360 59.94"},
		{"0?capture=1280x720&flip=90",
			"nvarguscamerasrc sensor-id=0 ! video/x-raw(memory:NVMM),format=NV12,width=1280,height=720,framerate=30/1 ! " +
				"nvvidconv flip-method=3 ! video/x-raw,format=NV12,width=720,height=1280",
			"libcamerasrc ! video/x-raw,format=NV12,width=1280,height=720,framerate=30/1 ! videoflip method=clockwise", "nv12 720x1280 30"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			s, err := csiOf(t, tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(s.argusWords(), " "); got != tt.argus {
				t.Errorf("got  %s\nwant %s", got, tt.argus)
			}
			if got := strings.Join(s.libcameraWords(), " "); got != tt.libcamera {
				t.Errorf("got  %s\nwant %s", got, tt.libcamera)
			}
			f, w, h, fps := s.Expect()
			if got := fmt.Sprintf("%s %dx%d %v", f, w, h, fps); got != tt.expect || f != frame.NV12 {
				t.Errorf("expects %s, want %s", got, tt.expect)
			}
		})
	}
}

func TestCSIRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                  `"" is not the number of a CSI camera: write csi:0`,
		"front":             `"front" is not the number`,
		"-1":                `"-1" is not the number`,
		"0?size=640":        `size "640" is not WIDTHxHEIGHT`,
		"0?capture=0x0":     `capture "0x0" is not WIDTHxHEIGHT`,
		"0?fps=0":           `fps "0" is not a number above 0`,
		"0?fps=0.0001":      `fps "0.0001" is below 0.001`,
		"0?flip=upside":     `flip "upside" is not known`,
		"0?password=geheim": `parameter "password" is not known`,
	} {
		t.Run(text, func(t *testing.T) {
			if _, err := csiOf(t, text); err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ErrSpec) {
				t.Errorf("error %v, want %s", err, want)
			}
		})
	}
}

// TestCSIElsewhere opens a camera on a machine that has none of the two ways.
func TestCSIElsewhere(t *testing.T) {
	needGst(t)
	if has, err := gstHas(t.Context(), "nvarguscamerasrc"); has || err != nil {
		t.Skip("this is a Jetson")
	}
	if has, err := gstHas(t.Context(), "libcamerasrc"); has || err != nil {
		t.Skip("this machine has libcamera")
	}
	err := mustOpen(t, "csi:0").Run(t.Context(), &collector{})
	if err == nil || !strings.Contains(err.Error(), "this machine has neither") {
		t.Error(err)
	}
	t.Log(err)
}

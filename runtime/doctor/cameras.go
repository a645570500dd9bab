package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/eyas-edge/eyas/camera/v4l2"
)

// Camera is a camera on V4L2.
type Camera struct {
	Path    string         `json:"path"` // /dev/videoN, which changes when it is plugged in again
	Name    string         `json:"name,omitempty"`
	ByID    string         `json:"by_id,omitempty"`   // its name in /dev/v4l/by-id: v4l2:NAME is the source
	ByPath  string         `json:"by_path,omitempty"` // its name in /dev/v4l/by-path
	Driver  string         `json:"driver,omitempty"`
	Bus     string         `json:"bus,omitempty"`
	Formats []CameraFormat `json:"formats,omitempty"`
	Error   string         `json:"error,omitempty"` // why it cannot be used
}

// CameraFormat is a pixel format of a camera.
type CameraFormat struct {
	Format string       `json:"format"`
	Sizes  []CameraSize `json:"sizes,omitempty"`
}

// CameraSize is a size of a picture, WIDTHxHEIGHT, or a range of them, and its rates in frames a second.
type CameraSize struct {
	Size string    `json:"size"`
	FPS  []float64 `json:"fps,omitempty"`
}

// cameras lists the cameras, each as one finding.
func (r *Report) cameras(host v4l2.Host) {
	r.Cameras = []Camera{}
	for _, d := range host.Devices() {
		c := Camera{Path: d.Path, Name: d.Card, ByID: d.ByID, ByPath: d.ByPath, Driver: d.Driver, Bus: d.Bus}
		f := Finding{Name: "camera", Status: OK, Found: d.Path}
		if d.Card != "" {
			f.Found += fmt.Sprintf(" %s, driver %s", d.Card, d.Driver)
		}
		if name := cmp.Or(d.ByID, d.ByPath); name != "" {
			f.more = append(f.more, "v4l2:"+name)
		}
		usable := false
		for _, m := range d.Modes {
			format := CameraFormat{Format: m.Format}
			line := m.Format
			for _, s := range m.Sizes {
				format.Sizes = append(format.Sizes, CameraSize{s.String(), s.FPS})
				line += " " + s.String()
				if len(s.FPS) > 0 {
					line += fmt.Sprintf("@%.4g", s.FPS[0])
				}
			}
			c.Formats = append(c.Formats, format)
			f.more = append(f.more, line)
			usable = usable || slices.Contains(v4l2.FormatNames(), m.Format)
		}
		switch {
		case d.Err != nil:
			c.Error = d.Err.Error()
			f.Status, f.Found, f.Do = Warn, c.Error, "name another camera"
			if i := strings.LastIndex(c.Error, ": "); i > 0 { // what to do stands there
				f.Found, f.Do = c.Error[:i], c.Error[i+2:]
			}
		case !usable:
			f.Status, f.Do = Warn, "none of its formats can be used: try csi:0, or gst: with a pipeline; "+strings.Join(v4l2.FormatNames(), ", ")+" can be used"
		}
		r.Cameras = append(r.Cameras, c)
		r.Findings = append(r.Findings, f)
	}
	if len(r.Cameras) == 0 {
		r.add("cameras", OK, "none on V4L2", "")
	}
}

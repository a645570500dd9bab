package prep

import (
	"path/filepath"
	"testing"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/testenv"
)

// openCV is testdata/opencv.py at work.
type openCV struct {
	*testenv.OpenCV
	tb testing.TB
}

// newOpenCV starts a Python that has OpenCV, or skips.
func newOpenCV(tb testing.TB) openCV {
	tb.Helper()
	return openCV{testenv.StartOpenCV(tb, "testdata/opencv.py"), tb}
}

// load hands over a tightly packed picture and returns OpenCV's levels of it, R G B.
func (o openCV) load(fr *frame.Frame, side int) []byte {
	o.tb.Helper()
	var raw []byte
	for _, p := range fr.Planes {
		raw = append(raw, p.Data...)
	}
	o.Ask(raw, "load %s %d %d %d", fr.Format, fr.Width, fr.Height, side)
	return o.Bytes(side * side * 3)
}

// photo returns a photo of the assets in any size.
func (o openCV) photo(format frame.Format, w, h int) *frame.Frame {
	o.tb.Helper()
	o.Ask(nil, "photo %s %d %d %s", format, w, h, filepath.Join(testenv.Assets(o.tb), "images", "classic", "bus.jpg"))
	planes, err := frame.Split(format, w, h, o.Bytes(format.Bytes(w, h)))
	if err != nil {
		o.tb.Fatal(err)
	}
	fr, err := frame.New(format, w, h, planes, fixedTime, nil)
	if err != nil {
		o.tb.Fatal(err)
	}
	return fr
}

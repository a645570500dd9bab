package prep

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/testenv"
)

// openCV is testdata/opencv.py at work.
type openCV struct {
	tb  testing.TB
	in  io.Writer
	out *bufio.Reader
}

// newOpenCV starts a Python that has OpenCV, or skips.
func newOpenCV(tb testing.TB) *openCV {
	tb.Helper()
	python := ""
	for _, p := range []string{"/usr/bin/python3", "python3"} { // Debian's package belongs to Debian's Python
		if exec.Command(p, "-c", "import cv2").Run() == nil {
			python = p
			break
		}
	}
	testenv.Require(tb, python != "", "no Python with OpenCV: install python3-opencv")
	cmd := exec.Command(python, "testdata/opencv.py")
	// Else most of OpenCV's time is the kernel's, for pages that the allocator gives back after every picture.
	cmd.Env = append(os.Environ(), "MALLOC_MMAP_THRESHOLD_=1000000000", "MALLOC_TRIM_THRESHOLD_=2000000000", "MALLOC_TOP_PAD_=268435456")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			tb.Error(err)
		}
	})
	return &openCV{tb, in, bufio.NewReader(out)}
}

func (o *openCV) ask(n int, raw []byte, format string, args ...any) []byte {
	o.tb.Helper()
	answer := make([]byte, n)
	_, err := fmt.Fprintf(o.in, format+"\n", args...)
	if err == nil {
		_, err = o.in.Write(raw)
	}
	if err == nil {
		_, err = io.ReadFull(o.out, answer)
	}
	if err != nil {
		o.tb.Fatalf("OpenCV: %v", err)
	}
	return answer
}

// load hands over a tightly packed picture and returns OpenCV's levels of it, R G B.
func (o *openCV) load(fr *frame.Frame, side int) []byte {
	o.tb.Helper()
	var raw []byte
	for _, p := range fr.Planes {
		raw = append(raw, p.Data...)
	}
	return o.ask(side*side*3, raw, "load %s %d %d %d", fr.Format, fr.Width, fr.Height, side)
}

// time returns the nanoseconds that OpenCV takes for the picture of the last load.
func (o *openCV) time() float64 {
	o.tb.Helper()
	o.ask(0, nil, "time")
	line, err := o.out.ReadString('\n')
	if err != nil {
		o.tb.Fatalf("OpenCV: %v", err)
	}
	ns, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
	if err != nil {
		o.tb.Fatalf("OpenCV: %v", err)
	}
	return ns
}

// photo returns a photo of the assets in any size.
func (o *openCV) photo(format frame.Format, w, h int) *frame.Frame {
	o.tb.Helper()
	path := filepath.Join(testenv.Assets(o.tb), "images", "classic", "bus.jpg")
	planes, err := frame.Split(format, w, h, o.ask(format.Bytes(w, h), nil, "photo %s %d %d %s", format, w, h, path))
	if err != nil {
		o.tb.Fatal(err)
	}
	fr, err := frame.New(format, w, h, planes, fixedTime, nil)
	if err != nil {
		o.tb.Fatal(err)
	}
	return fr
}

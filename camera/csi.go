package camera

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/child"
)

// csi is a camera on a ribbon cable. On a Jetson it comes through Argus, whose pictures nvvidconv turns and scales on
// the way out of the camera's memory; elsewhere through libcamera.
type csi struct {
	sensor           int
	captureW         int // what the sensor gives
	captureH         int
	w, h             int // what comes out, as displayed
	fps              float64
	rate             string // the frame rate as a fraction
	flip             csiFlip
	argus, libcamera bool // the machine has them; both false: not yet looked for
}

// csiFlip is a way to turn pictures.
type csiFlip struct {
	name     string
	nvvid    int    // nvvidconv's flip-method
	video    string // videoflip's
	sideways bool   // width and height change places
}

var csiFlips = []csiFlip{
	{"none", 0, "none", false}, {"90", 3, "clockwise", true}, {"180", 2, "rotate-180", false},
	{"270", 1, "counterclockwise", true}, {"horizontal", 4, "horizontal-flip", false}, {"vertical", 6, "vertical-flip", false},
}

// openCSI opens N?capture=1920x1080&size=640x360&fps=30&flip=180.
func openCSI(b base, rest string) (Source, error) {
	id, query, _ := strings.Cut(rest, "?")
	sensor, err := strconv.Atoi(id)
	if err != nil || sensor < 0 || sensor > 63 {
		return nil, badSpec("%q is not the number of a CSI camera: write csi:0", id)
	}
	p, err := parseParams(query, "capture", "size", "fps", "flip")
	if err != nil {
		return nil, err
	}
	s := &csi{sensor: sensor}
	if err := s.params(p, &b.opts); err != nil {
		return nil, err
	}
	if _, err := child.Look("gst-launch-1.0"); err != nil {
		return nil, errors.New("csi: " + noGst)
	}
	return supervise(b, s), nil
}

func (s *csi) params(p params, o *options) (err error) {
	i := slices.IndexFunc(csiFlips, func(f csiFlip) bool { return f.name == p.or("flip", "none") })
	if i < 0 {
		return badSpec("flip %q is not known: use 90, 180 or 270 (clockwise), horizontal or vertical", p.Get("flip"))
	}
	s.flip = csiFlips[i]
	if s.captureW, s.captureH, err = p.sizeOf("capture", "1920x1080", o); err != nil {
		return err
	}
	s.w, s.h = s.captureW, s.captureH
	if s.flip.sideways {
		s.w, s.h = s.h, s.w
	}
	if s.w, s.h, err = p.size(fmt.Sprintf("%dx%d", s.w, s.h), o); err != nil {
		return err
	}
	if s.fps, err = p.fps(); err != nil {
		return err
	}
	rate := big.NewRat(int64(math.Round(s.fps*1000)), 1000)
	if rate.Sign() == 0 {
		return badSpec("fps %q is below 0.001", p.Get("fps"))
	}
	s.rate = rate.Num().String() + "/" + rate.Denom().String()
	return nil
}

// Expect says what the camera will give.
func (s *csi) Expect() (f frame.Format, w, h int, fps float64) { return frame.NV12, s.w, s.h, s.fps }

func (s *csi) Connect(ctx context.Context, out *Output) error {
	if err := s.look(ctx); err != nil {
		return err
	}
	words := s.argusWords()
	if !s.argus {
		words = s.libcameraWords()
	}
	log := newGstLog()
	err := runGst(ctx, out, words, log)
	switch {
	case errors.Is(err, errGstFailed):
		return log.explain("the camera")
	case errors.Is(err, io.EOF):
		return errors.New("the camera's pipeline ended: is another program using the camera?")
	}
	return err
}

// look finds out what the machine has.
func (s *csi) look(ctx context.Context) (err error) {
	if s.argus || s.libcamera {
		return nil
	}
	if s.argus, err = gstHas(ctx, "nvarguscamerasrc"); err != nil || s.argus {
		return err
	}
	if s.libcamera, err = gstHas(ctx, "libcamerasrc"); err != nil || s.libcamera && s.sensor == 0 {
		return err
	}
	if s.libcamera {
		return Permanent(errors.New("libcamera tells cameras by name, not by number: " +
			"list them with `cam -l` and write gst:libcamerasrc camera-name=NAME"))
	}
	return Permanent(errors.New("CSI cameras need a Jetson with its GStreamer plugins (nvarguscamerasrc) or libcamera's (libcamerasrc), " +
		"and this machine has neither: a camera on USB is /dev/video0"))
}

// argusWords is the pipeline of a Jetson.
func (s *csi) argusWords() []string {
	words := []string{
		"nvarguscamerasrc", fmt.Sprintf("sensor-id=%d", s.sensor), "!",
		fmt.Sprintf("video/x-raw(memory:NVMM),format=NV12,width=%d,height=%d,framerate=%s", s.captureW, s.captureH, s.rate), "!",
		"nvvidconv",
	}
	if s.flip.nvvid != 0 {
		words = append(words, fmt.Sprintf("flip-method=%d", s.flip.nvvid))
	}
	return append(words, "!", fmt.Sprintf("video/x-raw,format=NV12,width=%d,height=%d", s.w, s.h))
}

// libcameraWords is the pipeline of other boards, where the camera itself scales.
func (s *csi) libcameraWords() []string {
	w, h := s.w, s.h
	if s.flip.sideways {
		w, h = h, w
	}
	words := []string{"libcamerasrc", "!", fmt.Sprintf("video/x-raw,format=NV12,width=%d,height=%d,framerate=%s", w, h, s.rate)}
	if s.flip.nvvid != 0 {
		words = append(words, "!", "videoflip", "method="+s.flip.video)
	}
	return words
}

package runtime_test

import (
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/camera/picture"
	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/models/prep"
)

// BenchmarkMJPEG alternates our way from a JPEG of 1920x1080 to a float32 input of 640x640, planes and the fused pass, with
// OpenCV's imdecode, resize, copyMakeBorder and blobFromImage, one thread each, and reports medians of the threads' processor time
// and our part of OpenCV's. An op is one round.
func BenchmarkMJPEG(b *testing.B) {
	testenv.Require(b, picture.JPEGDecoder() != "go", "no libturbojpeg (apt-get install libturbojpeg0)")
	cv := testenv.StartOpenCV(b, "testdata/mjpeg.py")
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	for sampling, pixels := range map[string]string{"4:2:2": "yuvj422p", "4:2:0": "yuvj420p"} {
		for content, filter := range map[string]string{"photo": "", "noise": ",noise=alls=60"} {
			b.Run(sampling+"/"+content, func(b *testing.B) {
				jpg := encodedPhoto(b, pixels, filter)
				cv.Ask(jpg, "load %d %d", len(jpg), 640)
				ours := newMJPEGInput(b, jpg)
				defer ours.decoder.Close()
				var times [3][]float64
				for b.Loop() {
					start := testenv.ThreadTime(b)
					ours.decode(b, jpg)
					decoded := testenv.ThreadTime(b)
					ours.fill(b)
					end := testenv.ThreadTime(b)
					for i, t := range []float64{cv.Time(), end - start, decoded - start} {
						times[i] = append(times[i], t)
					}
				}
				for i, name := range []string{"OpenCV-ms", "ours-ms", "decode-ms"} {
					slices.Sort(times[i])
					b.ReportMetric(times[i][len(times[i])/2]/1e6, name)
				}
				b.ReportMetric(times[1][len(times[1])/2]/times[0][len(times[0])/2], "of-OpenCV")
				b.ReportMetric(float64(len(jpg))/1024, "KiB")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// mjpegInput is what a picture goes through.
type mjpegInput struct {
	decoder picture.MJPEGDecoder
	frame   *frame.Frame
	filler  *prep.Filler
	input   *tensor.Tensor
}

func newMJPEGInput(b *testing.B, jpg []byte) *mjpegInput {
	m := &mjpegInput{}
	i, err := m.decoder.Probe(jpg, picture.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	planes, err := frame.Split(i.Format, i.Width, i.Height, make([]byte, i.Format.Bytes(i.Width, i.Height)))
	if err != nil {
		b.Fatal(err)
	}
	if m.frame, err = frame.New(i.Format, i.Width, i.Height, planes, time.Time{}, nil); err != nil {
		b.Fatal(err)
	}
	m.frame.Colour = i.Colour
	const side = 640
	m.filler, err = prep.NewFiller(prep.Recipe{Pad: 114, Std: [3]float32{255, 255, 255}, Type: tensor.Float32}, side, side)
	if err != nil {
		b.Fatal(err)
	}
	m.input, err = tensor.New("input", tensor.Float32, 1, 3, side, side)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

func (m *mjpegInput) decode(b *testing.B, jpg []byte) {
	if err := m.decoder.Decode(m.frame, jpg); err != nil {
		b.Fatal(err)
	}
}

func (m *mjpegInput) fill(b *testing.B) {
	if _, err := m.filler.Fill(m.input, 0, m.frame); err != nil {
		b.Fatal(err)
	}
}

// encodedPhoto returns a photo, or one with noise, as a JPEG of 1920x1080.
func encodedPhoto(b *testing.B, pixels, filter string) []byte {
	photo := filepath.Join(testenv.Assets(b), "images", "classic", "bus.jpg")
	jpg, err := exec.Command(testenv.FFmpeg(b), "-v", "error", "-i", photo, "-vf", "scale=1920:1080"+filter, "-pix_fmt", pixels,
		"-q:v", "3", "-f", "mjpeg", "-").Output()
	if err != nil {
		b.Fatalf("ffmpeg: %v", err)
	}
	return jpg
}

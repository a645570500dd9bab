package picture

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/testpic"
)

func decode(t *testing.T, data []byte) *frame.Frame {
	t.Helper()
	f, err := Decode(data, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// refuse checks that data is refused with one line that contains want.
func refuse(t *testing.T, data []byte, l Limits, want string) {
	t.Helper()
	f, err := Decode(data, l)
	if err == nil {
		t.Errorf("decoded to %dx%d, want an error with %q", f.Width, f.Height, want)
	} else if line := err.Error(); !strings.Contains(line, want) || strings.Contains(line, "\n") {
		t.Errorf("error %q, want one line with %q", line, want)
	}
}

func TestForeignFormats(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"nothing", "", "the file is empty"},
		{"noise", "\x01\x02\x03\x04", "not a picture"},
		{"one byte", "x", "not a picture"},
		{"heic", "\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic", "HEIC is not supported"},
		{"heic by compatible brand", "\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00mif1heic", "HEIC is not supported"},
		{"avif", "\x00\x00\x00\x1cftypavif\x00\x00\x00\x00avifmif1", "AVIF is not supported"},
		{"avif by compatible brand", "\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00mif1avif", "AVIF is not supported"},
		{"mp4", "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2", "MP4 or QuickTime video is not supported"},
		{"tiff", "II*\x00\x08\x00\x00\x00", "TIFF is not supported"},
		{"jpeg xl", "\xff\x0a\x00\x00", "JPEG XL is not supported"},
		{"jpeg 2000", "\xff\x4f\xff\x51\x00", "JPEG 2000 is not supported"},
		{"pdf", "%PDF-1.7\n", "PDF is not supported"},
		{"html", "\n<!DOCTYPE HTML><html>", "HTML is not supported"},
		{"svg", "<?xml version='1.0'?>\n<svg width='3'>", "SVG is not supported"},
		{"avi", "RIFF\x00\x00\x00\x00AVI LIST", `RIFF "AVI" is not supported`},
		{"zip", "PK\x03\x04....", "ZIP is not supported"},
		{"lfs", "version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer is not supported"},
	} {
		t.Run(c.name, func(t *testing.T) {
			refuse(t, []byte(c.data), Limits{}, c.want)
			if _, _, err := Size([]byte(c.data)); err == nil {
				t.Error("Size gives no error")
			}
		})
	}
}

func TestLimits(t *testing.T) {
	data, err := testpic.PNG(testpic.Scene(40, 30), 40, 30, 6)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(data, Limits{MaxPixels: 1200}); err != nil {
		t.Errorf("exactly at the limit: %v", err)
	}
	refuse(t, data, Limits{MaxPixels: 1199}, "30x40 is 0.0012 megapixels, over the limit of 0.001199:")
	refuse(t, data, Limits{MaxBytes: 5000}, "needs 0 MiB of memory")

	// The coefficients of a progressive picture count: 60 megapixels without subsampling are
	// 180 MB of frame and as much of planes, and 720 MB more for these.
	head := []byte("\xff\xd8\xff\xc2\x00\x11\x08\x1e\x46\x1e\x46\x03\x01\x11\x00\x02\x11\x00\x03\x11\x00")
	refuse(t, head, Limits{}, "7750x7750 needs 1031 MiB of memory to decode, over the limit of 1024:")
	head[3] = 0xc0
	refuse(t, head, Limits{}, "the file is truncated")
	// libjpeg keeps them, 2 bytes each, of any picture that takes several scans.
	head = append(head, "\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00"...)
	refuse(t, head, Limits{MaxBytes: 600 << 20}, "7750x7750 needs 688 MiB")
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	scene := testpic.Scene(300, 200)
	jpg, err := testpic.JPEG(scene, 300, 200, 1, 90)
	if err != nil {
		t.Fatal(err)
	}
	// Metadata pushes the size behind the first look; another amount behind the last one.
	segment := append([]byte{0xff, 0xe2, 0xff, 0xff}, make([]byte, 0xffff-2)...)
	padded := func(n int) []byte {
		return append(append([]byte{0xff, 0xd8}, bytes.Repeat(segment, n)...), jpg[2:]...)
	}
	for _, c := range []struct {
		name string
		data []byte
		l    Limits
		want string // part of the error; "" is none
	}{
		{"small.jpg", jpg, Limits{}, ""},
		{"padded.jpg", padded(3), Limits{}, ""},
		{"overloaded.jpg", padded(200), Limits{}, "no picture size in the first 8 MiB"},
		{"limited.jpg", padded(3), Limits{MaxPixels: 100}, "over the limit"},
		{"large.jpg", padded(3), Limits{MaxBytes: 300 << 10}, "needs"},
		{"cut.jpg", padded(3)[:150_000], Limits{}, "truncated inside its header"},
		{"renamed.png", jpg, Limits{}, ""},
		{"noise.jpg", bytes.Repeat([]byte("noise"), 30_000), Limits{}, "not a picture"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(dir, c.name)
			if err := os.WriteFile(path, c.data, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := ReadFile(path, c.l)
			switch {
			case c.want == "" && err != nil:
				t.Fatal(err)
			case c.want == "" && (f.Width != 300 || f.Height != 200):
				t.Errorf("%dx%d", f.Width, f.Height)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path)):
				t.Errorf("error %v, want one with the path and %q", err, c.want)
			}
		})
	}
	for _, c := range []struct{ name, path, want string }{
		{"missing", filepath.Join(dir, "none.jpg"), "no such file"},
		{"folder", dir, "not a regular file"},
		{"device", os.DevNull, "not a regular file"},
	} {
		_, err := ReadFile(c.path, Limits{})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), c.path) != 1 {
			t.Errorf("%s: error %v, want the path once and %q", c.name, err, c.want)
		}
	}
}

// TestDecoderPanic checks the last line of defence: a codec that fails on its data is an
// error of that picture.
func TestDecoderPanic(t *testing.T) {
	data := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00")
	refuse(t, data, Limits{}, "truncated")
	binary.BigEndian.PutUint32(data[16:], 0)
	refuse(t, data, Limits{}, "0x1 pixels")
	f, err := guard("test", func() (*frame.Frame, error) { panic("index out of range") })
	if f != nil || err == nil || err.Error() != "decode test: the data is broken: index out of range" {
		t.Errorf("frame %v, error %v", f, err)
	}
}

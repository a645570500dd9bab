package camera

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/testenv"
)

// needGst skips the test where GStreamer is missing, or fails it where it has to be there.
func needGst(t testing.TB) {
	t.Helper()
	_, err := exec.LookPath("gst-launch-1.0")
	testenv.Require(t, err == nil, "gst-launch-1.0 is not installed")
	testenv.Require(t, exec.Command("gst-inspect-1.0", "--exists", "gdppay").Run() == nil, "GStreamer has no gdppay: gstreamer1.0-plugins-bad is not installed")
}

// gst runs a pipeline and returns what it wrote.
func gst(t testing.TB, pipeline string) []byte {
	t.Helper()
	needGst(t)
	path := filepath.Join(t.TempDir(), "out")
	words, err := splitWords(pipeline + " ! filesink location=" + path)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gst-launch-1.0", append([]string{"-q"}, words...)...).CombinedOutput(); err != nil {
		t.Fatalf("gst-launch-1.0 %s: %v\n%s", pipeline, err, out)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// packet is one packet of the GStreamer Data Protocol.
func packet(kind uint16, pts uint64, payload []byte) []byte {
	h := make([]byte, gdpHeader, gdpHeader+len(payload))
	h[0] = 1
	binary.BigEndian.PutUint16(h[4:], kind)
	binary.BigEndian.PutUint32(h[6:], uint32(len(payload)))
	binary.BigEndian.PutUint64(h[10:], pts)
	return append(h, payload...)
}

func capsPacket(text string) []byte { return packet(gdpCaps, 0, append([]byte(text), 0)) }

// readGDP reads a stream to its end and describes what is in it.
func readGDP(data []byte) (list []string, err error) {
	g := newGDPReader(bytes.NewReader(data))
	want := 0
	for {
		p, err := g.next()
		switch {
		case err == io.EOF:
			return list, nil
		case err != nil:
			return list, err
		case p.caps != nil:
			want = g.layout.bytes()
			list = append(list, fmt.Sprintf("%s %dx%d", p.caps.format, p.caps.w, p.caps.h))
			continue
		}
		text := fmt.Sprintf("%d", p.size)
		if p.hasTime {
			text += "@" + p.pts.String()
		}
		if p.size == want && want < 1<<20 {
			tight := 0
			for _, l := range g.layout {
				tight += l.rowBytes * l.rows
			}
			dst := make([]byte, tight)
			err = g.fill(dst)
			text += fmt.Sprint(dst)
		} else {
			err = g.skip(p.size)
		}
		if err != nil {
			return list, err
		}
		list = append(list, text)
	}
}

func TestGDP(t *testing.T) {
	const gray = "video/x-raw, format=(string)GRAY8, width=(int)3, height=(int)2"
	picture := packet(gdpBuffer, 40_000_000, []byte{1, 2, 3, 0, 4, 5, 6, 0})
	tests := []struct {
		name string
		data [][]byte
		want string
		err  error
	}{
		{"nothing", nil, "", nil},
		{"picture", [][]byte{capsPacket(gray), picture}, "gray 3x2, 8@40ms[1 2 3 4 5 6]", nil},
		{"events", [][]byte{packet(0x284e, 0, []byte("stream-start")), capsPacket(gray), packet(0x464e, 0, make([]byte, 5000)), picture},
			"gray 3x2, 8@40ms[1 2 3 4 5 6]", nil},
		{"no time", [][]byte{capsPacket(gray), packet(gdpBuffer, 1<<64-1, make([]byte, 8))}, "gray 3x2, 8[0 0 0 0 0 0]", nil},
		{"other size", [][]byte{capsPacket(gray), packet(gdpBuffer, 0, make([]byte, 7)), picture}, "gray 3x2, 7@0s, 8@40ms[1 2 3 4 5 6]", nil},
		{"change", [][]byte{capsPacket(gray), picture, capsPacket(strings.Replace(gray, "(int)3", "(int)4", 1)), picture},
			"gray 3x2, 8@40ms[1 2 3 4 5 6], gray 4x2, 8@40ms[1 2 3 0 4 5 6 0]", nil},
		{"cut header", [][]byte{capsPacket(gray), picture[:30]}, "gray 3x2", io.ErrUnexpectedEOF},
		{"cut picture", [][]byte{capsPacket(gray), picture[:65]}, "gray 3x2", io.ErrUnexpectedEOF},
		{"cut padding", [][]byte{capsPacket(gray), picture[:len(picture)-1]}, "gray 3x2", io.ErrUnexpectedEOF},
		{"cut caps", [][]byte{capsPacket(gray)[:80]}, "", io.ErrUnexpectedEOF},
		{"large caps", [][]byte{packet(gdpCaps, 0, make([]byte, gdpMaxCaps+1))}, "", errGDP},
		{"other version", [][]byte{make([]byte, gdpHeader)}, "", errGDP},
		{"other type", [][]byte{packet(3, 0, nil)}, "", errGDP},
		{"text", [][]byte{[]byte(strings.Repeat("Setting pipeline to PLAYING ...\n", 3))}, "", errGDP},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readGDP(bytes.Join(tt.data, nil))
			if list := strings.Join(got, ", "); list != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("got  %s, %v\nwant %s, %v", list, err, tt.want, tt.err)
			}
		})
	}
}

// TestGDPBounded has a header that announces 4 GiB: nothing of that size is taken from memory.
func TestGDPBounded(t *testing.T) {
	h := packet(gdpBuffer, 0, nil)
	binary.BigEndian.PutUint32(h[6:], 1<<32-1)
	g := newGDPReader(bytes.NewReader(h))
	if p, err := g.next(); err != nil || p.size != 1<<32-1 {
		t.Fatal(p, err)
	}
	if n := testing.AllocsPerRun(1, func() { _ = g.skip(1<<32 - 1) }); n > 2 {
		t.Errorf("%v allocations", n)
	}
}

func TestGstCaps(t *testing.T) {
	bt709, full601 := frame.Colour{Matrix: frame.BT709}, frame.Colour{Full: true}
	tests := []struct {
		name, text string
		want       gstCaps
		err        string
	}{
		{"as of 1.22", "video/x-raw, format=(string)I420, width=(int)640, height=(int)480, framerate=(fraction)30000/1001, " +
			"multiview-mode=(string)mono, pixel-aspect-ratio=(fraction)1/1, interlace-mode=(string)progressive, colorimetry=(string)bt709\x00",
			gstCaps{frame.I420, bt709, 640, 480, 30000.0 / 1001}, ""},
		{"feature", "video/x-raw(memory:SystemMemory), format=(string)NV12, width=(int)64, height=(int)48", gstCaps{frame.NV12, frame.Colour{}, 64, 48, 0}, ""},
		{"no types", "video/x-raw,width=64,height=48,format=RGBx,framerate=0/1;", gstCaps{frame.RGBA, frame.Colour{}, 64, 48, 0}, ""},
		{"numbers", `video/x-raw, colorimetry="1:4:0:0", format=YUY2, width=64, height=48`, gstCaps{frame.YUYV, full601, 64, 48, 0}, ""},
		{"guessed", "video/x-raw, format=NV12, width=1280, height=720", gstCaps{frame.NV12, bt709, 1280, 720, 0}, ""},
		{"unknown numbers", "video/x-raw, format=NV12, width=1280, height=720, colorimetry=0:0:0:0", gstCaps{frame.NV12, bt709, 1280, 720, 0}, ""},
		{"sound", "audio/x-raw, format=(string)S16LE", gstCaps{}, "instead of raw pictures"},
		{"coded", "video/x-h264, width=(int)64, height=(int)48", gstCaps{}, "instead of raw pictures"},
		{"format", "video/x-raw, format=(string)P010_10LE, width=(int)64, height=(int)48", gstCaps{}, "pixel format"},
		{"no size", "video/x-raw, format=(string)NV12", gstCaps{}, "pictures of 0x0 pixels"},
		{"large", "video/x-raw, format=NV12, width=70000, height=1", gstCaps{}, "pictures of 70000x1 pixels"},
		{"negative", "video/x-raw, format=NV12, width=-4, height=1", gstCaps{}, "pixels"},
		{"empty", "", gstCaps{}, "instead of raw pictures"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseGstCaps(tt.text)
			switch {
			case tt.err == "" && (err != nil || got != tt.want):
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || !errors.Is(err, errGDP)):
				t.Errorf("error %v, want %s", err, tt.err)
			}
		})
	}
}

// TestGstLayout has GStreamer crop a picture to odd sizes and compares what is read, byte for byte, with the
// rows and columns of the picture before, whose lines have no gaps.
func TestGstLayout(t *testing.T) {
	for name, format := range gstFormats {
		for _, size := range [][2]int{{8, 4}, {7, 4}, {6, 3}, {5, 3}, {1, 1}} {
			w, h := size[0], size[1]
			t.Run(fmt.Sprintf("%s %dx%d", name, w, h), func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "whole")
				part := gst(t, fmt.Sprintf("videotestsrc num-buffers=1 pattern=snow ! video/x-raw,format=%s,width=8,height=4 ! tee name=t ! "+
					"queue ! gdppay ! filesink location=%s  t. ! queue ! videocrop right=%d bottom=%d ! gdppay", name, path, 8-w, 4-h))
				whole, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				compareCrop(t, format, onePicture(t, whole, 8, 4), onePicture(t, part, w, h), w, h)
			})
		}
	}
}

// onePicture reads a stream of one picture.
func onePicture(t *testing.T, data []byte, w, h int) []byte {
	t.Helper()
	g := newGDPReader(bytes.NewReader(data))
	caps, err := g.next()
	if err != nil || caps.caps == nil || caps.caps.w != w || caps.caps.h != h {
		t.Fatalf("%+v, %v, want caps of %dx%d", caps, err, w, h)
	}
	p, err := g.next()
	if err != nil || p.size != g.layout.bytes() {
		t.Fatalf("%+v, %v, want a picture of %d bytes: %+v", p, err, g.layout.bytes(), g.layout)
	}
	pix := make([]byte, caps.caps.format.Bytes(w, h))
	if err := g.fill(pix); err != nil {
		t.Fatal(err)
	}
	if _, err := g.next(); err != io.EOF {
		t.Fatalf("behind the picture: %v", err)
	}
	return pix
}

// compareCrop compares the upper left w x h pixels of a picture of 8x4 with another picture.
func compareCrop(t *testing.T, format frame.Format, whole, part []byte, w, h int) {
	t.Helper()
	from, err := frame.Split(format, 8, 4, whole)
	if err != nil {
		t.Fatal(err)
	}
	to, err := frame.Split(format, w, h, part)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range format.PlanesOf(w, h) {
		n := g.RowBytes
		if format == frame.YUYV && w%2 == 1 {
			n -= 2 // of the last pair of pixels there is only Y and U
		}
		for y := range g.Rows {
			if a, b := from[i].Data[y*from[i].Stride:][:n], to[i].Data[y*to[i].Stride:][:n]; !bytes.Equal(a, b) {
				t.Errorf("plane %d, row %d: %v, want %v", i, y, b, a)
			}
		}
	}
}

// TestGstTimes reads the times that GStreamer gives.
func TestGstTimes(t *testing.T) {
	list, err := readGDP(gst(t, "videotestsrc num-buffers=3 pattern=black ! video/x-raw,format=GRAY8,width=4,height=1,framerate=25/1 ! gdppay"))
	const want = "gray 4x1, 4@0s[16 16 16 16], 4@40ms[16 16 16 16], 4@80ms[16 16 16 16]"
	if got := strings.Join(list, ", "); err != nil || got != want {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
}

func FuzzGDP(f *testing.F) {
	caps := capsPacket("video/x-raw, format=(string)I420, width=(int)5, height=(int)3, framerate=(fraction)30/1, colorimetry=(string)bt601")
	f.Add(bytes.Join([][]byte{packet(0x284e, 0, []byte("stream")), caps, packet(gdpBuffer, 7, make([]byte, 48))}, nil))
	f.Add(capsPacket("video/x-raw, format=YUY2, width=65536, height=65536"))
	f.Add(packet(2, 0, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := readGDP(data)
		if len(list) > len(data)/gdpHeader {
			t.Errorf("%d packets in %d bytes: %v", len(list), len(data), err)
		}
	})
}

func FuzzSplitWords(f *testing.F) {
	f.Add(`videotestsrc pattern="a b" ! 'video/x-raw(memory:NVMM), format=NV12' ! a\ b`)
	f.Fuzz(func(t *testing.T, text string) {
		words, err := splitWords(text)
		if err == nil && len(strings.Join(words, " ")) > len(text) {
			t.Errorf("%q became %q", text, words)
		}
	})
}

func TestSplitWords(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
		err        string
	}{
		{"nothing", " \t\n", nil, ""},
		{"plain", "videotestsrc  num-buffers=3 ! fakesink", []string{"videotestsrc", "num-buffers=3", "!", "fakesink"}, ""},
		{"caps as typed", `nvarguscamerasrc ! 'video/x-raw(memory:NVMM), width=1920' ! x`, []string{"nvarguscamerasrc", "!", "video/x-raw(memory:NVMM), width=1920", "!", "x"}, ""},
		{"caps in a program", "a ! video/x-raw, width=1920 ! x", []string{"a", "!", "video/x-raw,", "width=1920", "!", "x"}, ""},
		{"double quotes", `rtspsrc location="rtsp://h/a b" x="\"\a"`, []string{"rtspsrc", "location=rtsp://h/a b", `x="\a`}, ""},
		{"backslash", `a\ b \\ c\`, []string{"a b", `\`, `c\`}, ""},
		{"single quotes keep a backslash", `'a\b'`, []string{`a\b`}, ""},
		{"empty word", `x= "" y`, []string{"x=", "", "y"}, ""},
		{"no replacement", "$HOME `id` *", []string{"$HOME", "`id`", "*"}, ""},
		{"open quote", `a "b`, nil, `has a " without its second one`},
		{"zero byte", "a\x00b", nil, "zero byte"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := splitWords(tt.text)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || !errors.Is(err, ErrSpec) {
					t.Errorf("error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", tt.want) {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

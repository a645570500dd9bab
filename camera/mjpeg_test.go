package camera

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// greyJPEG returns a JPEG of w x h pixels of one level of grey, in 4:2:0.
func greyJPEG(t testing.TB, w, h, level int) []byte {
	t.Helper()
	m := image.NewYCbCr(image.Rect(0, 0, w, h), image.YCbCrSubsampleRatio420)
	for i := range m.Y {
		m.Y[i] = byte(level)
	}
	for i := range m.Cb {
		m.Cb[i], m.Cr[i] = 128, 128
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// withPreview returns a JPEG with a smaller one in its metadata, and what it is without its end.
func withPreview(t testing.TB, jpg, small []byte) []byte {
	t.Helper()
	n := 2 + len(small)
	return slices.Concat(jpg[:2], []byte{0xff, 0xe1, byte(n >> 8), byte(n)}, small, jpg[2:])
}

// cutHeader returns a JPEG that ends inside its first segment.
func cutHeader(jpg []byte) []byte { return jpg[:40] }

// scanned returns what a scanner finds: pictures by their place in known, others as "?", and errors in brackets.
func scanned(s *mjpegScanner, known ...[]byte) string {
	var out []string
	for {
		jpg, began, err := s.next()
		var bad corrupt
		switch {
		case err == nil:
			i := slices.IndexFunc(known, func(k []byte) bool { return bytes.Equal(jpg, k) })
			name := fmt.Sprint(i)
			if i < 0 {
				name = "?"
			}
			if began.IsZero() {
				name += " without a time"
			}
			out = append(out, name)
		case errors.As(err, &bad):
			out = append(out, fmt.Sprintf("[%d: %v]", bad.pictures, err))
		case errors.Is(err, io.EOF):
			return strings.Join(out, " ")
		default:
			return strings.Join(append(out, "["+err.Error()+"]"), " ")
		}
	}
}

func TestMJPEGScanner(t *testing.T) {
	a, b, c := greyJPEG(t, 64, 48, 10), greyJPEG(t, 64, 48, 200), greyJPEG(t, 16, 8, 90)
	noEnd := a[:len(a)-2]
	part := func(head string, jpg []byte) string { return "--eyas\r\n" + head + "\r\n\r\n" + string(jpg) + "\r\n" }
	const typed = "Content-Type: image/jpeg"
	tests := []struct {
		name, delimiter, stream string
		want                    string
	}{
		{"multipart", "eyas", part(typed, a) + part(typed, b) + "--eyas--\r\n", "0 1"},
		{"text before", "eyas", "preamble\r\n" + part(typed, a), "0"},
		{"lines end with LF only", "eyas", strings.ReplaceAll(part(typed, nil), "\r", "") + string(a) + "\n--eyas\n\n" + string(b), "0 1"},
		{"no line end behind the picture", "eyas", "--eyas\r\n\r\n" + string(a) + "--eyas\r\n\r\n" + string(b), "0 1"},
		{"no dashes", "eyas", "eyas\r\n\r\n" + string(a) + "\r\neyas\r\n\r\n" + string(b), "0 1"},
		{"another delimiter than declared", "other", part(typed, a) + part(typed, b), "0 1"},
		{"delimiter not declared", "", part(typed, a) + part(typed, b), "0 1"},
		{"delimiter in a header's name", "eyas", "--eyas\r\nX-eyas: 1\r\neyas-x: 2\r\n\r\n" + string(a), "0"},
		{"wrong length", "eyas", part(typed+"\r\nContent-Length: 17", a) + part("Content-Length: 99999999", b), "0 1"},
		{"no header", "eyas", "--eyas\r\n" + string(a) + "\r\n--eyas\r\n" + string(b), "0 1"},
		{"bare", "", string(a) + string(b), "0 1"},
		{"bare with zeros between", "", string(a) + strings.Repeat("\x00", 5000) + string(b), "0 1"},
		{"begins twice", "", "\xff\xd8" + string(a) + string(b), "0 1"},
		{"begins in the middle", "", string(a[200:]) + string(b), "1"},
		{"preview inside", "", string(withPreview(t, a, c)) + string(b), "3 1"},
		{"no end marker, bare", "", string(noEnd) + string(b), "4 1"},
		{"no end marker, multipart", "eyas", part(typed, noEnd) + part(typed, b), "? 1"},
		{"ends without end marker", "", string(b) + string(noEnd), "1 4"},
		{"part is text", "eyas", part(typed, a) + part("Content-Type: text/plain", []byte("busy")) + part(typed, b), "0 [1: a part without a JPEG] 1"},
		{"two parts are empty", "eyas", part(typed, nil) + part(typed, nil) + part(typed, b), "[2: a part without a JPEG] 1"},
		{"cut in the header", "eyas", part(typed, cutHeader(a)) + part(typed, b), "[1: a JPEG ends inside its header] 1"},
		{"cut in a preview", "eyas", part(typed, withPreview(t, a, c)[:6+len(c)-40]) + part(typed, a) + part(typed, b), "[1: a JPEG ends inside its header] 0 1"},
		{"broken behind a preview", "eyas", part(typed, nil) + part(typed, slices.Concat(a[:2], []byte{0xff, 0xe0, 0, 0}, withPreview(t, a, c))) + part(typed, b),
			"[1: a part without a JPEG] [1: a JPEG with a segment without length] 1"},
		{"no data", "", "\xff\xd8\xff\xd9" + string(b), "[1: a JPEG without picture data] 1"},
		{"a start in a header", "", string(a[:2]) + string(a[2:2+134]) + string(b), "[1: a JPEG ends inside its header] 1"},
		{"ends in the header", "", string(b) + string(cutHeader(a)), "1 [1: a JPEG ends inside its header]"},
		{"too large", "", string(a[:len(a)-2]) + strings.Repeat("\x01", 5000) + string(b), "[1: a JPEG of more than 4096 bytes] 1"},
		{"delimiter too long to look for", strings.Repeat("x", mjpegWord+1), part(typed, a) + part(typed, b), "0 1"},
		{"nothing", "eyas", "", ""},
		{"no JPEG", "", strings.Repeat("<html>", 1<<18), "[no JPEG in 1024 KiB of data: is this MJPEG?]"},
		{"endless parts without JPEG", "eyas", strings.Repeat(part("", nil), 1<<17), "[no JPEG in 1024 KiB of data: is this MJPEG?]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{
				"at once":  strings.NewReader(tt.stream),
				"by bytes": iotest.OneByteReader(strings.NewReader(tt.stream)),
			} {
				s := newMJPEGScanner(r, tt.delimiter)
				s.most = 4096
				if got := scanned(s, a, b, c, withPreview(t, a, c), noEnd); got != tt.want {
					t.Errorf("%s: %s, want %s", name, got, tt.want)
				}
			}
		})
	}
}

// What a picture may take goes by what its header says, so that a camera cannot have memory taken that it has no pictures for.
func TestMJPEGScannerLimits(t *testing.T) {
	const padded = 9 << 20 // more than the limit of any here but the large one
	stuff := func(jpg []byte) []byte {
		end := len(jpg) - 2
		return slices.Concat(jpg[:end], bytes.Repeat([]byte{1}, padded), jpg[end:])
	}
	small, large, next := greyJPEG(t, 64, 48, 10), greyJPEG(t, 1600, 1600, 20), greyJPEG(t, 64, 48, 200)
	huge := bytes.Clone(large)
	sof := bytes.Index(huge, []byte{0xff, 0xc0})
	copy(huge[sof+5:], "\xff\xff\xff\xff")
	header := slices.Concat(small[:2], bytes.Repeat(slices.Concat([]byte{0xff, 0xe2, 0xff, 0xff}, make([]byte, 65533)), 20))
	for _, tt := range []struct {
		name string
		jpg  []byte
		want string
		most int // bytes of the buffer
	}{
		{"small one that does not end", stuff(small), "[1: a JPEG of more than 1048576 bytes] 1", 1 << 20},
		{"large one", stuff(large), "0 1", 16 << 20},
		{"header that does not end", header, "[1: a JPEG of more than 1048576 bytes] 1", 1 << 20},
		{"too many pixels", stuff(huge), "[1: a JPEG of 65535x65535 pixels, over the limit of 100000000: raise it with --max-pixels] 1", 1 << 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newMJPEGScanner(strings.NewReader("--eyas\r\n\r\n"+string(tt.jpg)+"\r\n--eyas\r\n\r\n"+string(next)), "eyas")
			if got := scanned(s, tt.jpg, next); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if len(s.buf) > tt.most {
				t.Errorf("the buffer has %d bytes", len(s.buf))
			}
		})
	}
}

// A reader that gives nothing ends, and one that fails is not asked again.
func TestMJPEGScannerReaders(t *testing.T) {
	s := newMJPEGScanner(iotest.ErrReader(io.ErrClosedPipe), "")
	if _, _, err := s.next(); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	s = newMJPEGScanner(never{}, "")
	if _, _, err := s.next(); !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
}

type never struct{}

func (never) Read([]byte) (int, error) { return 0, nil }

// FuzzMJPEGScanner checks that what is found does not depend on how the bytes arrive, that pictures keep to the limit, and that
// behind any bytes, where a delimiter follows, the next picture is found.
func FuzzMJPEGScanner(f *testing.F) {
	a := greyJPEG(f, 16, 8, 10)
	f.Add(string(a), "eyas")
	f.Add("--eyas\r\n\r\n"+string(a)+"\r\n--eyas\r\n"+string(cutHeader(a))+"\r\n--eyas\r\n", "eyas")
	f.Add("\xff\xd8\xff\xe1\xff\xff"+string(a)+"\xff\xd8\xff\xd8\xff\xda\x00\x04\x00\x00", "")
	f.Add("\xff\xd8\xff\xda\x00\x02\xff\x00\xff\xd0\x01\xff", "-")
	f.Fuzz(func(t *testing.T, stream, delimiter string) {
		if len(delimiter) > mjpegWord {
			return // it is not looked for
		}
		const most = 2048
		find := func(r io.Reader) string {
			s := newMJPEGScanner(r, delimiter)
			s.most = most
			return scanned(s, a)
		}
		whole := find(strings.NewReader(stream))
		if single := find(iotest.OneByteReader(strings.NewReader(stream))); single != whole {
			t.Errorf("at once %s, by bytes %s", whole, single)
		}
		// No segment that the stream ends in reaches beyond the limit.
		s := newMJPEGScanner(strings.NewReader(stream+strings.Repeat("\x00", most)+"\n--"+delimiter+"\r\n\r\n"+string(a)), delimiter)
		s.most = most
		if got := scanned(s, a); !strings.HasSuffix(got, "0") && !strings.HasSuffix(got, "MJPEG?]") {
			t.Errorf("the last picture is not found: %s", got)
		}
	})
}

func BenchmarkMJPEGScanner(b *testing.B) {
	m := image.NewGray(image.Rect(0, 0, 1920, 1080))
	for i := range m.Pix {
		m.SetGray(i%1920, i/1920, color.Gray{byte(i * i >> 7)})
	}
	var jpg bytes.Buffer
	if err := jpeg.Encode(&jpg, m, nil); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(jpg.Len()))
	for b.Loop() {
		if _, _, err := newMJPEGScanner(bytes.NewReader(jpg.Bytes()), "x").next(); err != nil {
			b.Fatal(err)
		}
	}
}

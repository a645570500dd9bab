package camera

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// small holds six frames of 18x10 pixels in I420 at 30000/1001 frames a second, made by
// ffmpeg 5.1 with "-f lavfi -i testsrc=size=18x10:rate=30000/1001:duration=0.2" and the
// output options of a clip.
func small(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/small.nut")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const smallFrame = 18*10 + 2*9*5 // bytes

func TestNut(t *testing.T) {
	data := small(t)
	n, err := newNutReader(iotest.OneByteReader(bytes.NewReader(data)))
	if err != nil {
		t.Fatal(err)
	}
	if n.width != 18 || n.height != 10 {
		t.Errorf("%dx%d", n.width, n.height)
	}
	var times []time.Duration
	pix := make([]byte, smallFrame)
	for {
		pts, size, err := n.next()
		if err == io.EOF {
			break
		}
		if err != nil || size != smallFrame {
			t.Fatalf("%d bytes, %v", size, err)
		}
		if times = append(times, pts); len(times) == 2 {
			err = n.skip(size)
		} else {
			err = n.fill(pix)
		}
		if err != nil {
			t.Fatal(err)
		}
		// The bytes of the last picture end where the file does.
		if len(times) == 6 && !bytes.Equal(pix, data[len(data)-smallFrame:]) {
			t.Error("the last frame's bytes differ")
		}
	}
	want := []time.Duration{0, 33367 * time.Microsecond, 66733 * time.Microsecond, 100100 * time.Microsecond, 133467 * time.Microsecond, 166833 * time.Microsecond}
	if d := cmp.Diff(want, times); d != "" {
		t.Error(d)
	}
}

// TestNutCut cuts the stream at every byte: there is an error or a clean end at a frame's
// border, and never a frame that is not whole.
func TestNutCut(t *testing.T) {
	data := small(t)
	clean := 0
	for i := range data {
		frames, err := readNut(data[:i])
		switch {
		case err == nil:
			clean++
			if frames == 6 {
				t.Errorf("cut at %d: all frames", i)
			}
		case !errors.Is(err, io.ErrUnexpectedEOF) && i > 0:
			t.Errorf("cut at %d: %v", i, err)
		}
	}
	if clean > 20 {
		t.Errorf("%d clean ends", clean)
	}
}

// readNut reads all frames; at a clean end the error is nil.
func readNut(data []byte) (frames int, err error) {
	n, err := newNutReader(bytes.NewReader(data))
	if err != nil {
		return 0, err
	}
	pix := make([]byte, 1<<16)
	for {
		_, size, err := n.next()
		if err == io.EOF {
			return frames, nil
		}
		if err != nil {
			return frames, err
		}
		if size > len(pix) {
			return frames, errNut
		}
		if err := n.fill(pix[:size]); err != nil {
			return frames, err
		}
		frames++
	}
}

func TestNutTime(t *testing.T) {
	tests := []struct {
		name          string
		pts, num, den uint64
		want          time.Duration
		ok            bool
	}{
		{"zero", 0, 1, 25, 0, true},
		{"frames", 3, 1, 25, 120 * time.Millisecond, true},
		{"NTSC", 30, 1001, 30000, 1001 * time.Millisecond, true},
		{"a day of microseconds", 86400e6, 1, 1e6, 24 * time.Hour, true},
		{"too long", math.MaxUint64, 1, 1e6, 0, false},
		{"overflow", math.MaxUint64, math.MaxInt32, 1, 0, false},
		{"no time base", 1, 0, 0, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, ok := nutTime(tt.pts, tt.num, tt.den); got != tt.want || ok != tt.ok {
				t.Errorf("got %v, %v", got, ok)
			}
		})
	}
}

func TestNutFullPTS(t *testing.T) {
	tests := []struct {
		name              string
		last, coded, want uint64
	}{
		{"forward", 1000, (1000 + 40) % 128, 1040},
		{"backward", 1000, (1000 - 40) % 128, 960},
		{"whole", 1000, 128 + 5000, 5000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := &nutReader{ptsShift: 7, lastPTS: tt.last}
			if got := n.fullPTS(tt.coded); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// TestNutElision has a small frame whose first bytes stand in the header.
func TestNutElision(t *testing.T) {
	n := &nutReader{elision: [][]byte{nil, {1, 2, 3}}, num: 1, den: 1}
	if _, size, err := n.accept(nutCode{header: 1}, 0, 5); err != nil || size != 5 {
		t.Fatal(size, err)
	}
	n.r = bufio.NewReader(bytes.NewReader([]byte{4, 5, 6}))
	got := make([]byte, 5)
	if err := n.fill(got); err != nil || !bytes.Equal(got, []byte{1, 2, 3, 4, 5}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, _, err := n.accept(nutCode{header: 1}, 0, 2); !errors.Is(err, errNut) {
		t.Errorf("a frame shorter than what it leaves out: %v", err)
	}
	if _, _, err := n.accept(nutCode{header: 1}, 0, 5000); err != nil || n.prefix != nil {
		t.Errorf("a large frame leaves nothing out: %v, %v", n.prefix, err)
	}
}

func FuzzNut(f *testing.F) {
	data := small(f)
	f.Add(data)
	f.Add(data[:len(data)-100])
	f.Add([]byte(nutMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		frames, _ := readNut(data)
		if frames > len(data) {
			t.Errorf("%d frames in %d bytes", frames, len(data))
		}
	})
}

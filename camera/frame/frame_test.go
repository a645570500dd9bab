package frame

import (
	"strings"
	"sync"
	"testing"
	"time"
)

func TestFormatsAndTheirPlanes(t *testing.T) {
	for _, c := range []struct {
		format Format
		name   string
		bytes  int // of 5 x 3 pixels: chroma rounds up
	}{
		{RGB24, "rgb24", 45}, {BGR24, "bgr24", 45}, {RGBA, "rgba", 60}, {BGRA, "bgra", 60}, {Gray, "gray", 15},
		{NV12, "nv12", 15 + 6*2}, {I420, "i420", 15 + 3*2*2}, {YUYV, "yuyv", 12 * 3},
		{I422, "i422", 15 + 3*3*2},
	} {
		if got := c.format.Bytes(5, 3); got != c.bytes {
			t.Errorf("%s 5x3 takes %d bytes, want %d", c.format, got, c.bytes)
		}
		if back, err := ParseFormat(c.name); err != nil || back != c.format || c.format.String() != c.name {
			t.Errorf("%s is parsed as %s, %v", c.name, back, err)
		}
		if c.format.PlanesOf(0, 3) != nil {
			t.Errorf("%s has a picture of no width", c.format)
		}
	}
	for _, name := range []string{"", "unknown", "RGB24", "p010"} {
		if f, err := ParseFormat(name); err == nil {
			t.Errorf("%q is taken as %s", name, f)
		}
	}
}

func TestNewChecksThePlanes(t *testing.T) {
	rows := func(n int) []byte { return make([]byte, n) }
	for name, c := range map[string]struct {
		format Format
		w, h   int
		planes []Plane
		want   string // "" for none
	}{
		"tight":               {RGB24, 4, 2, []Plane{{rows(24), 12}}, ""},
		"last row is short":   {RGB24, 4, 2, []Plane{{rows(16 + 12), 16}}, ""},
		"padded":              {Gray, 3, 3, []Plane{{rows(100), 32}}, ""},
		"one byte missing":    {RGB24, 4, 2, []Plane{{rows(23), 12}}, "needs 2 rows of 12 bytes"},
		"stride below a row":  {RGB24, 4, 2, []Plane{{rows(99), 11}}, "stride 11"},
		"stride of nothing":   {Gray, 1, 1, []Plane{{rows(9), 0}}, "stride 0"},
		"too few planes":      {NV12, 4, 4, []Plane{{rows(16), 4}}, "2 planes, got 1"},
		"chroma is too short": {I420, 5, 3, []Plane{{rows(15), 5}, {rows(6), 3}, {rows(5), 3}}, "plane 2"},
		"odd width of 4:2:2":  {I422, 5, 3, []Plane{{rows(15), 5}, {rows(9), 3}, {rows(9), 3}}, ""},
		"4:2:2 as if 4:2:0":   {I422, 5, 3, []Plane{{rows(15), 5}, {rows(6), 3}, {rows(6), 3}}, "plane 1"},
		"no pixels":           {RGB24, 0, 2, []Plane{{rows(24), 12}}, "0x2"},
		"no format":           {Unknown, 4, 2, []Plane{{rows(24), 12}}, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := New(c.format, c.w, c.h, c.planes, time.Time{}, nil)
			if c.want == "" {
				if err != nil || f.Width != c.w {
					t.Errorf("got %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestSplitCutsTightPictures(t *testing.T) {
	data := make([]byte, I420.Bytes(5, 3))
	for i := range data {
		data[i] = byte(i)
	}
	planes, err := Split(I420, 5, 3, data)
	if err != nil {
		t.Fatal(err)
	}
	if len(planes) != 3 || planes[1].Data[0] != 15 || planes[2].Data[0] != 21 || planes[2].Stride != 3 {
		t.Errorf("planes %v", planes)
	}
	if _, err := Split(I420, 5, 3, data[1:]); err == nil {
		t.Error("a picture that is short of a byte is cut all the same")
	}
}

func TestCapturedByNames(t *testing.T) {
	for c, want := range map[CapturedBy]string{ByNone: "", ByDriver: "driver", ByStream: "stream", ByArrival: "arrival", 4: "captured-by(4)", 255: "captured-by(255)"} {
		if got := c.String(); got != want {
			t.Errorf("%d: %q, want %q", uint8(c), got, want)
		}
	}
}

func TestReleaseOnce(t *testing.T) {
	n := 0
	f, err := New(Gray, 1, 1, []Plane{{[]byte{0}, 1}}, time.Time{}, func() { n++ })
	if err != nil {
		t.Fatal(err)
	}
	f.Release()
	f.Release()
	if n != 1 {
		t.Errorf("released %d times", n)
	}
	f.Recycle()
	f.Release()
	if n != 2 {
		t.Errorf("a recycled frame was released %d times in all, want 2", n)
	}
	var none *Frame
	none.Release() // as deferred before an error is looked at
}

func TestTheLastReferenceReleases(t *testing.T) {
	n := 0
	f, err := New(Gray, 1, 1, []Plane{{[]byte{0}, 1}}, time.Time{}, func() { n++ })
	if err != nil {
		t.Fatal(err)
	}
	for round := 1; round <= 2; round++ {
		f.Retain()
		f.Retain()
		f.Release()
		f.Release()
		if n != round-1 {
			t.Fatalf("round %d: released with a reference left", round)
		}
		f.Release()
		f.Release() // one too many
		if n != round {
			t.Fatalf("round %d: released %d times", round, n)
		}
		f.Recycle()
	}
}

func TestHoldersInManyGoroutines(t *testing.T) {
	done := make(chan struct{})
	f, err := New(Gray, 1, 1, []Plane{{[]byte{0}, 1}}, time.Time{}, func() { close(done) }) // a second close would panic
	if err != nil {
		t.Fatal(err)
	}
	var holders sync.WaitGroup
	for range 8 {
		f.Retain()
		holders.Go(func() {
			for range 1000 {
				f.Retain()
				f.Release()
			}
			f.Release()
		})
	}
	holders.Wait()
	select {
	case <-done:
		t.Fatal("released with a reference left")
	default:
	}
	f.Release()
	<-done
}

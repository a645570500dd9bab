package prep

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The rules of Ultralytics' and YOLOX's own pre-processing, worked out by hand.
func TestFitGeometry(t *testing.T) {
	for _, c := range []struct {
		name                 string
		resize               Resize
		srcW, srcH, inW, inH int
		newW, newH           int
		left, top            int
	}{
		{"bus.jpg", Letterbox, 810, 1080, 640, 640, 480, 640, 80, 0},
		{"zidane.jpg", Letterbox, 1280, 720, 640, 640, 640, 360, 0, 140},
		{"VGA", Letterbox, 640, 480, 640, 640, 640, 480, 0, 80},
		{"same", Letterbox, 640, 640, 640, 640, 640, 640, 0, 0},
		{"half a pixel of padding goes below", Letterbox, 640, 427, 640, 640, 640, 427, 0, 106},
		{"rounded up", Letterbox, 500, 375, 416, 416, 416, 312, 0, 52},
		{"half to even down", Letterbox, 64, 5, 32, 32, 32, 2, 0, 15},
		{"half to even up", Letterbox, 64, 7, 32, 32, 32, 4, 0, 14},
		{"rectangle", Letterbox, 1920, 1080, 640, 384, 640, 360, 0, 12},
		{"odd padding", Letterbox, 427, 640, 640, 640, 427, 640, 106, 0},
		{"slim", Letterbox, 5000, 1, 640, 640, 640, 1, 0, 319},
		{"YOLOX VGA", LetterboxEnd, 640, 480, 416, 416, 416, 312, 0, 0},
		{"YOLOX cuts", LetterboxEnd, 640, 427, 416, 416, 416, 277, 0, 0},
		{"YOLOX slim", LetterboxEnd, 1, 5000, 416, 416, 1, 416, 0, 0},
		{"stretch", Stretch, 1280, 720, 320, 416, 320, 416, 0, 0},
		{"one pixel", Letterbox, 1, 1, 640, 640, 640, 640, 0, 0},
	} {
		want := Transform{SrcW: c.srcW, SrcH: c.srcH, InW: c.inW, InH: c.inH, NewW: c.newW, NewH: c.newH, Left: c.left, Top: c.top, W: c.srcW, H: c.srcH}
		if got := Fit(c.resize, c.srcW, c.srcH, c.inW, c.inH); got != want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, want)
		}
	}
}

// The picture lies within the input, is as large as one side allows within a pixel, and its
// corners come back to its corners.
func TestFitStaysWithinBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	side := func() int { return 1 + rng.IntN(5000) }
	for i := range 300_000 {
		r := Resize(i % 3)
		srcW, srcH, inW, inH := side(), side(), side(), side()
		if i%7 == 0 {
			inW, inH = 640, 640
		}
		f := Fit(r, srcW, srcH, inW, inH)
		if f.NewW < 1 || f.NewH < 1 || f.Left < 0 || f.Top < 0 || f.Left+f.NewW > inW || f.Top+f.NewH > inH {
			t.Fatalf("%s: %+v leaves the input", r, f)
		}
		if f.NewW < inW-1 && f.NewH < inH-1 {
			t.Fatalf("%s: %+v fills neither side", r, f)
		}
		if r == LetterboxEnd && (f.Left != 0 || f.Top != 0) {
			t.Fatalf("%s: %+v is padded left or above", r, f)
		}
		for _, corner := range [][4]float64{
			{float64(f.Left), float64(f.Top), 0, 0},
			{float64(f.Left + f.NewW), float64(f.Top + f.NewH), float64(srcW), float64(srcH)},
		} {
			x, y := f.Undo(float32(corner[0]), float32(corner[1]))
			if math.Abs(float64(x)-corner[2]) > 0.01 || math.Abs(float64(y)-corner[3]) > 0.01 {
				t.Fatalf("%s: %+v: corner %v came back as %v,%v", r, f, corner, x, y)
			}
		}
	}
}

func TestUndoKeepsPointsInPlace(t *testing.T) {
	f := Fit(Letterbox, 810, 1080, 640, 640)
	for _, p := range [][2]float32{{0, 0}, {405, 540}, {810, 1080}, {-20, 1100}} {
		inX := p[0]*float32(f.NewW)/float32(f.SrcW) + float32(f.Left)
		inY := p[1]*float32(f.NewH)/float32(f.SrcH) + float32(f.Top)
		x, y := f.Undo(inX, inY)
		if math.Abs(float64(x-p[0])) > 0.01 || math.Abs(float64(y-p[1])) > 0.01 {
			t.Errorf("%v came back as %v,%v", p, x, y)
		}
	}
}

func TestResizeNames(t *testing.T) {
	for _, r := range []Resize{Letterbox, LetterboxEnd, Stretch} {
		if got, err := ParseResize(r.String()); err != nil || got != r {
			t.Errorf("%s: got %v, %v", r, got, err)
		}
	}
	if _, err := ParseResize("crop"); err == nil {
		t.Error("crop was taken")
	}
	if got := Resize(9).String(); got != "resize(9)" {
		t.Errorf("got %s", got)
	}
}

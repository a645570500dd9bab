package annotate

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
)

// canvas is a picture with a gradient, so that what is drawn stands out.
func canvas(w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.SetRGBA(x, y, color.RGBA{uint8(60 + 60*x/w), uint8(60 + 60*y/h), 90, 255})
		}
	}
	return img
}

func boxes() []Box {
	return []Box{
		{Rect: [4]float32{30, 60, 120, 200}, Class: 0, Label: Label("person", 0.873)},
		{Rect: [4]float32{100, 90, 220, 180}, Class: 2, Label: Label("car", 0.5)},
		{Rect: [4]float32{0, 0, 80, 40}, Class: 5, Label: Label("bus", 0.999)},                // no room above
		{Rect: [4]float32{270, 100, 320, 150}, Class: 9, Label: Label("traffic light", 0.31)}, // no room to the right
		{Rect: [4]float32{180, 220, 181, 221}, Class: 11},                                     // smaller than its line
		{Rect: [4]float32{235, 205, 300, 240}, Class: 13, Label: "Köpek é 犬 1.00"},
	}
}

func TestDrawGolden(t *testing.T) {
	img := canvas(320, 240)
	Draw(img, boxes())
	golden := filepath.Join("testdata", "draw.png")
	if *update {
		if err := Save(golden, img); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for y := range 240 {
		for x := range 320 {
			if got, want := img.RGBAAt(x, y), color.RGBAModel.Convert(want.At(x, y)); got != want {
				t.Fatalf("pixel %d,%d is %v, %s has %v (-update after looking at it)", x, y, got, golden, want)
			}
		}
	}
}

// Boxes anywhere and pictures of any size: nothing outside of the picture is touched.
func TestDrawAnywhere(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	values := []float32{0, -3, 5, 17.5, 1e30, -1e30, inf, -inf, nan}
	for _, size := range [][2]int{{1, 1}, {3, 40}, {16, 16}, {40, 3}} {
		var all []Box
		for i := range len(values) * len(values) * len(values) {
			n := len(values)
			all = append(all, Box{
				Rect:  [4]float32{values[i%n], values[i/n%n], values[i/n/n%n], values[i*7%n]},
				Class: i - 10, Label: "a long label that does not fit",
			})
		}
		whole := canvas(size[0]+20, size[1]+20)
		before := bytes.Clone(whole.Pix)
		inside := image.Rect(10, 10, 10+size[0], 10+size[1])
		Draw(whole.SubImage(inside).(*image.RGBA), all)
		for i := range whole.Pix {
			at := image.Pt(i%whole.Stride/4, i/whole.Stride)
			if !at.In(inside) && whole.Pix[i] != before[i] {
				t.Fatalf("size %v: pixel %v outside of the picture was drawn on", size, at)
			}
		}
	}
}

func TestSizesGrowWithThePicture(t *testing.T) {
	for _, c := range []struct{ w, h, line, text int }{
		{320, 240, 2, 1}, {640, 480, 2, 1}, {1280, 720, 3, 1}, {1920, 1080, 4, 2}, {3840, 2160, 9, 4}, {1, 1, 2, 1},
	} {
		size := image.Pt(c.w, c.h)
		if line, text := lineWidth(size), textScale(size); line != c.line || text != c.text {
			t.Errorf("%v: line %d, text %d; want %d, %d", size, line, text, c.line, c.text)
		}
	}
}

func TestColoursAreDistinctAndStable(t *testing.T) {
	const classes = 24
	for i := range classes {
		a := Colour(i)
		if a != Colour(i) || a.A != 255 {
			t.Errorf("class %d: colour %v", i, a)
		}
		for j := range i {
			b := Colour(j)
			d := math.Abs(float64(a.R)-float64(b.R)) + math.Abs(float64(a.G)-float64(b.G)) + math.Abs(float64(a.B)-float64(b.B))
			if d < 40 {
				t.Errorf("classes %d and %d look alike: %v and %v", j, i, b, a)
			}
		}
	}
	if Colour(-1).A != 255 || Colour(math.MaxInt).A != 255 {
		t.Error("an odd class has no colour")
	}
}

func TestPicture(t *testing.T) {
	planes := []frame.Plane{{Data: []byte{1, 2, 3, 4, 5, 6, 0, 0, 7, 8, 9, 10, 11, 12}, Stride: 8}}
	fr, err := frame.New(frame.BGR24, 2, 2, planes, time.Time{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	img, err := Picture(nil, fr)
	if err != nil || img.RGBAAt(1, 1) != (color.RGBA{12, 11, 10, 255}) {
		t.Fatalf("got %v, %v", img, err)
	}
	if again, err := Picture(img, fr); err != nil || again != img {
		t.Errorf("a picture of the right size was not used again: %v", err)
	}
	if other, err := Picture(image.NewRGBA(image.Rect(0, 0, 3, 2)), fr); err != nil || other.Rect != img.Rect {
		t.Errorf("a picture of another size was used: %v", err)
	}
	fr.Planes = nil
	if _, err := Picture(img, fr); err == nil {
		t.Error("a frame without planes was taken")
	}
}

func TestSave(t *testing.T) {
	dir := t.TempDir()
	img := canvas(64, 48)
	for _, name := range []string{"a.jpg", "b.JPEG", "c.png"} {
		path := filepath.Join(dir, name)
		if err := Save(path, img); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		decode := jpeg.Decode
		if name == "c.png" {
			decode = png.Decode
		}
		if got, err := decode(bytes.NewReader(data)); err != nil || got.Bounds() != img.Rect {
			t.Errorf("%s: %v, %v", name, got.Bounds(), err)
		}
	}
	path := filepath.Join(dir, "d.tiff")
	want := "save " + path + `: pictures are written as .jpg, .jpeg or .png, not ".tiff"`
	if err := Save(path, img); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 3 {
		t.Errorf("the folder holds %v", entries)
	}
}

func BenchmarkDraw4K(b *testing.B) {
	img := canvas(3840, 2160)
	for b.Loop() {
		Draw(img, boxes())
	}
}

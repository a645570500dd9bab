package prep

import (
	"bytes"
	"fmt"
	"image"
	"testing"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/tensor"
)

// bothTwins returns a filler of each twin that this build and machine have.
func bothTwins(tb testing.TB, r Recipe, inW, inH int) map[string]*Filler {
	tb.Helper()
	twins := map[string]*Filler{}
	for _, name := range []string{"Go", "C"} {
		f, err := NewFiller(r, inW, inH)
		if err != nil {
			tb.Fatal(err)
		}
		if name == "C" && !f.vector {
			continue
		}
		f.vector = name == "C"
		twins[name] = f
	}
	return twins
}

// recipes are one of each kind of resizing, order, layout and element.
var recipes = []Recipe{
	{Resize: Letterbox, Pad: 114, Std: [3]float32{255, 255, 255}, Type: tensor.Float32},
	{Resize: LetterboxEnd, Pad: 114, BGR: true, Type: tensor.Float32},
	{Resize: Stretch, BGR: true, Mean: [3]float32{103.53, 116.28, 123.675}, Std: [3]float32{57.375, 57.12, 58.395}, Type: tensor.Float32},
	{Resize: Letterbox, Pad: 114, Mean: [3]float32{123.675, 116.28, 103.53}, Std: [3]float32{58.395, 57.12, 57.375}, Type: tensor.Float16},
	{Resize: Letterbox, Pad: 7, NHWC: true, BGR: true, Type: tensor.Uint8},
	{Resize: LetterboxEnd, Pad: 255, Type: tensor.Uint8},
	{Resize: Stretch, NHWC: true, Type: tensor.Float16},
	{Resize: Letterbox, NHWC: true, Pad: 1, Std: [3]float32{255, 255, 255}, Type: tensor.Float32},
	{Resize: Letterbox, Gray: true, Pad: 3, Type: tensor.Float32},
	{Resize: Stretch, Gray: true, NHWC: true, BGR: true, Type: tensor.Uint8},
	{Resize: Stretch, Mean: [3]float32{255, 255, 255}, Std: [3]float32{-1, -1, -1}, Type: tensor.Uint8},          // inverted
	{Resize: Stretch, Mean: [3]float32{0, 0.1, 1e-20}, Std: [3]float32{1e-30, 3e38, 1e38}, Type: tensor.Float32}, // no kernel computes these
}

// views are what of a picture a model may see; an empty region is all.
func views(w, h int) []view {
	return []view{
		{}, {flip: true},
		{region: image.Rect(w/5, h/4, w-w/7, h-h/9)},
		{region: image.Rect(w/3|1, h/3|1, w, h), flip: true},
		{region: image.Rect(w-1, h-1, w, h)},
	}
}

type view struct {
	region image.Rectangle
	flip   bool
}

var colours = []frame.Colour{{}, {Full: true}, {Matrix: frame.BT709}, {Matrix: frame.BT709, Full: true}}

// The twins write the same bits, with any number of threads.
func TestTwinsAgree(t *testing.T) {
	sizes := []struct{ w, h, inW, inH int }{
		{64, 48, 64, 64}, {192, 108, 64, 64}, {193, 109, 64, 64}, {291, 33, 97, 11}, {128, 72, 64, 64}, {150, 90, 96, 80},
		{33, 57, 96, 80}, {1, 1, 16, 16}, {2, 3, 31, 17}, {5, 301, 64, 32}, {400, 30, 80, 80}, {900, 20, 48, 48},
	}
	n := 0
	for _, format := range formats {
		for ri, r := range recipes {
			for si, s := range sizes {
				twins := bothTwins(t, r, s.inW, s.inH)
				if len(twins) < 2 {
					t.Skip("this build or processor has only the twin in Go")
				}
				fr := picture(t, format, s.w, s.h, []int{0, 5, 64}[(ri+si)%3], false, uint64(si))
				fr.Colour = colours[(ri+si)%len(colours)]
				for _, v := range views(s.w, s.h) {
					want, fit := fillView(t, twins["Go"], fr, v)
					for _, name := range []string{"C", "Go"} {
						f := twins[name]
						n = n%4 + 1
						f.SetThreads(n)
						got, tr := fillView(t, f, fr, v)
						f.Close()
						if tr != fit || !bytes.Equal(got.Data, want.Data) {
							t.Fatalf("%s %dx%d to %dx%d recipe %d, %+v: the twin in %s with %d threads differs from that in Go with one",
								format, s.w, s.h, s.inW, s.inH, ri, v, name, n)
						}
					}
				}
			}
		}
	}
}

// Large samples are written in another way, whole cache lines at a time: the twins agree on rows that begin and end anywhere.
func TestTwinsAgreeOnLargeInputs(t *testing.T) {
	for _, s := range []struct{ w, h, inW, inH int }{{97, 211, 645, 611}, {7, 211, 640, 640}, {211, 97, 643, 613}, {1920, 1080, 640, 640}} {
		for _, r := range recipes[:3] {
			fr := picture(t, frame.NV12, s.w, s.h, 3, false, 1)
			twins := bothTwins(t, r, s.inW, s.inH)
			want, _ := fillView(t, twins["Go"], fr, view{})
			for name, f := range twins {
				f.SetThreads(3)
				got, _ := fillView(t, f, fr, view{})
				f.Close()
				if !bytes.Equal(got.Data, want.Data) {
					t.Errorf("%dx%d to %dx%d, %+v: the twin in %s differs from that in Go with one thread", s.w, s.h, s.inW, s.inH, r, name)
				}
			}
		}
	}
}

func fillView(tb testing.TB, f *Filler, fr *frame.Frame, v view) (*tensor.Tensor, Transform) {
	tb.Helper()
	dst := newTensor(tb, f.recipe, 1, f.inW, f.inH)
	for i := range dst.Data {
		dst.Data[i] = 0xa5
	}
	f.Region, f.Flip = v.region, v.flip
	tr, err := f.Fill(dst, 0, fr)
	if err != nil {
		tb.Fatal(err)
	}
	return dst, tr
}

// A region, mirrored or not, gives what cutting and mirroring the picture first gives, and its boxes come back to the
// whole picture.
func TestRegionAndFlipEqualCroppedPictures(t *testing.T) {
	const w, h = 201, 121
	for _, format := range formats {
		fr := picture(t, format, w, h, 3, false, 9)
		rgb := make([]byte, 3*w*h)
		if err := ToRGB(rgb, fr); err != nil {
			t.Fatal(err)
		}
		for _, v := range append(views(w, h), view{region: image.Rect(3, 1, 3+192, 1+108)}, view{region: image.Rect(4, 0, 4+192, 108), flip: true}) {
			region := v.region
			if region.Empty() {
				region = image.Rect(0, 0, w, h)
			}
			for name, f := range bothTwins(t, recipes[0], 64, 64) {
				got, tr := fillView(t, f, fr, v)
				want, plain := fillView(t, f, cropped(t, rgb, w, region, v.flip), view{})
				if !bytes.Equal(got.Data, want.Data) {
					t.Errorf("%s %+v, twin in %s: differs from the picture that was cut first", format, v, name)
				}
				checkUndo(t, fmt.Sprintf("%s %+v", format, v), tr, plain, region, v.flip)
			}
		}
	}
}

// cropped returns the region of an RGB picture of width w, mirrored or not.
func cropped(tb testing.TB, rgb []byte, w int, region image.Rectangle, flip bool) *frame.Frame {
	tb.Helper()
	var data []byte
	for y := region.Min.Y; y < region.Max.Y; y++ {
		for x := range region.Dx() {
			at := region.Min.X + x
			if flip {
				at = region.Max.X - 1 - x
			}
			data = append(data, rgb[3*(y*w+at):][:3]...)
		}
	}
	fr, err := frame.New(frame.RGB24, region.Dx(), region.Dy(), []frame.Plane{{Data: data, Stride: 3 * region.Dx()}}, fixedTime, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return fr
}

// checkUndo compares a box that comes back through tr with one that comes back through the transform of the cut picture.
func checkUndo(t *testing.T, name string, tr, cut Transform, region image.Rectangle, flip bool) {
	t.Helper()
	in := [4]float32{10, 20, 31, 44}
	got, box := tr.UndoBox(in), cut.UndoBox(in)
	if flip {
		box[0], box[2] = float32(region.Dx())-box[2], float32(region.Dx())-box[0]
	}
	for i, side := range []int{region.Min.X, region.Min.Y, region.Min.X, region.Min.Y} {
		if want := box[i] + float32(side); got[i]-want > 1e-3 || want-got[i] > 1e-3 {
			t.Errorf("%s: box %v came back as %v, want %v from (%d,%d) on", name, in, got, box, region.Min.X, region.Min.Y)
			return
		}
	}
	if got[0] >= got[2] || got[1] >= got[3] {
		t.Errorf("%s: box %v came back inside out: %v", name, in, got)
	}
}

func TestRegionIsRefused(t *testing.T) {
	f, err := NewFiller(Recipe{Type: tensor.Float32}, 16, 8)
	if err != nil {
		t.Fatal(err)
	}
	f.Region = image.Rect(2, 2, 11, 5)
	_, err = f.Fill(newTensor(t, f.recipe, 1, 16, 8), 0, picture(t, frame.NV12, 10, 6, 0, false, 1))
	if want := "pre-processing: region (2,2)-(11,5) is not within the picture of 10x6 pixels"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Threads come and go, and a Filler can be used in between and after.
func TestThreads(t *testing.T) {
	f, err := NewFiller(recipes[0], 64, 64)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	fr, dst := picture(t, frame.NV12, 192, 108, 0, false, 1), newTensor(t, recipes[0], 1, 64, 64)
	for _, n := range []int{3, 0, 100, -1, 2} { // more threads than rows, and fewer than one
		f.SetThreads(n)
		if allocs := testing.AllocsPerRun(3, func() {
			if _, err := f.Fill(dst, 0, fr); err != nil {
				t.Fatal(err)
			}
		}); allocs != 0 {
			t.Errorf("%d threads: %v allocations", n, allocs)
		}
	}
	f.Close()
	f.Close()
	if _, err := f.Fill(dst, 0, fr); err != nil {
		t.Error(err)
	}
}

// The bands of any number of threads follow each other and cover all rows.
func TestBandsCoverAllRows(t *testing.T) {
	for _, fit := range []Transform{{InH: 640, NewH: 360, Top: 140}, {InH: 640, NewH: 640}, {InH: 3, NewH: 1, Top: 1}, {InH: 100, NewH: 7}} {
		f := Filler{fit: fit, inH: fit.InH}
		for n := 1; n < 20; n++ {
			if f.boundary(0, n) != 0 || f.boundary(n, n) != fit.InH {
				t.Errorf("%+v: %d bands go from %d to %d", fit, n, f.boundary(0, n), f.boundary(n, n))
			}
			for i := range n {
				if f.boundary(i, n) > f.boundary(i+1, n) {
					t.Errorf("%+v: band %d of %d goes back", fit, i, n)
				}
			}
		}
	}
}

package prep

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/half"
	"github.com/eyas-edge/eyas/internal/tensor"
)

var formats = []frame.Format{
	frame.RGB24, frame.BGR24, frame.RGBA, frame.BGRA, frame.Gray, frame.NV12, frame.I420, frame.I422, frame.YUYV,
}

// picture makes a frame of w x h, each row followed by extra bytes that must not be read as pixels:
// noise, or slopes and a soft edge.
func picture(tb testing.TB, format frame.Format, w, h, extra int, smooth bool, seed uint64) *frame.Frame {
	tb.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	var planes []frame.Plane
	for i, g := range format.PlanesOf(w, h) {
		stride := g.RowBytes + extra
		data := make([]byte, stride*(g.Rows-1)+g.RowBytes) // the last row ends with its pixels
		for j := range data {
			data[j] = byte(rng.Uint32())
			if x, y := j%stride, j/stride; smooth && x < g.RowBytes {
				data[j] = byte(128 + 120*math.Sin(float64(x)/31+float64(i))*math.Cos(float64(y)/17))
			}
		}
		planes = append(planes, frame.Plane{Data: data, Stride: stride})
	}
	fr, err := frame.New(format, w, h, planes, fixedTime, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return fr
}

func newTensor(tb testing.TB, r Recipe, n, w, h int) *tensor.Tensor {
	tb.Helper()
	shape := []int{n, r.channels(), h, w}
	if r.NHWC {
		shape = []int{n, h, w, r.channels()}
	}
	t, err := tensor.New("images", r.Type, shape...)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// at returns the value of channel c at x, y of sample n.
func at(t *tensor.Tensor, r Recipe, n, c, x, y int) float64 {
	s := t.Shape
	i := ((n*s[1]+c)*s[2]+y)*s[3] + x
	if r.NHWC {
		i = ((n*s[1]+y)*s[2]+x)*s[3] + c
	}
	switch t.Type {
	case tensor.Float32:
		return float64(t.Float32s()[i])
	case tensor.Float16:
		return float64(half.ToFloat32(t.Float16s()[i]))
	}
	return float64(t.Uint8s()[i])
}

func filled(tb testing.TB, r Recipe, inW, inH int, fr *frame.Frame) (*tensor.Tensor, Transform) {
	tb.Helper()
	f, err := NewFiller(r, inW, inH)
	if err != nil {
		tb.Fatal(err)
	}
	dst := newTensor(tb, r, 1, inW, inH)
	tr, err := f.Fill(dst, 0, fr)
	if err != nil {
		tb.Fatal(err)
	}
	return dst, tr
}

// Every format, resize direction, odd size and stride against the reference in
// reference_test.go, on noise and on a smooth picture.
func TestFillAgreesWithReference(t *testing.T) {
	sizes := []struct{ w, h, inW, inH int }{
		{64, 48, 64, 64},   // same size, padded
		{64, 48, 64, 48},   // copy
		{97, 61, 32, 32},   // odd, down by 3
		{33, 57, 96, 80},   // odd, up
		{51, 40, 50, 50},   // nearly the same
		{128, 72, 64, 64},  // exactly half
		{1, 1, 16, 16},     // a single pixel
		{2, 3, 31, 17},     // fewer pixels than taps
		{5, 301, 64, 32},   // one column left
		{200, 3, 208, 208}, // slim
	}
	off, total := 0, 0
	for _, format := range formats {
		for ri, r := range recipes[:10] {
			for si, s := range sizes {
				fr := picture(t, format, s.w, s.h, []int{0, 5, 64}[(ri+si)%3], si%2 == ri%2, uint64(si))
				fr.Colour = colours[(ri+si)%len(colours)]
				got, tr := filled(t, r, s.inW, s.inH, fr) // TestTwinsAgree looks at the other twin
				name := fmt.Sprintf("%s %dx%d to %dx%d recipe %d", format, s.w, s.h, s.inW, s.inH, ri)
				ref := newReference(fr, r, tr)
				for y := range s.inH {
					for x := range s.inW {
						for c := range r.channels() {
							std := float64(r.Std[c])
							if std == 0 {
								std = 1
							}
							level := at(got, r, 0, c, x, y)*std + float64(r.Mean[c])
							low, high := ref.level(c, x, y, -0.01), ref.level(c, x, y, 0.01)
							total++
							near := 1.01
							if fr.Format >= frame.NV12 { // converted levels may be off by one before they are mixed
								near = 2
							}
							if level < low-near || level > high+near {
								t.Fatalf("%s: channel %d at %d,%d: level %.2f, reference %.2f to %.2f", name, c, x, y, level, low, high)
							}
							if math.Abs(level-math.Round(low)) > 0.5 {
								off++
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d of %d values differ from the reference by one level", off, total)
}

func TestTypesAgree(t *testing.T) {
	fr := picture(t, frame.I420, 123, 77, 3, false, 1)
	base := Recipe{Pad: 114}
	base.Type = tensor.Float32
	want, _ := filled(t, base, 64, 64, fr)
	for _, typ := range []tensor.Type{tensor.Uint8, tensor.Float16} {
		for _, nhwc := range []bool{false, true} {
			r := base
			r.Type, r.NHWC = typ, nhwc
			got, _ := filled(t, r, 64, 64, fr)
			for i := range 3 * 64 * 64 {
				c, x, y := i/64/64, i%64, i/64%64
				if g, w := at(got, r, 0, c, x, y), at(want, base, 0, c, x, y); g != w {
					t.Fatalf("%s nhwc %v: channel %d at %d,%d: %v, float32 has %v", typ, nhwc, c, x, y, g, w)
				}
			}
		}
	}
}

// A filler that is fed frames of different shapes, and tensors with old values, writes what
// a new filler writes into a zeroed tensor, and nothing outside of its sample.
func TestFillWritesAllOfItsSample(t *testing.T) {
	r := Recipe{Pad: 114, Std: [3]float32{255, 255, 255}, Type: tensor.Float32}
	f, err := NewFiller(r, 64, 48)
	if err != nil {
		t.Fatal(err)
	}
	dst := newTensor(t, r, 3, 64, 48)
	n := 3 * 64 * 48
	for i, s := range []struct {
		format frame.Format
		w, h   int
	}{{frame.RGB24, 100, 20}, {frame.RGB24, 20, 100}, {frame.NV12, 20, 100}, {frame.NV12, 64, 48}, {frame.Gray, 640, 481}} {
		fr := picture(t, s.format, s.w, s.h, 0, false, uint64(i))
		all := dst.Float32s()
		for j := range all {
			all[j] = -9
		}
		if _, err := f.Fill(dst, 1, fr); err != nil {
			t.Fatal(err)
		}
		fresh, _ := filled(t, r, 64, 48, fr)
		for j, v := range all {
			want := float32(-9)
			if j/n == 1 {
				want = fresh.Float32s()[j-n]
			}
			if v != want {
				t.Fatalf("frame %d: element %d is %v, want %v", i, j, v, want)
			}
		}
	}
}

func TestFillAllocatesNothing(t *testing.T) {
	for _, format := range formats {
		for _, r := range []Recipe{{Type: tensor.Float32}, {Type: tensor.Uint8, NHWC: true}, {Type: tensor.Float16, Gray: true}} {
			f, err := NewFiller(r, 96, 64)
			if err != nil {
				t.Fatal(err)
			}
			dst := newTensor(t, r, 1, 96, 64)
			a, b := picture(t, format, 123, 45, 0, false, 1), picture(t, format, 96, 64, 0, false, 1)
			if n := testing.AllocsPerRun(5, func() {
				_, err1 := f.Fill(dst, 0, a)
				_, err2 := f.Fill(dst, 0, b)
				if err1 != nil || err2 != nil {
					t.Fatal(err1, err2)
				}
			}); n != 0 {
				t.Errorf("%s %s: %v allocations", format, r.Type, n)
			}
		}
	}
	rgb, fr := make([]byte, 3*300*20), picture(t, frame.NV12, 300, 20, 0, false, 1)
	if n := testing.AllocsPerRun(5, func() { _ = ToRGB(rgb, fr) }); n != 0 {
		t.Errorf("ToRGB: %v allocations", n)
	}
}

func TestNewFillerRefuses(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name string
		r    Recipe
		w, h int
		want string
	}{
		{"no size", Recipe{Type: tensor.Float32}, 0, 10, "pre-processing: input of 0x10 pixels: sides are 1 to 32768"},
		{"too large", Recipe{Type: tensor.Float32}, 10, 1 << 16, "pre-processing: input of 10x65536 pixels: sides are 1 to 32768"},
		{"resize", Recipe{Type: tensor.Float32, Resize: 9}, 1, 1, "pre-processing: resize(9) is not known: use one of [letterbox letterbox-end stretch]"},
		{"int8", Recipe{Type: tensor.Int8}, 1, 1, "pre-processing: input type int8: only float32, float16 and uint8 take pictures"},
		{"uint8 0..1", Recipe{Type: tensor.Uint8, Std: [3]float32{255, 255, 255}}, 1, 1,
			"pre-processing: mean 0 and std 255 turn level 1 of channel 0 into 0.003921569, which uint8 cannot hold"},
		{"uint8 mean", Recipe{Type: tensor.Uint8, Mean: [3]float32{0, 1, 0}}, 1, 1,
			"pre-processing: mean 1 and std 1 turn level 0 of channel 1 into -1, which uint8 cannot hold"},
		{"not a number", Recipe{Type: tensor.Float32, Mean: [3]float32{0, 0, nan}}, 1, 1,
			"pre-processing: mean NaN and std 1 turn level 0 of channel 2 into NaN, which float32 cannot hold"},
		{"half overflow", Recipe{Type: tensor.Float16, Std: [3]float32{1, 1, 1e-3}}, 1, 1,
			"pre-processing: mean 0 and std 0.001 turn level 66 of channel 2 into 66000, which float16 cannot hold"},
	} {
		if _, err := NewFiller(c.r, c.w, c.h); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
	inverted := Recipe{Type: tensor.Uint8, Mean: [3]float32{255, 255, 255}, Std: [3]float32{-1, -1, -1}}
	if _, err := NewFiller(inverted, 8, 8); err != nil {
		t.Errorf("levels to levels: %v", err)
	}
}

func TestFillRefuses(t *testing.T) {
	r := Recipe{Type: tensor.Float32}
	good := newTensor(t, r, 2, 16, 8)
	short := *good
	short.Data = short.Data[:100]
	picture := picture(t, frame.NV12, 9, 9, 0, false, 1)
	change := func(f func(*frame.Frame)) *frame.Frame {
		c := &frame.Frame{Format: picture.Format, Width: 9, Height: 9, Planes: append([]frame.Plane(nil), picture.Planes...)}
		f(c)
		return c
	}
	for _, c := range []struct {
		name   string
		dst    *tensor.Tensor
		sample int
		fr     *frame.Frame
		want   string
	}{
		{"no tensor", nil, 0, picture, "no tensor"},
		{"type", newTensor(t, Recipe{Type: tensor.Uint8}, 1, 16, 8), 0, picture, "tensor images is uint8[1 3 8 16], the recipe fills float32[N 3 8 16]"},
		{"shape", newTensor(t, r, 1, 8, 16), 0, picture, "tensor images is float32[1 3 16 8], the recipe fills float32[N 3 8 16]"},
		{"layout", newTensor(t, Recipe{Type: tensor.Float32, NHWC: true}, 1, 16, 8), 0, picture, "tensor images is float32[1 8 16 3], the recipe fills float32[N 3 8 16]"},
		{"sample", good, 2, picture, "tensor images has no sample 2: its batch is 2"},
		{"negative sample", good, -1, picture, "tensor images has no sample -1: its batch is 2"},
		{"short tensor", &short, 0, picture, "tensor images: float32[2 3 8 16] does not fit its 100 bytes"},
		{"no frame", good, 0, nil, "no frame"},
		{"format", good, 0, change(func(f *frame.Frame) { f.Format = 77 }), "frame of format format(77): this pixel format is not known"},
		{"planes", good, 0, change(func(f *frame.Frame) { f.Planes = f.Planes[:1] }), "frame of nv12: has 1 planes, needs 2"},
		{"size", good, 0, change(func(f *frame.Frame) { f.Width = 0 }), "frame of 0x9 pixels: sides are 1 to 67108864"},
		{"stride", good, 0, change(func(f *frame.Frame) { f.Planes[1].Stride = 9 }),
			"frame of nv12 9x9: plane 1 needs 5 rows of 10 bytes, has stride 9 in 50 bytes"},
		{"short plane", good, 0, change(func(f *frame.Frame) { f.Height = 10 }),
			"frame of nv12 9x10: plane 0 needs 10 rows of 9 bytes, has stride 9 in 81 bytes"},
	} {
		f, err := NewFiller(r, 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Fill(c.dst, c.sample, c.fr); err == nil || err.Error() != "pre-processing: "+c.want {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

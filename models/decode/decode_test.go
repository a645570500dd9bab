package decode

import (
	"math"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/half"
	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/models/prep"
)

// floats makes a float32 tensor of the given values; the rest stays 0.
func floats(shape []int, values ...float32) *tensor.Tensor {
	t, err := tensor.New("out", tensor.Float32, shape...)
	if err != nil {
		panic(err)
	}
	copy(t.Float32s(), values)
	return t
}

func longs(shape []int, values ...int64) *tensor.Tensor {
	t, _ := tensor.New("out", tensor.Int64, shape...)
	copy(t.Int64s(), values)
	return t
}

func asInt32(t *tensor.Tensor) *tensor.Tensor {
	out, _ := tensor.New(t.Name, tensor.Int32, t.Shape...)
	for i, v := range t.Int64s() {
		out.Int32s()[i] = int32(v)
	}
	return out
}

// same is a picture of 100x80 fed as it is.
var same = prep.Fit(prep.Stretch, 100, 80, 100, 80)

// lg is a logit.
func lg(p float64) float32 { return float32(math.Log(p / (1 - p))) }

// gridOf makes a [1,fields,h,w] grid with the fields of some cells set and everything else at rest.
func gridOf(fields, h, w int, rest float32, cells map[[2]int][]float32) *tensor.Tensor {
	t := floats([]int{1, fields, h, w})
	f := t.Float32s()
	for i := range f {
		f[i] = rest
	}
	for at, values := range cells {
		for k, v := range values {
			f[(k*h+at[0])*w+at[1]] = v
		}
	}
	return t
}

// channelsLast turns [1,C,H,W] into [1,H,W,C].
func channelsLast(t *tensor.Tensor) *tensor.Tensor {
	c, h, w := t.Shape[1], t.Shape[2], t.Shape[3]
	out := transpose(&tensor.Tensor{Name: t.Name, Type: t.Type, Shape: []int{1, c, h * w}, Data: t.Data})
	out.Shape = []int{1, h, w, c}
	return out
}

// reshaped is the same data under another shape.
func reshaped(t *tensor.Tensor, shape ...int) *tensor.Tensor {
	return &tensor.Tensor{Name: t.Name, Type: t.Type, Shape: shape, Data: t.Data}
}

type decodeCase struct {
	name   string
	head   Head
	outs   []*tensor.Tensor
	sample int
	trans  prep.Transform // zero: same
	opts   Options        // zero: conf 0.25, IoU 0.5
	want   []Detection
}

func cases() []decodeCase {
	v5 := floats([]int{2, 3, 7},
		50, 40, 20, 10, 0.9, 0.5, 0.8, // 0.72 of class 1
		10, 10, 10, 10, 0.2, 1, 1, // objectness too low
		20, 60, 10, 20, 0.5, 0.6, 0.4, // 0.3 of class 0
		// The second sample.
		50, 40, 20, 10, 0.5, 0.25, 1,
		50, 40, 20, 10, 0, 0, 0,
		50, 40, 20, 10, 0, 0, 0)
	v5want := []Detection{{1, 0.72, [4]float32{40, 35, 60, 45}}, {0, 0.3, [4]float32{15, 50, 25, 70}}}
	v8 := transpose(floats([]int{1, 3, 6},
		50, 40, 20, 10, 0.1, 0.9,
		51, 40, 20, 10, 0.8, 0.2, // overlaps the first one, in another class
		50, 41, 20, 10, 0.3, 0.7)) // suppressed by the first one
	v8want := []Detection{{1, 0.9, [4]float32{40, 35, 60, 45}}, {0, 0.8, [4]float32{41, 35, 61, 45}}}
	rows := floats([]int{1, 3, 6},
		10, 10, 30, 30, 0.5, 3,
		10, 10, 30, 30, 0.75, 1, // no suppression
		0, 0, 0, 0, 0, 0)
	rowsWant := []Detection{{1, 0.75, [4]float32{10, 10, 30, 30}}, {3, 0.5, [4]float32{10, 10, 30, 30}}}
	columns := []*tensor.Tensor{longs([]int{1, 2}, 3, 1), floats([]int{1, 2, 4}, 10, 10, 30, 30, 10, 10, 30, 30), floats([]int{1, 2}, 0.5, 0.75)}
	detr := Head{Kind: DETR, Classes: 4, Labels: 0, Boxes: []int{1}, Scores: []int{2}}
	four := Head{Kind: FourOutput, Classes: 4, Labels: 0, Boxes: []int{1}, Scores: []int{2}, Num: 3}
	// A 64x64 input on 2x2 cells of 32: sigmoid(0) = 0.5 puts the centre into the cell's middle.
	in64 := prep.Fit(prep.Stretch, 64, 64, 64, 64)
	face := Head{Kind: Grid, Anchors: [][]float32{{1, 0.5, 0.25, 0.25}}}
	faceGrid := gridOf(10, 2, 2, -20, map[[2]int][]float32{{1, 0}: {0, 0, 0, 0, lg(0.9), 0, 0, float32(math.Log(2)), 0, lg(0.6)}})
	faceWant := []Detection{{0, 0.9, [4]float32{0, 40, 32, 56}}, {0, 0.6, [4]float32{8, 44, 24, 52}}}
	v2 := gridOf(7, 2, 2, -20, map[[2]int][]float32{{0, 1}: {0, 0, 0, 0, lg(0.8), 1, 1 + float32(math.Log(3))}})
	raw := Head{Kind: RawYOLOv5, Classes: 2, Strides: []int{32, 64}, Levels: []int{1, 0}, Anchors: [][]float32{{10, 20}, {8, 8, 16, 8}}}
	rawSmall := gridOf(7, 2, 2, -20, map[[2]int][]float32{{0, 1}: {0, 0, 0, 0, lg(0.9), lg(0.5), lg(0.2)}})
	rawLarge := gridOf(14, 1, 1, -20, map[[2]int][]float32{{0, 0}: {-20, -20, -20, -20, -20, -20, -20, 0, 0, 0, 0, lg(0.8), -9, lg(0.95)}})
	rawWant := []Detection{{1, 0.76, [4]float32{24, 28, 40, 36}}, {0, 0.45, [4]float32{43, 6, 53, 26}}}
	yolox := floats([]int{1, 5, 6})
	copy(yolox.Float32s()[6:], []float32{0.5, 0.25, float32(math.Log(0.5)), 0, 0.8, 0.5})      // cell 1,0 of stride 32
	copy(yolox.Float32s()[24:], []float32{0.5, 0.5, float32(math.Log(0.25)), -1e30, 0.9, 0.9}) // its height is exp(-1e30) = 0
	gfl := Head{Kind: GFL, Classes: 2, Scores: []int{0}, Boxes: []int{1}, Strides: []int{32}, RegMax: 2, CentreOffset: 0.5}
	far := func(bin int) []float32 { v := []float32{-99, -99, -99}; v[bin] = 0; return v }
	half1 := []float32{0, 0, -99} // half a stride
	var dist []float32
	for _, side := range [][]float32{half1, far(0), half1, far(1)} {
		dist = append(dist, side...)
	}
	gflScores := floats([]int{1, 4, 2}, 0, 0, 0, 0.7, 0, 0, 0, 0)
	gflBoxes := floats([]int{1, 4, 12}, append(make([]float32, 12), dist...)...)
	gflWant := []Detection{{1, 0.7, [4]float32{32, 16, 64, 48}}}
	gflOne := floats([]int{1, 5, 14}) // the cell of stride 64, then the four of 32
	copy(gflOne.Float32s()[2*14:], append([]float32{0, 0.7}, dist...))
	fast := gridOf(7, 2, 2, 0, map[[2]int][]float32{{1, 1}: {0.5, 0, 0, 0, lg(0.25), 0.25, 0.75}})
	fastWant := []Detection{{1, float32(math.Pow(0.5, 0.6) * math.Pow(0.75, 0.4)), [4]float32{16, 24, 48, 40}}}

	return []decodeCase{
		{name: "objectness", head: Head{Kind: Objectness, Classes: 2}, outs: []*tensor.Tensor{v5}, want: v5want},
		{name: "objectness, second sample", head: Head{Kind: Objectness, Classes: 2}, outs: []*tensor.Tensor{v5}, sample: 1,
			want: []Detection{{1, 0.5, [4]float32{40, 35, 60, 45}}}},
		{name: "objectness, all classes", head: Head{Kind: Objectness, Classes: 2}, outs: []*tensor.Tensor{v5}, opts: Options{Conf: 0.44, IoU: 0.5, MultiLabel: true},
			want: []Detection{v5want[0], {0, 0.45, [4]float32{40, 35, 60, 45}}}},
		{name: "objectness alone", head: Head{Kind: Objectness}, outs: []*tensor.Tensor{floats([]int{1, 1, 5}, 50, 40, 20, 10, 0.6)},
			want: []Detection{{0, 0.6, [4]float32{40, 35, 60, 45}}}},
		{name: "objectness with masks", head: Head{Kind: Objectness, Classes: 1, Masks: 2}, outs: []*tensor.Tensor{floats([]int{1, 1, 8}, 50, 40, 20, 10, 0.8, 0.5, 9, 9)},
			want: []Detection{{0, 0.4, [4]float32{40, 35, 60, 45}}}},
		{name: "objectness, logits, 0..1", head: Head{Kind: Objectness, Classes: 1, Sigmoid: true, NormBoxes: true},
			outs: []*tensor.Tensor{floats([]int{1, 1, 6}, 0.5, 0.5, 0.2, 0.125, lg(0.8), lg(0.5))}, want: []Detection{{0, 0.4, [4]float32{40, 35, 60, 45}}}},
		{name: "class-only", head: Head{Kind: ClassOnly, Classes: 2}, outs: []*tensor.Tensor{v8}, want: v8want},
		{name: "class-only without batch axis", head: Head{Kind: ClassOnly, Classes: 2}, outs: []*tensor.Tensor{reshaped(v8, 6, 3)}, want: v8want},
		{name: "class-only transposed", head: Head{Kind: ClassOnly, Classes: 2, Transposed: true}, outs: []*tensor.Tensor{transpose(v8)}, want: v8want},
		{name: "class-only agnostic", head: Head{Kind: ClassOnly, Classes: 2}, outs: []*tensor.Tensor{v8}, opts: Options{Conf: 0.25, IoU: 0.5, Agnostic: true}, want: v8want[:1]},
		{name: "class-only, one class asked for", head: Head{Kind: ClassOnly, Classes: 2}, outs: []*tensor.Tensor{v8}, opts: Options{Conf: 0.25, IoU: 0.5, Classes: []int{0}}, want: v8want[1:]},
		{name: "class-only, at most one", head: Head{Kind: ClassOnly, Classes: 2}, outs: []*tensor.Tensor{v8}, opts: Options{Conf: 0.25, IoU: 0.5, MaxDet: 1}, want: v8want[:1]},
		{name: "class-only, all classes", head: Head{Kind: ClassOnly, Classes: 2}, outs: []*tensor.Tensor{v8}, opts: Options{Conf: 0.09, IoU: 0.99, MultiLabel: true},
			want: []Detection{v8want[0], v8want[1], {1, 0.7, [4]float32{40, 36, 60, 46}}, {0, 0.3, [4]float32{40, 36, 60, 46}}, {1, 0.2, [4]float32{41, 35, 61, 45}}, {0, 0.1, [4]float32{40, 35, 60, 45}}}},
		{name: "class-only with masks, 0..1, logits", head: Head{Kind: ClassOnly, Classes: 1, Masks: 2, NormBoxes: true, Sigmoid: true},
			outs: []*tensor.Tensor{floats([]int{1, 7, 1}, 0.5, 0.5, 0.2, 0.125, lg(0.9), 7, 7)}, want: []Detection{{0, 0.9, [4]float32{40, 35, 60, 45}}}},
		{name: "equal scores: the lower candidate stays, of a candidate's the lower class", head: Head{Kind: ClassOnly, Classes: 2},
			outs: []*tensor.Tensor{transpose(floats([]int{1, 2, 6}, 50, 40, 20, 10, 0.5, 0.5, 51, 40, 20, 10, 0.5, 0))}, want: []Detection{{0, 0.5, [4]float32{40, 35, 60, 45}}}},
		{name: "letterbox undone", head: Head{Kind: ClassOnly, Classes: 1}, trans: prep.Fit(prep.Letterbox, 200, 100, 100, 100),
			outs: []*tensor.Tensor{floats([]int{1, 5, 1}, 50, 50, 20, 10, 0.5)}, want: []Detection{{0, 0.5, [4]float32{80, 40, 120, 60}}}},
		{name: "clipped", head: Head{Kind: ClassOnly, Classes: 1}, outs: []*tensor.Tensor{floats([]int{1, 5, 1}, 0, 80, 20, 10, 0.5)}, want: []Detection{{0, 0.5, [4]float32{0, 75, 10, 80}}}},
		{name: "end to end", head: Head{Kind: EndToEnd, Classes: 4}, outs: []*tensor.Tensor{rows}, want: rowsWant},
		{name: "end to end without batch axis, classes unknown", head: Head{Kind: EndToEnd}, outs: []*tensor.Tensor{reshaped(rows, 3, 6)}, want: rowsWant},
		{name: "end to end, a label beyond the classes", head: Head{Kind: EndToEnd, Classes: 3}, outs: []*tensor.Tensor{rows}, want: rowsWant[:1]},
		{name: "end to end, one class asked for", head: Head{Kind: EndToEnd, Classes: 4}, outs: []*tensor.Tensor{rows}, opts: Options{Classes: []int{3}}, want: rowsWant[1:]},
		{name: "end to end, at most one", head: Head{Kind: EndToEnd, Classes: 4}, outs: []*tensor.Tensor{rows}, opts: Options{MaxDet: 1}, want: rowsWant[:1]},
		{name: "end to end with masks", head: Head{Kind: EndToEnd, Classes: 4, Masks: 1}, outs: []*tensor.Tensor{floats([]int{1, 1, 7}, 10, 10, 30, 30, 0.75, 1, 9)}, want: rowsWant[:1]},
		{name: "rows", head: Head{Kind: Rows, Classes: 4}, outs: []*tensor.Tensor{reshaped(rows, 3, 6)}, want: rowsWant},
		{name: "rows, none", head: Head{Kind: Rows, Classes: 4}, outs: []*tensor.Tensor{floats([]int{0, 6})}},
		{name: "rows of a batch, none", head: Head{Kind: Rows, Classes: 4}, outs: []*tensor.Tensor{floats([]int{0, 7})}, sample: 1},
		{name: "rows of a batch", head: Head{Kind: Rows, Classes: 4}, sample: 1,
			outs: []*tensor.Tensor{floats([]int{3, 7}, 0, 1, 2, 3, 4, 1, 0.9, 1, 10, 10, 30, 30, 3, 0.5, 1, 10, 10, 30, 30, 1, 0.75)}, want: rowsWant},
		{name: "detr", head: detr, outs: columns, want: rowsWant},
		{name: "detr without batch axis, int32", head: detr,
			outs: []*tensor.Tensor{asInt32(reshaped(columns[0], 2)), reshaped(columns[1], 2, 4), reshaped(columns[2], 2)}, want: rowsWant},
		{name: "detr, float labels, 0..1", head: Head{Kind: DETR, Classes: 4, NormBoxes: true, Labels: 0, Boxes: []int{1}, Scores: []int{2}},
			outs: []*tensor.Tensor{floats([]int{1, 1, 1}, 1), floats([]int{1, 1, 4}, 0.1, 0.125, 0.3, 0.375), floats([]int{1, 1, 1}, 0.75)}, want: rowsWant[:1]},
		{name: "four outputs", head: four, outs: append(columns[:3:3], longs([]int{1, 1}, 1)), want: rowsWant[1:]},
		{name: "four outputs, more than there is room for", head: four, outs: append(columns[:3:3], asInt32(longs([]int{1}, 9))), want: rowsWant},
		{name: "four outputs, a count below 0", head: four, outs: append(columns[:3:3], asInt32(longs([]int{1}, -9)))},
		{name: "grid", head: face, trans: in64, opts: Options{Conf: 0.4, IoU: 0.4}, outs: []*tensor.Tensor{faceGrid}, want: faceWant},
		{name: "grid, channels last", head: Head{Kind: Grid, Anchors: face.Anchors, Transposed: true}, trans: in64, opts: Options{Conf: 0.4, IoU: 0.4}, outs: []*tensor.Tensor{channelsLast(faceGrid)}, want: faceWant},
		{name: "grid with classes", head: Head{Kind: Grid, Classes: 2, Anchors: [][]float32{{1, 1}}}, trans: in64, outs: []*tensor.Tensor{v2}, want: []Detection{{1, 0.6, [4]float32{32, 0, 64, 32}}}},
		{name: "grid with all classes", head: Head{Kind: Grid, Classes: 2, Anchors: [][]float32{{1, 1}}}, trans: in64, outs: []*tensor.Tensor{v2}, opts: Options{Conf: 0.15, MultiLabel: true},
			want: []Detection{{1, 0.6, [4]float32{32, 0, 64, 32}}, {0, 0.2, [4]float32{32, 0, 64, 32}}}},
		{name: "raw yolov5", head: raw, trans: in64, outs: []*tensor.Tensor{rawLarge, rawSmall}, want: rawWant},
		{name: "raw yolov5 by anchor", head: raw, trans: in64, want: rawWant,
			outs: []*tensor.Tensor{reshaped(rawLarge, 1, 2, 1, 1, 7), reshaped(channelsLast(rawSmall), 1, 1, 2, 2, 7)}},
		{name: "raw yolov5 by anchor without batch axis", head: raw, trans: in64, want: rawWant,
			outs: []*tensor.Tensor{reshaped(rawLarge, 2, 1, 1, 7), reshaped(channelsLast(rawSmall), 1, 2, 2, 7)}},
		{name: "yolox", head: Head{Kind: YOLOX, Classes: 1, Strides: []int{32, 64}}, trans: in64, outs: []*tensor.Tensor{yolox},
			want: []Detection{{0, 0.4, [4]float32{40, 0, 56, 24}}}},
		{name: "gfl", head: gfl, trans: in64, outs: []*tensor.Tensor{gflScores, gflBoxes}, want: gflWant},
		{name: "gfl in one output", head: Head{Kind: GFL, Classes: 2, Scores: []int{0, 0}, Boxes: []int{0, 0}, Strides: []int{64, 32}, RegMax: 2, CentreOffset: 0.5},
			trans: in64, outs: []*tensor.Tensor{gflOne}, want: gflWant},
		{name: "nothing is suppressed", head: Head{Kind: ClassOnly, Classes: 1}, outs: []*tensor.Tensor{floats([]int{1, 5, 2}, 50, 50, 40, 40, 20, 20, 10, 10, 0.8, 0.9)},
			opts: Options{IoU: 1}, want: []Detection{{0, 0.9, [4]float32{40, 35, 60, 45}}, {0, 0.8, [4]float32{40, 35, 60, 45}}}},
		{name: "gfl without batch axis", head: gfl, trans: in64, outs: []*tensor.Tensor{reshaped(gflScores, 4, 2), reshaped(gflBoxes, 4, 12)}, want: gflWant},
		{name: "gfl, channels first", head: gfl, trans: in64, outs: []*tensor.Tensor{transpose(gflScores), reshaped(transpose(gflBoxes), 1, 12, 2, 2)}, want: gflWant},
		{name: "gfl, NanoDet's centre, logits", trans: in64,
			head: Head{Kind: GFL, Sigmoid: true, Scores: []int{0}, Boxes: []int{1}, Strides: []int{32}, RegMax: 2, CentreNanoDet: true},
			outs: []*tensor.Tensor{floats([]int{1, 4, 1}, -9, lg(0.7), -9, -9), gflBoxes}, want: []Detection{{0, 0.7, [4]float32{31.5, 15.5, 63.5, 47.5}}}},
		{name: "fastestdet", head: Head{Kind: FastestDet, Classes: 2}, trans: prep.Fit(prep.Stretch, 64, 64, 64, 64), outs: []*tensor.Tensor{shift(fast)}, want: fastWant},
	}
}

// shift moves FastestDet's centre from its cell 1,1 of 2x2 to the middle of the picture: tanh(-20) = -1.
func shift(t *tensor.Tensor) *tensor.Tensor {
	f := t.Float32s()
	f[1*4+3], f[2*4+3] = 0, 0
	return t
}

func compare(t *testing.T, got, want []Detection, tolerance float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i, w := range want {
		g := got[i]
		ok := g.ClassID == w.ClassID && math.Abs(float64(g.Score-w.Score)) <= float64(tolerance)
		for k := range w.Box {
			ok = ok && math.Abs(float64(g.Box[k]-w.Box[k])) <= 100*float64(tolerance)
		}
		if !ok {
			t.Errorf("detection %d: got %v, want %v", i, g, w)
		}
	}
}

func TestDecode(t *testing.T) {
	for _, c := range cases() {
		if c.trans == (prep.Transform{}) {
			c.trans = same
		}
		if c.opts.Conf == 0 {
			c.opts.Conf = 0.25
		}
		if c.opts.IoU == 0 {
			c.opts.IoU = 0.5
		}
		for _, as := range []string{"float32", "float16"} {
			t.Run(c.name+"/"+as, func(t *testing.T) {
				tolerance := float32(1e-6)
				outs := append([]*tensor.Tensor(nil), c.outs...)
				if as == "float16" {
					tolerance = 1e-3
					for i, o := range outs {
						if o.Type == tensor.Float32 {
							outs[i] = toHalf(o)
						}
					}
				}
				d, err := New(c.head)
				if err != nil {
					t.Fatal(err)
				}
				for range probePictures + 2 { // the first ones look at every score
					got, err := d.Decode(nil, outs, c.sample, c.trans, c.opts)
					if err != nil {
						t.Fatal(err)
					}
					compare(t, got, c.want, tolerance)
				}
			})
		}
	}
}

func TestUselessValues(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	out := transpose(floats([]int{1, 9, 6},
		50, 40, 20, 10, nan, 0.9, // the other class is fine
		nan, 40, 20, 10, 0.9, 0,
		inf, 40, 20, 10, 0.9, 0,
		50, 40, inf, 10, 0.9, 0,
		1e20, 40, 20, 10, 0.9, 0, // overflowing
		50, 40, -20, 10, 0.9, 0, // turned inside out
		-50, 40, 20, 10, 0.9, 0, // outside
		50, 40, 20, 0, 0.9, 0, // empty
		20, 40, 20, 10, 7, inf)) // above 1
	d, _ := New(Head{Kind: ClassOnly, Classes: 2})
	got, err := d.Decode(nil, []*tensor.Tensor{out}, 0, same, Options{Conf: 0.25, IoU: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, got, []Detection{{1, 1, [4]float32{10, 35, 30, 45}}, {1, 0.9, [4]float32{40, 35, 60, 45}}}, 1e-6)
	want := Stats{Pictures: 1, Candidates: 9, NaN: 1, Dropped: 7, AboveOne: 1, Highest: inf}
	if d.Stats() != want {
		t.Errorf("got %+v, want %+v", d.Stats(), want)
	}
	if d.Reset(); d.Stats() != (Stats{}) {
		t.Errorf("after Reset: %+v", d.Stats())
	}
}

func TestStatsTellDeadScores(t *testing.T) {
	for _, highest := range []float32{0, 0.01} {
		for _, head := range []Head{{Kind: ClassOnly, Classes: 80}, {Kind: Objectness, Classes: 79}, {Kind: ClassOnly, Classes: 80, Transposed: true}} {
			out := floats([]int{1, 84, 84})
			for i := range 84 {
				out.Float32s()[i*84+4] = 1 // objectness, or a box value
			}
			if head.Kind == ClassOnly {
				out = floats([]int{1, 84, 84})
			}
			out.Float32s()[50*84+50] = highest
			d, _ := New(head)
			for range 2 * probePictures {
				if _, err := d.Decode(nil, []*tensor.Tensor{out}, 0, same, Options{Conf: 0.25}); err != nil {
					t.Fatal(err)
				}
			}
			if s := d.Stats(); s.Highest != highest || s.Candidates != 0 {
				t.Errorf("%s: got %+v, want highest %v", head.Kind, s, highest)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		want string
		head Head
	}{
		{"no decoder", Head{}},
		{"no decoder", Head{Kind: 99}},
		{"-1 classes", Head{Kind: ClassOnly, Classes: -1}},
		{"mask", Head{Kind: ClassOnly, Masks: -1}},
		{"output -1", Head{Kind: ClassOnly, Output: -1}},
		{"0 strides", Head{Kind: YOLOX}},
		{"stride 0", Head{Kind: YOLOX, Strides: []int{8, 0}}},
		{"lists of anchors", Head{Kind: Grid}},
		{"anchor values", Head{Kind: Grid, Anchors: [][]float32{{1}}}},
		{"anchor side", Head{Kind: Grid, Anchors: [][]float32{{1, float32(math.NaN())}}}},
		{"for 1 strides", Head{Kind: RawYOLOv5, Strides: []int{8}}},
		{"for 1 strides", Head{Kind: GFL, Strides: []int{8}}},
		{"bin 0", Head{Kind: GFL, Strides: []int{8}, Scores: []int{0}, Boxes: []int{1}}},
		{"one of each", Head{Kind: DETR}},
		{"output -2", Head{Kind: FourOutput, Scores: []int{0}, Boxes: []int{1}, Labels: -2}},
	} {
		if _, err := New(c.head); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want an error with %q", c.head, err, c.want)
		}
	}
}

func TestDecodeRefusesShapes(t *testing.T) {
	in64 := prep.Fit(prep.Stretch, 64, 64, 64, 64)
	detr := Head{Kind: DETR, Classes: 4, Labels: 0, Boxes: []int{1}, Scores: []int{2}}
	short := floats([]int{1, 6, 10})
	short.Data = short.Data[:8]
	for _, c := range []struct {
		want   string
		head   Head
		sample int
		outs   []*tensor.Tensor
	}{
		{"output 0 is missing: the model gave 0", Head{Kind: ClassOnly, Classes: 2}, 0, nil},
		{"missing", Head{Kind: ClassOnly, Classes: 2}, 0, []*tensor.Tensor{nil}},
		{"does not fit its 8 bytes", Head{Kind: ClassOnly, Classes: 2}, 0, []*tensor.Tensor{short}},
		{`float32[1 7 10]: want [batch,6,candidates]`, Head{Kind: ClassOnly, Classes: 2}, 0, []*tensor.Tensor{floats([]int{1, 7, 10})}},
		{"want [batch,candidates,6]", Head{Kind: ClassOnly, Classes: 2, Transposed: true}, 0, []*tensor.Tensor{floats([]int{1, 6, 10})}},
		{"want [batch,candidates,7]", Head{Kind: Objectness, Classes: 2}, 0, []*tensor.Tensor{floats([]int{1, 10, 6})}},
		{"2 dimensions after the batch", Head{Kind: Objectness, Classes: 2}, 0, []*tensor.Tensor{floats([]int{1, 1, 10, 7})}},
		{"no sample 1", Head{Kind: Objectness, Classes: 2}, 1, []*tensor.Tensor{floats([]int{1, 10, 7})}},
		{"no sample -1", Head{Kind: Objectness, Classes: 2}, -1, []*tensor.Tensor{floats([]int{1, 10, 7})}},
		{"no sample 1", Head{Kind: Rows}, 1, []*tensor.Tensor{floats([]int{4, 6})}},
		{"int64[1 10 7]: its type", Head{Kind: Objectness, Classes: 2}, 0, []*tensor.Tensor{longs([]int{1, 10, 7})}},
		{"5 candidates", Head{Kind: YOLOX, Classes: 2, Strides: []int{32, 64}}, 0, []*tensor.Tensor{floats([]int{1, 6, 7})}},
		{"want [batch,2*5,rows,columns]", Head{Kind: Grid, Anchors: [][]float32{{1, 1, 2, 2}}}, 0, []*tensor.Tensor{floats([]int{1, 9, 2, 2})}},
		{"want [batch,rows,columns,1*5]", Head{Kind: FastestDet, Transposed: true}, 0, []*tensor.Tensor{floats([]int{1, 2, 2, 6})}},
		{"want [batch,4,2]", Head{Kind: GFL, Classes: 2, Scores: []int{0}, Boxes: []int{1}, Strides: []int{32}, RegMax: 7}, 0, []*tensor.Tensor{floats([]int{1, 5, 2})}},
		{"want [batch,2,2,2]", Head{Kind: GFL, Classes: 2, Scores: []int{0}, Boxes: []int{1}, Strides: []int{32}, RegMax: 7}, 0, []*tensor.Tensor{floats([]int{1, 2, 3, 2})}},
		{"5 candidates", Head{Kind: GFL, Classes: 2, Scores: []int{0, 0}, Boxes: []int{0, 0}, Strides: []int{32, 64}, RegMax: 7}, 0, []*tensor.Tensor{floats([]int{1, 4, 34})}},
		{"rows of 6 values", Head{Kind: EndToEnd}, 0, []*tensor.Tensor{floats([]int{1, 6, 300})}},
		{"want [batch,detections,4]", detr, 0, []*tensor.Tensor{longs([]int{2}), floats([]int{2, 5}), floats([]int{2})}},
		{"want 2 values, one for each box", detr, 0, []*tensor.Tensor{longs([]int{2}), floats([]int{2, 4}), floats([]int{3})}},
		{"want 2 values, one for each box", detr, 0, []*tensor.Tensor{longs([]int{3}), floats([]int{2, 4}), floats([]int{2})}},
		{"the detections of sample 0", Head{Kind: FourOutput, Boxes: []int{1}, Scores: []int{2}, Num: 3}, 0,
			[]*tensor.Tensor{longs([]int{2}), floats([]int{2, 4}), floats([]int{2}), longs([]int{0})}},
	} {
		d, err := New(c.head)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Decode(nil, c.outs, c.sample, in64, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.head.Kind, err, c.want)
		}
	}
	d, _ := New(Head{Kind: Objectness})
	if _, err := d.Decode(nil, []*tensor.Tensor{floats([]int{1, 1, 5})}, 0, prep.Transform{}, Options{}); err == nil {
		t.Error("an empty transform was taken")
	}
}

func TestDecodeAllocatesNothing(t *testing.T) {
	for _, c := range cases() {
		trans := c.trans
		if trans == (prep.Transform{}) {
			trans = same
		}
		d, _ := New(c.head)
		dst := make([]Detection, 0, 100)
		if n := testing.AllocsPerRun(10, func() { _, _ = d.Decode(dst, c.outs, c.sample, trans, c.opts) }); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}

// The sieve shows everything at or above the threshold, whatever surrounds it, and nothing else that is an
// ordinary number.
func TestSieve(t *testing.T) {
	inf := math.Inf(1)
	for _, threshold := range []float32{math.SmallestNonzeroFloat32, 1e-3, 0.25, 0.3, 1, 2, float32(inf)} {
		for _, v := range []float64{0, 1e-9, 1e-3, 0.1, 0.249, 0.25, 0.3, 0.5, 1, 7, inf, math.NaN(), -0.3, -inf, math.Copysign(math.NaN(), -1)} {
			for at := range 32 {
				for _, size := range []int{2, 4} {
					if at*size >= blockBytes {
						continue
					}
					out := floats([]int{blockBytes / 4})
					value := float32(v)
					if size == 2 {
						out = blank(tensor.Float16, blockBytes/2)
						out.Float16s()[at] = half.FromFloat32(value)
						value = half.ToFloat32(half.FromFloat32(value))
					} else {
						out.Float32s()[at] = value
					}
					shows := newSieve(threshold, size).next(out.Data, 0) == 0
					if must := !(value < threshold); must && !shows {
						t.Fatalf("%v at %d of %d bytes each does not show over %v", v, at, size, threshold)
					}
					if size == 4 && shows && value >= 0 && value < threshold {
						t.Fatalf("%v shows over %v", v, threshold)
					}
				}
			}
		}
	}
}

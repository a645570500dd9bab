package decode

import (
	"math/rand/v2"
	"testing"

	"github.com/eyas-edge/eyas/internal/half"
	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/models/prep"
)

var square640 = prep.Fit(prep.Letterbox, 1280, 720, 640, 640)

// scene fills [1,84,8400] with scores below 0.05, and n candidates over 0.3 in groups of about five that
// overlap, as a picture gives them.
func scene(n int) *tensor.Tensor {
	const anchors, classes = 8400, 80
	r := rand.New(rand.NewPCG(1, 2))
	t, _ := tensor.New("output0", tensor.Float32, 1, 4+classes, anchors)
	f := t.Float32s()
	for i := range f[4*anchors:] {
		v := r.Float32()
		f[4*anchors+i] = v * v * v * v * 0.05
	}
	var cx, cy, w, h float32
	class := 0
	for k := range n {
		if k%5 == 0 {
			cx, cy, w, h = r.Float32()*640, 140+r.Float32()*360, 20+r.Float32()*120, 20+r.Float32()*120
			class = r.IntN(classes)
		}
		i := r.IntN(anchors)
		f[i], f[anchors+i], f[2*anchors+i], f[3*anchors+i] = cx+r.Float32()*4, cy+r.Float32()*4, w+r.Float32()*4, h+r.Float32()*4
		f[(4+class)*anchors+i] = 0.3 + 0.6*r.Float32()
	}
	return t
}

// crowd gives every one of 8400 candidates a score over 0.3 in one class of the given number.
func crowd(classes int, box func(r *rand.Rand, i int) [4]float32) *tensor.Tensor {
	const anchors, all = 8400, 80
	r := rand.New(rand.NewPCG(3, 4))
	t, _ := tensor.New("output0", tensor.Float32, 1, 4+all, anchors)
	f := t.Float32s()
	for i := range anchors {
		for k, v := range box(r, i) {
			f[k*anchors+i] = v
		}
		f[(4+r.IntN(classes))*anchors+i] = 0.3 + 0.6*r.Float32()
	}
	return t
}

func randomBox(r *rand.Rand, _ int) [4]float32 {
	return [4]float32{r.Float32() * 640, 140 + r.Float32()*360, 5 + r.Float32()*200, 5 + r.Float32()*200}
}

func smallBox(r *rand.Rand, i int) [4]float32 {
	return [4]float32{float32(i%120)*5.3 + 3, 142 + float32(i/120)*5, 5.5, 5.5}
}

func identicalBox(*rand.Rand, int) [4]float32 { return [4]float32{320, 320, 200, 200} }

func BenchmarkDecode(b *testing.B) {
	common := Options{Conf: 0.25, IoU: 0.7, MaxDet: 300}
	endless := common
	endless.MaxDet = MaxCandidates
	multi := endless
	multi.MultiLabel = true
	eval := Options{Conf: 0.001, IoU: 0.7, MaxDet: 300}
	head := Head{Kind: ClassOnly, Classes: 80}
	for _, c := range []struct {
		name string
		head Head
		t    *tensor.Tensor
		o    Options
	}{
		{"yolov8/200", head, scene(200), common},
		{"yolov8/0", head, scene(0), common},
		{"yolov8/f16-200", head, toHalf(scene(200)), common},
		{"yolov8/conf0.001", head, scene(200), eval},
		{"yolov8/8400-random", head, crowd(80, randomBox), common},
		{"yolov8/8400-random-endless", head, crowd(80, randomBox), endless},
		{"yolov8/8400-oneclass", head, crowd(1, randomBox), common},
		{"yolov8/8400-oneclass-endless", head, crowd(1, randomBox), endless},
		{"yolov8/8400-oneclass-apart", head, crowd(1, smallBox), endless},
		{"yolov8/8400-identical", head, crowd(1, identicalBox), endless},
		{"yolov8/8400-multilabel", head, crowd(80, randomBox), multi},
		{"yolov8/transposed-200", Head{Kind: ClassOnly, Classes: 80, Transposed: true}, transpose(scene(200)), common},
		{"yolov5/f16-blank", Head{Kind: Objectness, Classes: 80}, blank(tensor.Float16, 25200, 85), common},
		{"yolov5/f32-blank", Head{Kind: Objectness, Classes: 80}, blank(tensor.Float32, 25200, 85), common},
	} {
		b.Run(c.name, func(b *testing.B) {
			d, err := New(c.head)
			if err != nil {
				b.Fatal(err)
			}
			outs := []*tensor.Tensor{c.t}
			var dst []Detection
			for range probePictures {
				if dst, err = d.Decode(dst[:0], outs, 0, square640, c.o); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				dst, _ = d.Decode(dst[:0], outs, 0, square640, c.o)
			}
			b.ReportMetric(float64(len(dst)), "kept")
		})
	}
}

func blank(typ tensor.Type, shape ...int) *tensor.Tensor {
	t, _ := tensor.New("output0", typ, append([]int{1}, shape...)...)
	return t
}

func toHalf(t *tensor.Tensor) *tensor.Tensor {
	out, _ := tensor.New(t.Name, tensor.Float16, t.Shape...)
	h := out.Float16s()
	for i, f := range t.Float32s() {
		h[i] = half.FromFloat32(f)
	}
	return out
}

// transpose turns [1,A,B] into [1,B,A].
func transpose(t *tensor.Tensor) *tensor.Tensor {
	a, b := t.Shape[1], t.Shape[2]
	out, _ := tensor.New(t.Name, tensor.Float32, 1, b, a)
	from, to := t.Float32s(), out.Float32s()
	for i := range a {
		for j := range b {
			to[j*a+i] = from[i*b+j]
		}
	}
	return out
}

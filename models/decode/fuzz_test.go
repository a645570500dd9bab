package decode

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/models/prep"
)

func FuzzObjectness(f *testing.F) { fuzzKind(f, Objectness) }
func FuzzClassOnly(f *testing.F)  { fuzzKind(f, ClassOnly) }
func FuzzEndToEnd(f *testing.F)   { fuzzKind(f, EndToEnd) }
func FuzzYOLOX(f *testing.F)      { fuzzKind(f, YOLOX) }
func FuzzGrid(f *testing.F)       { fuzzKind(f, Grid) }
func FuzzRawYOLOv5(f *testing.F)  { fuzzKind(f, RawYOLOv5) }
func FuzzGFL(f *testing.F)        { fuzzKind(f, GFL) }
func FuzzFastestDet(f *testing.F) { fuzzKind(f, FastestDet) }
func FuzzDETR(f *testing.F)       { fuzzKind(f, DETR) }
func FuzzRows(f *testing.F)       { fuzzKind(f, Rows) }
func FuzzFourOutput(f *testing.F) { fuzzKind(f, FourOutput) }

// fuzzKind decodes tensors of the shapes that a random head of the kind declares, filled with the
// fuzzer's bytes, and again with their shapes bent. Neither may panic, and what comes out is fit to publish.
func fuzzKind(f *testing.F, kind Kind) {
	special := []byte{}
	for _, bits := range []uint32{0x7fc00000, 0xffc00000, 0x7f800000, 0xff800000, 0x7f7fffff, 1, 0x3f000000, 0xbf800000, 0x42c80000} {
		special = binary.LittleEndian.AppendUint32(special, bits)
	}
	f.Add([]byte{0, 0, 0x40, 0x3f}, uint64(1), false)
	f.Add(special, uint64(2), false)
	f.Add([]byte{0xff, 0x3b, 0x00, 0x7e, 0x00, 0x7c, 0x01, 0x00, 0x34}, uint64(3), true)
	f.Add(special[:35], uint64(4), true)
	f.Fuzz(func(t *testing.T, data []byte, seed uint64, bent bool) {
		r := rand.New(rand.NewPCG(seed, 0))
		in := 64 * (1 + r.IntN(3))
		trans := prep.Fit(prep.Resize(r.IntN(3)), 1+r.IntN(300), 1+r.IntN(300), in, in)
		head, shapes := randomHead(r, kind, in)
		batch := 1 + r.IntN(3)
		outs := make([]*tensor.Tensor, len(shapes))
		for i, shape := range shapes {
			if shape[len(shape)-1] != 7 || kind != Rows { // the first axis of those is the rows', not the batch's
				shape = append([]int{batch}, shape...)
			}
			if bent {
				shape = bend(r, shape)
			}
			typ := tensor.Float32
			switch {
			case (kind == DETR || kind == FourOutput) && (i == 0 || i == 3):
				typ = []tensor.Type{tensor.Float32, tensor.Float16, tensor.Int32, tensor.Int64}[r.IntN(4)]
			case r.IntN(3) == 0:
				typ = tensor.Float16
			}
			out, err := tensor.New("out", typ, shape...)
			if err != nil {
				t.Skip()
			}
			fill(out.Data, data)
			outs[i] = out
		}
		o := Options{Conf: r.Float32() * r.Float32(), IoU: r.Float32()*1.4 - 0.2, MaxDet: r.IntN(100), Agnostic: r.IntN(2) == 0, MultiLabel: r.IntN(2) == 0}
		if r.IntN(4) == 0 {
			o.Classes = []int{0, 1}
		}
		d, err := New(head)
		if err != nil {
			t.Fatal(err)
		}
		for sample := range batch {
			got, err := d.Decode(nil, outs, sample, trans, o)
			if err != nil && !bent {
				t.Fatalf("%+v: %v", head, err)
			}
			checkFit(t, head, trans, o, got)
		}
	})
}

// randomHead returns a small head of a kind and its outputs' shapes without the batch axis.
func randomHead(r *rand.Rand, kind Kind, in int) (Head, [][]int) {
	c, n := r.IntN(5), r.IntN(40)
	h := Head{Kind: kind, Classes: c, Transposed: r.IntN(2) == 0, NormBoxes: r.IntN(2) == 0, Sigmoid: r.IntN(2) == 0,
		Masks: r.IntN(3), Strides: []int{32, 64}, CentreOffset: 0.5}
	cell := func(s int) int { return in / s * (in / s) }
	grid := func(anchors int) []int {
		w := 1 + r.IntN(5)
		if h.Transposed {
			return []int{3, w, anchors * (5 + c)}
		}
		return []int{anchors * (5 + c), 3, w}
	}
	switch kind {
	case Objectness:
		return h, [][]int{{n, 5 + c + h.Masks}}
	case ClassOnly:
		if h.Transposed {
			return h, [][]int{{n, 4 + max(c, 1) + h.Masks}}
		}
		return h, [][]int{{4 + max(c, 1) + h.Masks, n}}
	case EndToEnd:
		return h, [][]int{{n, 6 + h.Masks}}
	case YOLOX:
		return h, [][]int{{cell(32) + cell(64), 5 + c}}
	case Grid:
		h.Anchors = [][]float32{{1, 2, 0.5, 0.5, 1e30, 3}}
		return h, [][]int{grid(3)}
	case FastestDet:
		return h, [][]int{grid(1)}
	case RawYOLOv5:
		h.Levels, h.Anchors = []int{1, 0}, [][]float32{{8, 16}, {32, 32, 64, 16}}
		if r.IntN(2) == 0 {
			h.Transposed = false
			return h, [][]int{{2, 3, 4, 5 + c}, {1, 4, 4, 5 + c}}
		}
		return h, [][]int{grid(2), grid(1)}
	case GFL:
		h.Scores, h.Boxes, h.RegMax, h.CentreNanoDet = []int{0, 1}, []int{2, 3}, 1+r.IntN(8), r.IntN(2) == 0
		bins := 4 * (h.RegMax + 1)
		if r.IntN(3) == 0 {
			h.Scores, h.Boxes = []int{0, 0}, []int{0, 0}
			return h, [][]int{{cell(32) + cell(64), max(c, 1) + bins}}
		}
		return h, [][]int{{cell(32), max(c, 1)}, {max(c, 1), in / 64, in / 64}, {bins, cell(32)}, {cell(64), bins}}
	case Rows:
		if r.IntN(2) == 0 {
			return h, [][]int{{n, 7}}
		}
		return h, [][]int{{n, 6}}
	}
	h.Labels, h.Boxes, h.Scores, h.Num = 0, []int{1}, []int{2}, 3
	shapes := [][]int{{n}, {n, 4}, {n}, {1}}
	if kind == DETR {
		shapes = shapes[:3]
	}
	return h, shapes
}

// bend makes another shape of one.
func bend(r *rand.Rand, shape []int) []int {
	switch k := r.IntN(len(shape) + 1); r.IntN(5) {
	case 0:
		return append(shape[:k:k], append([]int{r.IntN(4)}, shape[k:]...)...)
	case 1:
		return shape[1:]
	case 2:
		if k < len(shape) {
			shape[k] = r.IntN(100)
		}
	case 3:
		if k < len(shape) {
			shape[k], shape[0] = shape[0], shape[k]
		}
	}
	return shape
}

// fill repeats data over dst.
func fill(dst, data []byte) {
	for len(data) > 0 && len(dst) > 0 {
		dst = dst[copy(dst, data):]
	}
}

// checkFit says what makes detections unfit to publish.
func checkFit(t *testing.T, h Head, trans prep.Transform, o Options, got []Detection) {
	t.Helper()
	if o.MaxDet > 0 && len(got) > o.MaxDet {
		t.Fatalf("%d detections, at most %d asked for", len(got), o.MaxDet)
	}
	last := float32(1)
	for _, g := range got {
		b := g.Box
		if !(0 <= b[0] && b[0] < b[2] && b[2] <= float32(trans.SrcW) && 0 <= b[1] && b[1] < b[3] && b[3] <= float32(trans.SrcH)) {
			t.Fatalf("box %v in a picture of %dx%d", b, trans.SrcW, trans.SrcH)
		}
		if !(g.Score > 0 && g.Score <= last && g.Score >= min(o.Conf, 1)) {
			t.Fatalf("score %v after %v over %v", g.Score, last, o.Conf)
		}
		last = g.Score
		if g.ClassID < 0 || h.Classes > 0 && g.ClassID >= h.Classes || math.MaxInt32 < g.ClassID {
			t.Fatalf("class %d of %d", g.ClassID, h.Classes)
		}
		if len(o.Classes) > 0 && g.ClassID != 0 && g.ClassID != 1 {
			t.Fatalf("class %d was not asked for", g.ClassID)
		}
	}
}

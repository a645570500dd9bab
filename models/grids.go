package models

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/eyas-edge/eyas/models/decode"
)

// gridStride returns the stride of a grid of h x w cells, 0 if the input's sides give none.
func (l *loader) gridStride(h, w int) int {
	for s := 4; s <= 128; s *= 2 {
		if h > 0 && w > 0 && (l.H+s-1)/s == h && (l.W+s-1)/s == w {
			return s
		}
	}
	return 0
}

// gridOf finds the grid of [batch,channels,h,w] or [batch,h,w,channels].
func (l *loader) gridOf(o output) (stride, channels int, last bool) {
	if s := l.gridStride(o.shape[2], o.shape[3]); s > 0 {
		return s, o.shape[1], false
	}
	return l.gridStride(o.shape[1], o.shape[2]), o.shape[3], true
}

// gridReadings are those of one grid: FastestDet, or YOLOv2 with anchors that somebody gives.
func (l *loader) gridReadings(o output) []reading {
	stride, channels, last := l.gridOf(o)
	if stride == 0 {
		return nil
	}
	var out []reading
	if ops := l.graph.sources(o.name); stride == 16 && channels > 5 {
		r := reading{families: []string{"fastestdet"}, classes: channels - 5, doubtful: true,
			head: decode.Head{Kind: decode.FastestDet, Output: o.index, Transposed: last}}
		if ops["Sigmoid"] && ops["Softmax"] {
			r.evidence += byGraph
		}
		out = append(out, r)
	}
	if a := flatPairs(l.side.Anchors); len(a) > 0 && channels%(len(a)/2) == 0 && channels/(len(a)/2) >= 5 {
		out = append(out, reading{families: []string{"yolov2"}, classes: channels/(len(a)/2) - 5, evidence: byKind,
			head: decode.Head{Kind: decode.Grid, Output: o.index, Transposed: last, Anchors: [][]float32{a}}})
	}
	return out
}

// gridWithoutAnchors says whether the one output may be a YOLOv2-style grid that lacks only its anchors.
func (l *loader) gridWithoutAnchors() bool {
	if len(l.outputs) != 1 || len(l.outputs[0].shape) != 4 || l.side.Anchors != nil {
		return false
	}
	stride, channels, _ := l.gridOf(l.outputs[0])
	return stride > 0 && channels >= 5
}

func flatPairs(anchors [][]float32) []float32 { return slices.Concat(anchors...) }

// Anchors of COCO models, in pixels of the input, w,h,w,h,w,h a level.
var (
	anchorsV5   = [][]float32{{10, 13, 16, 30, 33, 23}, {30, 61, 62, 45, 59, 119}, {116, 90, 156, 198, 373, 326}}
	anchorsV5P6 = [][]float32{{19, 27, 44, 40, 38, 94}, {96, 68, 86, 152, 180, 137}, {140, 301, 303, 264, 238, 542},
		{436, 615, 739, 380, 925, 792}}
	anchorsV7 = [][]float32{{12, 16, 19, 36, 40, 28}, {36, 75, 76, 55, 72, 146}, {142, 110, 192, 243, 459, 401}}
)

// rawReadings are those of YOLOv5 heads without their decoder: an output a level.
func (l *loader) rawReadings() []reading {
	if len(l.outputs) < 3 || len(l.outputs) > 4 {
		return nil
	}
	type grid struct{ output, stride int }
	var grids []grid
	fields, packed, last := -1, false, false
	for _, o := range l.outputs {
		var f, s int
		switch len(o.shape) {
		case 5: // [batch,anchors,h,w,fields]
			f, s = o.shape[4], l.gridStride(o.shape[2], o.shape[3])
			if o.shape[1] != 3 {
				return nil
			}
		case 4:
			var channels int
			s, channels, last = l.gridOf(o)
			f, packed = channels/3, true
			if channels%3 != 0 {
				return nil
			}
		}
		if s == 0 || f < 6 || fields >= 0 && f != fields {
			return nil
		}
		fields = f
		grids = append(grids, grid{o.index, s})
	}
	slices.SortStableFunc(grids, func(a, b grid) int { return cmp.Compare(a.stride, b.stride) })
	h := decode.Head{Kind: decode.RawYOLOv5, Transposed: last, Sigmoid: true}
	for _, g := range grids {
		h.Levels, h.Strides = append(h.Levels, g.output), append(h.Strides, g.stride)
	}
	r := reading{families: anchorBased[:2], head: h, classes: fields - 5, doubtful: packed}
	if r.head.Anchors = l.rawAnchors(h.Strides); r.head.Anchors == nil {
		return nil
	}
	if l.side.Anchors == nil {
		r.warning = fmt.Sprintf("raw heads do not say their anchors: YOLOv5's for COCO are used; say 'anchors' in %s, or --family yolov7, if boxes do not fit",
			l.Name+".yaml")
	}
	return []reading{r}
}

// rawAnchors returns the anchors for the levels of raw heads, nil if none are known.
func (l *loader) rawAnchors(strides []int) [][]float32 {
	switch {
	case l.side.Anchors != nil:
		if len(l.side.Anchors) == len(strides) {
			return l.side.Anchors
		}
	case slices.Equal(strides, strideSets[0]) && l.fam != nil && l.fam.name == "yolov7":
		return anchorsV7
	case slices.Equal(strides, strideSets[0]):
		return anchorsV5
	case slices.Equal(strides, strideSets[1]):
		return anchorsV5P6
	}
	return nil
}

// gflReadings are those of NanoDet and PicoDet: for each level one output of class scores [batch,N,C] and one
// of distance bins [batch,N,4*(R+1)].
func (l *loader) gflReadings() []reading {
	levels := len(l.outputs) / 2
	if levels < 3 || levels > 5 || len(l.outputs)%2 != 0 {
		return nil
	}
	byStride := map[int][]output{}
	for _, o := range l.outputs {
		s := 0
		if len(o.shape) == 3 {
			s = l.strideOf(o.shape[1])
		}
		if s == 0 {
			return nil
		}
		byStride[s] = append(byStride[s], o)
	}
	h := decode.Head{Kind: decode.GFL}
	classes := -1
	for s := 4; s <= 128; s *= 2 {
		pair := byStride[s]
		if pair == nil {
			continue
		}
		if len(pair) != 2 || pair[1].shape[2] < 8 || pair[1].shape[2]%4 != 0 {
			return nil
		}
		scores, bins := pair[0], pair[1] // scores come first in every export known
		if classes >= 0 && (scores.shape[2] != classes || bins.shape[2] != 4*(h.RegMax+1)) {
			return nil
		}
		classes, h.RegMax = scores.shape[2], bins.shape[2]/4-1
		h.Strides, h.Scores, h.Boxes = append(h.Strides, s), append(h.Scores, scores.index), append(h.Boxes, bins.index)
		h.Sigmoid = h.Sigmoid || l.graph.logits(scores.name)
	}
	if classes < 1 {
		return nil
	}
	nano, pico := reading{families: []string{"nanodet"}, head: h, classes: classes}, reading{families: []string{"picodet"}, head: h, classes: classes}
	nano.head.CentreNanoDet, pico.head.CentreOffset = true, 0.5
	if levels == 3 {
		nano.evidence += byKind
	} else {
		pico.evidence += byKind
	}
	return []reading{nano, pico}
}

// strideOf returns the stride whose grid has n cells, 0 if there is none.
func (l *loader) strideOf(n int) int {
	for s := 4; s <= 128; s *= 2 {
		if n == cells(l.H, l.W, []int{s}) {
			return s
		}
	}
	return 0
}

// nanodetPlus reads scores and distance bins of all levels in one output [batch,N,C+32]; cell centres are the
// cells' corners.
func (l *loader) nanodetPlus(o output, k int) reading {
	h := decode.Head{Kind: decode.GFL, RegMax: 7, Strides: strideSets[1], Sigmoid: l.graph.logits(o.name)}
	for range h.Strides {
		h.Scores, h.Boxes = append(h.Scores, o.index), append(h.Boxes, o.index)
	}
	r := reading{families: []string{"nanodet-plus"}, head: h, classes: k - 32}
	if ops := l.graph.sources(o.name); ops["Conv"] && ops["Sigmoid"] && !l.graph.has("Exp") {
		r.evidence += byGraph
	}
	return r
}

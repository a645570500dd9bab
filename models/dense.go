package models

import (
	"slices"

	"github.com/eyas-edge/eyas/models/decode"
)

// strideSets are the levels that detectors of these families have.
var strideSets = [][]int{{8, 16, 32}, {8, 16, 32, 64}, {16, 32}, {4, 8, 16, 32}}

// cells counts the cells of all levels of an input.
func cells(h, w int, strides []int) int {
	n := 0
	for _, s := range strides {
		n += ((h + s - 1) / s) * ((w + s - 1) / s)
	}
	return n
}

// levelsOf returns the strides whose cells, times anchors a cell, are n candidates; nil if there are none.
func levelsOf(n, anchors, h, w int) []int {
	for _, s := range strideSets {
		if n == anchors*cells(h, w, s) {
			return s
		}
	}
	return nil
}

// cocoKeypoints are the values that a pose model with COCO's keypoints has after its boxes and
// objectness or score: 17 x (x, y, visibility).
const cocoKeypoints = 17 * 3

// poseModel is how such a model is called in errors.
const poseModel = "a pose model (17 keypoints)"

// readings lists every way to understand the outputs.
func (l *loader) readings() []reading {
	if len(l.outputs) == 1 && len(l.outputs[0].shape) == 2 {
		return l.rowReadings(l.outputs[0])
	}
	for _, find := range []func() []reading{l.fourReadings, l.detrReadings, l.gflReadings, l.rawReadings} {
		if r := find(); r != nil {
			return r
		}
	}
	if len(l.outputs) == 1 && len(l.outputs[0].shape) == 4 {
		return l.gridReadings(l.outputs[0])
	}
	return l.denseReadings()
}

// denseReadings are those of one list of candidates, [batch,N,K] or [batch,K,N], beside which raw heads (old
// YOLOv5 exports) or mask prototypes (segmentation) may stand.
func (l *loader) denseReadings() []reading {
	main, masks := -1, 0
	for i, o := range l.outputs {
		switch {
		case len(o.shape) == 3 && main < 0:
			main = i
		case len(o.shape) == 5:
		case len(o.shape) == 4 && masks == 0 && o.shape[1] > 0 && o.shape[1] <= 64:
			masks = o.shape[1]
		default:
			return nil
		}
	}
	if main < 0 {
		return nil
	}
	o := l.outputs[main]
	return append(l.candidatesFirst(o, o.shape[1], o.shape[2]-masks, masks), l.valuesFirst(o, o.shape[1]-masks, o.shape[2], masks)...)
}

// candidatesFirst reads [batch,n,k].
func (l *loader) candidatesFirst(o output, n, k, masks int) []reading {
	if k < 5 { // or not known
		return nil
	}
	var out []reading
	add := func(r reading) {
		r.head.Output = o.index
		if r.classes > 0 || r.head.Kind == decode.EndToEnd || r.foreign != "" {
			out = append(out, r)
		}
	}
	perCell, perAnchor := levelsOf(n, 1, l.H, l.W), levelsOf(n, 3, l.H, l.W)
	unsure := n < 0 // the graph does not say how many candidates
	if perAnchor != nil || unsure {
		add(reading{families: anchorBased, head: decode.Head{Kind: decode.Objectness, Masks: masks}, classes: k - 5, doubtful: unsure})
		if k == 5+1+cocoKeypoints {
			add(reading{foreign: poseModel, classes: 1})
		}
	}
	if perCell != nil || unsure {
		for _, r := range l.cellReadings(o, n, k, masks) {
			r.doubtful = r.doubtful || unsure
			add(r)
		}
	}
	if perCell == nil && perAnchor == nil && !unsure {
		for _, r := range l.listReadings(o, n, k, masks) {
			add(r)
		}
	}
	return out
}

// cellReadings are for one candidate a cell, [batch,n,k].
func (l *loader) cellReadings(o output, n, k, masks int) []reading {
	box := reading{families: anchorFree, head: decode.Head{Kind: decode.ClassOnly, Transposed: true, Masks: masks}, classes: k - 4}
	if l.graph.has("Softmax") { // the distance bins of YOLOv8 and later
		box.evidence += byGraph
	}
	out := []reading{box}
	switch {
	case l.graph.undecoded(o.name):
		out = append(out, l.yoloxReading(k, n, byGraph))
	case l.graph.has("Exp"): // YOLOX with its decoder inside
		out = append(out, reading{families: []string{"yolox", "yolox-0.1", "yolov6"}, head: decode.Head{Kind: decode.Objectness}, classes: k - 5,
			evidence: byGraph})
	case l.graph.sources(o.name)["Mul"]: // boxes times strides
		out = append(out, reading{families: []string{"yolov6"}, head: decode.Head{Kind: decode.Objectness}, classes: k - 5, evidence: byGraph})
	default:
		out = append(out, l.yoloxReading(k, n, 0))
	}
	if slices.Equal(levelsOf(n, 1, l.H, l.W), strideSets[1]) {
		out = append(out, l.nanodetPlus(o, k))
	}
	return out
}

func (l *loader) yoloxReading(k, n, evidence int) reading {
	strides := levelsOf(n, 1, l.H, l.W)
	if strides == nil {
		strides = strideSets[0]
	}
	return reading{families: []string{"yolox", "yolox-0.1"}, head: decode.Head{Kind: decode.YOLOX, Strides: strides}, classes: k - 5, evidence: evidence}
}

// listReadings are for a list [batch,n,k] whose length no grid gives: final answers, and DETR's queries.
func (l *loader) listReadings(o output, n, k, masks int) []reading {
	final := reading{families: []string{"yolov10", "yolo26", "yolov8", "yolov9", "yolo11", "yolo12", "yolov5", "yolov7", "yolox", "rtdetr"},
		head: decode.Head{Kind: decode.EndToEnd, Masks: masks}, classes: -1}
	if c := l.graph.classDivisor(o.name); c > 0 {
		final.classes = c
	}
	if l.meta.end2end {
		final.evidence += byKind
	}
	queries := reading{families: []string{"rtdetr", "detr"}, head: decode.Head{Kind: decode.ClassOnly, Transposed: true, NormBoxes: true},
		classes: k - 4, doubtful: true}
	switch {
	case k == 6:
		return []reading{final}
	case k == 6+cocoKeypoints:
		return []reading{{foreign: poseModel, classes: 1}, queries}
	case l.meta.end2end:
		return nil
	}
	boxes := reading{families: anchorFree, head: decode.Head{Kind: decode.ClassOnly, Transposed: true, Masks: masks}, classes: k - 4, doubtful: true}
	objects := reading{families: anchorBased, head: decode.Head{Kind: decode.Objectness, Masks: masks}, classes: k - 5, doubtful: true}
	if n <= k {
		return nil
	}
	return []reading{queries, boxes, objects}
}

// valuesFirst reads [batch,k,n].
func (l *loader) valuesFirst(o output, k, n, masks int) []reading {
	r := reading{families: anchorFree, head: decode.Head{Kind: decode.ClassOnly, Masks: masks, Output: o.index}, classes: k - 4}
	if k < 5 {
		return nil
	}
	if levelsOf(n, 1, l.H, l.W) == nil {
		if n >= 0 && n <= k || levelsOf(n, 3, l.H, l.W) != nil { // three anchors a cell mean objectness, which none puts in this order
			return nil
		}
		r.doubtful = true
	}
	out := []reading{r}
	if k == 4+1+cocoKeypoints {
		out = append(out, reading{foreign: poseModel, classes: 1})
	}
	return out
}

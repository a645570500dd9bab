package models

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eyas-edge/eyas/models/decode"
	"github.com/eyas-edge/eyas/models/onnx"
)

// rowReadings are those of one output with a row for each detection of the whole batch: [num,6] or [num,7].
func (l *loader) rowReadings(o output) []reading {
	rows, k := o.shape[0], o.shape[1]
	nms := l.graph.find("NonMaxSuppression")
	if k != 6 && k != 7 || rows >= 0 && nms == nil && rows == max(l.Input.Batch, 1) {
		return nil
	}
	r := reading{families: slices.Clone(oneStage), head: decode.Head{Kind: decode.Rows, Output: o.index}, classes: -1}
	if nms != nil && len(nms.Inputs) > 1 {
		if s := l.shapes[nms.Inputs[1]]; len(s) == 3 && s[1] > 1 { // [batch,C,N]; one row may be the best of several classes
			r.classes = s[1]
		}
	}
	r.families, r.warning = l.origin(r.families, k == 7)
	return []reading{r}
}

// origin orders families for an answer that no longer shows where it came from. Only the recipe
// depends on it, and only the graph in front of it may tell.
func (l *loader) origin(all []string, sevenColumns bool) ([]string, string) {
	first, warning := "yolov8", ""
	switch {
	case l.meta.family != "":
		first = l.meta.family
	case sevenColumns:
		first = "yolov7"
	case l.focus() && l.graph.has("Exp"):
		first = "yolox"
	case l.graph.has("Pow"): // (2 * sigmoid)^2: the size of YOLOv5 and v7
		first = "yolov5"
	case l.graph.has("Softmax"): // distance bins
	default:
		warning = fmt.Sprintf("the outputs do not say which family this is: it is fed as YOLOv8 is; say --family, or the recipe in %s, if nothing is found",
			l.Name+".yaml")
	}
	rest := slices.DeleteFunc(slices.Clone(all), func(f string) bool { return f == first })
	return append([]string{first}, rest...), warning
}

// focus says whether the picture is first cut into every second row and column, as YOLOX and old YOLOv5 do.
func (l *loader) focus() bool {
	value := l.Input.Name
	for range 6 { // a Cast and a Transpose may stand in front
		i := slices.IndexFunc(l.graph.Nodes, func(n onnx.Node) bool { return slices.Contains(n.Inputs, value) })
		if i < 0 || len(l.graph.Nodes[i].Outputs) == 0 {
			return false
		}
		if l.graph.Nodes[i].Op == "Slice" {
			return true
		}
		value = l.graph.Nodes[i].Outputs[0]
	}
	return false
}

// fourReadings are those of num_dets, boxes, scores and classes, as TensorRT's NMS plug-ins name them.
func (l *loader) fourReadings() []reading {
	if len(l.outputs) != 4 {
		return nil
	}
	h := decode.Head{Kind: decode.FourOutput}
	var vectors []output // [batch,K]: scores and classes
	num, boxes := -1, -1
	for _, o := range l.outputs {
		k := len(o.shape)
		switch {
		case k == 3 && o.shape[2] == 4 && boxes < 0:
			boxes = o.index
		case o.integer() && num < 0 && (k == 1 || k == 2 && o.shape[1] == 1):
			num = o.index
		case k == 2:
			vectors = append(vectors, o)
		}
	}
	if num < 0 || boxes < 0 || len(vectors) != 2 {
		return nil
	}
	scores, classes := vectors[0], vectors[1] // the usual order
	if scores.integer() || named(scores, "class", "label") || named(classes, "score") {
		scores, classes = classes, scores
	}
	if scores.integer() {
		return nil
	}
	h.Num, h.Boxes, h.Scores, h.Labels = num, []int{boxes}, []int{scores.index}, classes.index
	r := reading{head: h, classes: -1}
	r.families, r.warning = l.origin(oneStage, false)
	return []reading{r}
}

func named(o output, parts ...string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(strings.ToLower(o.name), p) })
}

// detrReadings are those of labels, boxes and scores, [batch,K], [batch,K,4] and [batch,K], with or without the batch.
func (l *loader) detrReadings() []reading {
	if len(l.outputs) != 3 {
		return nil
	}
	labels, boxes, scores := -1, -1, -1
	for _, o := range l.outputs {
		k := len(o.shape)
		switch {
		case o.integer() && labels < 0:
			labels = o.index
		case named(o, "box"), k == 3 && o.shape[2] == 4:
			boxes = o.index
		case k < 3 && scores < 0:
			scores = o.index
		}
	}
	if labels < 0 || boxes < 0 || scores < 0 {
		return nil
	}
	r := reading{families: []string{"detr", "rtdetr"}, classes: l.graph.classDivisor(l.outputs[labels].name),
		head:     decode.Head{Kind: decode.DETR, Labels: labels, Boxes: []int{boxes}, Scores: []int{scores}, NormBoxes: l.SizeInput < 0},
		doubtful: l.SizeInput < 0} // without the sizes boxes may be anything
	return []reading{r}
}

package models

import "fmt"

// foreignTasks are Ultralytics' tasks that give no boxes, or more than boxes.
var foreignTasks = map[string]string{
	"pose":     "a pose model (task=pose)",
	"obb":      "an oriented-box model (task=obb)",
	"classify": "a classification model (task=classify)",
	"semantic": "a semantic segmentation model (task=semantic)",
}

// refuseTask names models that are no detectors for what they are.
func (l *loader) refuseTask() error {
	if node, found := l.ONNX.ForeignEngine(); found {
		return fmt.Errorf("node %s (EPContext) carries another runtime's compiled engine, which is foreign code and fits one device: "+
			"use the ONNX file that it was made from", printable(node))
	}
	if what, ok := foreignTasks[l.meta.task]; ok {
		return refusal(what)
	}
	if l.meta.keypoint != "" {
		return refusal(fmt.Sprintf("a pose model (kpt_shape %s)", printable(l.meta.keypoint)))
	}
	if l.graph.has("Cos") && l.graph.has("Sin") && l.SizeInput < 0 && len(l.graph.Outputs) == 1 && l.meta.task == "" && l.rotated() {
		return refusal("an oriented-box model (boxes with an angle)")
	}
	return nil
}

// rotated says whether the boxes of the one output are turned by an angle: its values come from a
// cosine within a few operators.
func (l *loader) rotated() bool {
	seen := map[string]bool{}
	for queue := []string{l.graph.Outputs[0].Name}; len(queue) > 0 && len(seen) < 40; queue = queue[1:] {
		n := l.graph.producer[queue[0]]
		if n == nil || seen[queue[0]] {
			continue
		}
		if n.Op == "Cos" {
			return true
		}
		seen[queue[0]] = true
		queue = append(queue, n.Inputs...)
	}
	return false
}

// classifier says whether an output is one row of scores a frame.
func (l *loader) classifier(o output) bool {
	return len(o.shape) == 2 && o.shape[0] == max(l.Input.Batch, 1) && o.shape[1] > 1
}

// refusal is the error about a model that is no detector.
func refusal(what string) error {
	return fmt.Errorf("this is %s and Eyas runs detectors: export one, for example with `yolo export model=yolo11n.pt format=onnx`", what)
}

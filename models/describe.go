package models

import (
	"cmp"
	"maps"
	"slices"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/models/decode"
	"github.com/eyas-edge/eyas/models/onnx"
)

// Description is what `eyas inspect` says of a model; its JSON form is that of `--json`.
type Description struct {
	Model  string `json:"model"`
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"` // of the file, external data not included
	Family string `json:"family"`
	Title  string `json:"title"`
	Task   string `json:"task"`

	Inputs  []Port   `json:"inputs"`
	Outputs []Port   `json:"outputs"`
	Classes int      `json:"classes"` // 0 if unknown
	Labels  []string `json:"labels"`  // empty if unknown
	Head    HeadFact `json:"head"`
	Feed    Feed     `json:"feed"`

	IR              int64            `json:"ir_version"`
	Opsets          map[string]int64 `json:"opsets"` // by domain; "" is ai.onnx
	Producer        string           `json:"producer"`
	Operators       map[string]int   `json:"operators"` // nodes by type
	Nodes           int              `json:"nodes"`
	Parameters      int64            `json:"parameters"`
	Weights         []WeightFact     `json:"weights"`
	WeightBytes     int64            `json:"weight_bytes"`
	Float32Bytes    int64            `json:"weight_bytes_float32"` // if every weight were float32
	MultiplyAdds    int64            `json:"multiply_adds"`        // of one frame at the feed's size
	MultiplyAddsAll bool             `json:"multiply_adds_complete"`

	Warnings []string `json:"warnings"`
}

// Port is an input or output.
type Port struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	Layout string   `json:"layout,omitempty"` // nchw or nhwc, of the picture
	Shape  []int    `json:"shape"`            // -1 for a dynamic axis
	Axes   []string `json:"axes,omitempty"`   // with dynamic axes: a name or, for a fixed one, its size, for each
}

// HeadFact says how the outputs are read.
type HeadFact struct {
	Kind string `json:"kind"`
	NMS  bool   `json:"nms"` // suppression is Eyas's; else the answer is final
	// IoU is the default overlap for suppression.
	IoU  float32 `json:"iou,omitempty"`
	Conf float32 `json:"conf,omitempty"` // the score that the model's makers advise
}

// Feed is what the model is fed.
type Feed struct {
	Height       int        `json:"height"`
	Width        int        `json:"width"`
	DynamicSize  bool       `json:"dynamic_size"`
	FalseDynamic bool       `json:"false_dynamic,omitempty"`
	Stride       int        `json:"stride"`
	Batch        int        `json:"batch"` // 0: any
	MixesBatch   bool       `json:"mixes_batch"`
	Resize       string     `json:"resize"`
	Pad          uint8      `json:"pad"`
	Channels     string     `json:"channels"` // rgb, bgr or gray
	Mean         [3]float32 `json:"mean"`     // levels 0..255
	Std          [3]float32 `json:"std"`
}

// WeightFact is the bytes of the weights of one element type.
type WeightFact struct {
	Type  string `json:"type"`
	Bytes int64  `json:"bytes"`
}

// Describe returns the facts about the model.
func (m *Model) Describe() Description {
	shapes, _ := m.ONNX.Infer(m.InputShapes(m.Batch(1), m.H, m.W)) // without them the multiply-adds are marked incomplete
	stats := m.ONNX.Stats(shapes)
	d := Description{
		Model: m.Name, Path: m.Path, Bytes: m.ONNX.Size, Family: m.Family, Title: m.Title, Task: m.Task,
		Classes: m.NumClasses, Labels: append([]string{}, m.Labels...),
		Head: HeadFact{Kind: m.Head.Kind.String(), NMS: !m.Head.NMSFree(), IoU: m.IoU, Conf: m.Conf},
		IR:   m.ONNX.IRVersion, Opsets: m.ONNX.Opsets, Producer: printable(m.ONNX.Producer),
		Operators: stats.Ops, Nodes: len(m.ONNX.Graph.Nodes), Parameters: stats.Params, Float32Bytes: stats.Float32Bytes,
		MultiplyAdds: stats.MACs / int64(m.Batch(1)), MultiplyAddsAll: stats.MACsComplete,
		Warnings: append([]string{}, m.Warnings...), Weights: []WeightFact{},
		Feed: Feed{Height: m.H, Width: m.W, DynamicSize: m.DynamicSize, FalseDynamic: m.FalseDynamic, Stride: m.Stride, Batch: m.Input.Batch,
			MixesBatch: m.MixesBatch, Resize: m.Recipe.Resize.String(), Pad: m.Recipe.Pad, Channels: m.channels(), Mean: m.Recipe.Mean, Std: m.Recipe.Std},
	}
	d.Inputs, d.Outputs = ports(m.ONNX.Graph.Inputs), ports(m.ONNX.Graph.Outputs)
	d.Inputs[m.Input.Index].Layout = "nchw"
	if m.Input.NHWC {
		d.Inputs[m.Input.Index].Layout = "nhwc"
	}
	for t, n := range stats.WeightBytes {
		d.Weights = append(d.Weights, WeightFact{t.String(), n})
		d.WeightBytes += n
	}
	slices.SortFunc(d.Weights, func(a, b WeightFact) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Type, b.Type))
	})
	return d
}

func (m *Model) channels() string {
	switch {
	case m.Recipe.Gray:
		return "gray"
	case m.Recipe.BGR:
		return "bgr"
	}
	return "rgb"
}

func ports(list []onnx.ValueInfo) []Port {
	out := make([]Port, len(list))
	for i, v := range list {
		out[i] = Port{Name: printable(v.Name), Type: v.Type.String(), Shape: v.Sizes()}
		if v.Dynamic() {
			out[i].Axes = dims(v)
		}
	}
	return out
}

// headText says in words what the outputs hold.
func (m *Model) headText() string {
	switch m.Head.Kind {
	case decode.Objectness:
		return "boxes, objectness and class scores"
	case decode.ClassOnly:
		return "boxes and class scores"
	case decode.YOLOX:
		return "boxes on grids, objectness and class scores"
	case decode.Grid:
		return "raw boxes on one grid with anchors"
	case decode.RawYOLOv5:
		return "raw boxes on grids with anchors"
	case decode.GFL:
		return "class scores and distance bins on grids"
	case decode.FastestDet:
		return "objectness, raw boxes and class scores on one grid"
	}
	return "final detections"
}

// sortedOps lists operator types, the commonest first.
func sortedOps(ops map[string]int) []string {
	return slices.SortedFunc(maps.Keys(ops), func(a, b string) int { return cmp.Or(cmp.Compare(ops[b], ops[a]), cmp.Compare(a, b)) })
}

// quantised says whether the weights are mostly of a type narrower than float32.
func quantised(w []WeightFact) bool { return len(w) > 0 && w[0].Type != tensor.Float32.String() }

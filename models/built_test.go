package models

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/models/decode"
	"github.com/eyas-edge/eyas/models/onnx"
)

// port declares an input or output of a built model.
type port struct {
	name string
	typ  tensor.Type
	dims []int
}

func f32(name string, dims ...int) port { return port{name, tensor.Float32, dims} }
func i32(name string, dims ...int) port { return port{name, tensor.Int32, dims} }
func i64(name string, dims ...int) port { return port{name, tensor.Int64, dims} }

// picture is the usual input of 640 x 640.
var picture = f32("images", 1, 3, 640, 640)

// build makes a model whose one node, of a domain that nobody knows, gives all outputs: nothing but the
// declared shapes speaks.
func build(t testing.TB, meta map[string]string, inputs, outputs []port) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("test", 17)
	b.Domain("test", 1)
	n := onnx.Node{Op: "Head", Domain: "test"}
	for _, p := range inputs {
		n.Inputs = append(n.Inputs, b.Input(p.name, p.typ, p.dims...))
	}
	for _, p := range outputs {
		n.Outputs = append(n.Outputs, p.name)
		b.Output(p.name, p.typ, p.dims...)
	}
	b.Add(n)
	for k, v := range meta {
		b.Meta(k, v)
	}
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// names is Ultralytics' metadata for n classes.
func names(n int) map[string]string {
	s := make([]string, n)
	for i := range s {
		s[i] = "'c'"
	}
	return map[string]string{"names": "[" + strings.Join(s, ",") + "]"}
}

func meta(kv ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = kv[i+1]
	}
	return m
}

const faceSidecar = `family: yolov2
resize: letterbox-end
pad: 0
mean: [117.001, 114.697, 97.404]
std: 255
anchors: [[1.6, 2.1], [6, 7], [2.9, 3.5], [4.3, 5.2], [9, 10.7]]
names: [face]
conf: 0.4
`

// Heads of which there is no asset.
func TestBuiltHeads(t *testing.T) {
	gfl := func(k int) decode.Head {
		return decode.Head{Kind: decode.GFL, Classes: k, RegMax: 7, Scores: []int{0, 0, 0, 0}, Boxes: []int{0, 0, 0, 0}, Strides: []int{8, 16, 32, 64}}
	}
	raw := decode.Head{Kind: decode.RawYOLOv5, Classes: 80, Levels: []int{0, 1, 2}, Strides: []int{8, 16, 32}, Anchors: anchorsV5, Sigmoid: true}
	change := func(h decode.Head, f func(*decode.Head)) decode.Head { f(&h); return h }
	list := func(p ...port) []port { return p }
	for _, c := range []struct {
		name    string
		meta    map[string]string
		opt     Options
		in      port
		out     []port
		family  string
		head    decode.Head
		warning string
	}{
		{name: "yolov10", meta: names(80), out: list(f32("output0", 1, 300, 6)), family: "yolov10", head: decode.Head{Kind: decode.EndToEnd}},
		{name: "yolov8 with NMS inside", meta: meta("description", "Ultralytics YOLOv8n model", "args", "{'nms': True}"),
			out: list(f32("output0", 1, 300, 6)), family: "yolov8", head: decode.Head{Kind: decode.EndToEnd}, warning: "class names"},
		{name: "two classes", out: list(f32("o", 1, 6, 8400)), family: "yolov8", head: decode.Head{Kind: decode.ClassOnly, Classes: 2}, warning: "class names"},
		{name: "yolov8 transposed", out: list(f32("o", 1, 8400, 84)), family: "yolov8",
			head: decode.Head{Kind: decode.ClassOnly, Classes: 80, Transposed: true}},
		{name: "16 classes by their names", meta: names(16), out: list(f32("o", 1, 8400, 20)), family: "yolov8",
			head: decode.Head{Kind: decode.ClassOnly, Classes: 16, Transposed: true}},
		{name: "15 classes by their names", meta: names(15), out: list(f32("o", 1, 8400, 20)), family: "yolox",
			head: decode.Head{Kind: decode.YOLOX, Classes: 15, Strides: []int{8, 16, 32}}},
		{name: "final boxes and masks", meta: names(80), out: list(f32("o", 1, 300, 38), f32("p", 1, 32, 160, 160)), family: "yolov10",
			head: decode.Head{Kind: decode.EndToEnd, Masks: 32}},
		{name: "yolox by its class count", out: list(f32("o", 1, 8400, 85)), family: "yolox", head: cocoYOLOX},
		{name: "yolox of the 0.1 era", opt: Options{Family: "yolox-0.1"}, out: list(f32("o", 1, 8400, 85)), family: "yolox-0.1", head: cocoYOLOX},
		{name: "yolov5 with one class", out: list(f32("o", 1, 25200, 6)), family: "yolov5", head: decode.Head{Kind: decode.Objectness, Classes: 1},
			warning: "class names"},
		{name: "yolov7 by name", opt: Options{Family: "YOLOv7"}, out: list(f32("o", 1, 25200, 85)), family: "yolov7", head: cocoObjects},
		{name: "yolov5 with its raw heads beside", out: list(f32("output", 1, 25200, 85), f32("a", 1, 3, 80, 80, 85), f32("b", 1, 3, 40, 40, 85),
			f32("c", 1, 3, 20, 20, 85)), family: "yolov5", head: cocoObjects},
		{name: "yolov5 segmentation", meta: names(80), out: list(f32("output0", 1, 25200, 117), f32("output1", 1, 32, 160, 160)), family: "yolov5",
			head: decode.Head{Kind: decode.Objectness, Classes: 80, Masks: 32}},
		{name: "P6", in: f32("images", 1, 3, 1280, 1280), meta: names(3), out: list(f32("o", 1, 102000, 8)), family: "yolov5",
			head: decode.Head{Kind: decode.Objectness, Classes: 3}},
		{name: "raw yolov5", out: list(f32("a", 1, 3, 80, 80, 85), f32("b", 1, 3, 40, 40, 85), f32("c", 1, 3, 20, 20, 85)), family: "yolov5",
			head: raw, warning: "anchors"},
		{name: "raw yolov5, planes, deepest level first", out: list(f32("a", 1, 255, 20, 20), f32("b", 1, 255, 40, 40), f32("c", 1, 255, 80, 80)),
			family: "yolov5", head: change(raw, func(h *decode.Head) { h.Levels = []int{2, 1, 0} }), warning: "anchors"},
		{name: "raw yolov7", opt: Options{Family: "yolov7"}, out: list(f32("a", 1, 80, 80, 255), f32("b", 1, 40, 40, 255), f32("c", 1, 20, 20, 255)),
			family: "yolov7", head: change(raw, func(h *decode.Head) { h.Transposed, h.Anchors = true, anchorsV7 })},
		{name: "nanodet-plus", in: f32("data", 1, 3, 320, 320), out: list(f32("output", 1, 2125, 112)), family: "nanodet-plus", head: gfl(80)},
		{name: "four outputs", out: list(i32("num_dets", 1, 1), f32("boxes", 1, 100, 4), f32("scores", 1, 100), i32("classes", 1, 100)),
			family: "yolov8", warning: "do not say which family",
			head: decode.Head{Kind: decode.FourOutput, Num: 0, Boxes: []int{1}, Scores: []int{2}, Labels: 3}},
		{name: "four outputs, float classes first", opt: Options{Family: "yolov7"},
			out: list(f32("det_classes", 1, 100), f32("det_boxes", 1, 100, 4), f32("det_scores", 1, 100), i32("num", 1, 1)), family: "yolov7",
			head:    decode.Head{Kind: decode.FourOutput, Num: 3, Boxes: []int{1}, Scores: []int{2}, Labels: 0},
			warning: "class names"},
		{name: "yolov7 end to end", out: list(f32("output", -1, 7)), family: "yolov7", head: decode.Head{Kind: decode.Rows}, warning: "class names"},
		{name: "rows of an unknown origin", out: list(f32("dets", -1, 6)), family: "yolov8", head: decode.Head{Kind: decode.Rows},
			warning: "do not say which family"},
		{name: "rt-detr of Ultralytics", meta: meta("description", "Ultralytics RTDETR-l model"), out: list(f32("output0", 1, 300, 84)), family: "rtdetr",
			head: decode.Head{Kind: decode.ClassOnly, Classes: 80, Transposed: true, NormBoxes: true}},
		{name: "52 classes by their names", meta: names(52), out: list(f32("o", 1, 56, 8400)), family: "yolov8",
			head: decode.Head{Kind: decode.ClassOnly, Classes: 52}},
		{name: "52 classes by the user's word", opt: Options{Family: "yolov8"}, out: list(f32("o", 1, 56, 8400)), family: "yolov8",
			head: decode.Head{Kind: decode.ClassOnly, Classes: 52}, warning: "class names"},
		{name: "face", in: f32("input", -1, 3, 416, 416), meta: meta("eyas", faceSidecar), out: list(f32("out", -1, 25, 13, 13)), family: "yolov2",
			head: decode.Head{Kind: decode.Grid, Anchors: [][]float32{{1.6, 2.1, 6, 7, 2.9, 3.5, 4.3, 5.2, 9, 10.7}}}},
		{name: "candidates equal to values, settled", in: f32("images", 1, 3, 64, 64), meta: meta("eyas", "transposed: true"),
			out: list(f32("o", 1, 84, 84)), family: "yolov8", head: decode.Head{Kind: decode.ClassOnly, Classes: 80, Transposed: true}},
		{name: "sidecar's head", meta: meta("eyas", "{sigmoid: true, normalized: true}"), out: list(f32("o", 1, 84, 8400)), family: "yolov8",
			head: decode.Head{Kind: decode.ClassOnly, Classes: 80, Sigmoid: true, NormBoxes: true}},
		{name: "grey input", in: f32("images", 1, 1, 640, 640), out: list(f32("o", 1, 84, 8400)), family: "yolov8", head: cocoBoxes},
		{name: "fixed batch", in: f32("images", 4, 3, 640, 640), out: list(f32("o", 4, 84, 8400)), family: "yolov8", head: cocoBoxes},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.in.dims == nil {
				c.in = picture
			}
			m, err := New(build(t, c.meta, list(c.in), c.out), "", c.opt)
			if err != nil {
				t.Fatal(err)
			}
			if m.Family != c.family || !sameHead(m.Head, c.head) {
				t.Errorf("%s %+v\nwant %s %+v", m.Family, m.Head, c.family, c.head)
			}
			if all := strings.Join(m.Warnings, "\n"); !strings.Contains(all, c.warning) || c.warning == "" && all != "" {
				t.Errorf("warnings %q, want %q", all, c.warning)
			}
			if _, err := decode.New(m.Head); err != nil {
				t.Errorf("the decoder does not take the head: %v", err)
			}
		})
	}
}

func sameHead(a, b decode.Head) bool {
	same := slices.Equal(a.Levels, b.Levels) && slices.Equal(a.Scores, b.Scores) && slices.Equal(a.Boxes, b.Boxes) &&
		slices.Equal(a.Strides, b.Strides) && slices.EqualFunc(a.Anchors, b.Anchors, slices.Equal[[]float32])
	a.Levels, a.Scores, a.Boxes, a.Strides, a.Anchors = nil, nil, nil, nil, nil
	b.Levels, b.Scores, b.Boxes, b.Strides, b.Anchors = nil, nil, nil, nil, nil
	return same && a.Kind == b.Kind && a.Classes == b.Classes && a.Transposed == b.Transposed && a.NormBoxes == b.NormBoxes &&
		a.Sigmoid == b.Sigmoid && a.Masks == b.Masks && a.Output == b.Output && a.Labels == b.Labels && a.Num == b.Num && a.RegMax == b.RegMax &&
		a.CentreOffset == b.CentreOffset && a.CentreNanoDet == b.CentreNanoDet
}

// Rows without a column for the frame keep a dynamic batch at one frame.
func TestRowsOfADynamicBatch(t *testing.T) {
	for columns, want := range map[int]int{6: 1, 7: 0} {
		m, err := New(build(t, nil, []port{f32("images", -1, 3, 640, 640)}, []port{f32("dets", -1, columns)}), "", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if m.Input.Batch != want {
			t.Errorf("%d columns: batch %d, want %d", columns, m.Input.Batch, want)
		}
	}
}

// What cannot be run is refused in one line that says what it is and what to do.
func TestRefusals(t *testing.T) {
	list := func(p ...port) []port { return p }
	for _, c := range []struct {
		name string
		meta map[string]string
		opt  Options
		in   []port
		out  []port
		want []string
	}{
		{name: "pose", meta: meta("task", "pose", "kpt_shape", "[17, 3]"), out: list(f32("o", 1, 56, 8400)), want: []string{"pose model", "yolo export"}},
		{name: "pose against the user's word", meta: meta("task", "pose"), opt: Options{Family: "yolov8"}, out: list(f32("o", 1, 56, 8400)),
			want: []string{"pose model"}},
		{name: "pose without a task", meta: meta("kpt_shape", "[17, 3]"), out: list(f32("o", 1, 56, 8400)), want: []string{"pose model"}},
		{name: "pose or 52 classes", out: list(f32("o", 1, 56, 8400)), want: []string{"ambiguous", "[1,56,8400]", "52 classes", "pose model", "--family yolov8", "--labels"}},
		{name: "pose with its one name", meta: names(1), out: list(f32("o", 1, 56, 8400)), want: []string{"this is a pose model"}},
		{name: "end-to-end pose", out: list(f32("o", 1, 300, 57)), want: []string{"pose model"}},
		{name: "obb", meta: meta("task", "obb"), out: list(f32("o", 1, 20, 21504)), want: []string{"oriented-box model"}},
		{name: "classification", meta: meta("task", "classify"), out: list(f32("o", 1, 1000)), want: []string{"classification model"}},
		{name: "classification without a task", out: list(f32("o", 1, 1000)), want: []string{"classification model"}},
		{name: "six classes", out: list(f32("o", 1, 6)), want: []string{"classification model"}},
		{name: "rows of a batch without its number", in: list(f32("images", 4, 3, 640, 640)), out: list(f32("dets", -1, 6)), want: []string{"4 frames", "dets float32 [?,6]", "export with batch 1"}},
		{name: "bfloat16 input", in: list(port{"images", tensor.BFloat16, picture.dims}), out: list(f32("o", 1, 84, 8400)), want: []string{"bfloat16", "half=True"}},
		{name: "bfloat16 output", out: list(port{"o", tensor.BFloat16, []int{1, 84, 8400}}), want: []string{"bfloat16", "half=True"}},
		{name: "integer picture", in: list(i64("images", 1, 3, 640, 640)), out: list(f32("o", 1, 84, 8400)), want: []string{"int64", "float32, float16 or uint8"}},
		{name: "no picture", in: list(f32("tokens", 1, 77)), out: list(f32("o", 1, 84, 8400)), want: []string{"tokens float32 [1,77]"}},
		{name: "twelve channels", in: list(f32("images", 1, 12, 320, 320)), out: list(f32("o", 1, 84, 8400)), want: []string{"12 channels"}},
		{name: "layout unknown", in: list(f32("images", 1, -1, -1, -1)), out: list(f32("o", 1, 84, 8400)), want: []string{"layout: nchw"}},
		{name: "layout ambiguous", in: list(f32("images", 1, 3, 640, 3)), out: list(f32("o", 1, 84, 8400)), want: []string{"layout: nchw"}},
		{name: "further input", in: list(picture, f32("scale_factor", 1, 2)), out: list(f32("o", 1, 84, 8400)), want: []string{"scale_factor float32 [1,2]"}},
		{name: "candidates equal to values", in: list(f32("images", 1, 3, 64, 64)), out: list(f32("o", 1, 84, 84)), want: []string{"ambiguous", "[1,84,84]", "transposed: true"}},
		{name: "yolox or yolov8", out: list(f32("o", 1, 8400, 20)), want: []string{"ambiguous", "[1,8400,20]", "--family yolov8 or --family yolox"}},
		{name: "unknown head", out: list(f32("a", 1, 10, 10), f32("b", 7)), want: []string{"unknown head", "a float32 [1,10,10], b float32 [7]", "docs/models.md"}},
		{name: "list of unknown length", out: list(f32("o", 1, 5000, 17)), want: []string{"unknown head", "[1,5000,17]", "--family yolov8", "--family yolov5"}},
		{name: "family that does not fit", opt: Options{Family: "nanodet"}, out: list(f32("o", 1, 84, 8400)), want: []string{"family nanodet does not fit", "--family yolov8"}},
		{name: "unknown family", opt: Options{Family: "ssd"}, out: list(f32("o", 1, 84, 8400)), want: []string{`family "ssd" is not known`, "yolox-0.1"}},
		{name: "grid without anchors", in: list(f32("x", 1, 3, 416, 416)), out: list(f32("o", 1, 25, 13, 13)), want: []string{"anchors", "model.yaml"}},
		{name: "boxes and scores apart", out: list(f32("boxes", 1, 8400, 4), f32("scores", 1, 8400, 80)), want: []string{"unknown head"}},
		{name: "channels against the input", meta: meta("eyas", "channels: gray"), out: list(f32("o", 1, 84, 8400)), want: []string{"channels gray"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.in == nil {
				c.in = list(picture)
			}
			_, err := New(build(t, c.meta, c.in, c.out), "", c.opt)
			wantError(t, err, c.want...)
		})
	}
}

// Whatever the shapes, the answer is a head that the decoder takes or one line.
func TestAnyShapes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	sizes := []int{-1, 0, 1, 3, 4, 5, 6, 7, 13, 20, 32, 40, 56, 80, 84, 85, 112, 116, 169, 255, 300, 416, 640, 676, 2704, 3549, 8400, 25200}
	shape := func(name string, rank int) onnx.ValueInfo {
		v := onnx.ValueInfo{Name: name, HasShape: rank > 0, Type: []tensor.Type{tensor.Float32, tensor.Float16, tensor.Int64, tensor.Uint8}[r.IntN(4)]}
		for range rank {
			v.Shape = append(v.Shape, onnx.Dim{Size: sizes[r.IntN(len(sizes))]})
		}
		return v
	}
	taken := 0
	for range 20000 {
		g := &onnx.Graph{Inputs: []onnx.ValueInfo{{Name: "images", HasShape: true, Type: tensor.Float32, Shape: []onnx.Dim{{Size: 1}, {Size: 3},
			{Size: 640 - 224*r.IntN(2)}, {Size: 640 - 224*r.IntN(2)}}}}}
		if r.IntN(4) == 0 {
			g.Inputs = append(g.Inputs[r.IntN(2):], shape("x", r.IntN(6)))
		}
		n := onnx.Node{Op: "Head", Domain: "test"}
		for i := range 1 + r.IntN(8) {
			o := shape(fmt.Sprintf("o%d", i), r.IntN(6))
			n.Outputs = append(n.Outputs, o.Name)
			g.Outputs = append(g.Outputs, o)
		}
		g.Nodes = []onnx.Node{n}
		o := Options{}
		if r.IntN(2) == 0 {
			o.Family = Families()[r.IntN(len(Families()))]
		}
		m, err := New(&onnx.Model{Graph: g, Opsets: map[string]int64{"": 17}}, "", o)
		if err != nil {
			wantError(t, err)
			continue
		}
		taken++
		if _, err := decode.New(m.Head); err != nil {
			t.Fatalf("%v for %s: %v", m.Head, values(g.Outputs), err)
		}
	}
	if taken == 0 {
		t.Error("no model was taken")
	}
}

func TestForeignEngineIsRefused(t *testing.T) {
	om := build(t, nil, []port{picture}, []port{f32("o", 1, 84, 8400)})
	om.Graph.Nodes = append(om.Graph.Nodes, onnx.Node{Op: "EPContext", Name: "engine"})
	_, err := New(om, "", Options{})
	wantError(t, err, "EPContext", "engine")
}

// An oriented-box export without metadata shows by its cosine and sine.
func TestAngleIsRefused(t *testing.T) {
	b := onnx.NewBuilder("obb", 17)
	b.Domain("test", 1)
	b.Add(onnx.Node{Op: "Head", Domain: "test", Inputs: []string{b.Input("images", tensor.Float32, 1, 3, 640, 640)}, Outputs: []string{"xy", "angle"}})
	turned := b.Node("Concat", []string{b.Node("Mul", []string{"xy", b.Node("Cos", []string{"angle"})}), b.Node("Sin", []string{"angle"})}, onnx.Int("axis", 1))
	b.Output(turned, tensor.Float32, 1, 20, 8400)
	om, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(om, "", Options{})
	wantError(t, err, "oriented-box model")
}

// The same shape, [1,8400,85], is three families by what computes it.
func TestGraphEvidence(t *testing.T) {
	for _, c := range []struct {
		name, op, family string
		kind             decode.Kind
	}{
		{"undecoded", "Identity", "yolox", decode.YOLOX},
		{"decoded by exp", "Exp", "yolox", decode.Objectness},
		{"times strides", "Mul", "yolov6", decode.Objectness},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := onnx.NewBuilder("head", 17)
			x := b.Input("images", tensor.Float32, 1, 3, 640, 640)
			var levels []string
			for _, s := range []int64{8, 16, 32} {
				conv := func(channels int) string {
					w := b.Float32(fmt.Sprintf("w%d_%d", s, channels), []int{channels, 3, 1, 1}, make([]float32, channels*3))
					return b.Node("Conv", []string{x, w}, onnx.Ints("strides", s, s))
				}
				boxes := []string{conv(4)}
				if c.op == "Mul" {
					boxes = append(boxes, b.Float32(fmt.Sprintf("s%d", s), []int{1}, []float32{float32(s)}))
				}
				level := b.Node("Concat", []string{b.Node(c.op, boxes), b.Node("Sigmoid", []string{conv(81)})}, onnx.Int("axis", 1))
				levels = append(levels, b.Node("Reshape", []string{level, b.Int64(fmt.Sprintf("r%d", s), 1, 85, -1)}))
			}
			y := b.Node("Transpose", []string{b.Node("Concat", levels, onnx.Int("axis", 2))}, onnx.Ints("perm", 0, 2, 1))
			b.Output(y, tensor.Float32, 1, -1, 85)
			om, err := b.Model()
			if err != nil {
				t.Fatal(err)
			}
			m, err := New(om, "", Options{})
			if err != nil {
				t.Fatal(err)
			}
			if m.Family != c.family || m.Head.Kind != c.kind || m.Head.Classes != 80 {
				t.Errorf("%s %v, want %s %v", m.Family, m.Head, c.family, c.kind)
			}
		})
	}
}

func TestInputSize(t *testing.T) {
	m := &Model{H: 640, W: 640, DynamicSize: true, Stride: 32}
	for _, c := range []struct{ w, h, wantH, wantW int }{
		{1920, 1080, 384, 640}, // 640 x 360 and 24 rows of padding, as Ultralytics
		{810, 1080, 640, 480}, {640, 640, 640, 640}, {5000, 10, 32, 640}, {1, 1, 640, 640}, {0, 5, 640, 640},
	} {
		if h, w := m.InputSize(c.w, c.h); h != c.wantH || w != c.wantW {
			t.Errorf("%dx%d: %dx%d, want %dx%d", c.w, c.h, h, w, c.wantH, c.wantW)
		}
	}
	m.DynamicSize = false
	if h, w := m.InputSize(1920, 1080); h != 640 || w != 640 {
		t.Errorf("fixed: %dx%d", h, w)
	}
}

func TestLabels(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "labels.txt")
	if err := os.WriteFile(file, []byte("helmet\n\nvest\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	om := build(t, names(3), []port{picture}, []port{f32("o", 1, 7, 8400)})
	m, err := New(om, "", Options{Labels: file})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int]string{0: "helmet", 1: "1", 2: "vest", 3: "3", -1: "-1"} {
		if got := m.Label(id); got != want {
			t.Errorf("class %d: %q, want %q", id, got, want)
		}
	}
	om = build(t, nil, []port{picture}, []port{f32("o", 1, 84, 8400)})
	_, err = New(om, "", Options{Labels: file})
	wantError(t, err, "3 classes", "80")
	if errors.Is(err, ErrOption) {
		t.Errorf("the labels do not fit the model, which is no fault of the option alone: %v", err)
	}
}

// What is wrong with an option whatever the model is can be told from what is wrong with a model.
func TestOptionErrors(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "binary.txt")
	write(t, binary, "\x00")
	om := build(t, nil, []port{picture}, []port{f32("o", 1, 84, 8400)})
	for _, c := range []struct {
		opt  Options
		want string
	}{
		{Options{Labels: filepath.Join(dir, "none.txt")}, "none.txt"},
		{Options{Labels: dir}, "not a file"},
		{Options{Labels: binary}, "not a text file"},
		{Options{Family: "ssd"}, `family "ssd" is not known`},
		{Options{ImgSize: Size{MaxSide + 1, 640}}, "imgsz 16385x640 is out of range"},
		{Options{ImgSize: Size{640, -1}}, "out of range"},
	} {
		_, err := New(om, filepath.Join(dir, "best.onnx"), c.opt)
		wantError(t, err, c.want)
		if !errors.Is(err, ErrOption) {
			t.Errorf("not about the option alone: %v", err)
		}
	}
	for _, o := range []Options{{Family: "nanodet"}, {ImgSize: Size{320, 320}}} {
		if _, err := New(om, "", o); err == nil || errors.Is(err, ErrOption) {
			t.Errorf("%+v: %v is about the model", o, err)
		}
	}
}

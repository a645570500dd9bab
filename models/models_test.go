package models

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/models/decode"
	"github.com/eyas-edge/eyas/models/prep"
)

// asset returns the path of a file of the test assets and skips the test where they are absent.
func asset(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(testenv.Assets(t), name)
}

// facts are what a test wants to know of a model.
type facts struct {
	family  string
	h, w    int
	classes int
	label1  string // name of class 1
	iou     float32
	head    decode.Head
	recipe  prep.Recipe
	batch   int
	warning string // part of one
}

func (want facts) check(t *testing.T, m *Model) {
	t.Helper()
	want.recipe.Type, want.recipe.NHWC, want.recipe.Gray = m.Input.Type, m.Input.NHWC, m.Input.Channels == 1
	got := facts{family: m.Family, h: m.H, w: m.W, classes: m.NumClasses, label1: m.Label(1), iou: m.IoU, head: m.Head, recipe: m.Recipe,
		batch: m.Input.Batch, warning: want.warning}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(facts{})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	all := strings.Join(m.Warnings, "\n")
	if !strings.Contains(all, want.warning) || want.warning == "" && all != "" {
		t.Errorf("warnings %q, want %q", all, want.warning)
	}
}

var (
	cocoBoxes   = decode.Head{Kind: decode.ClassOnly, Classes: 80}
	cocoYOLOX   = decode.Head{Kind: decode.YOLOX, Classes: 80, Strides: []int{8, 16, 32}}
	cocoObjects = decode.Head{Kind: decode.Objectness, Classes: 80}
)

// Every model of the assets is what its README says.
func TestAssetModels(t *testing.T) {
	v8 := facts{family: "yolov8", h: 640, w: 640, classes: 80, label1: "bicycle", iou: 0.7, head: cocoBoxes, recipe: ultralytics, batch: 1}
	x := facts{family: "yolox", h: 416, w: 416, classes: 80, label1: "bicycle", iou: 0.45, head: cocoYOLOX, recipe: yolox, batch: 1}
	with := func(f facts, change func(*facts)) facts { change(&f); return f }
	for name, want := range map[string]facts{
		"yolox_nano_416":           x,
		"yolox_nano_external":      x,
		"yolox_nano_dynbatch":      with(x, func(f *facts) { f.batch = 0 }),
		"yolox_nano_u8_nhwc":       x,
		"yolox_nano_badnames_meta": with(x, func(f *facts) { f.label1, f.warning = "1", "names 2 classes, the outputs have 80" }),
		"yolox_nano_end2end": with(x, func(f *facts) {
			f.head, f.iou = decode.Head{Kind: decode.Rows, Classes: 80}, 0
		}),
		"yolox_nano_person_192": with(x, func(f *facts) {
			f.h, f.w, f.classes, f.label1, f.warning = 192, 192, 1, "1", "class names are not known"
			f.head = decode.Head{Kind: decode.YOLOX, Classes: 1, Strides: []int{8, 16, 32}}
		}),
		"yolov8n_int8_dyn_op12_640":  v8,
		"yolov8n_qdq_op11_640":       v8,
		"yolov8n_qdq_dead_scores":    v8,
		"yolov8n_int8_dynshape_op17": with(v8, func(f *facts) { f.batch = 0 }),
		"yolo11n_int8_320_op12":      with(v8, func(f *facts) { f.family, f.h, f.w = "yolo11", 320, 320 }),
		"yolo_human_1cls_int8_640": with(v8, func(f *facts) {
			f.classes, f.label1, f.head = 1, "1", decode.Head{Kind: decode.ClassOnly, Classes: 1}
		}),
		"yolov8n_seg_int8_320": with(v8, func(f *facts) {
			f.h, f.w, f.head = 320, 320, decode.Head{Kind: decode.ClassOnly, Classes: 80, Masks: 32}
		}),
		"yolo26n_int8_e2e_640": with(v8, func(f *facts) {
			f.family, f.iou, f.head = "yolo26", 0, decode.Head{Kind: decode.EndToEnd, Classes: 80}
		}),
		"yolov5n_fp16_io_640": with(v8, func(f *facts) { f.family, f.iou, f.head = "yolov5", 0.45, cocoObjects }),
		"yolov5n_fp16_false_dynamic": with(v8, func(f *facts) {
			f.family, f.iou, f.head, f.batch, f.warning = "yolov5", 0.45, cocoObjects, 0, "runs at 640x640 only"
		}),
		"nanodet_m_416": {family: "nanodet", h: 416, w: 416, classes: 80, label1: "bicycle", iou: 0.6, recipe: nanodet, batch: 1,
			head: decode.Head{Kind: decode.GFL, Classes: 80, Scores: []int{0, 1, 2}, Boxes: []int{3, 4, 5}, Strides: []int{8, 16, 32},
				RegMax: 7, CentreNanoDet: true}},
		"picodet_s_416": {family: "picodet", h: 416, w: 416, classes: 80, label1: "bicycle", iou: 0.6, recipe: picodet, batch: 1,
			head: decode.Head{Kind: decode.GFL, Classes: 80, Scores: []int{0, 1, 2, 3}, Boxes: []int{4, 5, 6, 7}, Strides: []int{8, 16, 32, 64},
				RegMax: 7, CentreOffset: 0.5}},
		"fastestdet_352": {family: "fastestdet", h: 352, w: 352, classes: 80, label1: "bicycle", iou: 0.45, recipe: fastestdet, batch: 1,
			head: decode.Head{Kind: decode.FastestDet, Classes: 80}},
		"deimv2_atto_int8_320": {family: "detr", h: 320, w: 320, classes: 80, label1: "bicycle", recipe: detr, batch: 1,
			warning: "dynamic batch but runs one frame", head: decode.Head{Kind: decode.DETR, Classes: 80, Scores: []int{2}, Boxes: []int{1}}},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Load(asset(t, "models/"+name+".onnx"), Options{})
			if err != nil {
				t.Fatal(err)
			}
			want.check(t, m)
			if m.Name != name || m.MixesBatch != strings.Contains(name, "int8") {
				t.Errorf("name %q, mixes batch %v", m.Name, m.MixesBatch)
			}
		})
	}
}

func TestAssetInputs(t *testing.T) {
	for name, want := range map[string]Input{
		"yolov5n_fp16_io_640":        {Name: "images", Type: tensor.Float16, Channels: 3, Batch: 1, H: 640, W: 640},
		"yolov8n_int8_dynshape_op17": {Name: "images", Type: tensor.Float32, Channels: 3},
		"yolox_nano_u8_nhwc":         {Name: "image_u8", Type: tensor.Uint8, Channels: 3, NHWC: true, Batch: 1, H: 416, W: 416},
	} {
		m, err := Load(asset(t, "models/"+name+".onnx"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if m.Input != want {
			t.Errorf("%s: %+v, want %+v", name, m.Input, want)
		}
	}
}

func TestAssetSizes(t *testing.T) {
	for _, c := range []struct {
		name, model string
		imgsz       Size
		h, w        int
		dynamic     bool
		warning     string
		err         string
	}{
		{name: "dynamic", model: "yolov8n_int8_dynshape_op17", h: 640, w: 640, dynamic: true},
		{name: "dynamic, other size", model: "yolov8n_int8_dynshape_op17", imgsz: Size{320, 416}, h: 320, w: 416, dynamic: true},
		{name: "dynamic, no multiple of the stride", model: "yolov8n_int8_dynshape_op17", imgsz: Size{330, 416}, h: 352, w: 416, dynamic: true,
			warning: "330 is no multiple of the stride 32: 352 is used"},
		{name: "fixed, same size", model: "yolox_nano_416", imgsz: Size{416, 416}, h: 416, w: 416},
		{name: "fixed, other size", model: "yolox_nano_416", imgsz: Size{320, 320}, err: "takes pictures of 416x416 only, --imgsz says 320x320"},
		{name: "false dynamic", model: "yolov5n_fp16_false_dynamic", h: 640, w: 640, warning: "640x640 only"},
		{name: "false dynamic, same size", model: "yolov5n_fp16_false_dynamic", imgsz: Size{640, 640}, h: 640, w: 640, warning: "640x640 only"},
		{name: "false dynamic, other size", model: "yolov5n_fp16_false_dynamic", imgsz: Size{320, 320}, err: "runs at 640x640 only"},
		{name: "out of range", model: "yolox_nano_416", imgsz: Size{0, 20000}, err: "out of range"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := Load(asset(t, "models/"+c.model+".onnx"), Options{ImgSize: c.imgsz})
			if c.err != "" {
				wantError(t, err, c.err, c.model+".onnx: ")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if m.H != c.h || m.W != c.w || m.DynamicSize != c.dynamic {
				t.Errorf("%dx%d dynamic %v, want %dx%d %v", m.H, m.W, m.DynamicSize, c.h, c.w, c.dynamic)
			}
			if all := strings.Join(m.Warnings, "\n"); !strings.Contains(all, c.warning) || c.warning == "" && all != "" {
				t.Errorf("warnings %q, want %q", all, c.warning)
			}
		})
	}
}

// wantError checks that err is one line that holds all parts.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", parts)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %v", err)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q, want %q in it", err, p)
		}
	}
}

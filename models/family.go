package models

import (
	"slices"
	"strings"

	"github.com/eyas-edge/eyas/models/prep"
)

// family is what the authors of a kind of detector decided for all of its models. Where the
// figures come from stands in docs/models.md.
type family struct {
	name   string
	title  string
	recipe prep.Recipe // without layout and element type: the model's input says those
	iou    float32     // default for suppression; 0 where the model needs none
}

// The recipes of the authors. Values are levels 0..255.
var (
	ultralytics = prep.Recipe{Resize: prep.Letterbox, Pad: 114, Std: all(255)}
	darknet     = prep.Recipe{Resize: prep.Letterbox, Pad: 127, Std: all(255)}
	yolox       = prep.Recipe{Resize: prep.LetterboxEnd, Pad: 114, BGR: true, Std: all(1)}
	yolox01     = prep.Recipe{Resize: prep.LetterboxEnd, Pad: 114, Mean: imageNetMean, Std: imageNetStd}
	nanodet     = prep.Recipe{Resize: prep.Stretch, BGR: true,
		Mean: [3]float32{103.53, 116.28, 123.675}, Std: [3]float32{57.375, 57.12, 58.395}}
	picodet    = prep.Recipe{Resize: prep.Stretch, Mean: imageNetMean, Std: imageNetStd}
	fastestdet = prep.Recipe{Resize: prep.Stretch, BGR: true, Std: all(255)}
	detr       = prep.Recipe{Resize: prep.Stretch, Std: all(255)}

	imageNetMean = [3]float32{123.675, 116.28, 103.53}
	imageNetStd  = [3]float32{58.395, 57.12, 57.375}
)

var families = []family{
	{"yolov2", "YOLOv2", darknet, 0.4},
	{"yolov3", "YOLOv3", ultralytics, 0.45},
	{"yolov5", "YOLOv5", ultralytics, 0.45},
	{"yolov6", "YOLOv6", ultralytics, 0.45},
	{"yolov7", "YOLOv7", ultralytics, 0.45},
	{"yolov8", "YOLOv8", ultralytics, 0.7},
	{"yolov9", "YOLOv9", ultralytics, 0.7},
	{"yolov10", "YOLOv10", ultralytics, 0.7},
	{"yolo11", "YOLO11", ultralytics, 0.7},
	{"yolo12", "YOLO12", ultralytics, 0.7},
	{"yolo26", "YOLO26", ultralytics, 0.7},
	{"yolox", "YOLOX", yolox, 0.45},
	{"yolox-0.1", "YOLOX with weights of the 0.1 era", yolox01, 0.45},
	{"nanodet", "NanoDet", nanodet, 0.6},
	{"nanodet-plus", "NanoDet-Plus", nanodet, 0.6},
	{"picodet", "PP-PicoDet", picodet, 0.6},
	{"fastestdet", "FastestDet", fastestdet, 0.45},
	{"detr", "DETR-style (DEIM, D-FINE)", detr, 0},
	{"rtdetr", "RT-DETR", detr, 0},
}

// The families whose models share a head.
var (
	anchorBased = []string{"yolov5", "yolov7", "yolov3"}
	anchorFree  = []string{"yolov8", "yolov9", "yolo11", "yolo12", "yolov10", "yolo26", "yolov6"}
	oneStage    = []string{"yolov8", "yolov9", "yolo11", "yolo12", "yolov10", "yolo26", "yolov5", "yolov6", "yolov7",
		"yolov3", "yolox", "yolox-0.1", "nanodet", "nanodet-plus", "picodet", "rtdetr", "detr"}
)

// Families returns the names that Options.Family and a sidecar's family take.
func Families() []string {
	names := make([]string, len(families))
	for i, f := range families {
		names[i] = f.name
	}
	return names
}

// familyAliases are other spellings that people use, after fold.
var familyAliases = map[string]string{
	"face": "yolov2", "tinyyolov2": "yolov2", "yolo9": "yolov9", "yolov11": "yolo11", "yolov12": "yolo12", "yolov26": "yolo26",
	"yolo8": "yolov8", "yolo5": "yolov5", "yolo7": "yolov7", "yolo10": "yolov10", "yolo3": "yolov3", "yolo6": "yolov6",
	"deim": "detr", "deimv2": "detr", "dfine": "detr", "rtdetrv2": "rtdetr", "pppicodet": "picodet",
}

func fold(s string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(s))
}

// lookup finds a family by its name or another usual spelling.
func lookup(name string) (family, bool) {
	key := fold(name)
	if a, ok := familyAliases[key]; ok {
		key = fold(a)
	}
	i := slices.IndexFunc(families, func(f family) bool { return fold(f.name) == key })
	if i < 0 {
		return family{}, false
	}
	return families[i], true
}

func all(v float32) [3]float32 { return [3]float32{v, v, v} }

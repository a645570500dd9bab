package models

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// exported is what an exporter noted in the file: Ultralytics' keys, which others write too.
type exported struct {
	task     string // "", detect, segment, pose, obb, classify
	names    []string
	imgsz    Size // zero if unknown
	stride   int  // 0 if unknown
	end2end  bool // the answer is final: x1,y1,x2,y2,score,class
	keypoint string
	family   string // from the description, "" if it names none
	warnings []string
}

var (
	numbers     = regexp.MustCompile(`\d+`)
	description = regexp.MustCompile(`(?i)ultralytics (yolov?\d+|rtdetr|rt-detr)`)
)

func readExported(meta map[string]string) exported {
	e := exported{task: strings.TrimSpace(meta["task"]), keypoint: strings.TrimSpace(meta["kpt_shape"])}
	e.end2end = strings.EqualFold(meta["end2end"], "true") || strings.Contains(meta["args"], "'nms': True")
	if s := meta["names"]; s != "" {
		names, err := ParseNames(s)
		if err != nil {
			e.warnings = append(e.warnings, fmt.Sprintf("the metadata's class names cannot be read (%v)", err))
		}
		e.names = names
	}
	if n := ints(meta["imgsz"]); len(n) == 1 {
		e.imgsz = Size{n[0], n[0]}
	} else if len(n) == 2 {
		e.imgsz = Size{n[0], n[1]}
	}
	if e.imgsz.check() != nil {
		e.imgsz = Size{}
	}
	for _, s := range ints(meta["stride"]) { // YOLOv5 wrote the largest, others a list
		if s <= 1024 {
			e.stride = max(e.stride, s)
		}
	}
	if m := description.FindStringSubmatch(meta["description"]); m != nil {
		if f, ok := lookup(m[1]); ok {
			e.family = f.name
		}
	}
	return e
}

// ints returns the first few whole numbers of a text such as "[640, 640]".
func ints(s string) []int {
	var out []int
	for _, d := range numbers.FindAllString(s, 4) {
		if n, err := strconv.Atoi(d); err == nil {
			out = append(out, n)
		}
	}
	return out
}

package main

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every model of the assets does the right thing with a picture of a bus and some people. TestParity of
// package runtime compares boxes; this is what a user sees.
func TestModels(t *testing.T) {
	coco := map[string]int{"person": 3, "bus": 1}
	people := func(class string) map[string]int { return map[string]int{class: 3} }
	for _, c := range []struct {
		name    string
		want    map[string]int // at least so many; nil: none at all
		warning string
	}{
		{"yolox_nano_416", coco, ""},
		{"yolox_nano_person_192", people("0"), "class names are not known: class ids are shown; give the names with --labels"},
		{"yolox_nano_dynbatch", coco, ""},
		{"yolox_nano_u8_nhwc", coco, ""},
		{"yolox_nano_external", coco, ""},
		{"yolox_nano_end2end", coco, ""},
		{"yolox_nano_badnames_meta", map[string]int{"0": 3, "5": 1}, "the metadata names 2 classes, the outputs have 80: class ids are shown"},
		{"yolov5n_fp16_io_640", coco, ""},
		{"yolov5n_fp16_false_dynamic", coco, "declares height and width dynamic but runs at 640x640 only"},
		{"yolov8n_int8_dyn_op12_640", coco, ""},
		{"yolov8n_int8_dynshape_op17", coco, ""},
		{"yolov8n_qdq_op11_640", coco, ""},
		{"yolov8n_qdq_dead_scores", nil, "every score was 0 on the one picture: the export is broken"},
		{"yolo11n_int8_320_op12", coco, ""},
		{"yolo26n_int8_e2e_640", coco, ""},
		{"yolo_human_1cls_int8_640", people("Human"), ""},
		{"yolov8n_seg_int8_320", coco, ""},
		{"nanodet_m_416", coco, ""},
		{"picodet_s_416", coco, ""},
		{"fastestdet_352", people("person"), ""},
		{"deimv2_atto_int8_320", map[string]int{"person": 2}, "declares a dynamic batch but runs one frame at a time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := call(t, "run", "--threads", "2", "-m", modelFile(t, c.name), picture(t, "classic/bus.jpg"))
			if c.warning == "" {
				o.want(t, 0)
			} else {
				o.want(t, 0, "warning: model "+c.name+": "+c.warning)
			}
			r := results(t, o.stdout)
			if len(r) != 1 || r[0].Model != c.name || r[0].Width != 810 || r[0].Height != 1080 {
				t.Fatalf("results: %s", o.stdout)
			}
			got := r[0].classes()
			for class, n := range c.want {
				if got[class] < n {
					t.Errorf("found %v, want at least %v", got, c.want)
				}
			}
			if c.want == nil && len(got) > 0 {
				t.Errorf("found %v, want nothing", got)
			}
		})
	}
	t.Run("all are in the table", func(t *testing.T) {
		files, err := filepath.Glob(filepath.Join(assets(t), "models", "*.onnx"))
		if err != nil || len(files) != 21 {
			t.Errorf("%d models, %v: add them to the table", len(files), err)
		}
	})
}

// Scores that are all 0 are told after the first eight pictures, not only at the end.
func TestDeadScoresAreToldEarly(t *testing.T) {
	dir := t.TempDir()
	for _, name := range strings.Split("abcdefghi", "") {
		link(t, picture(t, "hard/jpeg_1x1.jpg"), filepath.Join(dir, name+".jpg"))
	}
	o := call(t, "run", "--threads", "2", "--events", "-m", modelFile(t, "yolov8n_qdq_dead_scores"), dir)
	o.want(t, 0, "every score was 0 on the first 8 pictures")
	before, _, ok := strings.Cut(o.stdout, `{"event":"warning"`)
	if n := strings.Count(before, `"detections":[]`); !ok || n > 8 {
		t.Errorf("the warning comes after %d results", n)
	}
}

func link(t testing.TB, from, to string) {
	t.Helper()
	if err := os.Symlink(from, to); err != nil {
		t.Fatal(err)
	}
}

// A model that runs at one size is not run at another, whatever it declares.
func TestWrongSizeIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ model, size, want string }{
		"false dynamic": {"yolov5n_fp16_false_dynamic", "320", "--imgsz says 320x320"},
		"static":        {"yolox_nano_416", "640", "takes pictures of 416x416 only, --imgsz says 640x640"},
		"rectangle":     {"yolox_nano_416", "416x640", "--imgsz says 416x640"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, cmd := range []string{"run", "inspect"} {
				args := []string{cmd, "--imgsz", c.size}
				if cmd == "run" {
					args = append(args, picture(t, "classic/bus.jpg"), "-m")
				}
				o := call(t, append(args, modelFile(t, c.model))...)
				o.want(t, 3, c.want)
				if o.stdout != "" {
					t.Errorf("standard output: %s", o.stdout)
				}
			}
		})
	}
}

// What is no usable model is refused with one line that says what to do.
func TestForeignModels(t *testing.T) {
	dir := t.TempDir()
	whole, err := os.ReadFile(modelFile(t, "yolox_nano_416"))
	if err != nil {
		t.Fatal(err)
	}
	external, err := os.ReadFile(modelFile(t, "yolox_nano_external"))
	if err != nil {
		t.Fatal(err)
	}
	engine := append(binary.LittleEndian.AppendUint32([]byte("ftrt"), 1), make([]byte, 64)...)
	for name, text := range map[string]string{
		"best.pt":       "PK\x03\x04\x00\x00\x08\x08" + strings.Repeat("\x00", 22) + "best/data.pkl",
		"best.engine":   string(engine),
		"cut.onnx":      string(whole[:100_000]),
		"empty.onnx":    "",
		"page.onnx":     "<!DOCTYPE html><html><body>404</body></html>",
		"external.onnx": string(external),
	} {
		write(t, filepath.Join(dir, name), text)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.onnx"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"best.pt":       "this is a PyTorch checkpoint, not ONNX: export it with `yolo export model=best.pt format=onnx`",
		"best.engine":   "this is a TensorRT engine",
		"cut.onnx":      "it is truncated, download or export it again",
		"empty.onnx":    "the file is empty: download or export it again",
		"page.onnx":     "this is a web page, not a model",
		"external.onnx": `external data "yolox_nano_external.data" is missing`,
		"folder.onnx":   "is a folder: name the .onnx file in it",
		"none.onnx":     "no such file or directory: name an .onnx file, or one of eyas pull --list",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			for _, args := range [][]string{
				{"run", "-m", path, picture(t, "classic/bus.jpg")}, {"inspect", path},
				{"eval", path, "--coco", picture(t, "coco/instances.json")},
			} {
				o := call(t, args...)
				o.want(t, 3, want)
				if !strings.Contains(o.stderr, path) || o.stdout != "" {
					t.Errorf("%s: %q, %q", args[0], o.stderr, o.stdout)
				}
			}
		})
	}
	call(t, "run", "-m", "best", picture(t, "classic/bus.jpg")).want(t, 3, "model best is neither a file nor a known model")
}

// A model whose number of boxes may be 0 gives an empty list.
func TestNothingFound(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 64, 48))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "black.png")
	write(t, path, b.String())
	o := call(t, "run", "--threads", "2", "-m", modelFile(t, "yolox_nano_end2end"), path)
	o.want(t, 0)
	if !strings.Contains(o.stdout, `"detections":[]`) {
		t.Error(o.stdout)
	}
}

// Where height and width are dynamic each picture gets its own input shape.
func TestPicturesOfDifferentShapes(t *testing.T) {
	o := call(t, "run", "--threads", "2", "--imgsz", "320", "-m", modelFile(t, "yolov8n_int8_dynshape_op17"), picture(t, "classic"))
	o.want(t, 0)
	want := map[string]string{"bus.jpg": "bus", "dog.jpg": "dog", "horses.jpg": "horse", "person.jpg": "person", "zidane.jpg": "person"}
	all := results(t, o.stdout)
	for _, r := range all {
		if name := filepath.Base(r.Source); r.classes()[want[name]] == 0 {
			t.Errorf("%s: found %v, want a %s", name, r.classes(), want[name])
		}
	}
	if len(all) != len(want) {
		t.Errorf("%d results", len(all))
	}
}

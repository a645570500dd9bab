package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/models/decode"
	"github.com/eyas-edge/eyas/models/eval"
)

// document reads the one JSON document that a command prints.
func document(t *testing.T, into any, args ...string) {
	t.Helper()
	o := call(t, args...)
	o.want(t, 0)
	d := json.NewDecoder(strings.NewReader(o.stdout))
	if err := d.Decode(into); err != nil || d.More() {
		t.Fatalf("%v: %v, more %v: %s", args, err, d.More(), o.stdout)
	}
}

func TestDocuments(t *testing.T) {
	var v struct{ Version, Go, Platform string }
	document(t, &v, "version", "--json")
	if v.Version == "" || v.Go == "" || v.Platform == "" {
		t.Errorf("version: %+v", v)
	}
	if o := call(t, "version"); o.code != 0 || !strings.HasPrefix(o.stdout, "eyas "+v.Version+" (") {
		t.Errorf("version: %+v", o)
	}
	var d struct {
		Findings []struct{ Name, Status, Found, Do string }
	}
	document(t, &d, "doctor", "--json", "--ort", os.Getenv("EYAS_ORT_LIB"))
	text := call(t, "doctor", "--ort", os.Getenv("EYAS_ORT_LIB"))
	for _, f := range d.Findings {
		if f.Status != "ok" && f.Do == "" {
			t.Errorf("doctor does not say what to do: %+v", f)
		}
		if !strings.Contains(text.stdout, f.Name) || !strings.Contains(text.stdout, f.Do) {
			t.Errorf("the text lacks %+v", f)
		}
	}
	if o := call(t, "doctor", "--ort", t.TempDir()); o.code != 4 || !strings.Contains(o.stdout, "eyas pull onnxruntime:cpu") || o.stderr != "" {
		t.Errorf("doctor without a library: %+v", o)
	}
	for _, name := range []string{"yolox_nano_416", "yolov8n_int8_dynshape_op17", "deimv2_atto_int8_320", "nanodet_m_416"} {
		var m struct {
			Model, Family string
			Classes       int
			Inputs        []struct{ Name, Type string }
		}
		document(t, &m, "inspect", "--json", modelFile(t, name))
		if m.Model != name || m.Family == "" || m.Classes != 80 || len(m.Inputs) == 0 {
			t.Errorf("inspect: %+v", m)
		}
		if o := call(t, "inspect", modelFile(t, name)); o.code != 0 || !strings.HasPrefix(o.stdout, name+": ") || o.stderr != "" {
			t.Errorf("inspect: %+v", o)
		}
	}
}

// eyas eval gives what the evaluator gives of eyas run's own detections.
func TestEvalIsThatOfRun(t *testing.T) {
	model, truthFile := modelFile(t, "yolox_nano_416"), picture(t, "coco/instances.json")
	var got struct {
		Images, Failed, Objects, Detections int
		AP, AP50, AP75                      float64
	}
	document(t, &got, "eval", model, "--threads=2", "--json", "--coco", truthFile)
	if got.Images != 19 || got.Failed != 0 || got.Objects != 188 || got.AP50 < 0.3 || got.AP >= got.AP50 {
		t.Errorf("%+v", got)
	}

	o := call(t, "run", "-m", model, "--threads=2", "--conf", "0.001", "--max-det", "100", picture(t, "coco"))
	o.want(t, 0)
	f, err := os.Open(truthFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	truth, err := eval.ReadCOCO(f, labelsOf(t, model))
	if err != nil {
		t.Fatal(err)
	}
	e, err := eval.New(truth)
	if err != nil {
		t.Fatal(err)
	}
	byFile := map[string]result{}
	for _, r := range results(t, o.stdout) {
		byFile[filepath.Base(r.Source)] = r
	}
	found := 0
	for _, image := range truth.Images {
		var list []decode.Detection
		for _, d := range byFile[filepath.Base(image.File)].Detections {
			list = append(list, decode.Detection{ClassID: d.ClassID, Score: float32(d.Score),
				Box: [4]float32{float32(d.Box[0]), float32(d.Box[1]), float32(d.Box[2]), float32(d.Box[3])}})
		}
		found += len(list)
		if err := e.Add(image.ID, list); err != nil {
			t.Fatal(err)
		}
	}
	want := e.Result()
	// The lines hold 4 and 2 decimals.
	if math.Abs(want.AP-got.AP) > 0.005 || math.Abs(want.AP50-got.AP50) > 0.005 || found != got.Detections {
		t.Errorf("eval: %+v, of run's %d detections AP %.4f, AP50 %.4f", got, found, want.AP, want.AP50)
	}
}

func labelsOf(t *testing.T, model string) []string {
	t.Helper()
	var m struct{ Labels []string }
	document(t, &m, "inspect", "--json", model)
	return m.Labels
}

// A YOLO dataset whose boxes are the model's own gives 1, with class numbers of its own.
func TestEvalYOLODataset(t *testing.T) {
	dir := t.TempDir()
	model := modelFile(t, "yolox_nano_416")
	for _, sub := range []string{"images/val", "labels/val"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	classes := map[string]int{"bus": 0, "person": 1, "unicorn": 2}
	for _, name := range []string{"bus", "zidane"} {
		source := picture(t, "classic/"+name+".jpg")
		link(t, source, filepath.Join(dir, "images/val", name+".jpg"))
		o := call(t, "run", "-m", model, "--threads=2", "--classes", "bus,person", source)
		o.want(t, 0)
		r := results(t, o.stdout)[0]
		var lines strings.Builder
		w, h := float64(r.Width), float64(r.Height)
		for _, d := range r.Detections {
			fmt.Fprintf(&lines, "%d %f %f %f %f\n", classes[d.Class], (d.Box[0]+d.Box[2])/2/w, (d.Box[1]+d.Box[3])/2/h, (d.Box[2]-d.Box[0])/w, (d.Box[3]-d.Box[1])/h)
		}
		write(t, filepath.Join(dir, "labels/val", name+".txt"), lines.String())
	}
	data := filepath.Join(dir, "data.yaml")
	write(t, data, "path: "+dir+"\ntrain: images/train\nval: images/val\nnames: {0: bus, 1: person, 2: unicorn}\n")
	o := call(t, "eval", model, "--threads=2", "--json", "--data", data)
	o.want(t, 0, "left out are classes of the dataset that the model does not have: unicorn")
	var got struct {
		Images  int
		AP50    float64
		Classes []struct {
			Class string
			AP50  float64
		}
	}
	if err := json.Unmarshal([]byte(o.stdout), &got); err != nil {
		t.Fatal(err)
	}
	if got.Images != 2 || got.AP50 < 0.999 || len(got.Classes) != 2 {
		t.Errorf("%+v", got)
	}

	write(t, filepath.Join(dir, "images/val/broken.jpg"), "no picture")
	write(t, filepath.Join(dir, "labels/val/broken.txt"), "0 0.5 0.5 0.2 0.2\n")
	o = call(t, "eval", model, "--threads=2", "-q", "--data", data)
	if o.code != 1 || strings.Count(o.stderr, "\n") != 1 || !strings.Contains(o.stderr, "broken.jpg") {
		t.Errorf("with a broken picture: %+v", o)
	}
	if err := os.Remove(filepath.Join(dir, "images/val/broken.jpg")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "labels/val/zidane.txt"), "0 0.5 0.5 wide 0.2\n")
	call(t, "eval", model, "--threads=2", "--data", data).want(t, 1, "zidane.txt")
}

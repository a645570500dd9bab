package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A command of the contract that is not there yet is not called unknown.
func TestCommandsOfLaterVersions(t *testing.T) {
	for _, command := range later {
		call(t, command, "x").want(t, 2, command+": not yet in this version")
	}
}

// What was typed wrong is one line that says so, with exit code 2; what is not there has exit code 1.
func TestUsage(t *testing.T) {
	bus := picture(t, "classic/bus.jpg")
	model := modelFile(t, "yolox_nano_416")
	empty := t.TempDir()
	for _, c := range []struct {
		args []string // of run -m yolox_nano_416
		code int
		want string
	}{
		{[]string{}, 2, "no source: name a picture, folder or clip"},
		{[]string{"--conf", "2", bus}, 2, `--conf: "2" is not a number above 0 and up to 1`},
		{[]string{"--conf", "0", bus}, 2, `--conf: "0" is not a number above 0 and up to 1`},
		{[]string{"--iou", "NaN", bus}, 2, `--iou: "NaN" is not a number above 0 and up to 1`},
		{[]string{"--imgsz", "0", bus}, 2, `--imgsz: imgsz "0" is not understood: use a side (640)`},
		{[]string{"--imgsz", "640x", bus}, 2, `imgsz "640x" is not understood`},
		{[]string{"--threads=-1", bus}, 2, "threads -1 is out of range: use 1 to 1024"},
		{[]string{"--threads", "many", bus}, 2, `--threads: expected a valid 64 bit int but got "many"`},
		{[]string{"--max-det=-1", bus}, 2, "max_det -1 is below zero"},
		{[]string{"--every=-2", bus}, 2, "every is below zero"},
		{[]string{"--frames=-2", bus}, 2, "frames is below zero"},
		{[]string{"--max-pixels=-2", bus}, 2, "max_pixels is below zero"},
		{[]string{"--duration", "10", bus}, 2, `time "10" is not understood: use a number with a unit`},
		{[]string{"--duration=-1s", bus}, 2, `time "-1s" is not understood`},
		{[]string{"--slo", "soon", bus}, 2, `time "soon" is not understood`},
		{[]string{"--budget", "lots", bus}, 2, `size "lots" is not understood`},
		{[]string{"--ep", "gpu", bus}, 2, `ep "gpu" is not known: use auto, cpu, cuda or tensorrt`},
		{[]string{"--placement", "here", bus}, 2, `placement "here" is not known`},
		{[]string{"--precision", "fp8", bus}, 2, `precision "fp8" is not known`},
		{[]string{"--log-format", "xml", bus}, 2, `--log-format must be one of "text","json" but got "xml"`},
		{[]string{"--classes", "person,unicorn", bus}, 2, `model yolox_nano_416 has no class "unicorn": it knows person, bicycle,`},
		{[]string{"--nonsense", bus}, 2, "unknown flag --nonsense"},
		{[]string{bus, "-m"}, 2, "--model: missing value"},
		{[]string{""}, 2, "a source is empty: name a picture, folder or clip"},
		{[]string{"x="}, 2, "source x: url is missing"},
		{[]string{"${EYAS_TEST_NOT_SET}/a.jpg"}, 2, "environment variable EYAS_TEST_NOT_SET is not set"},
		{[]string{"test:card"}, 2, `test source "card" is not known: use test:pattern`},
		{[]string{"test:pattern?size=0x0"}, 2, `size "0x0" is not WIDTHxHEIGHT`},
		{[]string{"test:pattern?colour=red"}, 2, `parameter "colour" is not known: use size, fps, frames`},
		{[]string{"raw:" + bus}, 2, "format and size are missing: write raw:FILE?format=nv12"},
		{[]string{"raw:" + bus + "?format=nv21&size=2x2"}, 2, `pixel format "nv21" is not known`},
		{[]string{"missing.jpg"}, 1, "source missing.jpg: no such file or directory"},
		{[]string{empty}, 1, "no picture in this folder (jpg, png, webp, gif, bmp)"},
		{[]string{empty + "/*.jpg"}, 1, "no picture matches"},
		{[]string{"raw:missing?format=nv12&size=2x2"}, 1, "no such file or directory"},
		{[]string{model}, 1, "ffmpeg cannot decode it"},
		{[]string{"--labels", "missing.txt", bus}, 2, "labels: open missing.txt: no such file"},
		{[]string{"--family", "yolo99", bus}, 2, `family "yolo99" is not known: use one of yolov2,`},
		{[]string{"--ep", "cuda", bus}, 4, "libonnxruntime_providers_cuda.so is missing beside"},
		{[]string{"--ep", "tensorrt", bus}, 4, "libonnxruntime_providers_tensorrt.so is missing beside"},
		{[]string{"--ort", empty, bus}, 4, "--ort " + empty + ": no libonnxruntime.so there"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			o := call(t, append([]string{"run", "-m", model, "--threads=2"}, c.args...)...)
			o.want(t, c.code, c.want)
			if o.stdout != "" {
				t.Errorf("standard output: %s", o.stdout)
			}
		})
	}
	call(t, "nonsense").want(t, 2, "unexpected argument nonsense")
	call(t, "inspect").want(t, 2, `expected "<model>"`)
	call(t, "pull").want(t, 2, "nothing to pull: name a model, or use --list")
	call(t, "pull", "yolo99").want(t, 2, `pull: "yolo99" is not in the catalog: use one of face,`)
	call(t, "eval", model).want(t, 2, "eval: name the ground truth with --coco FILE or --data data.yaml")
	call(t, "eval", model, "--coco", "a", "--data", "b").want(t, 2, "--coco and --data can't be used together")
	call(t, "eval", model, "--coco", "missing.json").want(t, 1, "eval: open missing.json: no such file")
	call(t, "eval", model, "--data", "missing.yaml").want(t, 1, "eval: dataset: open missing.yaml: no such file")
	call(t, fast(t, "one.jpg", "two.jpg")...).want(t, 1, "source one.jpg: no such file", "source two.jpg: no such file")
	call(t, fast(t, "one.jpg", "v4l2:0?format=h264")...).want(t, 2, `source v4l2:0?format=h264: format "h264" is not known`)
	for _, args := range [][]string{{}, {"--help"}, {"run", "--help"}, {"pull", "--list"}} {
		o := call(t, args...)
		o.want(t, 0)
		if o.stdout == "" {
			t.Errorf("%v says nothing", args)
		}
	}
}

// One missing source is said, and the others are processed.
func TestOneSourceIsMissing(t *testing.T) {
	o := call(t, fast(t, "missing.jpg", picture(t, "classic/bus.jpg"), picture(t, "classic/none.jpg"))...)
	o.want(t, 1, "source missing.jpg: no such file or directory", "none.jpg: no such file or directory")
	if all := results(t, o.stdout); len(all) != 1 {
		t.Errorf("%d results", len(all))
	}
}

// Quiet leaves errors only; the other format is JSON, errors included.
func TestLogs(t *testing.T) {
	args := []string{"run", "--threads=2", "-m", modelFile(t, "yolox_nano_person_192"), picture(t, "classic/bus.jpg"), "missing.jpg"}
	call(t, append(args, "-q")...).want(t, 1, "source missing.jpg: no such file")
	o := call(t, append(args, "--log-format", "json")...)
	var levels []string
	for line := range strings.Lines(o.stderr) {
		var l struct{ Level, Msg string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Errorf("%v in %s", err, line)
		}
		levels = append(levels, l.Level)
	}
	if strings.Join(levels, " ") != "ERROR WARN" {
		t.Errorf("standard error: %s", o.stderr)
	}
}

// Without a model faces are found, if that model is there, and it is said.
func TestDefaultModel(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	face := "model face is not here yet: eyas pull face"
	o := call(t, "run", picture(t, "classic/zidane.jpg"))
	if o.code != 0 { // not beside this test's binary
		o.want(t, 3, "no model given: face is used, which finds faces only", face)
		return
	}
	o.want(t, 0, "no model given: face is used, which finds faces only")
	if all := results(t, o.stdout); len(all) != 1 || len(all[0].Detections) == 0 || all[0].Model != "face" {
		t.Errorf("results: %s", o.stdout)
	}
}

// The file, the flags over it, and what is wrong with it.
func TestConfiguration(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "eyas.yaml")
	write(t, config, `version: 1
threads: 2
models:
  ppe: {path: `+modelFile(t, "yolox_nano_416")+`, conf: 0.5, classes: [person]}
sources:
  gate: {url: `+picture(t, "classic/bus.jpg")+`}
output: {events: true}
`)
	call(t, "run", "-c", config, "--check").want(t, 0)
	objects := func(args ...string) int {
		o := call(t, append([]string{"run", "-c", config}, args...)...)
		o.want(t, 0)
		events, line, _ := strings.Cut(o.stdout, `{"source":`)
		if strings.Count(events, "\n") != 2 { // ready, open
			t.Errorf("events: %s", events)
		}
		line, _, _ = strings.Cut(line, "\n")
		all := results(t, `{"source":`+line+"\n")
		return len(all[0].Detections)
	}
	if few, fewer := objects(), objects("--conf", "0.84"); few != 3 || fewer != 1 {
		t.Errorf("%d objects with the file, %d with a flag, want 3 and 1", few, fewer)
	}

	printed := call(t, "run", "-c", config, "--print-config", "--conf", "0.84", "side door=x.jpg", "a/*.jpg")
	printed.want(t, 0)
	again := filepath.Join(dir, "again.yaml")
	write(t, again, printed.stdout)
	back := call(t, "run", "-c", again, "--print-config")
	back.want(t, 0)
	if back.stdout != printed.stdout || !strings.Contains(back.stdout, "conf: 0.84") {
		t.Errorf("printed:\n%s\nread again:\n%s", printed.stdout, back.stdout)
	}

	write(t, config, "sources: {s: {url: not-there.jpg}}\n") // which may come until the run
	call(t, "run", "-c", config, "--check").want(t, 0)
	for text, want := range map[string]string{
		"version: 1\nmodles: {}\n":                           `:2:1: unknown field "modles"`,
		"models:\n  a: {path: x, confidence: 1}\n":           `:2:16: unknown field "confidence"`,
		"models:\n  a: {path: x, conf: high}\n":              `:2:22: "high" is not a number`,
		"threads: 2\nduration: 10\n":                         `:2:11: time "10" is not understood`,
		"version: 2\n":                                       "version 2 is not known: this build reads version 1",
		"models: {a: {conf: 0.1}}\n":                         "model a: path is missing",
		"models: {a: {path: x, conf: 3}}\n":                  "model a: conf 3 is out of range",
		"models: {a: {path: x}}\nsources: {s: {}}\n":         "source s: url is missing",
		"sources: {s: {url: x, models: [b]}}\n":              `source s: there is no model "b"`,
		"precision: fp16\n":                                  "precision fp16: not yet in this version",
		"sources: {s: {url: 'test:pattern?size=65536x1'}}\n": "at most 16384 pixels",
		"a: [\n": ":1:",
		"":       ":1:1: the file is empty",
	} {
		write(t, config, text)
		call(t, "run", "-c", config, "--check").want(t, 2, want)
	}
	call(t, "run", "-c", filepath.Join(dir, "none.yaml")).want(t, 2, "read configuration: open")
	call(t, "run", "-c", dir).want(t, 2, "is a directory")
	if _, err := os.Stat("out"); err == nil {
		t.Error("something was written")
	}
}

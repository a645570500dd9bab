package models

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/models/prep"
)

// namesCases feed the test and the fuzz target of ParseNames.
var namesCases = []struct {
	name, in string
	want     []string
	err      string
}{
	{name: "dictionary", in: "{0: 'person', 1: 'bicycle'}", want: []string{"person", "bicycle"}},
	{name: "gap", in: "{0: 'a', 2: 'c'}", want: []string{"a", "", "c"}},
	{name: "list", in: "['a', 'b',]", want: []string{"a", "b"}},
	{name: "tuple", in: "('a', 'b')", want: []string{"a", "b"}},
	{name: "JSON", in: `{"0": "a", "1": "b\/c"}`, want: []string{"a", "b/c"}},
	{name: "both quotes", in: `{0: "dog's bed", 1: 'say "hi"', 2: 'it\'s'}`, want: []string{"dog's bed", `say "hi"`, "it's"}},
	{name: "escapes", in: `['caf\xe9', '\u72d7', '\U0001f436', 'a\\b', 'a\qb']`, want: []string{"café", "狗", "🐶", `a\b`, `a\qb`}},
	{name: "control characters", in: `['a\nb', 'c` + "\x1b" + `d']`, want: []string{"a\uFFFDb", "c\uFFFDd"}},
	{name: "space", in: " { 0 : 'a' ,\n 1:'b' } ", want: []string{"a", "b"}},
	{name: "empty", in: "{}"},
	{name: "nothing", in: "", err: "byte 1: expected a dictionary"},
	{name: "no quote", in: "{0: person}", err: "byte 5: expected a name in quotes"},
	{name: "not closed", in: "{0: 'person", err: "no closing quote"},
	{name: "no end", in: "{0: 'a'", err: "expected ','"},
	{name: "text after", in: "['a'] x", err: "text after the end"},
	{name: "twice", in: "{0: 'a', 0: 'b'}", err: "class 0 is named twice"},
	{name: "huge id", in: "{4000000000: 'a'}", err: "out of range"},
	{name: "negative id", in: "{-1: 'a'}", err: "expected a class number"},
	{name: "no number", in: "{'x': 'a'}", err: "expected a class number"},
	{name: "no colon", in: "{0 'a'}", err: "expected ':'"},
	{name: "backslash at the end", in: `['a\`, err: "backslash"},
	{name: "short escape", in: `['\x4']`, err: "hexadecimal"},
	{name: "no character", in: `['\UFFFFFFFF']`, err: "hexadecimal"},
}

func TestParseNames(t *testing.T) {
	for _, c := range namesCases {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseNames(c.in)
			if c.err != "" {
				wantError(t, err, c.err)
				return
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

var labelsCases = []struct {
	name, file, in string
	want           []string
	err            string
}{
	{name: "lines", file: "coco.names", in: "person\r\nbicycle \r\n\r\n", want: []string{"person", "bicycle"}},
	{name: "byte order mark and a blank line", file: "l.txt", in: "\ufeffa\n\nc", want: []string{"a", "", "c"}},
	{name: "empty", file: "l.txt", in: "\n\n", err: "labels l.txt: empty"},
	{name: "binary", file: "l.txt", in: "\x00\x01", err: "not a text file"},
	{name: "too many", file: "l.txt", in: strings.Repeat("a\n", maxLabels+1), err: "labels l.txt:10001: class 10000 is out of range"},
	{name: "data.yaml, list", file: "data.yaml", in: "train: a\nnames: [a, no, 1.50]\nnc: 3\n", want: []string{"a", "no", "1.50"}},
	{name: "data.yaml, map", file: "data.yml", in: "names:\n  0: a\n  2: 'it''s'\n", want: []string{"a", "", "it's"}},
	{name: "no names", file: "data.yaml", in: "nc: 3", err: "no key names"},
	{name: "names are a number", file: "data.yaml", in: "nc: 1\nnames: 3", err: "labels data.yaml:2:8: class names have to be a list"},
	{name: "nested", file: "data.yaml", in: "names: [a, [b]]", err: "1:12: a class name has to be plain text"},
	{name: "no id", file: "data.yaml", in: "names: {x: y}", err: `"x" is no class id`},
	{name: "aliases", file: "data.yaml", in: "names: &a [x]", err: "anchors, aliases and tags"},
	{name: "broken", file: "data.yaml", in: "names: [a", err: "labels data.yaml:1:"},
	{name: "deep", file: "data.yaml", in: "names: " + strings.Repeat("[", 100), err: "nested too deeply"},
	{name: "deep dashes", file: "data.yaml", in: "names:\n" + strings.Repeat("- ", 100), err: "data.yaml:2:65: nested too deeply"},
	{name: "a ruler is not deep", file: "data.yaml", in: "# " + strings.Repeat("-", 100) + " x\nnames: [a]", want: []string{"a"}},
}

func TestParseLabels(t *testing.T) {
	for _, c := range labelsCases {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseLabels(c.file, []byte(c.in))
			if c.err != "" {
				wantError(t, err, c.err)
				return
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

var sidecarCases = []struct{ name, in, err string }{
	{name: "face", in: faceSidecar},
	{name: "comments only", in: "# nothing\n"},
	{name: "empty"},
	{name: "everything", in: "family: yolox\nimgsz: [320, 416]\nstride: 64\nlayout: nhwc\nresize: stretch\npad: 0\nchannels: bgr\nmean: 1\nstd: [1, 2, 3]\n" +
		"conf: 0.5\niou: 1\nlabels: {0: a}\nanchors: [[1, 2, 3, 4]]\nstrides: [8]\nsigmoid: true\nnormalized: false\ntransposed: true\n"},
	{name: "unknown key", in: "pad: 0\ntrain: ../a\n", err: `2:1: unknown field "train"`},
	{name: "key twice", in: "pad: 1\npad: 2", err: "2:1: "},
	{name: "a list", in: "- a", err: "1:1: expected keys and values"},
	{name: "unknown family", in: "family: yolo99", err: `1:9: family "yolo99" is not known`},
	{name: "fraction for a size", in: "imgsz: 640.5", err: `1:8: "640.5" is not a whole number`},
	{name: "leading zero in a size", in: "imgsz: [480, 0640]", err: `1:14: "0640" is read differently`},
	{name: "three sides", in: "imgsz: [1, 2, 3]", err: "imgsz wants a number of pixels or [height, width]"},
	{name: "group for a size", in: "imgsz: {a: 1}", err: "1:8: a whole number is missing here"},
	{name: "text for a number", in: "pad: x", err: `1:6: "x" is not a whole number`},
	{name: "number for a switch", in: "sigmoid: 3", err: `1:10: "3" is not true or false`},
	{name: "pad", in: "pad: 300", err: "pad is a level from 0 to 255"},
	{name: "std", in: "std: 0", err: "above 0"},
	{name: "mean", in: "mean: [1, 2]", err: "a number or three"},
	{name: "mean nan", in: "mean: .nan", err: "finite"},
	{name: "conf", in: "conf: 1.5", err: "1:7: conf is a number from 0 to 1"},
	{name: "iou", in: "iou: .nan", err: "iou is a number"},
	{name: "imgsz", in: "imgsz: [1, 2, 3]", err: "[height, width]"},
	{name: "imgsz range", in: "imgsz: 100000", err: "out of range"},
	{name: "resize", in: "resize: crop", err: "use one of letterbox, letterbox-end, stretch"},
	{name: "strides", in: "strides: [0]", err: "1 to 1024"},
	{name: "anchors", in: "anchors: [[1, 2, 3]]", err: "w,h pairs"},
	{name: "names twice", in: "names: [a]\nlabels: [a]", err: "names and labels are the same"},
	{name: "no names", in: "names: []", err: "no class names"},
	{name: "aliases", in: "anchors: [&a [1, 2], *a]", err: "anchors, aliases and tags"},
	{name: "tag", in: "std: !a b", err: "anchors, aliases and tags"},
	{name: "two documents", in: "pad: 1\n---\npad: 2", err: "second document"},
	{name: "too long", in: strings.Repeat("#", maxSidecar+1), err: "no sidecar"},
}

func TestParseSidecar(t *testing.T) {
	for _, c := range sidecarCases {
		t.Run(c.name, func(t *testing.T) {
			s, err := ParseSidecar("best.yaml", []byte(c.in))
			if c.err != "" {
				wantError(t, err, "best.yaml:", c.err)
				return
			}
			if err != nil || s == nil {
				t.Error(err)
			}
		})
	}
}

// A file beside the model goes over the metadata, an option over both.
func TestSidecarBesideModel(t *testing.T) {
	om := build(t, meta("eyas", "{pad: 1, conf: 0.4, channels: bgr}"), []port{f32("images", 1, 3, -1, -1)}, []port{f32("o", 1, 7, -1)})
	load := func(t *testing.T, sidecar string, o Options) (*Model, error) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "best.yaml"), sidecar)
		write(t, filepath.Join(dir, "names.txt"), "a\nb\nc\n")
		return New(om, filepath.Join(dir, "best.onnx"), o)
	}
	m, err := load(t, "{family: yolov8, pad: 2, mean: 3, std: 4, resize: stretch, iou: 0.6, imgsz: 320, stride: 64, labels: names.txt}", Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := prep.Recipe{Resize: prep.Stretch, Pad: 2, BGR: true, Mean: all(3), Std: all(4), Type: m.Input.Type}
	if m.Recipe != want || m.Conf != 0.4 || m.IoU != 0.6 || m.H != 320 || m.Stride != 64 || m.Label(2) != "c" || m.Name != "best" {
		t.Errorf("%+v conf %v iou %v %dx%d stride %d %q", m.Recipe, m.Conf, m.IoU, m.H, m.W, m.Stride, m.Labels)
	}
	m, err = load(t, "{family: yolox, imgsz: 320}", Options{Family: "yolov8", ImgSize: Size{416, 416}})
	if err != nil || m.Family != "yolov8" || m.H != 416 {
		t.Errorf("%v %v", m, err)
	}
	_, err = load(t, "path: ../coco\nnames: [a]", Options{})
	wantError(t, err, "best.yaml:1:1: unknown field", "settings for best.onnx", "rename it", "--labels")
	_, err = load(t, "labels: ../names.txt", Options{})
	wantError(t, err, "same folder")
	_, err = load(t, "labels: none.txt", Options{})
	wantError(t, err, "none.txt")
}

func TestMetadataNamesNoFiles(t *testing.T) {
	om := build(t, meta("eyas", "labels: /etc/passwd"), []port{picture}, []port{f32("o", 1, 84, 8400)})
	_, err := New(om, "", Options{})
	wantError(t, err, "metadata names no files")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// longSeed is what a fuzzer spends its time to shorten.
const longSeed = 1000

func checkLabels(t *testing.T, got []string) {
	if len(got) > maxLabels {
		t.Errorf("%d labels", len(got))
	}
	for _, s := range got {
		if printable(s) != s {
			t.Errorf("label %q is not printable", s)
		}
	}
}

func FuzzParseNames(f *testing.F) {
	for _, c := range namesCases {
		f.Add(c.in)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseNames(s)
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("more than one line: %v", err)
		}
		checkLabels(t, got)
	})
}

// deep are beginnings of documents that took gigabytes when they were long.
var deep = []string{strings.Repeat("[", 900), strings.Repeat("{a: ", 200), strings.Repeat("- ", 400), "[" + strings.Repeat(`["]",`, 150)}

func FuzzParseLabels(f *testing.F) {
	for _, s := range deep {
		f.Add(true, []byte("names: "+s))
	}
	for _, c := range labelsCases {
		if len(c.in) < longSeed {
			f.Add(strings.HasPrefix(c.file, "data"), []byte(c.in))
		}
	}
	f.Fuzz(func(t *testing.T, yaml bool, data []byte) {
		name := "l.txt"
		if yaml {
			name = "data.yaml"
		}
		got, err := ParseLabels(name, data)
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("more than one line: %v", err)
		}
		checkLabels(t, got)
	})
}

func FuzzParseSidecar(f *testing.F) {
	for _, s := range deep {
		f.Add([]byte("anchors: " + s))
	}
	for _, c := range sidecarCases {
		if len(c.in) < longSeed {
			f.Add([]byte(c.in))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseSidecar("best.yaml", data)
		if err != nil {
			if strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "best.yaml:") {
				t.Errorf("not one line with its place: %v", err)
			}
			return
		}
		checkLabels(t, s.Labels.Names)
		if len(s.Mean) == 2 || len(s.Std) == 2 || len(s.Anchors) > maxLevels {
			t.Errorf("%+v", s)
		}
	})
}

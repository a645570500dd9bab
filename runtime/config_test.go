package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eyas-edge/eyas/internal/testenv"
)

func TestParseConfig(t *testing.T) {
	c, err := ParseConfig([]byte(`
version: 1
ep: cpu
slo: none
duration: 1m30s
batch: [1]
models:
  ppe: {path: best.onnx, conf: 0.3, imgsz: 480x640, classes: [person, "3"]}
  face: {path: face, imgsz: 416}
sources:
  yard: {url: "clip.mp4", models: [ppe]}
  door: {url: "rtsp://viewer:${DOOR_PW}@10.0.0.7/stream"}
output: {file: out.jsonl, max_size: 1.5MiB}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Version: 1, EP: "cpu", SLO: NoSLO, Duration: 90 * time.Second, Batch: []int{1},
		Models: map[string]ModelConfig{
			"ppe":  {Path: "best.onnx", Conf: 0.3, ImgSize: ImgSize{480, 640}, Classes: []string{"person", "3"}},
			"face": {Path: "face", ImgSize: ImgSize{416, 416}},
		},
		Sources: Sources{ // in the order written
			{Name: "yard", URL: "clip.mp4", Models: []string{"ppe"}},
			{Name: "door", URL: "rtsp://viewer:${DOOR_PW}@10.0.0.7/stream"},
		},
		Output: OutputConfig{File: "out.jsonl", MaxSize: 3 << 19},
	}
	if diff := cmp.Diff(want, c, cmp.Comparer(func(a, b func(Event)) bool { return a == nil && b == nil })); diff != "" {
		t.Error(diff)
	}
}

func TestConfigErrorsSayWhere(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":        {"version: 1\nmodel: {}\n", `2:1: unknown field "model"`},
		"unknown nested key": {"models:\n  a: {path: x, confidence: 1}\n", `2:16: unknown field "confidence"`},
		"unknown source key": {"sources:\n  a:\n    uri: x\n", `3:5: unknown field "uri"`},
		"bad duration":       {"ep: cpu\nslo: fast\n", `2:6: time "fast" is not understood`},
		"bad size":           {"budget: lots\n", `1:9: size "lots" is not understood`},
		"fraction":           {"models:\n  a: {path: x, max_det: 2.7}\n", `2:25: "2.7" is not a whole number`},
		"leading zero":       {"threads: 010\n", `1:10: "010" is read differently`},
		"too large":          {"frames: 99999999999999999999\n", "is out of range"},
		"wrong type":         {"threads: many\n", `1:10: "many" is not a whole number`},
		"list for text":      {"sources:\n  a: {url: [x]}\n", `2:12: "[" is not a text`},
		"not YAML":           {"models: [\n", "1:"},
		"empty":              {"\n", "1:1: the file is empty"},
		"alias":              {"version: 1\nmodels: *a\n", "2:9: anchors, aliases and tags"},
		"deep brackets":      {"models: " + strings.Repeat("[", 2e5), "nested too deeply"},
		"deep maps":          {strings.Repeat("{a: ", 6e4), "nested too deeply"},
		"deep lists":         {strings.Repeat("- ", 1e5), "nested too deeply"},
		"brackets in quotes": {"models: [" + strings.Repeat(`["]",`, 4e4), "nested too deeply"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseConfig([]byte(c.text))
			if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, c.want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	model := map[string]ModelConfig{"a": {Path: "a.onnx"}}
	for name, c := range map[string]struct {
		cfg  Config
		want error
		text string
	}{
		"zero":              {Config{}, nil, ""},
		"one model":         {Config{Models: model}, nil, ""},
		"version":           {Config{Version: 2}, ErrConfig, "version 2"},
		"ep":                {Config{EP: "gpu"}, ErrConfig, `ep "gpu"`},
		"device of a cpu":   {Config{EP: "cpu", Device: "0"}, ErrConfig, `device "0"`},
		"negative slo":      {Config{SLO: -time.Second}, ErrConfig, "slo"},
		"conf":              {Config{Models: map[string]ModelConfig{"a": {Path: "a", Conf: 1.5}}}, ErrConfig, "model a: conf 1.5"},
		"no name":           {Config{Models: map[string]ModelConfig{"": {Path: "x"}}}, ErrConfig, "a model has no name"},
		"no path":           {Config{Models: map[string]ModelConfig{"a": {}}}, ErrConfig, "model a: path is missing"},
		"unknown model":     {Config{Models: model, Sources: Sources{{Name: "s", URL: "x", Models: []string{"b"}}}}, ErrConfig, `no model "b"`},
		"same source twice": {Config{Sources: Sources{{Name: "s", URL: "x"}, {Name: "s", URL: "y"}}}, ErrConfig, "used twice"},
		"budget":            {Config{Budget: 512 << 20}, nil, ""},
		"lanes":             {Config{Lanes: 2}, nil, ""},
		"too many threads":  {Config{Lanes: 64, Threads: 64}, ErrConfig, "64 lanes of 64 threads are 4096 threads, for "},
		"too many lanes":    {Config{Lanes: 65}, ErrConfig, "lanes 65 is out of range: use 1 to 64"},
		"slo":               {Config{SLO: time.Millisecond}, nil, ""},
		"no slo":            {Config{SLO: NoSLO}, nil, ""},
		"batch":             {Config{Batch: []int{0, 2}}, ErrConfig, "batch 0"},
		"quota":             {Config{Models: map[string]ModelConfig{"a": {Path: "a", Quota: -1}}}, ErrConfig, "model a: quota"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.cfg.Validate()
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.text)
			}
		})
	}
}

// A configuration written out and read again is the same, but for passwords.
func TestConfigRoundTrip(t *testing.T) {
	c := Config{
		SLO: NoSLO, Duration: time.Second, Threads: 2, Budget: Percent(40), Headroom: 3 << 20,
		Models:  map[string]ModelConfig{"a": {Path: "a.onnx", IoU: 0.5, ImgSize: ImgSize{640, 480}, MaxHold: 40 * time.Millisecond}},
		Sources: Sources{{Name: "z", URL: "z.mp4"}, {Name: "a", URL: "rtsp://me:secret@host/x"}},
		Output:  OutputConfig{Save: "out", Events: true},
	}
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "secret") {
		t.Errorf("the password is printed:\n%s", text)
	}
	back, err := ParseConfig(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	c.Sources[1].URL = "rtsp://host/x"
	if diff := cmp.Diff(c, back, cmp.Comparer(func(a, b func(Event)) bool { return a == nil && b == nil })); diff != "" {
		t.Errorf("%s\nwritten:\n%s", diff, text)
	}
}

// Sources that were given without a name come back without one, and a name may hold any characters.
func TestSourceNames(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, file := range []string{"a.gif", "b=c.gif"} {
		if err := os.WriteFile(file, []byte("GIF89a"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := Config{Sources: Sources{{URL: "a.gif"}, {URL: "*.gif"}, {URL: "b=c.gif"}, {Name: "front door/2", URL: "a.gif"}}}
	want := []string{"a.gif", "*.gif", "b=c.gif", "front door/2"}
	for range 2 {
		sources, err := c.OpenSources()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range sources {
			got = append(got, s.Name())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		text, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if c, err = ParseConfig(text); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
}

// The example in the documentation is one that loads.
func TestDocumentedConfigLoads(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "```yaml\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/configuration.md has no YAML example")
	}
	c, err := ParseConfig([]byte(example))
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		t.Error(err)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]Size{
		"512MiB": 512 << 20, "1.5GiB": 3 << 29, "300MB": 300e6, "1048576": 1 << 20, "0": 0, "40%": Percent(40), "12.5%": -1250, "2 KiB": 2048,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
		if back, err := ParseSize(want.String()); err != nil || back != want {
			t.Errorf("%s is written as %q, which reads as %d, %v", text, want, back, err)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1e30GiB", "NaN", "Inf", "0%", "101%", "0.004%", "1e-9%", "0.9", "0.0001KiB", "12 parsecs"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q is taken as %d", text, got)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte("version: 1\nmodels: {a: {path: x.onnx, conf: 0.3}}\nsources: {s: {url: x}}\n"))
	f.Add([]byte("slo: 66ms\nbudget: 1.5GiB\nbatch: [1, 2]\n"))
	f.Add([]byte("a: &a [*a]\n"))
	for _, deep := range []string{"[", "{a: ", "- ", `["]",`} {
		f.Add([]byte("models: " + strings.Repeat(deep, 200)))
	}
	f.Add([]byte("sources: {1: {url: x}, ? [a] : {url: y}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseConfig(data)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			return
		}
		if c.Validate() != nil {
			return
		}
		if _, err := c.YAML(); err != nil {
			t.Errorf("a valid configuration cannot be written: %v", err)
		}
	})
}

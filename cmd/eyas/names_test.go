package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Lines name their model and their source.
func TestNames(t *testing.T) {
	bus, zidane := picture(t, "classic/bus.jpg"), picture(t, "classic/zidane.jpg")
	small, face := modelFile(t, "yolox_nano_person_192"), modelFile(t, "yolox_nano_416")
	for _, c := range []struct {
		name string
		args []string
		want []string // source model
	}{
		{"two models", []string{"-m", small, "-m", face, bus}, []string{bus + " yolox_nano_416", bus + " yolox_nano_person_192"}},
		{"one file twice", []string{"-m", small, "-m", small, bus}, []string{bus + " yolox_nano_person_192", bus + " yolox_nano_person_192-2"}},
		{"named", []string{"-m", small, "door=" + bus}, []string{"door yolox_nano_person_192"}},
		{"two sources", []string{"-m", small, zidane, "a=" + bus}, []string{zidane + " yolox_nano_person_192", "a yolox_nano_person_192"}},
		{"glob", []string{"-m", small, filepath.Dir(bus) + "/[bz]*.jpg"}, []string{bus + " yolox_nano_person_192", zidane + " yolox_nano_person_192"}},
		{"named glob", []string{"-m", small, "yard=" + filepath.Dir(bus) + "/[bz]*.jpg"}, []string{"yard yolox_nano_person_192", "yard yolox_nano_person_192"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := call(t, append([]string{"run", "--threads", "2", "--labels", labels(t)}, c.args...)...)
			_, two, _ := strings.Cut(strings.Join(c.args, " "), face)
			if two != "" { // 80 classes and one name
				o = call(t, append([]string{"run", "--threads", "2", "-q"}, c.args...)...)
			}
			o.want(t, 0)
			var got []string
			for _, r := range results(t, o.stdout) {
				got = append(got, r.Source+" "+r.Model)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	t.Run("folder", func(t *testing.T) { // in natural order, each picture by its path
		dir := t.TempDir()
		for _, name := range []string{"img10.jpg", "img2.jpg", "IMG1.JPG"} {
			link(t, bus, filepath.Join(dir, name))
		}
		o := call(t, fast(t, dir)...)
		o.want(t, 0)
		var got []string
		for _, r := range results(t, o.stdout) {
			got = append(got, strings.TrimPrefix(r.Source, dir+"/"))
		}
		if want := []string{"IMG1.JPG", "img2.jpg", "img10.jpg"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A configuration chooses the models of a source.
func TestModelsOfASource(t *testing.T) {
	config := filepath.Join(t.TempDir(), "eyas.yaml")
	write(t, config, `
threads: 2
models:
  coco: {path: `+modelFile(t, "yolox_nano_416")+`}
  people: {path: `+modelFile(t, "yolox_nano_person_192")+`, labels: `+labels(t)+`}
sources:
  front door: {url: `+picture(t, "classic/bus.jpg")+`, models: [people]}
  yard: {url: `+picture(t, "classic/zidane.jpg")+`}
`)
	o := call(t, "run", "-c", config)
	o.want(t, 0)
	var got []string
	for _, r := range results(t, o.stdout) {
		got = append(got, r.Source+": "+r.Model)
	}
	if want := []string{"front door: people", "yard: coco", "yard: people"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A password that the user has typed, or put into the environment, appears nowhere.
func TestPasswordsAreNotShown(t *testing.T) {
	const secret = "s3cret-Pa55"
	t.Setenv("EYAS_TEST_PW", secret)
	model, bus := modelFile(t, "yolox_nano_416"), picture(t, "classic/bus.jpg")
	t.Chdir(t.TempDir())
	write(t, "list.yaml", "sources: {door: {url: [\"rtsp://viewer:"+secret+"@10.0.0.7/s\"]}}\n")
	write(t, "twice.yaml", "sources:\n  door: {url: a, url: \"rtsp://viewer:"+secret+"@10.0.0.7/s\"}\n")
	write(t, "good.yaml", "models: {m: {path: \""+model+"\"}}\nsources: {door: {url: \"rtsp://viewer:"+secret+"@10.0.0.7/s\"}}\n")
	for _, source := range []string{
		"rtsp://viewer:" + secret + "@10.0.0.7/stream",
		"door=rtsp://viewer:" + secret + "@10.0.0.7/stream",
		"rtsps://viewer:" + secret + "@10.0.0.7/stream",
		"door=rtsp://viewer:${EYAS_TEST_PW}@10.0.0.7/stream",
		"https://cam/snapshot.jpg?token=" + secret,
		"http://cam/snapshot.jpg?user=me&password=${EYAS_TEST_PW}",
		"gst:rtspsrc location=rtsp://viewer:" + secret + "@10.0.0.7/s ! decodebin ! appsink",
		"rtmp://viewer:" + secret + "@10.0.0.7/live",
		"rtsp://viewer:12/" + secret + "@10.0.0.7/stream",
	} {
		for _, args := range [][]string{
			{"run", "-m", model, "--slo", "none", "--duration", "100ms", source}, // a camera would be tried for ever
			{"run", "-m", model, "--slo", "none", "--duration", "100ms", "--events", source, "missing.jpg"},
			{"run", "-m", model, "--print-config", source},
			{"run", "-m", model, "--slo", "none", "--duration", "100ms", "--log-format", "json", source},
			{"run", "-m", source, "x.jpg"}, {"run", "-c", source}, {"run", "-m", model, "-o", source + "/x", bus},
			{"run", "-m", model, "--imgsz", source}, {"inspect", source}, {"eval", source}, {"eval", model, "--coco", source},
			{"eval", model, "--data", source}, {"pull", source}, {"version", source}, {source}, {"run", "--" + source},
		} {
			o := call(t, args...)
			if strings.Contains(o.stdout+o.stderr, secret) {
				t.Errorf("%q: the password is shown:\n%s%s", args, o.stdout, o.stderr)
			}
		}
	}
	for _, file := range []string{"list.yaml", "twice.yaml", "good.yaml"} {
		for _, flag := range []string{"--check", "--print-config"} {
			if o := call(t, "run", "-c", file, flag); strings.Contains(o.stdout+o.stderr, secret) {
				t.Errorf("%s: the password is shown:\n%s%s", file, o.stdout, o.stderr)
			}
		}
	}
}

// What this build lacks is refused before anything is loaded.
func TestNotYet(t *testing.T) {
	call(t, fast(t, "media:camera")...).want(t, 2, "source media:camera: this eyas was built without mediadevices: use v4l2: instead, or build it with -tags media")
	for flag, value := range map[string]string{
		"precision": "fp16",
	} {
		call(t, fast(t, "--"+flag, value, picture(t, "classic/bus.jpg"))...).want(t, 2, ": not yet in this version: leave it out")
	}
}

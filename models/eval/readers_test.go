package eval

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/yamlfile"
)

const smallCOCO = `{"info": {"x": [1, {"y": 2}]}, "images": [{"id": 7, "file_name": "b.jpg", "width": 20, "height": 10}, {"id": 3, "file_name": "a.jpg", "width": 30, "height": 10}],
"categories": [{"id": 90, "name": "cat"}, {"id": 2, "name": "dog"}],
"annotations": [
 {"id": 1, "image_id": 7, "category_id": 90, "bbox": [1, 2, 3, 4], "area": 5.5, "iscrowd": 0, "segmentation": [[1, 2]]},
 {"id": 2, "image_id": 3, "category_id": 2, "bbox": [1, 2, 3, 4], "iscrowd": 1, "segmentation": {"counts": "abc", "size": [1, 2]}},
 {"id": 3, "image_id": 3, "category_id": 2, "bbox": [1, 2, 0, 4], "area": 0}]}`

func TestReadCOCO(t *testing.T) {
	images := []Image{{3, "a.jpg", 30, 10}, {7, "b.jpg", 20, 10}}
	cat := Box{Image: 7, Class: 1, Box: [4]float64{1, 2, 4, 6}, Area: 5.5}
	dogs := Box{Image: 3, Class: 0, Box: [4]float64{1, 2, 4, 6}, Area: 12, Crowd: true}
	moved := func(b Box, class int) Box { b.Class = class; return b }
	for _, c := range []struct {
		name   string
		labels []string
		want   *GroundTruth
	}{
		{"the dataset's classes, in the order of IDs", nil, &GroundTruth{Classes: []string{"dog", "cat"}, Boxes: []Box{cat, dogs}}},
		{"by name", []string{"Cat", "bird", "dog "}, &GroundTruth{Classes: []string{"Cat", "bird", "dog "}, Boxes: []Box{moved(cat, 0), moved(dogs, 2)}}},
		{"by name, the other way round", []string{"cat", "dog"}, &GroundTruth{Classes: []string{"cat", "dog"}, Boxes: []Box{moved(cat, 0), moved(dogs, 1)}}},
		{"a class that the model lacks", []string{"cat"}, &GroundTruth{Classes: []string{"cat"}, Boxes: []Box{moved(cat, 0)}, Skipped: []string{"dog"}}},
		{"as many, and not one name in common", []string{"Hund", "Katze"}, &GroundTruth{Classes: []string{"Hund", "Katze"}, Boxes: []Box{cat, dogs}, ByOrder: true}},
		{"as many, spelt differently", []string{"Hund", "cat"}, &GroundTruth{Classes: []string{"Hund", "cat"}, Boxes: []Box{cat, dogs}}},
		{"as many, spelt differently, in another order", []string{"cat", "Hund"}, &GroundTruth{Classes: []string{"cat", "Hund"}, Boxes: []Box{moved(cat, 0)}, Skipped: []string{"dog"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.Images, c.want.Dropped = images, 1
			got, err := ReadCOCO(strings.NewReader(smallCOCO), c.labels)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestReadCOCORefuses(t *testing.T) {
	head := `{"images": [{"id": 1}], "categories": [{"id": 1, "name": "a"}], "annotations": [`
	for _, c := range []struct{ want, file string }{
		{"ends early", ""},
		{"ends early", smallCOCO[:300]},
		{"instances file", `{"annotations": []}`},
		{"it is a JSON array: give a COCO instances file", `[1, 2]`},
		{"no JSON at byte 1 (", "\x89PNG"},
		{"images is a JSON number at byte", `{"images": 3}`},
		{"annotations.image_id is a JSON string at byte", head + `{"image_id": "2", "category_id": 1}]}`},
		{"images.id is a JSON number 99999999999999999999 at byte", `{"images": [{"id": 99999999999999999999}]}`},
		{"a bbox is {}: it has to be four numbers", head + `{"image_id": 1, "category_id": 1, "bbox": {}}]}`},
		{"two images", `{"images": [{"id": 1}, {"id": 1}], "categories": [{"id": 1}]}`},
		{"two categories", `{"images": [{"id": 1}], "categories": [{"id": 1}, {"id": 1}]}`},
		{"image 2, which", head + `{"image_id": 2, "category_id": 1, "bbox": [0, 0, 1, 1]}]}`},
		{"category 2, which", head + `{"image_id": 1, "category_id": 2, "bbox": [0, 0, 1, 1]}]}`},
		{"bbox has 3", head + `{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1]}]}`},
		{"iscrowd", head + `{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "iscrowd": 2}]}`},
		{"has the box", head + `{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1e300, 1e300]}]}`},
	} {
		if _, err := ReadCOCO(strings.NewReader(c.file), nil); err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "eval.") || strings.Contains(err.Error(), "Go ") {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
	}
	if _, err := ReadCOCO(strings.NewReader(smallCOCO), []string{"bird"}); err == nil || !strings.Contains(err.Error(), "--labels") {
		t.Errorf("got %v for a model without any of the classes", err)
	}
}

// Objects that cannot be matched are counted, whatever their class.
func TestCOCODropped(t *testing.T) {
	file := `{"images": [{"id": 1}], "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}], "annotations": [
{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1]}, {"image_id": 1, "category_id": 1}, {"image_id": 1, "category_id": 2, "bbox": [5, 5, -2, 3]}]}`
	g, err := ReadCOCO(strings.NewReader(file), []string{"a"})
	if err != nil || g.Dropped != 2 || len(g.Boxes) != 1 {
		t.Errorf("got %+v, %v", g, err)
	}
}

func TestParseDataYAML(t *testing.T) {
	for _, c := range []struct{ name, file, path, val, names string }{
		{"list", "path: data\nval: images/val\nnc: 2\nnames: [cat, 'big dog']\n", "data", "images/val", "cat,big dog"},
		{"map", "val: [a, b.txt]\nnames:\n  1: dog\n  0: cat\n", "", "a,b.txt", "cat,dog"},
		{"map with a gap", "val: a\nnames: {0: cat, 2: dog}", "", "a", "cat,1,dog"},
		{"lines, numbers and words as names, other tools' keys", "# COCO\ndownload: |\n  import os\nroboflow: {url: x, n: [1, 2]}\nval: a\nnames:\n- 911\n- yes\n- 1.50\ntest:\n", "", "a", "911,yes,1.50"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := parseDataYAML([]byte(c.file))
			if err != nil {
				t.Fatal(err)
			}
			if d.path != c.path || strings.Join(d.splits["val"], ",") != c.val || strings.Join(d.names, ",") != c.names {
				t.Errorf("got %+v", d)
			}
		})
	}
	for _, c := range []struct{ want, file string }{
		{"empty", ""},
		{"empty", "# only a comment"},
		{"no map", "- a\n- b"},
		{"no names", "val: x"},
		{"plain value", "path: [a]\nnames: [b]"},
		{"plain value", "val: [[a]]\nnames: [b]"},
		{"1:8: names is \"3\": it has to be a list", "names: 3"},
		{"names is \"coco.names\": it has to be a list", "names: coco.names"},
		{"1:5: nc says 5 classes, and names gives 1", "nc: 5\nnames: [a]"},
		{"1:5: \"1.5\" is not a whole number", "nc: 1.5\nnames: [a]"},
		{"no names", "val: x\nnames:"},
		{"no number", "names: {a: b}"},
		{"no number", "names: {99999999: b}"},
		{"two names", "names: {1: b, 01: c}"},
		{"at most", "#" + strings.Repeat("x", yamlfile.MaxBytes)},
		{"nested too deeply", strings.Repeat("- ", 1000)},
		{"2:8: anchors", "val: a\nnames: &a [b]"},
		{"", "a: [\n"},
	} {
		if _, err := parseDataYAML([]byte(c.file)); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: got %v, want one line with %q", c.file, err, c.want)
		}
	}
}

func TestParseLabels(t *testing.T) {
	got, dropped, err := parseLabels([]byte("1 0.5 0.5 0.2 0.4\r\n\n0 0.1 0.2 0.5 0.3 0.3 0.8\n0 0.5 0.5 0 0.1\n1 1 1 0.1 0.1"), 2)
	if err != nil || dropped != 1 {
		t.Fatal(dropped, err)
	}
	want := []label{{1, [4]float64{0.4, 0.3, 0.6, 0.7}}, {0, [4]float64{0.1, 0.2, 0.5, 0.8}}, {1, [4]float64{0.95, 0.95, 1.05, 1.05}}}
	for i, w := range want {
		for k, v := range w.box {
			if len(got) != len(want) || got[i].class != w.class || math.Abs(got[i].box[k]-v) > 1e-12 {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
	}
	for _, c := range []struct{ want, file string }{
		{"line 2: 4 values", "0 0.1 0.1 0.1 0.1\n0 0.1 0.1 0.1"},
		{"6 values", "0 0.1 0.1 0.1 0.1 0.9"},
		{"8 values", "0 0.1 0.1 0.1 0.1 0.1 0.1 0.1"},
		{"no number", "0 0.1 0.1 x 0.1"},
		{"no number", "0 0.1 0.1 NaN 0.1"},
		{"not in 0..1", "0 20 0.1 0.1 0.1"},
		{"not in 0..1", "0 -0.1 0.1 0.1 0.1"},
		{"class 2: there are 2", "2 0.1 0.1 0.1 0.1"},
		{"class -1", "-1 0.1 0.1 0.1 0.1"},
		{"class 0.5", "0.5 0.1 0.1 0.1 0.1"},
	} {
		if _, _, err := parseLabels([]byte(c.file), 2); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want an error with %q", c.file, err, c.want)
		}
	}
}

// write makes a file and its folders.
func write(t *testing.T, text string, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOpenYOLO(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.jpg", "a.PNG", "sub/c.webp", "notes.txt", "x.cache"} {
		write(t, "", dir, "set", "images", "val", name)
	}
	write(t, "0 0.5 0.5 0.5 0.5\n2 0.5 0.5 0.5 0.5\n", dir, "set", "labels", "val", "b.txt")
	write(t, "1 0.1 0.1 0.3 0.1 0.3 0.3", dir, "set", "labels", "val", "sub", "c.txt")
	write(t, "./images/val/b.jpg\n\nimages/val/a.PNG\n", dir, "set", "some.txt")
	in := func(names ...string) []string {
		var out []string
		for _, n := range names {
			out = append(out, filepath.Join(dir, "set", "images", "val", n))
		}
		return out
	}
	for _, c := range []struct {
		name, yaml string
		want       []string
	}{
		{"folder", "path: set\nval: images/val", in("a.PNG", "b.jpg", "sub/c.webp")},
		{"list", "path: set\nval: some.txt", in("a.PNG", "b.jpg")},
		{"both, each picture once", "path: set\nval: [some.txt, images]", in("a.PNG", "b.jpg", "sub/c.webp")},
		{"a path of another machine", "path: ../datasets/nowhere\nval: set/images/val/sub", in("sub/c.webp")},
		{"an exporter's wrong ../", "val: ../set/images/val/sub", in("sub/c.webp")},
		{"absolute", "path: " + dir + "/set\nval: " + dir + "/set/images/val/b.jpg", in("b.jpg")},
	} {
		t.Run(c.name, func(t *testing.T) {
			write(t, c.yaml+"\nnames: [x, y, z]\n", dir, "data.yaml")
			d, err := OpenYOLO(filepath.Join(dir, "data.yaml"), "val")
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(d.Files, c.want) {
				t.Errorf("got %v, want %v", d.Files, c.want)
			}
		})
	}
	for _, c := range []struct{ want, yaml string }{
		{"no val pictures", "test: a"},
		{"no such file", "val: nowhere"},
		{"there is no picture in set/labels", "val: set/labels"},
	} {
		write(t, c.yaml+"\nnames: [x]\n", dir, "data.yaml")
		if _, err := OpenYOLO(filepath.Join(dir, "data.yaml"), "val"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
	}
}

func TestYOLOGroundTruth(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		write(t, "", dir, "images", name+".jpg")
	}
	write(t, "0 0.5 0.5 0.5 0.5\n2 0.5 0.5 0.5 0.5\n", dir, "labels", "a.txt")
	write(t, "1 0.25 0.25 0.75 0.25 0.75 0.5\n0 0.5 0.5 0 0\n", dir, "labels", "c.txt")
	write(t, "val: images\nnames: [x, y, z]\n", dir, "data.yaml")
	d, err := OpenYOLO(filepath.Join(dir, "data.yaml"), "val")
	if err != nil {
		t.Fatal(err)
	}
	size := func(string) (int, int, error) { return 200, 100, nil }
	got, err := d.GroundTruth([]string{"y", "x"}, size)
	if err != nil {
		t.Fatal(err)
	}
	want := []Box{{Image: 0, Class: 1, Box: [4]float64{50, 25, 150, 75}, Area: 5000}, {Image: 2, Class: 0, Box: [4]float64{50, 25, 150, 50}, Area: 2500}}
	if !reflect.DeepEqual(got.Boxes, want) || len(got.Images) != 3 || got.Dropped != 1 || !reflect.DeepEqual(got.Skipped, []string{"z"}) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := New(got); err != nil {
		t.Error(err)
	}
	broken := errors.New("broken")
	if _, err := d.GroundTruth(nil, func(string) (int, int, error) { return 0, 0, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want the size's error", err)
	}
	write(t, "7 0.5 0.5 0.5 0.5", dir, "labels", "b.txt")
	if _, err := d.GroundTruth(nil, size); err == nil || !strings.Contains(err.Error(), "b.txt: line 1: class 7") {
		t.Errorf("got %v, want the file and the line", err)
	}
}

func TestLabelFile(t *testing.T) {
	for picture, want := range map[string]string{
		"/d/images/val/a.b.jpg":   "/d/labels/val/a.b.txt",
		"/images/x/images/a.jpg":  "/images/x/labels/a.txt",
		"images/a.jpg":            "labels/a.txt",
		"/d/pictures/a.jpg":       "/d/pictures/a.txt",
		"/d/my-images/images.jpg": "/d/my-images/images.txt",
	} {
		if got := filepath.ToSlash(labelFile(filepath.FromSlash(picture))); got != want {
			t.Errorf("%s: got %s, want %s", picture, got, want)
		}
	}
}

func FuzzReadCOCO(f *testing.F) {
	f.Add([]byte(smallCOCO))
	f.Add([]byte(`{"images": [{"id": 1}], "categories": [{"id": 1, "name": "a"}], "annotations": [{"image_id": 1, "category_id": 1, "bbox": [1e308, 0, 1e308, 1], "area": -1}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := ReadCOCO(strings.NewReader(string(data)), nil)
		if err != nil {
			return
		}
		checkTruth(t, g)
	})
}

func FuzzYOLO(f *testing.F) {
	f.Add([]byte("path: data\nval: images/val\nnames: [cat, dog]\n"), []byte("1 0.5 0.5 0.2 0.4\r\n\n0 0.1 0.2 0.5 0.3 0.3 0.8\n"))
	for _, s := range []string{"[", "{a: ", "- ", `["]",`} {
		f.Add([]byte("names: "+strings.Repeat(s, 200)), []byte("0 1 1 1 1"))
	}
	f.Add([]byte("names:\n  1: dog\n  0: &a cat\n  3: *a\nval: [a, b.txt]"), []byte("0 1e-400 1 1 1\n0 NaN 0 0 0"))
	f.Fuzz(func(t *testing.T, yaml, labels []byte) {
		d, err := parseDataYAML(yaml)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of two lines: %q", err)
			}
			return
		}
		found, _, err := parseLabels(labels, len(d.names))
		if err != nil {
			return
		}
		g := &GroundTruth{Classes: d.names, Images: []Image{{ID: 0, W: 100, H: 50}}}
		for _, l := range found {
			g.Boxes = append(g.Boxes, Box{Class: l.class, Box: l.box})
		}
		checkTruth(t, g)
	})
}

// checkTruth says what makes ground truth unfit to measure with.
func checkTruth(t *testing.T, g *GroundTruth) {
	t.Helper()
	for _, b := range g.Boxes {
		if !(b.Box[0] <= b.Box[2] && b.Box[1] <= b.Box[3]) || math.IsInf(size(b.Box), 0) {
			t.Fatalf("box %v", b)
		}
	}
	e, err := New(g)
	if err != nil {
		t.Fatal(err)
	}
	if r := e.Result(); !(r.AP <= 0) {
		t.Fatalf("AP %v of nothing", r.AP)
	}
}

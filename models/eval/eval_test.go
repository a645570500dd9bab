package eval

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/models/decode"
)

// assets returns the folder of the test assets, or skips.
func assets(t *testing.T) string {
	t.Helper()
	return testenv.Assets(t)
}

func readJSON(t *testing.T, file string, to any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, to); err != nil {
		t.Fatal(err)
	}
}

// The expected detections of every model give the figures that two other evaluators agree on.
func TestExpectedAP(t *testing.T) {
	dir := assets(t)
	var want map[string]struct{ AP, AP50, AP75 float64 }
	readJSON(t, filepath.Join(dir, "expected", "ap.json"), &want)
	if len(want) == 0 {
		t.Fatal("no expected figures")
	}
	f, err := os.Open(filepath.Join(dir, "images", "coco", "instances.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	truth, err := ReadCOCO(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(truth.Boxes) != 188 || len(truth.Classes) != 80 || len(truth.Skipped) != 0 {
		t.Errorf("read %d boxes of %d classes, skipped %v: want 188 of 80", len(truth.Boxes), len(truth.Classes), truth.Skipped)
	}
	for model, w := range want {
		var found struct {
			Images map[string][]struct {
				Class int        `json:"class_id"`
				Score float32    `json:"score"`
				Box   [4]float32 `json:"box"`
			} `json:"images"`
		}
		readJSON(t, filepath.Join(dir, "expected", model+".json"), &found)
		e, err := New(truth)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range truth.Images {
			var dets []decode.Detection
			for _, d := range found.Images[m.File] {
				dets = append(dets, decode.Detection{ClassID: d.Class, Score: d.Score, Box: d.Box})
			}
			if err := e.Add(m.ID, dets); err != nil {
				t.Fatal(err)
			}
		}
		r := e.Result()
		t.Logf("%-28s AP %.4f (%.4f) AP50 %.4f (%.4f) AP75 %.4f (%.4f)", model, r.AP, w.AP, r.AP50, w.AP50, r.AP75, w.AP75)
		for _, p := range [][2]float64{{r.AP, w.AP}, {r.AP50, w.AP50}, {r.AP75, w.AP75}} {
			if math.Abs(p[0]-p[1]) > 0.002 {
				t.Errorf("%s: got %.4f, want %.4f", model, p[0], p[1])
			}
		}
		if len(r.PerClass) != 34 || r.Boxes != 188 {
			t.Errorf("%s: %d boxes of %d classes, want 188 of 34", model, r.Boxes, len(r.PerClass))
		}
	}
}

// square is a box of a side of 10 at x, in class 0 of image 1.
func square(x float64) Box {
	return Box{Image: 1, Box: [4]float64{x, 0, x + 10, 10}, Area: 100}
}

func det(x1, y1, x2, y2, score float32) decode.Detection {
	return decode.Detection{Score: score, Box: [4]float32{x1, y1, x2, y2}}
}

func TestMatching(t *testing.T) {
	crowd := Box{Image: 1, Box: [4]float64{50, 0, 150, 100}, Area: 5000, Crowd: true}
	other := square(0)
	other.Class = 1
	second := square(0)
	second.Image = 2
	for _, c := range []struct {
		name     string
		truth    []Box
		dets     []decode.Detection
		ap, ap50 float64
	}{
		{"perfect", []Box{square(0)}, []decode.Detection{det(0, 0, 10, 10, 0.5)}, 1, 1},
		{"nothing found", []Box{square(0)}, nil, 0, 0},
		{"nothing to find", nil, []decode.Detection{det(0, 0, 10, 10, 0.5)}, -1, -1},
		// IoU 0.6 is a hit at .50 and .55; .60 is missed by rounding as in pycocotools: 60 of 100 is 0.6 >= 0.6.
		{"IoU 0.6", []Box{square(0)}, []decode.Detection{det(0, 0, 10, 6, 0.5)}, 0.3, 1},
		// The second of two finds the same object: precision 1 at full recall stands.
		{"found twice", []Box{square(0)}, []decode.Detection{det(0, 0, 10, 10, 0.5), det(0, 0, 10, 10, 0.4)}, 1, 1},
		// The wrong one is first: precision is 1/2 everywhere.
		{"wrong one first", []Box{square(0)}, []decode.Detection{det(90, 90, 95, 95, 0.9), det(0, 0, 10, 10, 0.5)}, 0.5, 0.5},
		// Recall stops at 1/2: 51 of 101 points have precision 1.
		{"half found", []Box{square(0), square(100)}, []decode.Detection{det(0, 0, 10, 10, 0.5)}, 51.0 / 101, 51.0 / 101},
		{"another class does not count", []Box{square(0), other}, []decode.Detection{det(0, 0, 10, 10, 0.5)}, 0.5, 0.5},
		{"pictures that were not added are missed", []Box{square(0), second}, []decode.Detection{det(0, 0, 10, 10, 0.5)}, 51.0 / 101, 51.0 / 101},
		// In the crowd everything is ignored, however many: overlap is over the detection's own area.
		{"crowd", []Box{square(0), crowd}, []decode.Detection{det(60, 10, 80, 30, 0.9), det(60, 10, 80, 30, 0.8), det(0, 0, 10, 10, 0.5)}, 1, 1},
		{"crowd only", []Box{crowd}, []decode.Detection{det(60, 10, 80, 30, 0.9)}, -1, -1},
		// A detection takes the object that counts, even where a crowd overlaps it more.
		{"object before crowd", []Box{crowd, {Image: 1, Box: [4]float64{60, 10, 80, 22}, Area: 240}},
			[]decode.Detection{det(60, 10, 80, 30, 0.9)}, 0.3, 1},
		// Two detections, two objects: each object goes to the better score first.
		{"best overlap", []Box{square(0), square(4)}, []decode.Detection{det(4, 0, 14, 10, 0.9), det(0, 0, 10, 10, 0.8)}, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := New(&GroundTruth{Classes: []string{"a", "b"}, Images: []Image{{ID: 2}, {ID: 1}}, Boxes: c.truth})
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Add(1, c.dets); err != nil {
				t.Fatal(err)
			}
			r := e.Result()
			if math.Abs(r.AP-c.ap) > 1e-9 || math.Abs(r.AP50-c.ap50) > 1e-9 {
				t.Errorf("got AP %v, AP50 %v; want %v, %v", r.AP, r.AP50, c.ap, c.ap50)
			}
			if data, err := json.Marshal(r); err != nil {
				t.Errorf("%s: %v", data, err)
			}
		})
	}
}

func TestAreas(t *testing.T) {
	small, large := square(0), Box{Image: 1, Box: [4]float64{0, 0, 100, 100}, Area: 10000}
	e, err := New(&GroundTruth{Classes: []string{"a"}, Images: []Image{{ID: 1}}, Boxes: []Box{small, large}})
	if err != nil {
		t.Fatal(err)
	}
	// Of the small range the large object and the detection that finds it are out, and so is an unmatched
	// detection of another size.
	if err := e.Add(1, []decode.Detection{det(0, 0, 100, 100, 0.9), det(200, 0, 300, 100, 0.8), det(0, 0, 10, 10, 0.7)}); err != nil {
		t.Fatal(err)
	}
	r := e.Result()
	if r.APSmall != 1 || r.APMedium != -1 || r.APLarge != 1 {
		t.Errorf("got small %v, medium %v, large %v; want 1, -1, 1", r.APSmall, r.APMedium, r.APLarge)
	}
}

// The 101st detection of a class in a picture does not count.
func TestMaxDets(t *testing.T) {
	e, _ := New(&GroundTruth{Classes: []string{"a"}, Images: []Image{{ID: 1}}, Boxes: []Box{square(0)}})
	var dets []decode.Detection
	for range MaxDets {
		dets = append(dets, det(90, 90, 95, 95, 0.9))
	}
	_ = e.Add(1, append(dets, det(0, 0, 10, 10, 0.5)))
	if r := e.Result(); r.AP != 0 {
		t.Errorf("got AP %v, want 0", r.AP)
	}
}

func TestEvaluatorRefuses(t *testing.T) {
	images := []Image{{ID: 1}}
	for want, g := range map[string]*GroundTruth{
		"two images":   {Images: []Image{{ID: 1}, {ID: 1}}},
		"not there":    {Images: images, Classes: []string{"a"}, Boxes: []Box{{Image: 2}}},
		"class 1 of 1": {Images: images, Classes: []string{"a"}, Boxes: []Box{{Image: 1, Class: 1}}},
	} {
		if _, err := New(g); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	e, _ := New(&GroundTruth{Images: images})
	if err := e.Add(2, nil); err == nil {
		t.Error("an unknown image was taken")
	}
	if err := e.Add(1, nil); err != nil {
		t.Error(err)
	}
	if err := e.Add(1, nil); err == nil {
		t.Error("an image was taken twice")
	}
}

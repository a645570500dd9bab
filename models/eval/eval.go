// Package eval measures detections against ground truth as COCO defines it: average precision over IoU
// thresholds .50:.05:.95 and 101 points of recall, at most 100 detections of a class in a picture, crowds
// and sizes out of range neither rewarded nor punished. The figures are those of
// pycocotools' COCOeval with iouType bbox. It reads COCO's instances files and YOLO datasets; it opens no pictures.
package eval

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/eyas-edge/eyas/models/decode"
)

// Image is one picture of the ground truth.
type Image struct {
	ID   int64
	File string // COCO: as the file says, relative to its image folder; YOLO: the path to open
	W, H int    // pixels of the displayed picture
}

// Box is one object of the ground truth.
type Box struct {
	Image int64      // the picture's ID
	Class int        // index into GroundTruth.Classes
	Box   [4]float64 // x1,y1,x2,y2 in pixels
	Area  float64    // pixels; the object's, not the box's, where a mask was annotated
	Crowd bool       // many objects in one box: what lies inside is not judged
}

// GroundTruth is what a dataset says.
type GroundTruth struct {
	Classes []string // names by class index
	Images  []Image  // by ascending ID
	Boxes   []Box
	Skipped []string // classes of the dataset that the model does not have; their boxes are left out
	Dropped int      // objects without a box or with one of no area, which are left out: nothing can match them
	// ByOrder: not one name is both a class of the dataset and of the model. They are as many, so they are taken
	// in their order, which is a guess that the user should know of.
	ByOrder bool
}

// MaxDets is the most detections of a class in a picture that count, the best first.
const MaxDets = 100

// detection is one detection that counts.
type detection struct {
	image int // index into the images
	class int
	score float64
	box   [4]float64
}

// Evaluator collects detections. It belongs to one goroutine.
type Evaluator struct {
	truth *GroundTruth
	index map[int64]int // image ID -> index by ascending ID
	added []bool
	dets  []detection
}

// New returns an evaluator of truth, or an error if two images share an ID or a box belongs to none.
func New(truth *GroundTruth) (*Evaluator, error) {
	e := &Evaluator{truth: truth, index: make(map[int64]int, len(truth.Images)), added: make([]bool, len(truth.Images))}
	ids := make([]int64, 0, len(truth.Images))
	for _, m := range truth.Images {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	for i, id := range ids {
		if _, ok := e.index[id]; ok {
			return nil, fmt.Errorf("eval: two images have the ID %d", id)
		}
		e.index[id] = i
	}
	for _, b := range truth.Boxes {
		if _, ok := e.index[b.Image]; !ok {
			return nil, fmt.Errorf("eval: a box belongs to image %d, which is not there", b.Image)
		}
		if b.Class < 0 || b.Class >= len(truth.Classes) {
			return nil, fmt.Errorf("eval: a box of image %d has class %d of %d", b.Image, b.Class, len(truth.Classes))
		}
	}
	return e, nil
}

// Add takes the detections of one picture, boxes in pixels of the displayed picture. Pictures that are never
// added count as ones where nothing was found. It fails for an unknown picture and for one added before.
func (e *Evaluator) Add(image int64, dets []decode.Detection) error {
	i, ok := e.index[image]
	if !ok {
		return fmt.Errorf("eval: image %d is not in the ground truth", image)
	}
	if e.added[i] {
		return fmt.Errorf("eval: image %d has its detections already", image)
	}
	e.added[i] = true
	for _, d := range dets {
		e.dets = append(e.dets, detection{image: i, class: d.ClassID, score: float64(d.Score),
			box: [4]float64{float64(d.Box[0]), float64(d.Box[1]), float64(d.Box[2]), float64(d.Box[3])}})
	}
	return nil
}

// Result is a measurement. Figures are in 0..1; -1 where there is no ground truth to measure with.
type Result struct {
	AP   float64 // mean over classes and IoU .50:.05:.95
	AP50 float64 // at IoU .50
	AP75 float64 // at IoU .75

	APSmall, APMedium, APLarge float64 // objects below 32x32 pixels, up to 96x96, above

	Images     int // pictures in the ground truth
	Boxes      int // objects that count: no crowds
	Detections int
	PerClass   []ClassResult // classes that occur, in their order
}

// ClassResult is the measurement of one class.
type ClassResult struct {
	Class          int
	Name           string
	Boxes          int // objects that count; 0 where there are crowds only, then the figures are -1
	AP, AP50, AP75 float64
}

// Result measures what was added.
func (e *Evaluator) Result() Result {
	truths := make([]truth, 0, len(e.truth.Boxes))
	for _, b := range e.truth.Boxes {
		truths = append(truths, truth{image: e.index[b.Image], class: b.Class, box: b.Box, area: b.Area, crowd: b.Crowd})
	}
	slices.SortStableFunc(truths, func(a, b truth) int { return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.image, b.image)) })
	dets := slices.Clone(e.dets)
	slices.SortStableFunc(dets, func(a, b detection) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.image, b.image), cmp.Compare(b.score, a.score))
	})
	r := Result{Images: len(e.truth.Images), Detections: len(dets)}
	var mean [numAreas][numIoUs]average
	for len(truths) > 0 {
		class := truths[0].class
		var mine []truth
		var found []detection
		mine, truths = cutWhile(truths, func(t truth) bool { return t.class == class })
		_, dets = cutWhile(dets, func(d detection) bool { return d.class < class })
		found, dets = cutWhile(dets, func(d detection) bool { return d.class == class })
		m := measure(mine, found)
		c := ClassResult{Class: class, Name: e.truth.Classes[class], Boxes: m.positives[areaAll], AP: -1, AP50: -1, AP75: -1}
		if c.Boxes > 0 {
			ap := m.precision(areaAll)
			var all average
			for _, p := range ap {
				all.add(p)
			}
			c.AP, c.AP50, c.AP75 = all.value(), ap[iou50], ap[iou75]
		}
		for a := range numAreas {
			if m.positives[a] > 0 {
				for t, p := range m.precision(a) {
					mean[a][t].add(p)
				}
			}
		}
		r.Boxes += c.Boxes
		r.PerClass = append(r.PerClass, c)
	}
	over := func(area int) float64 {
		var all average
		for _, m := range mean[area] {
			if m.n > 0 {
				all.add(m.value())
			}
		}
		return all.value()
	}
	r.AP, r.AP50, r.AP75 = over(areaAll), mean[areaAll][iou50].value(), mean[areaAll][iou75].value()
	r.APSmall, r.APMedium, r.APLarge = over(areaSmall), over(areaMedium), over(areaLarge)
	return r
}

// average is a mean in the making, -1 of nothing.
type average struct {
	sum float64
	n   int
}

func (a *average) add(x float64) { a.sum += x; a.n++ }

func (a *average) value() float64 {
	if a.n == 0 {
		return -1
	}
	return a.sum / float64(a.n)
}

// cutWhile splits s before the first element that is not in.
func cutWhile[E any](s []E, in func(E) bool) (head, tail []E) {
	n := 0
	for n < len(s) && in(s[n]) {
		n++
	}
	return s[:n], s[n:]
}

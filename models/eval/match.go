package eval

import (
	"cmp"
	"math"
	"slices"
)

// The ranges of object areas, in pixels, both ends in.
const (
	areaAll = iota
	areaSmall
	areaMedium
	areaLarge
	numAreas
)

var areas = [numAreas][2]float64{{0, 1e10}, {0, 32 * 32}, {32 * 32, 96 * 96}, {96 * 96, 1e10}}

// The IoU thresholds .50:.05:.95, by index.
const (
	numIoUs = 10
	iou50   = 0
	iou75   = 5
)

func threshold(t int) float64 { return 0.5 + 0.05*float64(t) }

// recallPoints is how many points of recall precision is read at: 0, 0.01, ... 1, computed as numpy does.
const recallPoints = 101

// truth is one object of a class, by image.
type truth struct {
	image, class int
	box          [4]float64
	area         float64
	crowd        bool
}

// judged is one detection's fate for each area range, one bit for each threshold.
type judged struct {
	score   float64
	hit     [numAreas]uint16 // matched an object that counts
	ignored [numAreas]uint16 // matched one that does not, or is itself out of range
}

// class is what measure finds for one class.
type class struct {
	judged    []judged
	positives [numAreas]int // objects that count
}

// measure matches the objects and detections of one class, both grouped by image in the same order, the
// detections of an image by falling score.
func measure(truths []truth, dets []detection) class {
	var c class
	var m matcher
	for len(truths) > 0 || len(dets) > 0 {
		image := math.MaxInt
		if len(truths) > 0 {
			image = truths[0].image
		}
		if len(dets) > 0 {
			image = min(image, dets[0].image)
		}
		var here []truth
		var found []detection
		here, truths = cutWhile(truths, func(t truth) bool { return t.image == image })
		found, dets = cutWhile(dets, func(d detection) bool { return d.image == image })
		found = found[:min(len(found), MaxDets)]
		m.overlaps(here, found)
		first := len(c.judged)
		for _, d := range found {
			c.judged = append(c.judged, judged{score: d.score})
		}
		for a := range numAreas {
			c.positives[a] += m.order(here, a)
			for t := range numIoUs {
				m.match(here, found, a, t, c.judged[first:])
			}
		}
	}
	slices.SortStableFunc(c.judged, func(a, b judged) int { return cmp.Compare(b.score, a.score) })
	return c
}

// matcher holds one image's overlaps and the order in which its objects are tried.
type matcher struct {
	iou     []float64 // [detection][object]
	tries   []int     // objects, the ones that count first
	counted int       // how many of those count
	taken   []bool
}

// overlaps computes the intersection of each detection with each object over their union; with a crowd, over
// the detection's own area, since one may hold many.
func (m *matcher) overlaps(truths []truth, dets []detection) {
	m.iou = m.iou[:0]
	for _, d := range dets {
		for _, t := range truths {
			w := min(d.box[2], t.box[2]) - max(d.box[0], t.box[0])
			h := min(d.box[3], t.box[3]) - max(d.box[1], t.box[1])
			iou := 0.0
			if w > 0 && h > 0 {
				union := size(d.box)
				if !t.crowd {
					union += size(t.box) - w*h
				}
				iou = w * h / union
			}
			m.iou = append(m.iou, iou)
		}
	}
}

func size(b [4]float64) float64 { return (b[2] - b[0]) * (b[3] - b[1]) }

// order lists the objects for an area range, those that count first, and returns how many do.
func (m *matcher) order(truths []truth, area int) int {
	m.tries = m.tries[:0]
	for pass := range 2 {
		for i, t := range truths {
			ignored := t.crowd || t.area < areas[area][0] || t.area > areas[area][1]
			if ignored == (pass == 1) {
				m.tries = append(m.tries, i)
			}
		}
		if pass == 0 {
			m.counted = len(m.tries)
		}
	}
	return m.counted
}

// match gives each detection, best first, the object that it overlaps most among those still free, at or
// above threshold t. An object that counts goes before one that does not, whatever the overlaps; a
// crowd is never used up.
func (m *matcher) match(truths []truth, dets []detection, area, t int, out []judged) {
	m.taken = append(m.taken[:0], make([]bool, len(truths))...)
	for i, d := range dets {
		best := min(threshold(t), 1-1e-10)
		at := -1
		for k, g := range m.tries {
			if m.taken[g] && !truths[g].crowd {
				continue
			}
			if at >= 0 && at < m.counted && k >= m.counted {
				break
			}
			if iou := m.iou[i*len(truths)+g]; iou >= best {
				best, at = iou, k
			}
		}
		bit := uint16(1) << t
		switch {
		case at < 0:
			if s := size(d.box); s < areas[area][0] || s > areas[area][1] {
				out[i].ignored[area] |= bit
			}
			continue
		case at < m.counted:
			out[i].hit[area] |= bit
		default:
			out[i].ignored[area] |= bit
		}
		m.taken[m.tries[at]] = true
	}
}

// precision returns the average precision in an area range at each threshold: the mean, over points of
// recall, of the highest precision at that recall or a higher one.
func (c *class) precision(area int) [numIoUs]float64 {
	var ap [numIoUs]float64
	recall := make([]float64, 0, len(c.judged))
	precision := make([]float64, 0, len(c.judged))
	for t := range numIoUs {
		recall, precision = recall[:0], precision[:0]
		var hits, misses float64
		for i := range c.judged {
			switch j := &c.judged[i]; {
			case j.ignored[area]>>t&1 != 0:
				continue
			case j.hit[area]>>t&1 != 0:
				hits++
			default:
				misses++
			}
			recall = append(recall, hits/float64(c.positives[area]))
			precision = append(precision, hits/(hits+misses))
		}
		for i := len(precision) - 2; i >= 0; i-- {
			precision[i] = max(precision[i], precision[i+1])
		}
		i := 0
		for p := range recallPoints {
			for i < len(recall) && recall[i] < float64(p)*0.01 {
				i++
			}
			if i == len(recall) {
				break
			}
			ap[t] += precision[i]
		}
		ap[t] /= recallPoints
	}
	return ap
}

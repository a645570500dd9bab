package decode

import (
	"fmt"
	"math"
	"slices"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/models/prep"
)

// probePictures is for how many pictures a decoder that has not met a candidate yet
// looks at every score instead of those over the threshold only: long enough to tell
// a dead export from a quiet scene, short enough to cost nothing.
const probePictures = 8

// noScore is the least score that counts. A score of exactly 0 says "nothing here"
// (padding rows, dead exports), whatever the threshold.
const noScore = math.SmallestNonzeroFloat32

// Stats says how healthy a model's answers are, added up over the calls of Decode.
type Stats struct {
	Pictures   int // calls that succeeded
	Candidates int // scores over the threshold, before the class filter and suppression
	NaN        int // scores that were not a number, as far as they were looked at
	Dropped    int // candidates whose box or class was useless: not finite, empty, outside, no such class
	AboveOne   int // scores over the threshold that were above 1 and came out as 1
	// Highest is the highest raw score: of all scores while there was no candidate in the first
	// eight pictures, then of those over the threshold. 0 after eight pictures is a dead export.
	Highest float32
}

// Decoder turns outputs into detections. It belongs to one goroutine. Its buffers grow to the
// model's candidates with the first pictures and are kept.
type Decoder struct {
	head    Head
	classes int // scores per candidate, at least 1

	opts   Options
	trans  prep.Transform
	floor  float32 // scores below need no look: the threshold, or noScore while probing
	limit  uint64  // keys above it are not among the best MaxCandidates
	levels []level
	keys   []uint64  // candidates: inverted score bits, then candidate * classes + class
	best   []float32 // highest raw score of each candidate of a level
	bestOf []int32   // its class
	nms    suppressor
	stats  Stats
}

// New returns a decoder for h, or an error that says what is wrong with h.
func New(h Head) (*Decoder, error) {
	if err := h.check(); err != nil {
		return nil, fmt.Errorf("decode: %s head: %w", h.Kind, err)
	}
	return &Decoder{head: h, classes: max(h.Classes, 1)}, nil
}

// Stats returns what was counted since the decoder was made or Reset.
func (d *Decoder) Stats() Stats { return d.stats }

// Reset forgets what was counted, as after a warm-up.
func (d *Decoder) Reset() { d.stats = Stats{} }

// Decode appends the detections of one sample of the batch to dst, the best score first, and
// returns the longer slice. outs are the model's outputs in the model's order; an output
// without its batch axis is taken as that of a batch of one. t is the transform that the
// sample's picture went through. o.MaxDet 0 means no limit but MaxCandidates.
//
// It fails, with the shapes, when an output's type or shape does not fit the head. It never
// fails because of what a tensor holds: useless scores and boxes are dropped and counted.
func (d *Decoder) Decode(dst []Detection, outs []*tensor.Tensor, sample int, t prep.Transform, o Options) ([]Detection, error) {
	if t.SrcW < 1 || t.SrcH < 1 || t.InW < 1 || t.InH < 1 || t.NewW < 1 || t.NewH < 1 {
		return dst, fmt.Errorf("decode: the transform %+v has an empty side", t)
	}
	d.begin(t, o)
	if err := d.layout(outs, sample); err != nil {
		return dst, fmt.Errorf("decode: %s head: %w", d.head.Kind, err)
	}
	for i := range d.levels {
		switch l := &d.levels[i]; {
		case d.head.NMSFree():
			d.scanFinal(l, sample)
		case d.head.Kind == ClassOnly || d.head.Kind == GFL:
			d.scanClasses(l)
		default:
			d.scanObjects(l)
		}
	}
	d.stats.Pictures++
	slices.Sort(d.keys)
	d.keys = d.keys[:min(len(d.keys), MaxCandidates)]
	return d.pick(dst), nil
}

// begin sets the state of one call.
func (d *Decoder) begin(t prep.Transform, o Options) {
	if !(o.Conf > noScore) { // also when it is not a number
		o.Conf = noScore
	}
	if o.MaxDet <= 0 || o.MaxDet > MaxCandidates {
		o.MaxDet = MaxCandidates
	}
	d.opts, d.trans = o, t
	d.floor = o.Conf
	if d.stats.Candidates == 0 && d.stats.Pictures < probePictures {
		d.floor = noScore
	}
	d.keys, d.limit = d.keys[:0], math.MaxUint64
}

// push takes a score of class for a candidate if it is over the threshold. flat is what
// the candidate is found by later; among equal scores the lower one comes first.
func (d *Decoder) push(score float32, class int, flat uint32) {
	if score != score {
		d.stats.NaN++
		return
	}
	d.stats.Highest = max(d.stats.Highest, score)
	if score < d.opts.Conf {
		return
	}
	d.stats.Candidates++
	if score > 1 {
		d.stats.AboveOne++
		score = 1
	}
	if len(d.opts.Classes) > 0 && !slices.Contains(d.opts.Classes, class) {
		return
	}
	key := uint64(^math.Float32bits(score))<<32 | uint64(flat)
	if key > d.limit {
		return
	}
	d.keys = append(d.keys, key)
	if len(d.keys) == 2*MaxCandidates { // keep the best half: what comes later has to beat it
		slices.Sort(d.keys)
		d.keys = d.keys[:MaxCandidates]
		d.limit = d.keys[MaxCandidates-1]
	}
}

// pick goes through the sorted candidates, best first, and appends those that have a box,
// are not suppressed and fit MaxDet. Boxes are computed here, because most candidates never
// need theirs.
func (d *Decoder) pick(dst []Detection) []Detection {
	suppress := !d.head.NMSFree() && d.opts.IoU < 1 // queries decoded as ClassOnly come with 1
	if suppress {
		d.nms.reset(d.trans.SrcW, d.trans.SrcH, d.opts.IoU)
	}
	found := 0
	for _, key := range d.keys {
		if found == d.opts.MaxDet {
			break
		}
		class, l, i := d.find(uint32(key))
		whole, box, ok := d.place(d.corners(l, i))
		if !ok {
			d.stats.Dropped++
			continue
		}
		if suppress {
			group := int32(class)
			if d.opts.Agnostic {
				group = 0
			}
			if !d.nms.keep(whole, group) {
				continue
			}
		}
		dst = append(dst, Detection{ClassID: class, Score: math.Float32frombits(^uint32(key >> 32)), Box: box})
		found++
	}
	return dst
}

// find is the reverse of a key's lower half: the class, the level and the candidate in it.
func (d *Decoder) find(flat uint32) (class int, l *level, i int) {
	if d.head.NMSFree() {
		l, i = &d.levels[0], int(flat)
		class, _ = l.labels.whole(i)
		return class, l, i
	}
	class, i = int(flat)%d.classes, int(flat)/d.classes
	k := len(d.levels) - 1
	for k > 0 && d.levels[k].first > i {
		k--
	}
	l = &d.levels[k]
	return class, l, i - l.first
}

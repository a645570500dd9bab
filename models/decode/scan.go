package decode

import (
	"math"
)

func sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }

// logit is the reverse of sigmoid, a little lower, so that rounding loses nothing: for
// comparing before the sigmoid is computed.
func logit(p float32) float32 {
	if p >= 1 {
		return math.MaxFloat32 / 2 // sigmoid rounds to 1 from 17 on, but a threshold of 1 wants certainty
	}
	x := math.Log(float64(p) / (1 - float64(p)))
	return float32(x - 1e-3)
}

// scanClasses pushes the candidates of heads that have class scores only.
func (d *Decoder) scanClasses(l *level) {
	field0 := 0
	if d.head.Kind == ClassOnly {
		field0 = 4 // behind the box
	}
	floor := d.floor
	if d.head.Sigmoid {
		floor = logit(floor)
	}
	if l.scores.step != 1 {
		d.scanByCandidate(l, field0, floor)
		return
	}
	d.scanByClass(l, field0, floor)
}

// classScore is the score of a raw value.
func (d *Decoder) classScore(raw float32) float32 {
	if d.head.Sigmoid {
		return sigmoid(raw)
	}
	return raw
}

// scanByClass goes over rows of one class each, in the order of memory, and keeps each candidate's
// best class on the way.
func (d *Decoder) scanByClass(l *level, field0 int, floor float32) {
	v, n := &l.scores, l.n
	d.best = grow(d.best, n)
	d.bestOf = grow(d.bestOf, n)
	below := math.Nextafter32(floor, float32(math.Inf(-1)))
	for i := range d.best {
		d.best[i] = below
	}
	size := v.size()
	s := newSieve(max(floor, noScore), size)
	for c := range d.classes {
		at := (field0 + c) * v.field
		row := v.raw[at*size : (at+n)*size]
		for i := 0; i < len(row); i += blockBytes {
			if !d.head.Sigmoid { // logits are mostly negative, which all show
				if i = s.next(row, i); i == len(row) {
					break
				}
			}
			lo, hi := i/size, min(i/size+blockBytes/size, n)
			if d.opts.MultiLabel {
				d.takeAll(l, field0, c, floor, lo, hi)
			} else {
				d.takeBest(v, at, c, lo, hi)
			}
		}
	}
	if d.opts.MultiLabel {
		return
	}
	for i, raw := range d.best {
		if raw > below {
			c := int(d.bestOf[i])
			d.push(d.classScore(raw), c, uint32((l.first+i)*d.classes+c))
		}
	}
}

// takeBest updates the best class of candidates lo to hi with the row of class c, which starts at
// element at. Of equal scores the lower class stays.
func (d *Decoder) takeBest(v *view, at, c, lo, hi int) {
	best, bestOf := d.best[lo:hi], d.bestOf[lo:hi]
	if v.f32 != nil {
		row := v.f32[at+lo : at+hi]
		for i, s := range row[:len(best)] {
			if s > best[i] {
				best[i], bestOf[i] = s, int32(c)
			} else if s != s {
				d.stats.NaN++
			}
		}
		return
	}
	for i := range best {
		s := v.at(at+lo+i, 0)
		if s > best[i] {
			best[i], bestOf[i] = s, int32(c)
		} else if s != s {
			d.stats.NaN++
		}
	}
}

// takeAll pushes all scores of class c among candidates lo to hi.
func (d *Decoder) takeAll(l *level, field0, c int, floor float32, lo, hi int) {
	for i := lo; i < hi; i++ {
		if raw := l.scores.at(i, field0+c); !(raw < floor) {
			d.push(d.classScore(raw), c, uint32((l.first+i)*d.classes+c))
		}
	}
}

// scanByCandidate goes over candidates whose class scores lie together.
func (d *Decoder) scanByCandidate(l *level, field0 int, floor float32) {
	v := &l.scores
	size := v.size()
	s := newSieve(max(floor, noScore), size)
	for i := range l.n {
		at := (i*v.step + field0) * size
		row := v.raw[at : at+d.classes*size]
		if !d.head.Sigmoid && s.next(row, 0) == len(row) {
			continue
		}
		if d.opts.MultiLabel {
			for c := range d.classes {
				d.takeAll(l, field0, c, floor, i, i+1)
			}
			continue
		}
		if raw, c := d.bestClass(v, i, field0); raw >= floor {
			d.push(d.classScore(raw), c, uint32((l.first+i)*d.classes+c))
		}
	}
}

// bestClass returns the highest of a candidate's class values and its class, the lower one of equals.
func (d *Decoder) bestClass(v *view, i, field0 int) (float32, int) {
	best, bestOf := float32(math.Inf(-1)), 0
	if v.f32 != nil && v.field == 1 {
		at := i*v.step + field0
		for c, s := range v.f32[at : at+d.classes] {
			if s > best {
				best, bestOf = s, c
			} else if s != s {
				d.stats.NaN++
			}
		}
		return best, bestOf
	}
	for c := range d.classes {
		s := v.at(i, field0+c)
		if s > best {
			best, bestOf = s, c
		} else if s != s {
			d.stats.NaN++
		}
	}
	return best, bestOf
}

// scanObjects pushes the candidates of heads with an objectness: most fail by it alone.
func (d *Decoder) scanObjects(l *level) {
	v := &l.scores
	objectness, floor := 4, d.floor
	switch d.head.Kind {
	case FastestDet:
		objectness = 0
		floor = float32(math.Pow(float64(floor), 1/0.6)) * 0.999 // the class's part is 1 at most
	case Grid, RawYOLOv5:
		floor = logit(floor)
	default:
		if d.head.Sigmoid {
			floor = logit(floor)
		}
	}
	for i := range l.n {
		o := v.at(i, objectness)
		if o < floor {
			continue
		}
		if o != o {
			d.stats.NaN++
			continue
		}
		d.scoreObject(l, i, o)
	}
}

// scoreObject pushes candidate i with raw objectness o.
func (d *Decoder) scoreObject(l *level, i int, o float32) {
	v := &l.scores
	if d.head.Classes == 0 {
		d.push(d.joint(o, 0, 0), 0, uint32(l.first+i))
		return
	}
	raw, c := d.bestClass(v, i, 5)
	sum := float32(1)
	if d.head.Kind == Grid {
		sum = d.softmaxSum(v, i, raw)
	}
	if !d.opts.MultiLabel {
		d.push(d.joint(o, raw, sum), c, uint32((l.first+i)*d.classes+c))
		return
	}
	for c := range d.classes {
		// Relative to the best one, a softmax's exponentials stay within bounds.
		s := v.at(i, 5+c)
		if d.head.Kind == Grid {
			d.push(sigmoid(o)*float32(math.Exp(float64(s-raw)))/sum, c, uint32((l.first+i)*d.classes+c))
			continue
		}
		d.push(d.joint(o, s, sum), c, uint32((l.first+i)*d.classes+c))
	}
}

// softmaxSum returns the sum of exp(x - highest) over a candidate's class values.
func (d *Decoder) softmaxSum(v *view, i int, highest float32) float32 {
	sum := 0.0
	for c := range d.classes {
		sum += math.Exp(float64(v.at(i, 5+c) - highest))
	}
	return float32(sum)
}

// joint is the score of a candidate from its raw objectness and a class value; for Grid that of
// the best class, whose softmax is 1/sum.
func (d *Decoder) joint(o, c, sum float32) float32 {
	switch d.head.Kind {
	case Grid:
		if d.head.Classes == 0 {
			return sigmoid(o)
		}
		return sigmoid(o) / sum
	case FastestDet: // obj^0.6 * cls^0.4, as its author's post-processing has it
		if d.head.Classes == 0 {
			return float32(math.Pow(float64(o), 0.6))
		}
		return float32(math.Pow(float64(o), 0.6) * math.Pow(float64(c), 0.4))
	case RawYOLOv5:
		o, c = sigmoid(o), sigmoid(c)
	default:
		if d.head.Sigmoid {
			o, c = sigmoid(o), sigmoid(c)
		}
	}
	if d.head.Classes == 0 {
		return o
	}
	return o * c
}

// scanFinal pushes the rows of heads whose answer is final. Rows of no such class are dropped; a head
// that does not know its classes takes every label.
func (d *Decoder) scanFinal(l *level, sample int) {
	floor := d.floor
	if d.head.Sigmoid {
		floor = logit(floor)
	}
	batched := d.head.Kind == Rows && l.rowsOf.step == 7
	for i := range l.n {
		score := l.scores.at(i, 0)
		if score < floor {
			continue
		}
		if batched {
			if of, ok := l.rowsOf.whole(i); !ok || of != sample {
				continue
			}
		}
		class, ok := l.labels.whole(i)
		if !ok || d.head.Classes > 0 && class >= d.head.Classes {
			d.stats.Dropped++
			continue
		}
		d.push(d.classScore(score), class, uint32(i))
	}
}

// grow returns s with length n, reallocated only when it has to be.
func grow[E any](s []E, n int) []E {
	if cap(s) < n {
		return make([]E, n)
	}
	return s[:n]
}

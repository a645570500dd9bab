package decode

import (
	"errors"
	"math"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// level is a group of candidates with one layout: a whole head, one stride of it, or one
// anchor of a stride.
type level struct {
	scores view // class scores, with objectness and boxes where they lie together
	boxes  view // box values
	labels view // NMS-free heads: the class; FourOutput and DETR in an output of their own
	rowsOf view // Rows with seven columns: the sample of each row
	n      int  // candidates
	first  int  // number of the level's first candidate

	w, h   int // cells of the grid
	per    int // candidates per cell that follow each other (channels last), else 1
	stride float32
	anchor []float32 // w,h pairs, per of them
}

// errTooMany is about outputs whose candidates times classes do not fit a key.
var errTooMany = errors.New("more candidates than can be numbered")

// layout checks the outputs of one sample against the head and lists its levels.
func (d *Decoder) layout(outs []*tensor.Tensor, sample int) error {
	d.levels = d.levels[:0]
	var err error
	switch h := &d.head; h.Kind {
	case Objectness:
		err = d.layoutList(outs, sample, h.Output, 5+h.Classes+h.Masks, true)
	case ClassOnly:
		err = d.layoutList(outs, sample, h.Output, 4+d.classes+h.Masks, h.Transposed)
	case YOLOX:
		err = d.layoutStrides(outs, sample, h.Output, 5+h.Classes, 0)
	case Grid:
		err = d.layoutGrid(outs, h.Output, sample, 1, h.Anchors[0])
	case FastestDet:
		err = d.layoutGrid(outs, h.Output, sample, 1, nil)
	case RawYOLOv5:
		for i, out := range h.Levels {
			if err = d.layoutGrid(outs, out, sample, h.Strides[i], h.Anchors[i]); err != nil {
				return err
			}
		}
	case GFL:
		if h.Scores[0] == h.Boxes[0] { // NanoDet-Plus
			err = d.layoutStrides(outs, sample, h.Scores[0], d.classes+4*(h.RegMax+1), d.classes)
			break
		}
		for i := range h.Strides {
			if err = d.layoutGFL(outs, sample, i); err != nil {
				return err
			}
		}
	case EndToEnd, Rows:
		err = d.layoutRows(outs, sample)
	default:
		err = d.layoutColumns(outs, sample)
	}
	if err != nil {
		return err
	}
	last := &d.levels[len(d.levels)-1]
	if last.first+last.n > math.MaxUint32/d.classes {
		return errTooMany
	}
	return nil
}

// add appends a level behind the ones that are there.
func (d *Decoder) add(l level) {
	if k := len(d.levels); k > 0 {
		l.first = d.levels[k-1].first + d.levels[k-1].n
	}
	l.per = max(l.per, 1)
	d.levels = append(d.levels, l)
}

// layoutList is for one output [B,N,fields] or, not rowwise, [B,fields,N].
func (d *Decoder) layoutList(outs []*tensor.Tensor, sample, out, fields int, rowwise bool) error {
	t, err := output(outs, out, false)
	if err != nil {
		return err
	}
	v, dims, err := cut(t, sample, 2)
	if err != nil {
		return err
	}
	if rowwise {
		if dims[1] != fields {
			return misfit(t, "[batch,candidates,%d]", fields)
		}
		v = v.with(fields, 1)
		d.add(level{scores: v, boxes: v, n: dims[0]})
		return nil
	}
	if dims[0] != fields {
		return misfit(t, "[batch,%d,candidates]", fields)
	}
	v = v.with(1, dims[1])
	d.add(level{scores: v, boxes: v, n: dims[1]})
	return nil
}

// cells returns the cells of one axis of n pixels: the last one may be cut.
func cells(n, stride int) int { return (n + stride - 1) / stride }

// layoutStrides is for one output [B,N,fields] with the grids of all strides one after the other, in which
// boxes begin at field box.
func (d *Decoder) layoutStrides(outs []*tensor.Tensor, sample, out, fields, box int) error {
	if err := d.layoutList(outs, sample, out, fields, true); err != nil {
		return err
	}
	all := d.levels[0]
	d.levels = d.levels[:0]
	n := 0
	for _, s := range d.head.Strides {
		n += cells(d.trans.InW, s) * cells(d.trans.InH, s)
	}
	if n != all.n {
		return misfit(outs[out], "%d candidates: the cells of strides %v on an input of %dx%d", n, d.head.Strides, d.trans.InW, d.trans.InH)
	}
	n = 0
	for _, s := range d.head.Strides {
		w, h := cells(d.trans.InW, s), cells(d.trans.InH, s)
		v := all.scores.from(n * fields)
		d.add(level{scores: v, boxes: v.from(box), n: w * h, w: w, h: h, stride: float32(s)})
		n += w * h
	}
	return nil
}

// layoutGrid is for one grid with anchors: [B,A*F,H,W], [B,A,H,W,F] or, Transposed, [B,H,W,A*F]
// with F = 5+C fields. Without anchors there is one candidate per cell.
func (d *Decoder) layoutGrid(outs []*tensor.Tensor, out, sample, stride int, anchors []float32) error {
	t, err := output(outs, out, false)
	if err != nil {
		return err
	}
	a, fields := max(len(anchors)/2, 1), 5+d.head.Classes
	grid := level{stride: float32(stride)}
	s := t.Shape
	if k := len(s); d.head.Kind == RawYOLOv5 && k >= 4 && s[k-4] == a && s[k-1] == fields && (k == 5 || s[0] == a && s[1] != a*fields) {
		v, dims, err := cut(t, sample, 4)
		if err != nil {
			return err
		}
		grid.h, grid.w = dims[1], dims[2]
		d.addAnchors(grid, v.with(fields, 1), fields*grid.h*grid.w, anchors)
		return nil
	}
	v, dims, err := cut(t, sample, 3)
	if err != nil {
		return err
	}
	if d.head.Transposed {
		if dims[2] != a*fields {
			return misfit(t, "[batch,rows,columns,%d*%d]", a, fields)
		}
		grid.h, grid.w, grid.per, grid.anchor = dims[0], dims[1], a, anchors
		grid.n = grid.h * grid.w * a
		grid.scores = v.with(fields, 1)
		grid.boxes = grid.scores
		d.add(grid)
		return nil
	}
	if dims[0] != a*fields {
		return misfit(t, "[batch,%d*%d,rows,columns]", a, fields)
	}
	grid.h, grid.w = dims[1], dims[2]
	d.addAnchors(grid, v.with(1, grid.h*grid.w), fields*grid.h*grid.w, anchors)
	return nil
}

// addAnchors appends a level for each anchor, block elements apart.
func (d *Decoder) addAnchors(grid level, v view, block int, anchors []float32) {
	grid.n = grid.h * grid.w
	for a := range max(len(anchors)/2, 1) {
		if len(anchors) > 0 {
			grid.anchor = anchors[2*a : 2*a+2]
		}
		grid.scores = v.from(a * block)
		grid.boxes = grid.scores
		d.add(grid)
	}
}

// layoutGFL is for the score and distance outputs of stride number i.
func (d *Decoder) layoutGFL(outs []*tensor.Tensor, sample, i int) error {
	s := d.head.Strides[i]
	l := level{w: cells(d.trans.InW, s), h: cells(d.trans.InH, s), stride: float32(s)}
	l.n = l.w * l.h
	var err error
	if l.scores, err = l.cellFields(outs, d.head.Scores[i], sample, d.classes); err != nil {
		return err
	}
	if l.boxes, err = l.cellFields(outs, d.head.Boxes[i], sample, 4*(d.head.RegMax+1)); err != nil {
		return err
	}
	d.add(l)
	return nil
}

// cellFields views an output with some fields for each cell: [B,N,fields], [B,fields,N] or
// [B,fields,H,W], with or without the batch.
func (l *level) cellFields(outs []*tensor.Tensor, out, sample, fields int) (view, error) {
	t, err := output(outs, out, false)
	if err != nil {
		return view{}, err
	}
	if len(t.Shape) == 4 {
		v, dims, err := cut(t, sample, 3)
		if err == nil && (dims[0] != fields || dims[1] != l.h || dims[2] != l.w) {
			err = misfit(t, "[batch,%d,%d,%d]", fields, l.h, l.w)
		}
		return v.with(1, l.n), err
	}
	v, dims, err := cut(t, sample, 2)
	switch {
	case err != nil:
		return v, err
	case dims[0] == l.n && dims[1] == fields:
		return v.with(fields, 1), nil
	case dims[0] == fields && dims[1] == l.n:
		return v.with(1, l.n), nil
	}
	return v, misfit(t, "[batch,%d,%d]: one row for each cell of stride %v on the input", l.n, fields, l.stride)
}

// layoutRows is for the rows of EndToEnd and Rows.
func (d *Decoder) layoutRows(outs []*tensor.Tensor, sample int) error {
	t, err := output(outs, d.head.Output, false)
	if err != nil {
		return err
	}
	if d.head.Kind == Rows && len(t.Shape) == 2 && t.Shape[1] == 7 {
		v, dims, _ := cut(t, 0, 2) // the first column, not the axis, says the sample
		v = v.with(7, 1)
		l := level{n: dims[0], rowsOf: v, boxes: v, labels: v, scores: v}
		if l.n > 0 {
			l.boxes, l.labels, l.scores = v.from(1), v.from(5), v.from(6)
		}
		d.add(l)
		return nil
	}
	v, dims, err := cut(t, sample, 2)
	if err != nil {
		return err
	}
	fields := 6
	if d.head.Kind == EndToEnd {
		fields += d.head.Masks
	}
	if dims[1] != fields {
		return misfit(t, "rows of %d values that begin with x1,y1,x2,y2,score,class", fields)
	}
	v = v.with(fields, 1)
	l := level{n: dims[0], boxes: v, scores: v, labels: v}
	if l.n > 0 {
		l.scores, l.labels = v.from(4), v.from(5)
	}
	d.add(l)
	return nil
}

// layoutColumns is for DETR and FourOutput: boxes, scores and labels in outputs of their own.
func (d *Decoder) layoutColumns(outs []*tensor.Tensor, sample int) error {
	h := &d.head
	t, err := output(outs, h.Boxes[0], false)
	if err != nil {
		return err
	}
	v, dims, err := cut(t, sample, 2)
	if err != nil {
		return err
	}
	if dims[1] != 4 {
		return misfit(t, "[batch,detections,4]")
	}
	l := level{n: dims[0], boxes: v.with(4, 1)}
	if l.scores, err = column(outs, h.Scores[0], sample, l.n, false); err != nil {
		return err
	}
	if l.labels, err = column(outs, h.Labels, sample, l.n, true); err != nil {
		return err
	}
	if h.Kind == FourOutput {
		if t, err = output(outs, h.Num, true); err != nil {
			return err
		}
		if len(t.Shape) == 0 || t.Shape[0] <= sample || tensor.Elements(t.Shape) != t.Shape[0] {
			return misfit(t, "[batch,1]: the detections of sample %d", sample)
		}
		num, _, err := cut(t, sample, len(t.Shape)-1)
		if err != nil {
			return err
		}
		n, ok := num.whole(0)
		if !ok {
			d.stats.Dropped++
		}
		l.n = min(l.n, n)
	}
	d.add(l)
	return nil
}

// column views an output with one value for each of n detections: [B,n] or [n], or [B,n,1].
func column(outs []*tensor.Tensor, out, sample, n int, whole bool) (view, error) {
	t, err := output(outs, out, whole)
	if err != nil {
		return view{}, err
	}
	rank := 1
	if len(t.Shape) == 3 && t.Shape[2] == 1 {
		rank = 2
	}
	v, dims, err := cut(t, sample, rank)
	if err != nil {
		return v, err
	}
	if dims[0] != n {
		return v, misfit(t, "%d values, one for each box", n)
	}
	return v.with(1, 1), nil
}

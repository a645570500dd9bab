package decode

import "math"

// tooFar is where a coordinate counts as infinite, in pixels: far beyond every picture, and its square
// still fits a float32.
const tooFar = 1e15

// corners computes x1,y1,x2,y2 of a candidate in pixels of the model's input.
func (d *Decoder) corners(l *level, i int) [4]float32 {
	v := &l.boxes
	switch d.head.Kind {
	case Objectness, ClassOnly:
		return d.scaled(around(v.at(i, 0), v.at(i, 1), v.at(i, 2), v.at(i, 3)))
	case YOLOX: // centre (x + column) * stride, side exp(w) * stride
		x, y := l.cell(i)
		return around((v.at(i, 0)+x)*l.stride, (v.at(i, 1)+y)*l.stride, exp(v.at(i, 2))*l.stride, exp(v.at(i, 3))*l.stride)
	case Grid: // centre (sigmoid(x) + column) / W, side exp(w) * anchor / W of the input
		x, y := l.cell(i)
		a := l.anchorOf(i)
		cw, ch := float32(d.trans.InW)/float32(l.w), float32(d.trans.InH)/float32(l.h)
		return around((sigmoid(v.at(i, 0))+x)*cw, (sigmoid(v.at(i, 1))+y)*ch, exp(v.at(i, 2))*a[0]*cw, exp(v.at(i, 3))*a[1]*ch)
	case RawYOLOv5: // centre (2 sigmoid(x) - 0.5 + column) * stride, side (2 sigmoid(w))^2 * anchor
		x, y := l.cell(i)
		a := l.anchorOf(i)
		w, h := 2*sigmoid(v.at(i, 2)), 2*sigmoid(v.at(i, 3))
		return around((2*sigmoid(v.at(i, 0))-0.5+x)*l.stride, (2*sigmoid(v.at(i, 1))-0.5+y)*l.stride, w*w*a[0], h*h*a[1])
	case FastestDet: // centre (tanh(x) + column) / W, side sigmoid(w) of the input
		x, y := l.cell(i)
		w, h := float32(d.trans.InW), float32(d.trans.InH)
		return around((tanh(v.at(i, 1))+x)*w/float32(l.w), (tanh(v.at(i, 2))+y)*h/float32(l.h), sigmoid(v.at(i, 3))*w, sigmoid(v.at(i, 4))*h)
	case GFL:
		return d.distances(l, i)
	}
	return d.scaled([4]float32{v.at(i, 0), v.at(i, 1), v.at(i, 2), v.at(i, 3)})
}

// distances is GFL's box: the expected distance of each side (left, top, right, bottom) from the
// cell's centre, in strides (Generalized Focal Loss, Li et al. 2020).
func (d *Decoder) distances(l *level, i int) [4]float32 {
	x, y := l.cell(i)
	cx, cy := (x+d.head.CentreOffset)*l.stride, (y+d.head.CentreOffset)*l.stride
	if d.head.CentreNanoDet {
		cx, cy = x*l.stride+(l.stride-1)/2, y*l.stride+(l.stride-1)/2
	}
	bins := d.head.RegMax + 1
	var side [4]float32
	for s := range side {
		highest := float32(math.Inf(-1))
		for b := range bins {
			highest = max(highest, l.boxes.at(i, s*bins+b))
		}
		var sum, mean float64
		for b := range bins {
			p := math.Exp(float64(l.boxes.at(i, s*bins+b) - highest))
			sum += p
			mean += p * float64(b)
		}
		side[s] = float32(mean/sum) * l.stride
	}
	return [4]float32{cx - side[0], cy - side[1], cx + side[2], cy + side[3]}
}

// cell returns the column and row of a candidate.
func (l *level) cell(i int) (x, y float32) {
	i /= l.per
	return float32(i % l.w), float32(i / l.w)
}

// anchorOf returns the anchor of a candidate: width, height.
func (l *level) anchorOf(i int) []float32 {
	a := i % l.per
	return l.anchor[2*a : 2*a+2]
}

// scaled turns values in 0..1 of the input into pixels where the head says so.
func (d *Decoder) scaled(b [4]float32) [4]float32 {
	if d.head.NormBoxes {
		w, h := float32(d.trans.InW), float32(d.trans.InH)
		b[0], b[1], b[2], b[3] = b[0]*w, b[1]*h, b[2]*w, b[3]*h
	}
	return b
}

func around(cx, cy, w, h float32) [4]float32 {
	return [4]float32{cx - w/2, cy - h/2, cx + w/2, cy + h/2}
}

func exp(x float32) float32  { return float32(math.Exp(float64(x))) }
func tanh(x float32) float32 { return float32(math.Tanh(float64(x))) }

// place maps a box of the input to the picture: whole, as suppression compares it, and clipped,
// as it is reported. It says false for a box that is not finite or has nothing inside the picture.
func (d *Decoder) place(in [4]float32) (whole, box [4]float32, ok bool) {
	whole = d.trans.UndoBox(in)
	for k, x := range whole {
		if !(x >= -tooFar && x <= tooFar) {
			return whole, box, false
		}
		side := d.trans.SrcW
		if k&1 == 1 {
			side = d.trans.SrcH
		}
		box[k] = min(max(x, 0), float32(side))
	}
	return whole, box, box[0] < box[2] && box[1] < box[3]
}

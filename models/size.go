package models

import "fmt"

// defaultSide is the input size of a model with dynamic axes of which nothing else is known.
const defaultSide = 640

// usualSides are tried where the default does not run, the commonest first.
var usualSides = []int{640, 416, 320, 512, 1280, 608, 352, 300, 800}

// settleSize fixes H, W and whether other sizes run.
func (l *loader) settleSize() error {
	l.Stride = 32
	if l.meta.stride > 0 {
		l.Stride = l.meta.stride
	}
	if l.side.Stride > 0 {
		l.Stride = l.side.Stride
	}
	fixedH, fixedW := l.Input.H, l.Input.W
	want, by := l.wanted()
	if err := fits(want, by, fixedH, fixedW); err != nil {
		return err
	}
	l.H, l.W = fixedH, fixedW
	if fixedH == 0 {
		l.H = l.round(want[0], by)
	}
	if fixedW == 0 {
		l.W = l.round(want[1], by)
	}
	if fixedH > 0 && fixedW > 0 {
		l.shapes, _ = l.ONNX.Infer(l.InputShapes(l.Batch(1), l.H, l.W)) // what it cannot say the declared shapes may
	} else if err := l.settleDynamic(by); err != nil {
		return err
	}
	return l.settleBatch()
}

// wanted returns the size that is asked for, and by whom, "" for a default that binds nobody.
func (l *loader) wanted() (Size, string) {
	switch {
	case l.opt.ImgSize != Size{}:
		return l.opt.ImgSize, "--imgsz"
	case l.side.ImgSize != Size{}:
		return l.side.ImgSize, "the sidecar's imgsz"
	case l.meta.imgsz != Size{}:
		return l.meta.imgsz, ""
	}
	return Size{defaultSide, defaultSide}, ""
}

// fits says whether a size that somebody asks for agrees with the axes that are fixed.
func fits(want Size, by string, h, w int) error {
	if by == "" || (h == 0 || h == want[0]) && (w == 0 || w == want[1]) {
		return nil
	}
	return fmt.Errorf("takes pictures of %s only, %s says %s: leave it out, or export the model again with dynamic=True or at that size",
		sizeText(h, w), by, sizeText(want[0], want[1]))
}

// sizeText is a size as height x width, with ? for a side that is not known.
func sizeText(h, w int) string {
	side := func(n int) string {
		if n <= 0 {
			return "?"
		}
		return fmt.Sprint(n)
	}
	return side(h) + "x" + side(w)
}

// round makes a side a multiple of the stride, upwards as Ultralytics does.
func (l *loader) round(side int, by string) int {
	n := roundUp(side, l.Stride)
	if n != side && by != "" {
		l.warn("%s %d is no multiple of the stride %d: %d is used", by, side, l.Stride, n)
	}
	return n
}

// settleDynamic looks whether the graph runs at H x W, and whether it runs at another size: exporters
// declare axes dynamic that constants inside of the graph contradict.
func (l *loader) settleDynamic(by string) error {
	var err error
	if l.shapes, err = l.infer(1, l.H, l.W); err == nil {
		l.FalseDynamic = !l.otherSizeRuns()
		l.DynamicSize = l.Input.H == 0 && l.Input.W == 0 && !l.FalseDynamic
		l.warnFalse()
		return nil
	}
	for _, side := range usualSides {
		h, w := l.Input.H, l.Input.W
		if h == 0 {
			h = side
		}
		if w == 0 {
			w = side
		}
		shapes, failed := l.infer(1, h, w)
		if failed != nil {
			continue
		}
		if by != "" {
			return fmt.Errorf("runs at %s only, although it declares height and width dynamic; %s says %s: leave it out, or export the model again",
				sizeText(h, w), by, sizeText(l.H, l.W))
		}
		l.H, l.W, l.shapes, l.FalseDynamic = h, w, shapes, true
		l.warnFalse()
		return nil
	}
	return fmt.Errorf("the graph does not run at %s (%w): give its size with --imgsz", sizeText(l.H, l.W), err)
}

func (l *loader) warnFalse() {
	if l.FalseDynamic {
		l.warn("declares height and width dynamic but runs at %s only", sizeText(l.H, l.W))
	}
}

// otherSizeRuns tries a size that is larger on each dynamic axis, by a multiple of every usual stride.
func (l *loader) otherSizeRuns() bool {
	step := roundUp(128, l.Stride)
	h, w := l.H, l.W
	if l.Input.H == 0 {
		h += step
	}
	if l.Input.W == 0 {
		w += step
	}
	_, err := l.infer(1, h, w)
	return err == nil
}

// settleBatch looks whether a declared dynamic batch is one.
func (l *loader) settleBatch() error {
	if l.Input.Batch > 0 || l.shapes == nil {
		return nil
	}
	if _, err := l.infer(2, l.H, l.W); err != nil {
		l.Input.Batch = 1
		l.warn("declares a dynamic batch but runs one frame at a time")
	}
	return nil
}

func (l *loader) infer(batch, h, w int) (map[string][]int, error) {
	return l.ONNX.Infer(l.InputShapes(l.Batch(batch), h, w))
}

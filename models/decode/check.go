package decode

import (
	"errors"
	"fmt"
	"math"
)

// Limits of a head that makes sense; they keep every product of them inside an int32.
const (
	maxClasses = 1 << 16
	maxStride  = 1 << 12
	maxLevels  = 16
	maxAnchors = 64
	maxRegMax  = 255
)

var kindNames = [...]string{"unknown", "objectness", "class-only", "end-to-end", "yolox", "grid", "raw-yolov5",
	"gfl", "fastestdet", "detr", "rows", "four-output"}

// String returns the kind's name in lower case, for example "class-only".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// check says what keeps h from being decoded.
func (h Head) check() error {
	if h.Kind == None || int(h.Kind) >= len(kindNames) {
		return errors.New("there is no decoder for it")
	}
	if h.Classes < 0 || h.Classes > maxClasses {
		return fmt.Errorf("%d classes: 0 to %d are possible", h.Classes, maxClasses)
	}
	if h.Masks < 0 || h.Masks > maxClasses {
		return fmt.Errorf("%d mask coefficients: 0 to %d are possible", h.Masks, maxClasses)
	}
	switch h.Kind {
	case YOLOX:
		return errors.Join(h.checkStrides(), h.checkRoles(h.Output))
	case Grid:
		if len(h.Anchors) != 1 {
			return fmt.Errorf("%d lists of anchors: it has one grid and wants one", len(h.Anchors))
		}
		return errors.Join(h.checkAnchors(), h.checkRoles(h.Output))
	case RawYOLOv5:
		if len(h.Levels) != len(h.Strides) || len(h.Anchors) != len(h.Strides) {
			return fmt.Errorf("%d outputs and %d lists of anchors for %d strides", len(h.Levels), len(h.Anchors), len(h.Strides))
		}
		return errors.Join(h.checkStrides(), h.checkAnchors(), h.checkRoles(h.Levels...))
	case GFL:
		if len(h.Scores) != len(h.Strides) || len(h.Boxes) != len(h.Strides) {
			return fmt.Errorf("%d score and %d distance outputs for %d strides", len(h.Scores), len(h.Boxes), len(h.Strides))
		}
		if h.RegMax < 1 || h.RegMax > maxRegMax {
			return fmt.Errorf("highest distance bin %d: 1 to %d are possible", h.RegMax, maxRegMax)
		}
		return errors.Join(h.checkStrides(), h.checkRoles(h.Scores...), h.checkRoles(h.Boxes...))
	case DETR, FourOutput:
		if len(h.Scores) != 1 || len(h.Boxes) != 1 {
			return fmt.Errorf("%d score and %d box outputs: it has one of each", len(h.Scores), len(h.Boxes))
		}
		return h.checkRoles(h.Scores[0], h.Boxes[0], h.Labels, h.Num)
	}
	return h.checkRoles(h.Output)
}

func (h Head) checkStrides() error {
	if len(h.Strides) == 0 || len(h.Strides) > maxLevels {
		return fmt.Errorf("%d strides: 1 to %d are possible", len(h.Strides), maxLevels)
	}
	for _, s := range h.Strides {
		if s < 1 || s > maxStride {
			return fmt.Errorf("stride %d: 1 to %d are possible", s, maxStride)
		}
	}
	return nil
}

func (h Head) checkAnchors() error {
	for _, pairs := range h.Anchors {
		if len(pairs) == 0 || len(pairs)%2 != 0 || len(pairs) > 2*maxAnchors {
			return fmt.Errorf("%d anchor values: they are pairs of width and height, 1 to %d of them", len(pairs), maxAnchors)
		}
		for _, a := range pairs {
			if !(a > 0 && a <= math.MaxFloat32) {
				return fmt.Errorf("anchor side %v: it has to be above 0", a)
			}
		}
	}
	return nil
}

func (h Head) checkRoles(outputs ...int) error {
	for _, i := range outputs {
		if i < 0 {
			return fmt.Errorf("output %d: outputs count from 0", i)
		}
	}
	return nil
}

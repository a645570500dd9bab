package prep

import (
	"fmt"
	"math"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// Resize says how a picture of any shape becomes the model's input size.
type Resize uint8

// The ways to fit a picture.
const (
	Letterbox    Resize = iota // keep the shape, pad both sides (Ultralytics)
	LetterboxEnd               // keep the shape, pad right and bottom (YOLOX)
	Stretch                    // each axis on its own
)

var resizeNames = [...]string{"letterbox", "letterbox-end", "stretch"}

// String returns the name that MODEL.yaml uses.
func (r Resize) String() string {
	if int(r) < len(resizeNames) {
		return resizeNames[r]
	}
	return fmt.Sprintf("resize(%d)", uint8(r))
}

// ParseResize is the reverse of String.
func ParseResize(s string) (Resize, error) {
	for i, n := range resizeNames {
		if n == s {
			return Resize(i), nil
		}
	}
	return 0, fmt.Errorf("resize %q is not known: use one of %v", s, resizeNames)
}

// Recipe is everything about how a model wants its picture. A value of the tensor is
//
//	(level - Mean[c]) / Std[c]
//
// where level is the pixel's 0..255 level of channel c in the tensor's channel order. A model
// that wants 0..1 has Std 255; one that wants ImageNet normalisation has ImageNet's
// figures times 255.
type Recipe struct {
	Resize Resize
	Pad    uint8       // level of the padding, all channels
	BGR    bool        // channel 0 is blue; else red
	Gray   bool        // one channel, luma
	NHWC   bool        // channels last; else planes
	Mean   [3]float32  // in levels
	Std    [3]float32  // in levels; 0 counts as 1
	Type   tensor.Type // Float32, Float16 or Uint8
}

// Transform is the one mapping between a picture and the model's input, in whole pixels: the
// picture's region at (X, Y), W x H, perhaps mirrored, is resized to NewW x NewH and lies at (Left, Top)
// in InW x InH. It is carried with the frame, so that what was applied is what is undone.
type Transform struct {
	SrcW, SrcH int  // the picture
	InW, InH   int  // the model's input
	NewW, NewH int  // the region inside the input
	Left, Top  int  // where in the input
	X, Y, W, H int  // the region: all of the picture, unless a Filler was given another
	Flip       bool // the region is mirrored left to right
}

// Fit returns the transform of a picture of srcW x srcH into an input of inW x inH.
// Letterbox rounds as the models' authors do: new = round(side * scale) and
// pad = round((input - new) / 2 - 0.1); LetterboxEnd: new = int(side * scale). No side is
// below one pixel. All sizes must be at least 1.
func Fit(r Resize, srcW, srcH, inW, inH int) Transform {
	t := Transform{SrcW: srcW, SrcH: srcH, InW: inW, InH: inH, NewW: inW, NewH: inH, W: srcW, H: srcH}
	if r == Stretch {
		return t
	}
	scale := math.Min(float64(inW)/float64(srcW), float64(inH)/float64(srcH))
	side := func(n, limit int) int {
		v := float64(n) * scale
		if r == Letterbox {
			v = math.RoundToEven(v)
		}
		return min(max(int(v), 1), limit)
	}
	t.NewW, t.NewH = side(srcW, inW), side(srcH, inH)
	if r == Letterbox {
		t.Left = max(int(math.RoundToEven(float64(inW-t.NewW)/2-0.1)), 0)
		t.Top = max(int(math.RoundToEven(float64(inH-t.NewH)/2-0.1)), 0)
	}
	return t
}

// Undo maps a point of the input to the picture, each axis with its own ratio.
// Nothing is clipped.
func (t Transform) Undo(x, y float32) (float32, float32) {
	x = (x - float32(t.Left)) * float32(t.W) / float32(t.NewW)
	y = (y - float32(t.Top)) * float32(t.H) / float32(t.NewH)
	if t.Flip {
		x = float32(t.W) - x
	}
	return x + float32(t.X), y + float32(t.Y)
}

// UndoBox maps a box of the input, left, top, right, bottom, to the picture: Undo of its corners, in the same
// order also where the picture was mirrored.
func (t Transform) UndoBox(in [4]float32) (box [4]float32) {
	if t.Flip {
		in[0], in[2] = in[2], in[0]
	}
	box[0], box[1] = t.Undo(in[0], in[1])
	box[2], box[3] = t.Undo(in[2], in[3])
	return box
}

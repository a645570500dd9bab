package annotate

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"slices"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/models/prep"
)

// Box is one thing to draw.
type Box struct {
	Rect  [4]float32 // x1, y1, x2, y2 in pixels of the picture; what lies outside is cut off
	Class int        // chooses the colour
	Label string     // shown above the box; "" for none
}

// Label returns the usual text of a detection, for example "person 0.87".
func Label(class string, score float32) string { return fmt.Sprintf("%s %.2f", class, score) }

// Picture returns a copy of fr as RGB to draw on. It reuses into where that has the right size;
// into may be nil.
func Picture(into *image.RGBA, fr *frame.Frame) (*image.RGBA, error) {
	bounds := image.Rect(0, 0, fr.Width, fr.Height)
	if into == nil || into.Rect != bounds || into.Stride != 4*fr.Width {
		into = image.NewRGBA(bounds)
	}
	if err := prep.ToRGBA(into.Pix, fr); err != nil {
		return nil, err
	}
	return into, nil
}

// Draw draws the boxes on img and then their labels, the first on top of the others, with lines
// and text that grow with the picture. A box that is not finite is left out.
func Draw(img *image.RGBA, boxes []Box) {
	line := lineWidth(img.Rect.Size())
	for _, b := range slices.Backward(boxes) {
		if r, ok := pixels(b.Rect, img.Rect); ok {
			outline(img, r, line, Colour(b.Class))
		}
	}
	for _, b := range slices.Backward(boxes) {
		if r, ok := pixels(b.Rect, img.Rect); ok && b.Label != "" {
			drawLabel(img, r, line, Colour(b.Class), b.Label)
		}
	}
}

// lineWidth is about 0.3 % of the picture's side: 2 at VGA, 5 at full HD, 9 at 4K.
func lineWidth(size image.Point) int { return max(2, (size.X+size.Y)*3/2000) }

// pixels rounds a box to whole pixels. Coordinates are first brought close to the
// picture, because a float may be larger than any int.
func pixels(b [4]float32, bounds image.Rectangle) (image.Rectangle, bool) {
	var v [4]int
	for i, f := range b {
		if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
			return image.Rectangle{}, false
		}
		low, high := bounds.Min.X, bounds.Max.X
		if i%2 == 1 {
			low, high = bounds.Min.Y, bounds.Max.Y
		}
		const beyond = 1 << 12 // far enough that a side outside of the picture is not seen
		v[i] = int(math.Round(min(max(float64(f), float64(low-beyond)), float64(high+beyond))))
	}
	r := image.Rect(v[0], v[1], v[2], v[3])
	return r, r.Overlaps(bounds) || r.Empty() && r.Min.In(bounds)
}

// outline draws the sides of r, inside of it, as wide as line but never wider than the box.
func outline(img *image.RGBA, r image.Rectangle, line int, c color.RGBA) {
	r.Max.X, r.Max.Y = max(r.Max.X, r.Min.X+1), max(r.Max.Y, r.Min.Y+1)
	w, h := min(line, r.Dx()), min(line, r.Dy())
	fill(img, image.Rect(r.Min.X, r.Min.Y, r.Max.X, r.Min.Y+h), c)
	fill(img, image.Rect(r.Min.X, r.Max.Y-h, r.Max.X, r.Max.Y), c)
	fill(img, image.Rect(r.Min.X, r.Min.Y, r.Min.X+w, r.Max.Y), c)
	fill(img, image.Rect(r.Max.X-w, r.Min.Y, r.Max.X, r.Max.Y), c)
}

// fill colours the part of r that lies in the picture.
func fill(img *image.RGBA, r image.Rectangle, c color.RGBA) {
	r = r.Intersect(img.Rect)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		row := img.Pix[img.PixOffset(r.Min.X, y):][:4*r.Dx()]
		for x := 0; x < len(row); x += 4 {
			row[x], row[x+1], row[x+2], row[x+3] = c.R, c.G, c.B, 255
		}
	}
}

// Colour returns the colour of a class, always the same one. Hues of neighbouring classes lie a
// golden angle apart, which keeps any run of classes spread around the circle, and lightness changes
// every few classes, so that a hue that comes close to an earlier one differs in that.
func Colour(class int) color.RGBA {
	const golden = 0.38196601125 // of a turn
	n := uint(class) % 360
	_, hue := math.Modf(0.02 + float64(n)*golden)
	lightness := [...]float64{0.55, 0.42, 0.68}[n/8%3]
	return fromHSL(hue, 0.85, lightness)
}

// fromHSL converts hue (in turns), saturation and lightness, each 0..1, to RGB.
func fromHSL(hue, saturation, lightness float64) color.RGBA {
	chroma := saturation * min(lightness, 1-lightness)
	channel := func(offset float64) uint8 {
		k := math.Mod(offset+hue*12, 12)
		return uint8(math.Round(255 * (lightness - chroma*max(-1, min(k-3, 9-k, 1)))))
	}
	return color.RGBA{channel(0), channel(8), channel(4), 255}
}

package annotate

import (
	"image"
	"image/color"

	"golang.org/x/image/font/inconsolata"
	"golang.org/x/image/math/fixed"
)

// face is a bitmap font of 8 x 16 pixels: always legible, nothing to parse. Larger
// pictures show each of its pixels as a square.
var face = inconsolata.Bold8x16

// textScale returns how many pixels a pixel of the font takes: 1 up to HD, 2 at full HD, 4 at 4K.
func textScale(size image.Point) int { return max(1, (max(size.X, size.Y)+480)/960) }

// drawLabel writes text on a filled background above the box r, or inside of it where there is no
// room above, moved to the left where it would leave the picture.
func drawLabel(img *image.RGBA, r image.Rectangle, line int, background color.RGBA, text string) {
	scale := textScale(img.Rect.Size())
	letters := []rune(text)
	letters = letters[:min(len(letters), img.Rect.Dx()/(face.Advance*scale)+1)] // no more than can show
	margin := 2 * scale
	size := image.Pt(len(letters)*face.Advance*scale+2*margin, (face.Ascent+face.Descent)*scale+margin)

	at := image.Pt(r.Min.X, r.Min.Y-size.Y)
	if at.Y < img.Rect.Min.Y {
		at.Y = max(r.Min.Y+line, img.Rect.Min.Y)
	}
	at.Y = min(at.Y, img.Rect.Max.Y-size.Y)
	at.X = max(min(at.X, img.Rect.Max.X-size.X), img.Rect.Min.X)
	fill(img, image.Rectangle{at, at.Add(size)}, background)

	foreground := contrast(background)
	baseline := at.Add(image.Pt(margin, margin/2+face.Ascent*scale))
	for _, letter := range letters {
		drawGlyph(img, baseline, scale, letter, foreground)
		baseline.X += face.Advance * scale
	}
}

// contrast returns black or white, whichever reads better on c.
func contrast(c color.RGBA) color.RGBA {
	if luma := 299*int(c.R) + 587*int(c.G) + 114*int(c.B); luma > 140_000 {
		return color.RGBA{0, 0, 0, 255}
	}
	return color.RGBA{255, 255, 255, 255}
}

// drawGlyph mixes one letter into the picture, its origin at baseline.
func drawGlyph(img *image.RGBA, baseline image.Point, scale int, letter rune, c color.RGBA) {
	place, mask, from, _, ok := face.Glyph(fixed.Point26_6{}, letter)
	if !ok {
		place, mask, from, _, _ = face.Glyph(fixed.Point26_6{}, '?')
	}
	alpha := mask.(*image.Alpha) // what this face has
	for y := range place.Dy() {
		for x := range place.Dx() {
			a := alpha.AlphaAt(from.X+x, from.Y+y).A
			if a == 0 {
				continue
			}
			corner := baseline.Add(place.Min.Add(image.Pt(x, y)).Mul(scale))
			mix(img, image.Rectangle{corner, corner.Add(image.Pt(scale, scale))}, c, a)
		}
	}
}

// mix lays c over the part of r in the picture with opacity a of 255.
func mix(img *image.RGBA, r image.Rectangle, c color.RGBA, a uint8) {
	over := func(under, c uint8) uint8 {
		return uint8((int(under)*(255-int(a)) + int(c)*int(a) + 127) / 255)
	}
	r = r.Intersect(img.Rect)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			p := img.Pix[img.PixOffset(x, y):][:3]
			p[0], p[1], p[2] = over(p[0], c.R), over(p[1], c.G), over(p[2], c.B)
		}
	}
}

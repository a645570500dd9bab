package web

import (
	"bytes"
	"image"
	"image/draw"
	"image/jpeg"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/models/prep"
	"github.com/eyas-edge/eyas/runtime/annotate"

	eyas "github.com/eyas-edge/eyas/runtime"
)

const (
	// maxSide is the longest side of a view. Encoding costs by the pixel, and the models need the CPUs more.
	maxSide     = 960
	jpegQuality = 80

	// The text of annotate up to maxSide, in pixels.
	lineHeight  = 20
	letterWidth = 8
	maxLines    = 4
)

// The colours of captions, as annotate's classes have them: red, and blue.
const (
	troubleColour = 0
	noteColour    = 4
)

// canvas is where a view's pictures are drawn. It keeps its memory from one to the next.
type canvas struct {
	filler *prep.Filler   // for pictures larger than a view
	scaled *tensor.Tensor // its output
	image  *image.RGBA    // the picture with boxes; nil before the first
	noted  *image.RGBA    // with a caption, too
	boxes  []annotate.Box
	bytes  int // of the last JPEG
}

// draw puts a picture and its boxes on the canvas. What cannot be shown leaves the canvas as it is.
func (c *canvas) draw(fr *frame.Frame, found []eyas.Detection) {
	w, h := viewSize(fr.Width, fr.Height)
	if c.paint(fr, w, h) != nil {
		return
	}
	x, y := float32(w)/float32(fr.Width), float32(h)/float32(fr.Height)
	c.boxes = c.boxes[:0]
	for _, d := range found {
		c.boxes = append(c.boxes, annotate.Box{
			Rect:  [4]float32{d.Box[0] * x, d.Box[1] * y, d.Box[2] * x, d.Box[3] * y},
			Class: d.ClassID, Label: annotate.Label(d.Class, d.Score),
		})
	}
	annotate.Draw(c.image, c.boxes)
}

// viewSize returns the size at which a picture is shown.
func viewSize(w, h int) (int, int) {
	if long := max(w, h); long > maxSide {
		w, h = max(w*maxSide/long, 1), max(h*maxSide/long, 1)
	}
	return w, h
}

// paint puts a picture of w x h pixels on the canvas.
func (c *canvas) paint(fr *frame.Frame, w, h int) (err error) {
	if w == fr.Width && h == fr.Height {
		c.image, err = annotate.Picture(c.image, fr)
		return err
	}
	if c.scaled == nil || c.scaled.Shape[1] != h || c.scaled.Shape[2] != w {
		if c.filler, err = prep.NewFiller(prep.Recipe{Resize: prep.Stretch, NHWC: true, Type: tensor.Uint8}, w, h); err != nil {
			return err
		}
		if c.scaled, err = tensor.New("view", tensor.Uint8, 1, h, w, 3); err != nil {
			return err
		}
	}
	if _, err = c.filler.Fill(c.scaled, 0, fr); err != nil {
		return err
	}
	if bounds := image.Rect(0, 0, w, h); c.image == nil || c.image.Rect != bounds {
		c.image = image.NewRGBA(bounds)
	}
	from := c.scaled.Data
	for i := 0; i < len(c.image.Pix); i += 4 {
		p := c.image.Pix[i : i+4 : i+4]
		p[0], p[1], p[2], p[3] = from[0], from[1], from[2], 255
		from = from[3:]
	}
	return nil
}

// encode returns the canvas as a JPEG with a caption. Before the first picture it is an empty one.
func (c *canvas) encode(note caption) []byte {
	img := c.image
	if img == nil {
		img = image.NewRGBA(image.Rect(0, 0, 640, 360))
		draw.Draw(img, img.Rect, image.Black, image.Point{}, draw.Src)
	}
	if note.text != "" {
		img = c.note(img, note)
	}
	out := bytes.NewBuffer(make([]byte, 0, c.bytes+c.bytes/8))
	_ = jpeg.Encode(out, img, &jpeg.Options{Quality: jpegQuality}) // a Buffer takes everything, and no side is above 65535
	c.bytes = out.Len()
	return out.Bytes()
}

// note returns a copy of img with a caption in its upper left corner, in a frame if it is of trouble. The canvas stays as
// it is: the next caption may be shorter.
func (c *canvas) note(img *image.RGBA, note caption) *image.RGBA {
	if c.noted == nil || c.noted.Rect != img.Rect {
		c.noted = image.NewRGBA(img.Rect)
	}
	copy(c.noted.Pix, img.Pix)
	w, h := float32(img.Rect.Dx()), float32(img.Rect.Dy())
	var boxes []annotate.Box
	class := noteColour
	if note.trouble {
		class = troubleColour
	}
	// A label stands above its box: one of no size is text alone.
	for i, line := range lines(note.text, img.Rect.Dx()/letterWidth-1) {
		y := float32((i + 1) * lineHeight)
		boxes = append(boxes, annotate.Box{Rect: [4]float32{0, y, 0, y}, Class: class, Label: line})
	}
	if note.trouble {
		boxes = append(boxes, annotate.Box{Rect: [4]float32{0, 0, w, h}, Class: class})
	}
	annotate.Draw(c.noted, boxes)
	return c.noted
}

// lines breaks text after so many letters, and cuts off what would hide the picture.
func lines(text string, letters int) []string {
	var out []string
	for rest := []rune(text); len(rest) > 0 && len(out) < maxLines; {
		n := min(max(letters, 1), len(rest))
		out = append(out, string(rest[:n]))
		rest = rest[n:]
	}
	return out
}

package memplan

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
)

// The picture's measures, in pixels.
const (
	drawWidth, drawHeight = 1280, 720 // of the plan itself
	drawLeft, drawTop     = 90, 40
	drawRight, drawBottom = 30, 50
	labelWidth            = 7.0 // of a letter
	labelHeight           = 12.0
)

// Drawing writes a plan as SVG under a title: time goes across, offsets go up, each buffer is a box that names itself
// when pointed at, and a dashed line marks the lower bound. Where buffers are too many or too small for a
// label or an outline they have none.
func Drawing(w io.Writer, title string, p Problem, s Solution) error {
	if len(s.Offsets) != len(p.Buffers) {
		return fmt.Errorf("draw: %d offsets for %d buffers", len(s.Offsets), len(p.Buffers))
	}
	d := newDrawing(w, title, p, s)
	d.head()
	d.axes()
	for i := range p.Buffers {
		d.buffer(i)
	}
	d.line("bound", d.y(s.LowerBound), "lower bound "+exactBytes(s.LowerBound))
	fmt.Fprintln(d.w, "</svg>")
	return d.w.Flush()
}

type drawing struct {
	w        *bufio.Writer
	title    string
	p        Problem
	s        Solution
	from, to float64 // time
	high     float64 // bytes
}

func newDrawing(w io.Writer, title string, p Problem, s Solution) *drawing {
	d := &drawing{w: bufio.NewWriter(w), title: title, p: p, s: s, from: math.Inf(1), to: math.Inf(-1), high: float64(max(s.Height, 1))}
	for _, b := range p.Buffers {
		d.from, d.to = min(d.from, float64(b.Lower)), max(d.to, float64(b.Upper))
	}
	if d.from >= d.to { // no buffers
		d.from, d.to = 0, 1
	}
	return d
}

func (d *drawing) x(t float64) float64 { return drawLeft + (t-d.from)/(d.to-d.from)*drawWidth }

func (d *drawing) y(offset int64) float64 { return drawTop + (1-float64(offset)/d.high)*drawHeight }

func (d *drawing) head() {
	const width, height = drawLeft + drawWidth + drawRight, drawTop + drawHeight + drawBottom
	outline := 0.5
	if len(d.p.Buffers) > 1000 {
		outline = 0.15 // thousands of outlines would hide what they go round
	}
	fmt.Fprintf(d.w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">
<style>.b{stroke:#222;stroke-width:%g}.b:hover{stroke-width:2}.l{pointer-events:none;fill:#111;text-anchor:middle}.axis{stroke:#888;fill:none}.grid{stroke:#e4e4e4}.bound{stroke:#c00;stroke-width:1.5;stroke-dasharray:8 4}</style>
<rect width="100%%" height="100%%" fill="#fff"/>
`, width, height, width, height, outline)
	proven := "not proven minimal"
	if d.s.Proven {
		proven = "proven minimal"
	}
	fmt.Fprintf(d.w, "<text x=\"%d\" y=\"22\" font-size=\"15\">%s: %d buffers in %s, %s; %.1f %% empty at the busiest time</text>\n",
		drawLeft, escape(d.title), len(d.p.Buffers), exactBytes(d.s.Height), proven, 100*d.s.Fragmentation())
}

func (d *drawing) buffer(i int) {
	b := d.p.Buffers[i]
	if b.Size <= 0 {
		return
	}
	name := b.ID
	if name == "" {
		name = fmt.Sprint(i)
	}
	left, top := d.x(float64(b.Lower)), d.y(d.s.Offsets[i]+b.Size)
	// A box that is thinner than a line would vanish.
	width, height := max(d.x(float64(b.Upper))-left, 0.4), max(d.y(d.s.Offsets[i])-top, 0.4)
	// Steps of the golden angle keep neighbours in the list apart in colour.
	hue := math.Mod(float64(i)*137.508, 360)
	fmt.Fprintf(d.w, "<rect class=\"b\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"hsl(%.0f,60%%,%d%%)\"><title>%s: %d bytes at %d, lives in [%d, %d)</title></rect>\n",
		left, top, width, height, hue, 62+i%3*8, escape(name), b.Size, d.s.Offsets[i], b.Lower, b.Upper)
	if height >= labelHeight && width >= labelWidth*float64(len([]rune(name))) {
		fmt.Fprintf(d.w, "<text class=\"l\" x=\"%.2f\" y=\"%.2f\">%s</text>\n", left+width/2, top+height/2+4, escape(name))
	}
}

// axes draws the frame with round steps of time and of bytes.
func (d *drawing) axes() {
	for step, t := timeStep(d.to-d.from), 0.0; d.from+t <= d.to; t += step {
		x := d.x(d.from + t)
		fmt.Fprintf(d.w, "<line class=\"grid\" x1=\"%.2f\" y1=\"%d\" x2=\"%.2f\" y2=\"%d\"/>", x, drawTop, x, drawTop+drawHeight)
		fmt.Fprintf(d.w, "<text x=\"%.2f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n", x, drawTop+drawHeight+18, d.from+t)
	}
	for step, offset := byteStep(int64(d.high)), int64(0); offset <= int64(d.high); offset += step {
		y := d.y(offset)
		fmt.Fprintf(d.w, "<line class=\"grid\" x1=\"%d\" y1=\"%.2f\" x2=\"%d\" y2=\"%.2f\"/>", drawLeft, y, drawLeft+drawWidth, y)
		fmt.Fprintf(d.w, "<text x=\"%d\" y=\"%.2f\" text-anchor=\"end\">%s</text>\n", drawLeft-6, y+4, FormatBytes(offset))
	}
	fmt.Fprintf(d.w, "<rect class=\"axis\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", drawLeft, drawTop, drawWidth, drawHeight)
	fmt.Fprintf(d.w, "<text x=\"%d\" y=\"%d\">time across, offset up</text>\n", drawLeft, drawTop+drawHeight+38)
}

// mostSteps is how many steps an axis has at most.
const mostSteps = 10

// timeStep returns 1, 2 or 5 times a power of ten that divides a length into at most mostSteps.
func timeStep(length float64) float64 {
	for power := 1.0; ; power *= 10 {
		for _, n := range []float64{1, 2, 5} {
			if length <= n*power*mostSteps {
				return n * power
			}
		}
	}
}

// byteStep returns a power of two that divides a height into at most mostSteps.
func byteStep(height int64) int64 {
	step := int64(1)
	for height/step > mostSteps {
		step *= 2
	}
	return step
}

func (d *drawing) line(class string, y float64, text string) {
	fmt.Fprintf(d.w, "<line class=\"%s\" x1=\"%d\" y1=\"%.2f\" x2=\"%d\" y2=\"%.2f\"><title>%s</title></line>\n",
		class, drawLeft, y, drawLeft+drawWidth, y, text)
}

// escape makes text safe inside an element. What XML cannot hold becomes U+FFFD.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder never fails
	return b.String()
}

package models

import (
	"fmt"
	"io"
	"strings"

	"github.com/eyas-edge/eyas/models/prep"
)

// WriteText writes the description for people: a title and one fact a line.
func (m *Model) WriteText(w io.Writer) error {
	d := m.Describe()
	var b strings.Builder
	title := d.Title
	if d.Task == "segment" {
		title += " segmentation (boxes only, masks are not read)"
	}
	fmt.Fprintf(&b, "%s: %s, %s\n", d.Model, title, classText(d))
	line := func(key, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s %s\n", key, fmt.Sprintf(format, args...))
	}
	for _, p := range d.Inputs {
		line("input", "%s", p.text())
	}
	for _, p := range d.Outputs {
		line("output", "%s", p.text())
	}
	line("head", "%s", m.headFacts(d))
	line("feed", "%s", m.feedText())
	line("size", "%s", sizeFacts(d.Feed))
	line("graph", "%s", graphText(d))
	line("operators", "%s", operatorText(d))
	line("weights", "%s", weightText(d))
	line("compute", "%s", computeText(d))
	for _, s := range d.Warnings {
		line("warning", "%s", s)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func classText(d Description) string {
	if d.Classes == 0 {
		return "classes unknown"
	}
	s := plural(d.Classes, "class", "classes")
	const show = 4
	switch {
	case len(d.Labels) == 0:
		return s + " without names"
	case len(d.Labels) > show:
		return s + " (" + strings.Join(d.Labels[:show], ", ") + ", ...)"
	}
	return s + " (" + strings.Join(d.Labels, ", ") + ")"
}

func (p Port) text() string {
	s := p.Name + " " + p.Type
	if p.Layout != "" {
		s += " " + strings.ToUpper(p.Layout)
	}
	axes := p.Axes
	if axes == nil {
		for _, d := range p.Shape {
			axes = append(axes, fmt.Sprint(d))
		}
		return s + " [" + strings.Join(axes, ",") + "]"
	}
	var dynamic []string
	for i, d := range p.Shape {
		if d < 0 {
			dynamic = append(dynamic, axes[i])
		}
	}
	return s + " [" + strings.Join(axes, ",") + "], dynamic: " + strings.Join(dynamic, ", ")
}

func (m *Model) headFacts(d Description) string {
	s := m.headText()
	if d.Head.NMS && d.Head.IoU < 1 {
		s += fmt.Sprintf("; suppression at IoU %.2f", d.Head.IoU)
	} else {
		s += "; no suppression needed"
	}
	if d.Head.Conf > 0 {
		s += fmt.Sprintf(", score from %.2f", d.Head.Conf)
	}
	return s
}

// feedText is the recipe in words and figures.
func (m *Model) feedText() string {
	r := m.Recipe
	how := map[prep.Resize]string{
		prep.Letterbox:    fmt.Sprintf("letterboxed in the centre, padded with %d", r.Pad),
		prep.LetterboxEnd: fmt.Sprintf("letterboxed at the top left, padded with %d", r.Pad),
		prep.Stretch:      "stretched",
	}[r.Resize]
	value := "levels 0..255 as they are"
	switch {
	case r.Mean == all(0) && r.Std == all(255):
		value = "levels / 255"
	case r.Mean != all(0) || r.Std != all(1) && r.Std != all(0):
		value = "(level - " + figures(r.Mean) + ") / " + figures(r.Std)
	}
	return fmt.Sprintf("%s, %s, %s", strings.ToUpper(m.channels()), how, value)
}

func figures(v [3]float32) string {
	if v == all(v[0]) {
		return fmt.Sprintf("%g", v[0])
	}
	return fmt.Sprintf("(%g, %g, %g)", v[0], v[1], v[2])
}

func sizeFacts(f Feed) string {
	s := fmt.Sprintf("%dx%d", f.Height, f.Width)
	switch {
	case f.DynamicSize:
		s += fmt.Sprintf(" by default, other sizes run: multiples of %d", f.Stride)
	case f.FalseDynamic:
		s += " only, although its axes are declared dynamic"
	}
	switch f.Batch {
	case 0:
		s += "; any batch"
	default:
		s += fmt.Sprintf("; batch %d", f.Batch)
	}
	if f.MixesBatch {
		s += "; dynamic quantisation: the frames of a batch change each other's scores"
	}
	return s
}

func graphText(d Description) string {
	s := fmt.Sprintf("opset %d, IR %d", d.Opsets[""], d.IR)
	if d.Producer != "" {
		s += ", by " + d.Producer
	}
	return s
}

func operatorText(d Description) string {
	ops := sortedOps(d.Operators)
	for i, op := range ops {
		ops[i] = fmt.Sprintf("%d %s", d.Operators[op], printable(op))
	}
	return fmt.Sprintf("%d: %s", d.Nodes, strings.Join(ops, ", "))
}

// weightText is, for example, "3.2 M parameters: int8 3.2 MB, float32 0.1 MB; 3.3 MB, -74 % of 12.7 MB in float32".
func weightText(d Description) string {
	parts := make([]string, len(d.Weights))
	for i, w := range d.Weights {
		parts[i] = fmt.Sprintf("%s %s", w.Type, byteText(w.Bytes))
	}
	s := fmt.Sprintf("%s parameters: %s", countText(d.Parameters), strings.Join(parts, ", "))
	if quantised(d.Weights) && d.Float32Bytes > 0 {
		s += fmt.Sprintf("; %s in all, %+.0f %% against %s in float32", byteText(d.WeightBytes),
			100*(float64(d.WeightBytes)/float64(d.Float32Bytes)-1), byteText(d.Float32Bytes))
	}
	return s
}

func computeText(d Description) string {
	least := ""
	if !d.MultiplyAddsAll {
		least = "at least "
	}
	return fmt.Sprintf("%s%s multiply-adds a frame at %dx%d", least, countText(d.MultiplyAdds), d.Feed.Height, d.Feed.Width)
}

// countText is a count with three digits: 3.16 M.
func countText(n int64) string {
	v, unit := float64(n), ""
	for _, u := range []string{" k", " M", " G", " T"} {
		if v < 1000 {
			break
		}
		v, unit = v/1000, u
	}
	return fmt.Sprintf("%.3g%s", v, unit)
}

func byteText(n int64) string {
	switch {
	case n >= 100_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%.1f KB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d B", n)
}

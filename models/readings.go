package models

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/models/decode"
	"github.com/eyas-edge/eyas/models/prep"
)

// output is one output with what is known of its shape for a run at H x W: -1 where it is not known.
type output struct {
	index int
	name  string
	typ   tensor.Type
	shape []int
}

func (o output) text() string {
	s := make([]string, len(o.shape))
	for i, d := range o.shape {
		s[i] = "?"
		if d >= 0 {
			s[i] = fmt.Sprint(d)
		}
	}
	return fmt.Sprintf("%s %s [%s]", printable(o.name), o.typ, strings.Join(s, ","))
}

func (o output) integer() bool { return o.typ == tensor.Int64 || o.typ == tensor.Int32 }

// reading is one way to understand a model's outputs. Shapes alone often allow several.
type reading struct {
	families []string // whose heads look like this; the first is the default
	head     decode.Head
	classes  int    // -1: the outputs do not say
	evidence int    // how much else speaks for it
	doubtful bool   // not taken without evidence, or a user who says so
	foreign  string // what this is if Eyas does not run it, "" if it does
	warning  string
}

func (r reading) text() string {
	switch {
	case r.foreign != "":
		return r.foreign
	case r.classes < 0:
		return r.families[0]
	}
	layout := ""
	if r.head.Transposed {
		layout = ", transposed"
	}
	return fmt.Sprintf("%s with %s%s", r.families[0], plural(r.classes, "class", "classes"), layout)
}

// Weights of evidence. Names say most: they come with the class count.
const (
	byNames  = 4
	byKind   = 3
	byGraph  = 2
	byCOCO   = 1
	cocoSize = 80
)

// settleOutputs notes the outputs with the shapes of a run.
func (l *loader) settleOutputs() error {
	for i, v := range l.graph.Outputs {
		o := output{index: i, name: v.Name, typ: v.Type, shape: v.Sizes()}
		if s, ok := l.shapes[v.Name]; ok {
			o.shape = slices.Clone(s)
			for k := range o.shape {
				if len(v.Shape) == len(s) && s[k] < 0 {
					o.shape[k] = v.Shape[k].Size
				}
			}
		}
		if o.typ == tensor.BFloat16 {
			return fmt.Errorf("output %s is bfloat16: export the model as float32 or float16 (half=True)", o.text())
		}
		l.outputs = append(l.outputs, o)
	}
	return nil
}

// settleHead chooses the one reading that stands, or says what would settle it.
func (l *loader) settleHead() error {
	all := l.readings()
	stand := all[:0:0]
	for _, r := range all {
		if l.stands(&r) {
			stand = append(stand, r)
		}
	}
	if len(stand) == 0 {
		return l.unknown(all)
	}
	slices.SortStableFunc(stand, func(a, b reading) int { return cmp.Compare(b.evidence, a.evidence) })
	best := stand[0]
	if len(stand) > 1 && stand[1].evidence == best.evidence {
		return l.ambiguous(stand)
	}
	if best.foreign != "" {
		return refusal(best.foreign)
	}
	return l.take(best)
}

// stands weighs a reading; false if what the user says excludes it or it lacks evidence.
func (l *loader) stands(r *reading) bool {
	if l.fam != nil && !slices.Contains(r.families, l.fam.name) {
		return false
	}
	if t := l.side.Transposed; t != nil && *t != r.head.Transposed {
		return false
	}
	names := l.given
	if names == nil {
		names = l.meta.names
	}
	if r.classes >= 0 && names != nil && max(r.classes, 1) == len(names) {
		r.evidence += byNames
	}
	if r.classes == cocoSize {
		r.evidence += byCOCO
	}
	if l.meta.family != "" && slices.Contains(r.families, l.meta.family) {
		r.evidence += byGraph
	}
	return !r.doubtful || r.evidence > 0 || l.fam != nil
}

// take makes a reading the model's.
func (l *loader) take(r reading) error {
	name := r.families[0]
	switch {
	case l.fam != nil:
		name = l.fam.name
	case slices.Contains(r.families, l.meta.family):
		name = l.meta.family
	}
	f, _ := lookup(name)
	l.Family, l.Title, l.Task = f.name, f.title, "detect"
	if l.meta.task == "segment" || r.head.Masks > 0 {
		l.Task = "segment"
	}
	l.Head = r.head
	l.Head.Classes = max(r.classes, 0)
	l.NumClasses = l.Head.Classes
	if r.classes == 0 {
		l.NumClasses = 1
	}
	if !l.Head.NMSFree() {
		l.IoU = f.iou
	}
	if f.name == "rtdetr" && l.Head.Kind == decode.ClassOnly {
		l.IoU = 1 // its answer is final: no two queries are suppressed
	}
	if r.warning != "" && l.fam == nil {
		l.warn("%s", r.warning)
	}
	if err := l.settleRows(); err != nil {
		return err
	}
	return l.overrideHead()
}

// settleRows keeps a model whose rows do not say which frame of the batch they belong to at one frame a run.
func (l *loader) settleRows() error {
	if l.Head.Kind != decode.Rows || l.outputs[l.Head.Output].shape[1] != 6 {
		return nil
	}
	if l.Input.Batch > 1 {
		return fmt.Errorf("runs %d frames at a time, and its output %s does not say which frame a row belongs to: export with batch 1",
			l.Input.Batch, l.outputs[l.Head.Output].text())
	}
	l.Input.Batch = 1
	return nil
}

// overrideHead lays the sidecar's facts over the head.
func (l *loader) overrideHead() error {
	h := &l.Head
	if l.side.Sigmoid != nil {
		h.Sigmoid = *l.side.Sigmoid
	}
	if l.side.Normalized != nil {
		h.NormBoxes = *l.side.Normalized
	}
	if s := l.side.Strides; s != nil {
		if len(h.Strides) != len(s) {
			return fmt.Errorf("the sidecar has %d strides, the model %d levels", len(s), len(h.Strides))
		}
		h.Strides = s
	}
	return nil
}

func (l *loader) outputText() string {
	var s []string
	for i, o := range l.outputs {
		if i == 12 {
			s = append(s, fmt.Sprintf("and %d more", len(l.outputs)-i))
			break
		}
		s = append(s, o.text())
	}
	return strings.Join(s, ", ")
}

// ambiguous says which readings are equally good and how to choose.
func (l *loader) ambiguous(stand []reading) error {
	var are, flags []string
	layouts := false
	for _, r := range stand {
		if r.evidence < stand[0].evidence {
			break
		}
		are = append(are, r.text())
		if r.foreign == "" && !slices.Contains(flags, "--family "+r.families[0]) {
			flags = append(flags, "--family "+r.families[0])
		}
		layouts = layouts || r.head.Transposed != stand[0].head.Transposed
	}
	hint := strings.Join(flags, " or ") + ", or --labels with its class names"
	if layouts && len(flags) == 1 {
		hint = fmt.Sprintf("'transposed: true' or 'transposed: false' in %s.yaml", l.Name)
	}
	return fmt.Errorf("ambiguous: %s for a %s input reads as %s: settle it with %s",
		l.outputText(), sizeText(l.H, l.W), strings.Join(are, " or as "), hint)
}

// unknown says that no reading stands, with those that lack only evidence.
func (l *loader) unknown(all []reading) error {
	shapes := fmt.Sprintf("%s for a %s input", l.outputText(), sizeText(l.H, l.W))
	if len(l.outputs) == 1 && l.classifier(l.outputs[0]) {
		return refusal("a classification model (one score a class, no boxes)")
	}
	var flags []string
	for _, r := range all {
		if r.foreign == "" && !slices.Contains(flags, "--family "+r.families[0]) {
			flags = append(flags, "--family "+r.families[0])
		}
	}
	switch {
	case l.fam != nil && len(flags) > 0:
		return fmt.Errorf("family %s does not fit its outputs %s: they read as %s", l.fam.name, shapes, strings.Join(flags, " or "))
	case len(flags) > 0:
		return fmt.Errorf("unknown head: %s: if you know what it is, say %s, or give its class names with --labels", shapes, strings.Join(flags, " or "))
	case l.gridWithoutAnchors():
		return fmt.Errorf("%s reads as a YOLOv2-style grid: give its 'anchors' in %s.yaml", shapes, l.Name)
	}
	return fmt.Errorf("unknown head: %s: Eyas reads the outputs of %s (docs/models.md); export the model with its authors' exporter",
		shapes, strings.Join(Families(), ", "))
}

// settleLabels finds the class names and checks them against the outputs.
func (l *loader) settleLabels() error {
	c := l.NumClasses
	switch {
	case l.given != nil:
		if c > 0 && len(l.given) != c {
			return fmt.Errorf("the labels name %s, the outputs have %s: give one name a class", plural(len(l.given), "class", "classes"), fmt.Sprint(c))
		}
		l.Labels = l.given
	case l.meta.names != nil:
		if c > 0 && len(l.meta.names) != c {
			l.warn("the metadata names %s, the outputs have %d: class ids are shown; give the names with --labels",
				plural(len(l.meta.names), "class", "classes"), c)
			return nil
		}
		l.Labels = l.meta.names
	case c == cocoSize:
		l.Labels = coco
	default:
		l.warn("class names are not known: class ids are shown; give the names with --labels")
	}
	if c == 0 {
		l.NumClasses = len(l.Labels)
	}
	return nil
}

// settleRecipe makes the family's recipe the model's, with the sidecar's changes.
func (l *loader) settleRecipe() error {
	f, _ := lookup(l.Family)
	r := f.recipe
	r.Type, r.NHWC, r.Gray = l.Input.Type, l.Input.NHWC, l.Input.Channels == 1
	if r.Type == tensor.Uint8 {
		r.Mean, r.Std = all(0), all(1) // bytes: the graph normalises by itself
	}
	if r.Gray {
		r.BGR = false
	}
	s := l.side
	if s.Resize != "" {
		var err error
		if r.Resize, err = prep.ParseResize(s.Resize); err != nil {
			return err
		}
	}
	if s.Pad != nil {
		r.Pad = uint8(*s.Pad)
	}
	switch {
	case s.Channels == "":
	case (s.Channels == "gray") != r.Gray:
		return fmt.Errorf("the sidecar says channels %s, the input has %d", s.Channels, l.Input.Channels)
	default:
		r.BGR = s.Channels == "bgr"
	}
	if s.Mean != nil {
		r.Mean = s.Mean.channels()
	}
	if s.Std != nil {
		r.Std = s.Std.channels()
	}
	l.Recipe = r
	if s.Conf != nil {
		l.Conf = *s.Conf
	}
	if s.IoU != nil {
		l.IoU = *s.IoU
	}
	l.MixesBatch = l.graph.has("DynamicQuantizeLinear")
	return nil
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

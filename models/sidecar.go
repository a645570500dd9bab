package models

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/eyas-edge/eyas/internal/regular"
	"github.com/eyas-edge/eyas/internal/yamlfile"
)

// Sidecar is what a user may say about a model, all of it optional: in a file beside the
// model (best.yaml beside best.onnx) or in the ONNX metadata under the key "eyas". What it
// says goes over what Eyas finds out by itself; the file goes over the metadata. Unknown keys are
// errors.
type Sidecar struct {
	Family   string `yaml:"family"`   // one of Families
	ImgSize  Size   `yaml:"imgsz"`    // input size in pixels, N or [H, W]; for dynamic axes
	Stride   int    `yaml:"stride"`   // the input's sides are multiples of it
	Layout   string `yaml:"layout"`   // nchw or nhwc
	Resize   string `yaml:"resize"`   // letterbox, letterbox-end or stretch
	Pad      *int   `yaml:"pad"`      // level of the padding, 0..255
	Channels string `yaml:"channels"` // rgb, bgr or gray
	Mean     Levels `yaml:"mean"`     // one level 0..255 or one a channel, in the tensor's channel order
	Std      Levels `yaml:"std"`      // likewise; a tensor value is (level - mean) / std

	Conf *float32 `yaml:"conf"` // least score, 0..1
	IoU  *float32 `yaml:"iou"`  // most overlap of two boxes, 0..1

	Labels Labels `yaml:"labels"` // class names: a list, a map from class id, or (in a file) a labels file's name
	Names  Labels `yaml:"names"`  // the same under the name that data sets use

	Anchors    [][]float32 `yaml:"anchors"`    // [w, h] each, in cells (grids); w,h,w,h,... a level, in pixels (raw YOLOv5)
	Strides    []int       `yaml:"strides"`    // of the levels, in the outputs' order
	Sigmoid    *bool       `yaml:"sigmoid"`    // scores are logits
	Normalized *bool       `yaml:"normalized"` // boxes are 0..1 of the input, not pixels
	Transposed *bool       `yaml:"transposed"` // candidates (or cells) before values: [1,N,4+C]
}

// Size is a height and a width in pixels; YAML gives a number or [H, W]. Zero is unset.
type Size [2]int

// UnmarshalYAML reads a size.
func (s *Size) UnmarshalYAML(n ast.Node) error {
	sides := []ast.Node{n, n}
	if list, ok := n.(*ast.SequenceNode); ok {
		sides = list.Values
	}
	if len(sides) != 2 {
		return yamlfile.At(n, "imgsz wants a number of pixels or [height, width]")
	}
	for i, side := range sides {
		v, err := yamlfile.Whole(side)
		if err != nil {
			return err
		}
		s[i] = v
	}
	if err := s.check(); err != nil {
		return yamlfile.At(n, "%v", err)
	}
	return nil
}

// MaxSide is the longest side of an input in pixels: a square of it takes 3 GB as floats.
const MaxSide = 16384

func (s Size) check() error {
	for _, side := range s {
		if side < 1 || side > MaxSide {
			return fmt.Errorf("imgsz %dx%d is out of range: a side has 1 to %d pixels", s[0], s[1], MaxSide)
		}
	}
	return nil
}

// Levels are figures for up to three channels; YAML gives a number or a list.
type Levels []float32

// UnmarshalYAML reads one number or a list of one or three.
func (l *Levels) UnmarshalYAML(n ast.Node) error {
	var one float32
	var list []float32
	if yaml.NodeToValue(n, &one) == nil {
		list = []float32{one}
	} else if yaml.NodeToValue(n, &list) != nil || len(list) != 1 && len(list) != 3 {
		return yamlfile.At(n, "mean and std want a number or three")
	}
	if slices.ContainsFunc(list, func(v float32) bool { return !finite(v) }) {
		return yamlfile.At(n, "mean and std want finite numbers")
	}
	*l = list
	return nil
}

func (l Levels) channels() [3]float32 {
	if len(l) == 1 {
		return all(l[0])
	}
	return [3]float32(l)
}

// Labels are class names as a document gives them, or the name of the file that has them.
type Labels struct {
	Names []string
	File  string
}

// UnmarshalYAML reads a list, a map from class id to name, or a file's name.
func (l *Labels) UnmarshalYAML(n ast.Node) error {
	if s, ok := n.(*ast.StringNode); ok {
		l.File = s.Value
		return nil
	}
	names, err := labelsOf(n)
	if err == nil && len(names) == 0 {
		err = yamlfile.At(n, "no class names")
	}
	l.Names = names
	return err
}

// maxSidecar bounds a sidecar; 10,000 labels fit.
const maxSidecar = yamlfile.MaxBytes

// ParseSidecar reads a sidecar. Errors are one line that begins with name, the line and the column.
func ParseSidecar(name string, data []byte) (*Sidecar, error) {
	if len(data) > maxSidecar {
		return nil, fmt.Errorf("%s: %d bytes are no sidecar: at most %d are read", name, len(data), maxSidecar)
	}
	s := new(Sidecar)
	doc, err := yamlfile.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	keys := yamlfile.Pairs(doc.Body)
	if doc.Body != nil && keys == nil {
		return nil, fmt.Errorf("%s:%w", name, yamlfile.At(doc.Body, "expected keys and values, such as 'family: yolov8'"))
	}
	if err := doc.Decode(s); err != nil {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	for _, kv := range keys {
		if msg := s.complaint(kv.Key.GetToken().Value); msg != "" {
			return nil, fmt.Errorf("%s:%w", name, yamlfile.At(kv.Value, "%s", msg))
		}
	}
	return s, nil
}

// complaint says what is wrong with the value of a key, "" if nothing is.
func (s *Sidecar) complaint(key string) string {
	fraction := func(v *float32) bool { return v == nil || *v >= 0 && *v <= 1 }
	oneOf := func(v string, all ...string) string {
		if slices.Contains(all, v) {
			return ""
		}
		return fmt.Sprintf("%s %q is not known: use one of %s", key, v, strings.Join(all, ", "))
	}
	switch key {
	case "family":
		if _, ok := lookup(s.Family); !ok {
			return fmt.Sprintf("family %q is not known: use one of %s", s.Family, strings.Join(Families(), ", "))
		}
	case "layout":
		return oneOf(s.Layout, "nchw", "nhwc")
	case "resize":
		return oneOf(s.Resize, "letterbox", "letterbox-end", "stretch")
	case "channels":
		return oneOf(s.Channels, "rgb", "bgr", "gray")
	case "pad":
		if s.Pad != nil && (*s.Pad < 0 || *s.Pad > 255) {
			return "pad is a level from 0 to 255"
		}
	case "std":
		if slices.ContainsFunc(s.Std, func(v float32) bool { return v <= 0 }) {
			return "std has to be above 0"
		}
	case "conf", "iou":
		if !fraction(s.Conf) || !fraction(s.IoU) {
			return key + " is a number from 0 to 1"
		}
	case "names":
		if s.Labels.Names != nil || s.Labels.File != "" {
			return "names and labels are the same: give one"
		}
	case "stride", "strides":
		for _, v := range append(slices.Clone(s.Strides), max(s.Stride, 1)) {
			if v < 1 || v > 1024 || s.Stride < 0 || len(s.Strides) > maxLevels {
				return fmt.Sprintf("a stride has 1 to 1024 pixels, a model at most %d of them", maxLevels)
			}
		}
	case "anchors":
		return anchorComplaint(s.Anchors)
	}
	return ""
}

// maxLevels bounds the levels of a head, and the anchors of a level.
const maxLevels = 16

func anchorComplaint(anchors [][]float32) string {
	for _, a := range anchors {
		ok := len(a) >= 2 && len(a)%2 == 0 && len(a) <= 2*maxLevels && len(anchors) <= maxLevels
		if !ok || slices.ContainsFunc(a, func(v float32) bool { return !(v > 0) || !finite(v) }) {
			return fmt.Sprintf("anchors are at most %d lists of w,h pairs above 0", maxLevels)
		}
	}
	return ""
}

func finite(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// merge lays what over says over s.
func (s Sidecar) merge(over Sidecar) Sidecar {
	pick(&s.Family, over.Family)
	pick(&s.ImgSize, over.ImgSize)
	pick(&s.Stride, over.Stride)
	pick(&s.Layout, over.Layout)
	pick(&s.Resize, over.Resize)
	pick(&s.Pad, over.Pad)
	pick(&s.Channels, over.Channels)
	pick(&s.Conf, over.Conf)
	pick(&s.IoU, over.IoU)
	pick(&s.Sigmoid, over.Sigmoid)
	pick(&s.Normalized, over.Normalized)
	pick(&s.Transposed, over.Transposed)
	if over.Mean != nil {
		s.Mean = over.Mean
	}
	if over.Std != nil {
		s.Std = over.Std
	}
	if over.Labels.Names != nil {
		s.Labels = over.Labels
	}
	if over.Anchors != nil {
		s.Anchors = over.Anchors
	}
	if over.Strides != nil {
		s.Strides = over.Strides
	}
	return s
}

func pick[T comparable](dst *T, over T) {
	var zero T
	if over != zero {
		*dst = over
	}
}

// readSidecar returns the settings for a model from its metadata and from the file beside it. A labels
// file that the sidecar names is read; it has to lie in the sidecar's folder or below.
func readSidecar(modelPath string, metadata map[string]string) (Sidecar, error) {
	var s Sidecar
	if text, ok := metadata["eyas"]; ok {
		name := fmt.Sprintf("%s: metadata eyas", modelPath)
		meta, err := ParseSidecar(name, []byte(text))
		if err != nil {
			return s, err
		}
		if err := meta.settleLabels(""); err != nil {
			return s, fmt.Errorf("%s: %w", name, err)
		}
		s = *meta
	}
	path := SidecarPath(modelPath)
	if modelPath == "" || path == modelPath {
		return s, nil
	}
	data, err := regular.Read(path, maxSidecar)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	} else if err != nil {
		return s, fmt.Errorf("settings of %s: %w", filepath.Base(modelPath), err)
	}
	file, err := ParseSidecar(path, data)
	if err == nil {
		err = file.settleLabels(path)
	}
	if err != nil {
		return s, fmt.Errorf("%w; Eyas reads this file as its settings for %s: if it is another program's, rename it (a data set's file goes to --labels)",
			err, filepath.Base(modelPath))
	}
	return s.merge(*file), nil
}

// SidecarPath returns the path of a model's sidecar: the model's with .yaml in place of its extension.
func SidecarPath(modelPath string) string {
	return strings.TrimSuffix(modelPath, filepath.Ext(modelPath)) + ".yaml"
}

// settleLabels makes Labels the one place of the class names and reads a file that it names.
// path is the sidecar's, "" for metadata, which may name no file.
func (s *Sidecar) settleLabels(path string) error {
	if s.Labels.Names == nil && s.Labels.File == "" {
		s.Labels = s.Names
	}
	s.Names = Labels{}
	if s.Labels.File == "" {
		return nil
	}
	if path == "" {
		return errors.New("labels have to be a list: metadata names no files")
	}
	if !filepath.IsLocal(s.Labels.File) {
		return fmt.Errorf("%s: labels %s: the file has to lie in the same folder or below", path, s.Labels.File)
	}
	names, err := ReadLabels(filepath.Join(filepath.Dir(path), s.Labels.File))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s.Labels = Labels{Names: names}
	return nil
}

// Package models finds out what an ONNX model is: its family, what it wants to be fed, how
// its answer is to be read, and what its classes are called. It reads shapes, metadata and
// graph, runs nothing, and refuses what it does not know instead of guessing: a wrong guess
// looks like a detector that finds nothing.
//
// Only detectors are taken. The sub-packages do the work that follows: prep feeds, decode reads.
package models

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/models/decode"
	"github.com/eyas-edge/eyas/models/onnx"
	"github.com/eyas-edge/eyas/models/prep"
)

// Options are what a user says about a model. They go over a sidecar.
type Options struct {
	ImgSize Size   // input height and width for dynamic axes; zero: the sidecar, the metadata, else 640
	Labels  string // labels file, "" for the model's own
	Family  string // one of Families, "" to find out
}

// Input is the picture input of a model.
type Input struct {
	Index    int         // among the model's inputs
	Name     string      // as the model calls it
	Type     tensor.Type // Float32, Float16 or Uint8
	NHWC     bool        // channels last
	Channels int         // 3, or 1 for grey
	Batch    int         // frames a run takes; 0: any number
	H, W     int         // fixed size in pixels; 0 where the axis is declared dynamic
}

// Model is what is known of one model. It is not changed after Load.
type Model struct {
	Path string
	Name string // file name without .onnx, as results show it
	ONNX *onnx.Model

	Family string // one of Families
	Title  string // the family's name as its authors write it
	Task   string // detect, or segment for a model whose masks are not read

	Input Input
	// SizeInput is the index of a second input, int64 or int32 [batch,2], that scales the boxes; -1 if there
	// is none. It is fed the width and the height of the model's input, in this order (DEIM,
	// RT-DETR and D-FINE agree on it), so that boxes are in pixels of the input.
	SizeInput int

	H, W        int  // input size in pixels if nothing asks for another
	DynamicSize bool // any other size that is a multiple of Stride runs, too
	// FalseDynamic: height and width are declared dynamic, but the graph runs at H x W only.
	FalseDynamic bool
	Stride       int // the sides of a dynamic input are multiples of it

	Recipe prep.Recipe
	Head   decode.Head
	Conf   float32 // least score that the model's makers advise; 0 if they say nothing
	IoU    float32 // overlap for suppression; 0 if the model needs none

	Labels     []string // class names; nil: unknown, ids are shown
	NumClasses int      // 0 if unknown

	MixesBatch bool     // DynamicQuantizeLinear: the frames of a batch change each other's results
	Warnings   []string // one line each, to be shown once
}

// ErrOption is matched by the errors of Load and New about what the user says, whatever the model is: a
// family that does not exist, a labels file that cannot be read, a size out of range.
var ErrOption = errors.New("the options are wrong")

// optionError is an error that is ErrOption, too, without saying so.
type optionError struct{ error }

func (e optionError) Is(target error) bool { return target == ErrOption }
func (e optionError) Unwrap() error        { return e.error }

// Load reads the model at path and the sidecar beside it. Its errors are one line: the file, what
// is wrong, and what to do.
func Load(path string, o Options) (*Model, error) {
	om, err := onnx.Open(path)
	if err != nil {
		return nil, err
	}
	return New(om, path, o)
}

// New is Load for a model that is already read. path names it in errors and results and tells where its
// sidecar lies; "" is a model without either.
func New(om *onnx.Model, path string, o Options) (*Model, error) {
	m := &Model{Path: path, Name: strings.TrimSuffix(filepath.Base(path), ".onnx"), ONNX: om, SizeInput: -1}
	if path == "" {
		m.Name = "model"
	}
	side, err := readSidecar(path, om.Metadata)
	if err != nil {
		return nil, err
	}
	l := &loader{Model: m, opt: o, side: side, meta: readExported(om.Metadata), graph: newGraph(om.Graph)}
	for _, step := range []func() error{
		l.settleOptions, l.refuseTask, l.settleInput, l.settleSize, l.settleOutputs, l.settleHead, l.settleLabels, l.settleRecipe,
	} {
		if err := step(); err != nil {
			if path != "" {
				err = fmt.Errorf("%s: %w", path, err)
			}
			return nil, err
		}
	}
	return m, nil
}

// loader fills a Model, step by step.
type loader struct {
	*Model
	opt     Options
	side    Sidecar
	meta    exported
	graph   *graph
	fam     *family // what the user says it is; nil: to be found out
	given   []string
	shapes  map[string][]int // of all values, for one run at H x W
	outputs []output
}

func (l *loader) warn(format string, args ...any) {
	l.Warnings = append(l.Warnings, fmt.Sprintf(format, args...))
}

// settleOptions checks what the user says before the model is looked at.
func (l *loader) settleOptions() error {
	l.Warnings = append(l.Warnings, l.meta.warnings...)
	if l.opt.ImgSize != (Size{}) {
		if err := l.opt.ImgSize.check(); err != nil {
			return optionError{err}
		}
	}
	name := l.side.Family
	if l.opt.Family != "" {
		name = l.opt.Family
	}
	if name != "" {
		f, ok := lookup(name)
		if !ok {
			return optionError{fmt.Errorf("family %q is not known: use one of %s", name, strings.Join(Families(), ", "))}
		}
		l.fam = &f
	}
	if l.opt.Labels != "" {
		names, err := ReadLabels(l.opt.Labels)
		if err != nil {
			return optionError{err}
		}
		l.given = names
	} else {
		l.given = l.side.Labels.Names
	}
	return nil
}

// InputSize returns the input's height and width for a picture of srcW x srcH: the model's own, or, where
// height and width are dynamic and the picture keeps its shape, the smallest rectangle of the
// stride that holds the picture once it is scaled into H x W.
func (m *Model) InputSize(srcW, srcH int) (h, w int) {
	if !m.DynamicSize || m.Recipe.Resize == prep.Stretch || srcW < 1 || srcH < 1 {
		return m.H, m.W
	}
	t := prep.Fit(m.Recipe.Resize, srcW, srcH, m.W, m.H)
	return roundUp(t.NewH, m.Stride), roundUp(t.NewW, m.Stride)
}

// InputShape returns the shape of the picture input for a batch at a size.
func (m *Model) InputShape(batch, h, w int) []int {
	if m.Input.NHWC {
		return []int{batch, h, w, m.Input.Channels}
	}
	return []int{batch, m.Input.Channels, h, w}
}

// InputShapes returns the shapes of all inputs by name, as onnx.Model.Infer takes them.
func (m *Model) InputShapes(batch, h, w int) map[string][]int {
	s := map[string][]int{m.Input.Name: m.InputShape(batch, h, w)}
	if m.SizeInput >= 0 {
		in := m.ONNX.Graph.Inputs[m.SizeInput]
		n := batch
		if fixed := in.Sizes()[0]; fixed > 0 {
			n = fixed
		}
		s[in.Name] = []int{n, 2}
	}
	return s
}

// Batch returns the frames of a run that is asked for n: n, or what the model fixes.
func (m *Model) Batch(n int) int {
	if m.Input.Batch > 0 {
		return m.Input.Batch
	}
	return n
}

// Label returns the name of a class, its id as text where the name is not known.
func (m *Model) Label(class int) string {
	if class >= 0 && class < len(m.Labels) && m.Labels[class] != "" {
		return m.Labels[class]
	}
	return strconv.Itoa(class)
}

func roundUp(n, step int) int { return (n + step - 1) / step * step }

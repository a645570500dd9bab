package lane

import (
	"fmt"
	"os"
	"slices"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/models"
	"github.com/eyas-edge/eyas/models/prep"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// variant is a set at one input size. Its tensors lie in the lane's blocks.
type variant struct {
	set    *Set
	h, w   int
	filler *prep.Filler
	image  *tensor.Tensor // the pictures of the largest batch
	one    int            // bytes of a picture
	runs   []*bound       // by batch size, bound when first used
}

// bound is a binding for one shape, with the plan that it replays.
type bound struct {
	shape   Shape
	binding *ort.Binding
	own     []*tensor.Tensor // tensors beside the lane's blocks
	plan    *plan            // nil: memory comes from the heap
	counts  ort.Counts       // after the last run
}

func newVariant(s *Set, h, w int) (*variant, error) {
	p := s.program
	v := &variant{set: s, h: h, w: w, one: p.inputBytes(h, w, 1)}
	var err error
	if v.filler, err = prep.NewFiller(p.model.Recipe, w, h); err != nil {
		return nil, err
	}
	v.image, err = v.pictures(p.Largest())
	return v, err
}

// pictures returns the tensor of the first n pictures in the set's input buffer.
func (v *variant) pictures(n int) (*tensor.Tensor, error) {
	p := v.set.program
	in := p.session.Inputs()[p.model.Input.Index]
	t := &tensor.Tensor{Name: in.Name, Type: in.Type, Shape: p.model.InputShape(n, v.h, v.w)}
	size := t.Type.Bytes(tensor.Elements(t.Shape))
	block := p.lane.inputs[v.set.index].Data
	if size < 0 || size > len(block) {
		return nil, fmt.Errorf("%d pictures of %dx%d (height x width) take more than the %d bytes that are planned", n, v.h, v.w, len(block))
	}
	t.Data = block[:size:size]
	return t, nil
}

// at returns the binding for a batch size.
func (v *variant) at(n int) (*bound, error) {
	for _, b := range v.runs {
		if b.shape.Batch == n {
			return b, nil
		}
	}
	p := v.set.program
	b := &bound{shape: Shape{H: v.h, W: v.w, Batch: n}}
	if err := v.bind(b); err != nil {
		b.free()
		return nil, fmt.Errorf("model %s at %dx%d (height x width): %w", p.model.Name, v.h, v.w, err)
	}
	v.runs = append(v.runs, b)
	p.opened(b)
	return b, nil
}

func (v *variant) bind(b *bound) error {
	p := v.set.program
	m, n := p.model, b.shape.Batch
	shapes := m.InputShapes(n, v.h, v.w)
	inputs := make([]*tensor.Tensor, len(p.session.Inputs()))
	for i, in := range p.session.Inputs() {
		var err error
		switch i {
		case m.Input.Index:
			inputs[i], err = v.pictures(n)
		case m.SizeInput:
			inputs[i], err = ort.NewTensor(in.Name, in.Type, shapes[in.Name]...)
			b.own = append(b.own, inputs[i])
			if err == nil {
				writeSize(inputs[i], v.w, v.h)
			}
		default:
			err = fmt.Errorf("input %s %v is neither the picture nor its size", in.Name, in.Shape)
		}
		if err != nil {
			return err
		}
	}
	outputs := make([]*tensor.Tensor, len(p.session.Outputs()))
	at := 0
	for i, out := range p.session.Outputs() {
		shape := p.outputShape(out, shapes)
		if shape == nil {
			continue // data-dependent: allocated in each run
		}
		t := &tensor.Tensor{Name: out.Name, Type: out.Type, Shape: shape}
		size := t.Type.Bytes(tensor.Elements(shape))
		if size < 0 || at+size > len(p.lane.outputs.Data) {
			return fmt.Errorf("output %s%v does not fit the %d bytes that are planned", out.Name, shape, len(p.lane.outputs.Data))
		}
		t.Data = p.lane.outputs.Data[at : at+size : at+size]
		at += aligned(size)
		outputs[i] = t
	}
	var err error
	if b.binding, err = p.session.Bind(inputs, outputs); err != nil {
		return err
	}
	return p.limit(b.binding)
}

// writeSize writes the input's own width and height where a DETR asks for the picture's: its boxes
// are then in input pixels, as everyone else's.
func writeSize(t *tensor.Tensor, w, h int) {
	for i := 0; i+1 < tensor.Elements(t.Shape); i += 2 {
		if wide := t.Int64s(); wide != nil {
			wide[i], wide[i+1] = int64(w), int64(h)
		} else if narrow := t.Int32s(); narrow != nil {
			narrow[i], narrow[i+1] = int32(w), int32(h)
		} else if real := t.Float32s(); real != nil {
			real[i], real[i+1] = float32(w), float32(h)
		}
	}
}

func (v *variant) close() {
	for _, b := range v.runs {
		v.set.program.closed(b)
		b.free()
	}
	v.runs = nil
}

func (b *bound) free() {
	if b.binding != nil {
		b.binding.Close()
	}
	for _, t := range b.own {
		ort.FreeTensor(t)
	}
}

// outputShape returns the shape to bind an output with, nil for one that the library is to allocate in each
// run: the data decides, or nobody knows.
func (p *Program) outputShape(out ort.Info, inputs map[string][]int) []int {
	if !slices.Contains(out.Shape, -1) {
		return out.Shape
	}
	if !p.inferred {
		return nil
	}
	return inferredShape(p.model, out, inputs)
}

// inferredShape returns the shape of an output whose declared one leaves dimensions open, nil where the data
// decides.
func inferredShape(m *models.Model, out ort.Info, inputs map[string][]int) []int {
	inferred, err := m.ONNX.Infer(inputs)
	if err != nil {
		return nil
	}
	shape, ok := inferred[out.Name]
	if !ok || tensor.Elements(shape) < 1 || len(shape) != len(out.Shape) {
		return nil
	}
	for i, d := range out.Shape {
		if d >= 0 && d != shape[i] {
			return nil
		}
	}
	return shape
}

// inputBytes returns the bytes of n pictures of h x w.
func (p *Program) inputBytes(h, w, n int) int {
	in := p.session.Inputs()[p.model.Input.Index]
	return in.Type.Bytes(tensor.Elements(p.model.InputShape(n, h, w)))
}

// outputBytes returns the bytes of the outputs of fixed shape for n pictures of the model's own size, each
// aligned.
func (p *Program) outputBytes(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sum, known := p.sizes[n]; known {
		return sum
	}
	inputs := p.model.InputShapes(n, p.model.H, p.model.W)
	sum := 0
	for _, out := range p.session.Outputs() {
		if shape := p.outputShape(out, inputs); shape != nil {
			sum += aligned(out.Type.Bytes(tensor.Elements(shape)))
		}
	}
	p.sizes[n] = sum
	return sum
}

// aligned rounds up to what the library's kernels like, pages to what the system maps.
func aligned(n int) int { return (n + 63) &^ 63 }

func pages(n int) int64 {
	page := os.Getpagesize()
	return int64((n + page - 1) / page * page)
}

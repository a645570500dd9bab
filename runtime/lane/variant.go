package lane

import (
	"errors"
	"fmt"
	"slices"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/models"
	"github.com/eyas-edge/eyas/models/prep"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// variant is the tensors of one input size, bound to the session.
type variant struct {
	h, w    int
	batch   int
	image   *tensor.Tensor
	owned   []*tensor.Tensor // memory to free: inputs and pre-bound outputs
	filler  *prep.Filler
	binding *ort.Binding
}

// newVariant binds the tensors of one input size. With inferred, outputs whose shape only inference tells are
// bound, too; else the library allocates them in each run.
func newVariant(m *models.Model, session *ort.Session, h, w int, inferred bool) (*variant, error) {
	v := &variant{h: h, w: w, batch: max(m.Input.Batch, 1)}
	err := v.bind(m, session, inferred)
	if err != nil {
		v.close()
		if errors.Is(err, ort.ErrRun) { // names the model's file, and the shapes
			return nil, err
		}
		return nil, fmt.Errorf("model %s at %dx%d (height x width): %w", m.Name, h, w, err)
	}
	return v, nil
}

func (v *variant) bind(m *models.Model, session *ort.Session, inferred bool) (err error) {
	if v.filler, err = prep.NewFiller(m.Recipe, v.w, v.h); err != nil {
		return err
	}
	shapes := map[string][]int{}
	inputs := make([]*tensor.Tensor, len(session.Inputs()))
	for i, in := range session.Inputs() {
		shape := v.inputShape(m, i)
		if shape == nil {
			return fmt.Errorf("input %s %v is neither the picture nor its size", in.Name, in.Shape)
		}
		shapes[in.Name] = shape
		if inputs[i], err = v.alloc(in.Name, in.Type, shape); err != nil {
			return err
		}
	}
	v.image = inputs[m.Input.Index]
	if m.SizeInput >= 0 {
		v.fillSize(inputs[m.SizeInput])
	}
	outputs := make([]*tensor.Tensor, len(session.Outputs()))
	for i, out := range session.Outputs() {
		shape := out.Shape
		if slices.Contains(shape, -1) {
			shape = inferredShape(m, out, shapes)
		}
		if shape == nil || !inferred && slices.Contains(out.Shape, -1) {
			continue // data-dependent: comes from the library's allocator in each run
		}
		if outputs[i], err = v.alloc(out.Name, out.Type, shape); err != nil {
			return err
		}
	}
	v.binding, err = session.Bind(inputs, outputs)
	return err
}

func (v *variant) alloc(name string, t tensor.Type, shape []int) (*tensor.Tensor, error) {
	made, err := ort.NewTensor(name, t, shape...)
	if err == nil {
		v.owned = append(v.owned, made)
	}
	return made, err
}

// inputShape returns the shape of the model's ith input, nil for one that is not known.
func (v *variant) inputShape(m *models.Model, i int) []int {
	switch {
	case i == m.SizeInput:
		return []int{v.batch, 2}
	case i != m.Input.Index:
		return nil
	case m.Input.NHWC:
		return []int{v.batch, v.h, v.w, m.Input.Channels}
	}
	return []int{v.batch, m.Input.Channels, v.h, v.w}
}

// fillSize writes the input's own width and height where a DETR asks for the picture's: its boxes
// are then in input pixels, as everyone else's.
func (v *variant) fillSize(t *tensor.Tensor) {
	for i := range v.batch {
		if wide := t.Int64s(); wide != nil {
			wide[2*i], wide[2*i+1] = int64(v.w), int64(v.h)
		} else if narrow := t.Int32s(); narrow != nil {
			narrow[2*i], narrow[2*i+1] = int32(v.w), int32(v.h)
		} else if real := t.Float32s(); real != nil {
			real[2*i], real[2*i+1] = float32(v.w), float32(v.h)
		}
	}
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

// fill puts a frame into every sample of the batch: a model with a fixed batch gets copies, and
// only the first answer is read.
func (v *variant) fill(f *frame.Frame) (prep.Transform, error) {
	t, err := v.filler.Fill(v.image, 0, f)
	if err != nil {
		return t, err
	}
	n := len(v.image.Data) / v.batch
	for i := 1; i < v.batch; i++ {
		copy(v.image.Data[i*n:(i+1)*n], v.image.Data[:n])
	}
	return t, nil
}

func (v *variant) bytes() int64 {
	var n int64
	for _, t := range v.owned {
		n += int64(len(t.Data))
	}
	return n
}

func (v *variant) close() {
	if v.binding != nil {
		v.binding.Close()
	}
	for _, t := range v.owned {
		ort.FreeTensor(t)
	}
	v.owned = nil
}

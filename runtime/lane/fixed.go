package lane

import (
	"slices"

	"github.com/eyas-edge/eyas/models"
)

// Batches returns the batch sizes of a model, ascending, where those of asked are wanted: the one that it fixes, or
// one picture where nothing is asked.
func Batches(m *models.Model, asked []int) []int {
	var ladder []int
	for _, n := range asked {
		ladder = append(ladder, m.Batch(n))
	}
	if len(ladder) == 0 {
		ladder = []int{m.Batch(1)}
	}
	slices.Sort(ladder)
	return slices.Compact(ladder)
}

// Fixed returns the open dimensions of a model's inputs that are the same in all of its runs, by their names:
// those of the batch if a ladder comes down to one size, those of height and width if the model runs one
// size only. A session made for them is made sooner, since all arithmetic on shapes is done before. A name that stands
// for something else, too, and an axis without a name stay open.
func Fixed(m *models.Model, ladder []int) map[string]int {
	const open = -1
	sizes := Batches(m, ladder)
	shapes := m.InputShapes(sizes[0], m.H, m.W)
	fixed := map[string]int{}
	for i, in := range m.ONNX.Graph.Inputs {
		shape := shapes[in.Name]
		for axis, d := range in.Shape {
			if d.Size >= 0 || d.Param == "" {
				continue
			}
			size := open
			switch {
			case axis >= len(shape):
			case axis == 0 && len(sizes) > 1:
			case axis > 0 && i == m.Input.Index && m.DynamicSize:
			default:
				size = shape[axis]
			}
			if other, met := fixed[d.Param]; met && other != size {
				size = open
			}
			fixed[d.Param] = size
		}
	}
	for name, size := range fixed {
		if size == open {
			delete(fixed, name)
		}
	}
	return fixed
}

package estimate

import (
	"slices"

	"github.com/eyas-edge/eyas/internal/tensor"
)

const (
	contrib = "com.microsoft."
	blocked = "com.microsoft.nchwc."
)

// views give their first input's memory another shape.
var views = map[string]bool{"Reshape": true, "Squeeze": true, "Unsqueeze": true, "Flatten": true, "Identity": true}

// inPlace are operators whose first output may take over the memory of the first input when nobody else needs
// it. Arithmetic is not among them. (Seen in recordings of version 1.30.)
var inPlace = map[string]bool{
	"Cast": true, "Relu": true, "LeakyRelu": true, "Sigmoid": true, "HardSigmoid": true, "Tanh": true, "Elu": true, "Selu": true,
	"Celu": true, "Softplus": true, "Softsign": true, "ThresholdedRelu": true, "Softmax": true, "ScatterND": true, "ScatterElements": true,
}

// overwritten returns the input whose memory output i of the node may take over, nil if there is none.
func (n *node) overwritten(i int) *value {
	switch {
	case i > 0:
		return nil
	case n.sum:
		return n.in[len(n.in)-1]
	case inPlace[n.op]:
		return n.in[0]
	}
	return nil
}

// scratch returns the sizes of the blocks that the node takes for itself while it runs.
func (n *node) scratch(g *graph, cpu CPU) []int64 {
	switch n.op {
	case "ConvInteger":
		return []int64{n.expanded(1)}
	case "QLinearConv", contrib + "QLinearConv":
		y := n.out[0]
		return []int64{4 * perSample(y), n.expanded(3)}
	case "Conv", contrib + "FusedConv":
		return []int64{4 * n.convScratch(cpu)}
	case "ConvTranspose":
		return []int64{4 * n.transposedScratch()}
	case "Softmax":
		// The kernel works on the last axis; it moves another one there and back.
		if x := n.out[0]; g.opset >= 13 && n.src != nil && !lastAxis(n.src.Int("axis", -1), len(x.shape)) {
			return []int64{x.size(), x.size()}
		}
	case contrib + "DynamicQuantizeMatMul":
		return []int64{count(n.in[0].shape)}
	}
	return nil
}

func lastAxis(axis int64, rank int) bool { return axis == -1 || axis == int64(rank-1) }

// perSample returns the elements of one sample of a batch, 0 if they are not known.
func perSample(v *value) int64 {
	if len(v.shape) < 2 {
		return 0
	}
	return count(v.shape[1:])
}

// count returns the elements of a shape, 0 if they are not known.
func count(shape []int) int64 { return int64(min(max(tensor.Elements(shape), 0), maxElements)) }

// times multiplies counts, up to a limit that no plan can hold.
func times(list ...int64) int64 {
	p := int64(1)
	for _, n := range list {
		if n > 0 && p > maxElements/n {
			return maxElements
		}
		p *= n
	}
	return p
}

// window is the geometry of a convolution.
type window struct {
	groups                 int64
	filters, depth, kernel int64 // filters and input channels of one group, elements of the kernel
	image                  int64 // elements of an output channel
	pointwise              bool  // kernel 1, stride 1, no padding: a plain matrix product
	neighbours             bool  // one filter of 3x3 for each channel, stride 1, padding of at most 1
}

// window returns the geometry of the convolution whose filters are input w; false if it is not known.
func (n *node) window(w int) (window, bool) {
	f, y := n.input(w), n.out[0]
	if f == nil || n.src == nil || len(f.shape) < 3 || len(y.shape) != len(f.shape) || len(n.in[0].shape) != len(f.shape) {
		return window{}, false
	}
	groups := max(n.src.Int("group", 1), 1)
	c := window{
		groups: groups, filters: int64(f.shape[0]) / groups, depth: int64(f.shape[1]),
		kernel: count(f.shape[2:]), image: count(y.shape[2:]),
	}
	within := func(name string, most int64) bool {
		return !slices.ContainsFunc(n.src.Ints(name), func(v int64) bool { return v > most })
	}
	auto := n.src.String("auto_pad", "NOTSET") != "NOTSET"
	plain := within("strides", 1) && within("dilations", 1)
	c.pointwise = c.kernel == 1 && plain && (auto || within("pads", 0))
	c.neighbours = slices.Equal(f.shape[1:], []int{1, 3, 3}) && c.filters == 1 && plain && (auto || within("pads", 1))
	return c, c.kernel > 0 && c.image > 0
}

// expanded returns the bytes of the input with every window laid out as a column (im2col), as the int8
// convolutions have it for one image; 0 where the input does as it is.
func (n *node) expanded(w int) int64 {
	c, ok := n.window(w)
	if !ok || c.pointwise {
		return 0
	}
	return times(c.depth, c.kernel, c.image)
}

// Limits of MLAS' float convolution: a thread expands as much as its matrix product takes at once, and
// gets at least so many multiply-adds.
const (
	segment     = 128 * 128
	threadWork  = 64 * 1024
	threadAlign = 16
)

// convScratch returns the floats that a float convolution expands its input to.
func (n *node) convScratch(cpu CPU) int64 {
	c, ok := n.window(1)
	switch {
	case !ok || c.pointwise:
		return 0
	case c.filters > c.image:
		return times(c.depth, c.kernel, c.image)
	case cpu.Block > 0:
		return c.threads(cpu) * segment
	}
	// Without blocks, which means on arm64, these have a kernel that needs one padded row of the image.
	x := n.in[0].shape
	if c.neighbours {
		return int64(x[len(x)-1]) + 2
	}
	// And there threads take whole samples and groups, if there are several.
	if images := times(int64(max(x[0], 1)), c.groups); images > 1 {
		each := max(times(c.depth, c.kernel, c.image), times(c.filters, c.image), segment)
		return times(min(images, int64(cpu.Threads)), each)
	}
	return c.threads(cpu) * segment
}

// threads returns how many threads share one image.
func (c window) threads(cpu CPU) int64 {
	work := float64(c.filters) * float64(c.image) * float64(c.depth) * float64(c.kernel)
	threads := int64(min(work/threadWork+1, float64(cpu.Threads)))
	if stride := (c.image + threads - 1) / threads; threads > 1 {
		stride = (stride + threadAlign - 1) / threadAlign * threadAlign
		if stride >= c.image {
			threads = 1
		} else if stride*(threads-1) >= c.image {
			threads--
		}
	}
	return threads
}

// transposedScratch returns the floats of the columns that a transposed convolution adds up.
func (n *node) transposedScratch() int64 {
	x, w := n.in[0], n.input(1)
	if w == nil || n.src == nil || len(w.shape) < 3 || len(x.shape) != len(w.shape) {
		return 0
	}
	return times(count(w.shape[1:]), count(x.shape[2:]))
}

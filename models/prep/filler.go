package prep

import (
	"fmt"
	"image"
	"math"
	"slices"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/half"
	"github.com/eyas-edge/eyas/internal/tensor"
)

// MaxInput is the longest side of a model's input that a Filler makes tables for.
const MaxInput = 1 << 15

// Filler writes frames into an input tensor. It holds the tables of the last shape it
// saw and its row buffers, and is for one goroutine.
//
// A frame is read once, row by row: the pixels that a row contributes are converted to RGB
// levels and mixed horizontally, the last two such rows are kept and mixed vertically, and the
// resulting levels become values of the tensor. Levels are those of OpenCV's INTER_LINEAR on
// 8-bit pictures. There are two twins, with equal results: plain Go, in plain.go, and C with vector code, in
// band.c, where the build and the processor allow it.
type Filler struct {
	// Region is the part of the picture that the model sees, in pixels of the picture; an empty one is all
	// of it. It may change from frame to frame; a frame that does not hold all of it is refused.
	Region image.Rectangle
	// Flip mirrors that part left to right.
	Flip bool

	recipe   Recipe
	inW, inH int
	out      output
	vector   bool // the C twin is used

	shape shape // what the tables below were made for
	fit   Transform
	cols  []blend // per output column, source columns
	lines []blend // per output row, source rows
	plain plain
	c     vector

	src   source // the frame while Fill runs
	bands []band // one a thread
	work  workers
}

// shape is everything about a frame that tables depend on.
type shape struct {
	format frame.Format
	w, h   int
	region image.Rectangle
	flip   bool
}

// NewFiller makes a filler for inputs of inW x inH pixels. It refuses sizes outside of
// 1..MaxInput, element types other than float32, float16 and uint8, and figures that
// lead to values the type cannot hold: for uint8 every level must become a level.
func NewFiller(r Recipe, inW, inH int) (*Filler, error) {
	if inW < 1 || inH < 1 || inW > MaxInput || inH > MaxInput {
		return nil, fmt.Errorf("pre-processing: input of %dx%d pixels: sides are 1 to %d", inW, inH, MaxInput)
	}
	if int(r.Resize) >= len(resizeNames) {
		return nil, fmt.Errorf("pre-processing: %s is not known: use one of %v", r.Resize, resizeNames)
	}
	out, err := newOutput(r, inW, inH)
	if err != nil {
		return nil, fmt.Errorf("pre-processing: %w", err)
	}
	f := &Filler{
		recipe: r, inW: inW, inH: inH, out: out,
		cols: make([]blend, 0, inW), lines: make([]blend, 0, inH), bands: make([]band, 1),
	}
	if f.vector = vectorSupported(); f.vector {
		f.c = newVector(&r, inW, out)
	}
	return f, nil
}

// newOutput makes the writer of the recipe's element type with its table of values.
func newOutput(r Recipe, w, h int) (output, error) {
	switch r.Type {
	case tensor.Float32:
		return newWriter(r, w, h, (*tensor.Tensor).Float32s, func(v float32) (float32, bool) {
			return v, finite(v)
		})
	case tensor.Float16:
		return newWriter(r, w, h, (*tensor.Tensor).Float16s, func(v float32) (uint16, bool) {
			b := half.FromFloat32(v)
			return b, finite(half.ToFloat32(b))
		})
	case tensor.Uint8:
		return newWriter(r, w, h, (*tensor.Tensor).Uint8s, func(v float32) (uint8, bool) {
			n := math.Round(float64(v))
			return uint8(max(0, min(n, 255))), n >= 0 && n <= 255 && math.Abs(float64(v)-n) < 1e-3
		})
	}
	return nil, fmt.Errorf("input type %s: only float32, float16 and uint8 take pictures", r.Type)
}

func finite(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

func newWriter[E element](r Recipe, w, h int, view func(*tensor.Tensor) []E, cast func(float32) (E, bool)) (output, error) {
	o := &writer[E]{view: view, w: w, h: h, channels: r.channels(), nhwc: r.NHWC, bgr: r.BGR && !r.Gray}
	for c := range o.channels {
		std := r.std(c)
		for level := range 256 {
			v, ok := cast((float32(level) - r.Mean[c]) / std)
			if !ok {
				return nil, fmt.Errorf("mean %v and std %v turn level %d of channel %d into %v, which %s cannot hold",
					r.Mean[c], std, level, c, (float32(level)-r.Mean[c])/std, r.Type)
			}
			o.table[c][level] = v
		}
	}
	return o, nil
}

// std returns what levels of channel c are divided by.
func (r *Recipe) std(c int) float32 {
	if r.Std[c] == 0 {
		return 1
	}
	return r.Std[c]
}

func (r *Recipe) channels() int {
	if r.Gray {
		return 1
	}
	return 3
}

// Fill writes fr into sample number sample of dst, a tensor of the recipe's type and of shape
// [N,C,inH,inW] or, for NHWC, [N,inH,inW,C]. Every element of the sample is written, whatever it
// held before. It returns the transform that maps the model's boxes back, and fails without
// touching dst when dst is another tensor than the recipe's, the frame's planes are too
// short for its size or Region is not within it. It allocates nothing, but for the first frame of a shape.
func (f *Filler) Fill(dst *tensor.Tensor, sample int, fr *frame.Frame) (Transform, error) {
	if err := f.check(dst, sample); err != nil {
		return Transform{}, fmt.Errorf("pre-processing: %w", err)
	}
	src, err := newSource(fr)
	if err != nil {
		return Transform{}, fmt.Errorf("pre-processing: %w", err)
	}
	region := image.Rect(0, 0, fr.Width, fr.Height)
	if !f.Region.Empty() {
		if !f.Region.In(region) {
			return Transform{}, fmt.Errorf("pre-processing: region %v is not within the picture of %dx%d pixels",
				f.Region, fr.Width, fr.Height)
		}
		region = f.Region
	}
	f.src = src
	f.prepare(shape{fr.Format, fr.Width, fr.Height, region, f.Flip})
	f.c.bind(&f.src)
	f.out.bind(dst, sample)
	f.run()
	f.src = source{} // the frame is its owner's again
	return f.fit, nil
}

// check says whether dst is what the recipe fills.
func (f *Filler) check(dst *tensor.Tensor, sample int) error {
	if dst == nil {
		return fmt.Errorf("no tensor")
	}
	c := f.recipe.channels()
	want := [3]int{c, f.inH, f.inW}
	if f.recipe.NHWC {
		want = [3]int{f.inH, f.inW, c}
	}
	if dst.Type != f.recipe.Type || len(dst.Shape) != 4 || !slices.Equal(dst.Shape[1:], want[:]) {
		return fmt.Errorf("tensor %s is %s%v, the recipe fills %s[N %d %d %d]",
			dst.Name, dst.Type, dst.Shape, f.recipe.Type, want[0], want[1], want[2])
	}
	if sample < 0 || sample >= dst.Shape[0] {
		return fmt.Errorf("tensor %s has no sample %d: its batch is %d", dst.Name, sample, dst.Shape[0])
	}
	return dst.Check()
}

// prepare makes the tables for a shape unless they are those of the last one.
func (f *Filler) prepare(s shape) {
	if f.shape == s {
		return
	}
	f.shape = s
	f.fit = f.transform(s)
	f.lines = f.lines[:f.fit.NewH]
	blends(f.lines, f.fit.H, false)
	shift(f.lines, f.fit.Y, false)
	f.cols = f.cols[:f.fit.NewW]
	blends(f.cols, f.fit.W, true)
	if f.fit.Flip {
		shift(f.cols, f.fit.X+f.fit.W-1, true)
	} else {
		shift(f.cols, f.fit.X, false)
	}
	if f.vector {
		f.c.prepare(f)
	} else {
		f.plain.prepare(f)
	}
}

// transform returns the transform of a picture's region.
func (f *Filler) transform(s shape) Transform {
	t := Fit(f.recipe.Resize, s.region.Dx(), s.region.Dy(), f.inW, f.inH)
	t.SrcW, t.SrcH = s.w, s.h
	t.X, t.Y = s.region.Min.X, s.region.Min.Y
	t.Flip = s.flip
	return t
}

// band writes rows from..to of the sample.
func (f *Filler) band(n, from, to int) {
	if f.vector {
		f.c.fill(f, &f.bands[n], from, to)
	} else {
		f.plain.fill(f, &f.bands[n], from, to)
	}
}

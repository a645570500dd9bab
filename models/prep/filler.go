package prep

import (
	"fmt"
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
// levels, mixed horizontally, the last two such rows are kept and mixed vertically, and the
// resulting levels go through a table to the tensor. Levels are those of OpenCV's INTER_LINEAR on
// 8-bit pictures. All per-pixel work is in the functions read*, mix* and store* over whole
// rows, which is where a vector implementation takes over.
type Filler struct {
	recipe   Recipe
	inW, inH int
	out      output

	shape shape // what the tables below were made for
	fit   Transform
	taps  []tap   // the source pixels that an output row needs, each once
	cols  []blend // per output column, indices of taps
	lines []blend // per output row, source rows

	pixels []pixel    // the taps of one source row
	mixed  [2][]pixel // source rows mixed horizontally
	held   [2]uint32  // which source row each of mixed holds
	line   []pixel    // an output row
}

type shape struct {
	format frame.Format
	w, h   int
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
		taps:   make([]tap, 0, 2*inW),
		cols:   make([]blend, 0, inW),
		lines:  make([]blend, 0, inH),
		pixels: make([]pixel, 2*inW),
		line:   make([]pixel, inW),
	}
	for i := range f.mixed {
		f.mixed[i] = make([]pixel, inW)
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
		std := r.Std[c]
		if std == 0 {
			std = 1
		}
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

func (r *Recipe) channels() int {
	if r.Gray {
		return 1
	}
	return 3
}

// Fill writes fr into sample number sample of dst, a tensor of the recipe's type and of shape
// [N,C,inH,inW] or, for NHWC, [N,inH,inW,C]. Every element of the sample is written, whatever it
// held before. It returns the transform that maps the model's boxes back, and fails without
// touching dst when dst is another tensor than the recipe's or the frame's planes are too
// short for its size. It allocates nothing.
func (f *Filler) Fill(dst *tensor.Tensor, sample int, fr *frame.Frame) (Transform, error) {
	if err := f.check(dst, sample); err != nil {
		return Transform{}, fmt.Errorf("pre-processing: %w", err)
	}
	src, err := newSource(fr)
	if err != nil {
		return Transform{}, fmt.Errorf("pre-processing: %w", err)
	}
	f.prepare(&src)
	f.out.bind(dst, sample)
	f.out.pad(f.fit, f.recipe.Pad)
	if f.fit.NewW == fr.Width && f.fit.NewH == fr.Height {
		f.copyRows(&src)
	} else {
		f.resizeRows(&src)
	}
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

// prepare makes the tables for the frame's shape unless they are those of the last one.
func (f *Filler) prepare(src *source) {
	s := shape{src.frame.Format, src.frame.Width, src.frame.Height}
	if f.shape == s {
		return
	}
	f.shape = s
	f.fit = Fit(f.recipe.Resize, s.w, s.h, f.inW, f.inH)
	f.lines = f.lines[:f.fit.NewH]
	blends(f.lines, s.h, false)
	f.cols = f.cols[:f.fit.NewW]
	blends(f.cols, s.w, true)

	f.taps = f.taps[:0]
	last := [2]int{-1, -1} // source columns of the last two taps
	use := func(x uint32) uint32 {
		n := len(f.taps)
		switch int(x) {
		case last[1]:
			return uint32(n - 1)
		case last[0]:
			return uint32(n - 2)
		}
		last = [2]int{last[1], int(x)}
		f.taps = append(f.taps, src.tap(int(x)))
		return uint32(n)
	}
	for i := range f.cols { // columns never go back, so that a column in use is one of the last two
		c := &f.cols[i]
		c.a, c.b = use(c.a), use(c.b)
	}
}

// read converts the taps of source row y.
func (f *Filler) read(src *source, y int) []pixel {
	row := f.pixels[:len(f.taps)]
	src.read(row, f.taps, y)
	if f.recipe.Gray {
		toLuma(row)
	}
	return row
}

// copyRows fills the picture where it has its own size: every column is one tap.
func (f *Filler) copyRows(src *source) {
	for y := range f.fit.NewH {
		f.out.store(f.fit.Left, f.fit.Top+y, f.read(src, y))
	}
}

func (f *Filler) resizeRows(src *source) {
	const none = math.MaxUint32
	f.held = [2]uint32{none, none}
	line := f.line[:f.fit.NewW]
	for y, l := range f.lines {
		k := 0 // the buffer for row l.a; the other is for l.b
		if f.held[1] == l.a || f.held[0] == l.b && f.held[0] != l.a {
			k = 1
		}
		a := f.mix(src, k, l.a)
		b := a
		if l.b != l.a {
			b = f.mix(src, 1-k, l.b)
		}
		mixRows(line, a, b, l.w0, l.w1)
		f.out.store(f.fit.Left, f.fit.Top+y, line)
	}
}

// mix returns source row y mixed horizontally, in buffer k.
func (f *Filler) mix(src *source, k int, y uint32) []pixel {
	row := f.mixed[k][:f.fit.NewW]
	if f.held[k] != y {
		f.held[k] = y
		mixColumns(row, f.read(src, int(y)), f.cols)
	}
	return row
}

// mixColumns mixes two pixels of src for each column: 11 bits are added to each lane.
func mixColumns(dst, src []pixel, cols []blend) {
	dst = dst[:len(cols)]
	for i := range cols {
		c := &cols[i]
		dst[i] = src[c.a]*pixel(c.w0) + src[c.b]*pixel(c.w1)
	}
}

// mixRows mixes two rows that mixColumns made and rounds to levels. The steps are
// those of OpenCV's 8-bit vertical pass, truncations included:
//
//	level = (w0*(a>>4)>>16 + w1*(b>>4)>>16 + 2) >> 2
//
// Red and blue share a word: 15 bits times a 12-bit weight of at most 2048 stay below 2^26, the
// room above blue's lane.
func mixRows(dst, a, b []pixel, w0, w1 uint32) {
	const (
		lane15 = 1<<15 - 1 | (1<<15-1)<<laneB
		lane10 = 1<<10 - 1 | (1<<10-1)<<laneB
		lane8  = 1<<8 - 1 | (1<<8-1)<<laneB
		round  = 2 | 2<<laneB
	)
	a, b = a[:len(dst)], b[:len(dst)]
	v0, v1 := pixel(w0), pixel(w1)
	for i := range dst {
		p, q := a[i]>>4, b[i]>>4
		rb := (p&lane15*v0)>>16&lane10 + (q&lane15*v1)>>16&lane10 + round
		g := (p>>laneG&(1<<15-1)*v0)>>16 + (q>>laneG&(1<<15-1)*v1)>>16 + 2
		dst[i] = rb>>2&lane8 | g>>2<<laneG
	}
}

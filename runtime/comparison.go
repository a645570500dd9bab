package runtime

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/half"
	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/models"
	"github.com/eyas-edge/eyas/runtime/lane"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// comparison is what was found of a model for one picture that was rewritten for any number.
type comparison struct {
	Version  int     `json:"version"`
	Pictures int     `json:"pictures"` // which ran together and each alone
	Largest  float64 `json:"largest"`  // deviation of a result
	Why      string  `json:"why"`      // it is not to be used; empty if it is
}

// comparisonVersion changes with how results are compared.
const comparisonVersion = 1

// comparedPictures run together: a number that is rare among the sizes of a graph, so that nothing fits by chance.
const comparedPictures = 3

// Limits on the deviation |a-b| / (1+|a|) of two results: a ten-thousandth of a score, or of a coordinate in pixels. What is
// left after a rewrite is the order in which kernels add up, of float32 some 1e-6. Results of type float16 are rounded
// to 1/2048, in every layer of a model that computes with them. Integers have to be the same.
const (
	maxDeviation     = 1e-4
	maxHalfDeviation = 4.0 / 2048
)

// String says what was compared: "compared on 3 pictures, the same to the bit".
func (c *comparison) String() string {
	switch {
	case c.Pictures == 0:
		return "a start compares its results first"
	case c.Largest == 0:
		return fmt.Sprintf("compared on %d pictures, the same to the bit", c.Pictures)
	}
	return fmt.Sprintf("compared on %d pictures, largest deviation %.1g", c.Pictures, c.Largest)
}

// compare runs pictures together through the rewritten model, and each of them alone through the model as it is. What one
// gives for a picture has to be what the other gives: all of its outputs are looked at, which is more than what is found in
// them.
func (m *Model) compare(ctx context.Context, many *models.Model) (*comparison, error) {
	alone, err := m.outputs(ctx, m.info, 1)
	if err != nil {
		return nil, err
	}
	together, err := m.outputs(ctx, many, comparedPictures)
	if err != nil {
		return nil, fmt.Errorf("%d pictures: %w", comparedPictures, err)
	}
	ort.Trim() // what both sessions took
	c := &comparison{Version: comparisonVersion, Pictures: comparedPictures}
	for i, picture := range alone {
		for k, want := range picture {
			c.add(want, together[0][k], i)
		}
	}
	return c, nil
}

// add compares an output of picture i with its part of the output for all.
func (c *comparison) add(want, all *tensor.Tensor, i int) {
	one := len(want.Data)
	if c.Why != "" {
		return
	}
	if all.Type != want.Type || len(all.Data) != c.Pictures*one {
		c.Why = fmt.Sprintf("its output %.60q is %s%v for one picture and %s%v for %d", want.Name, want.Type, want.Shape, all.Type, all.Shape, c.Pictures)
		return
	}
	got := &tensor.Tensor{Type: want.Type, Shape: want.Shape, Data: all.Data[i*one : (i+1)*one]}
	d, limit := deviation(want, got)
	if d > limit {
		c.Why = fmt.Sprintf("its output %.60q deviates by %.1g with other pictures beside", want.Name, d)
	}
	c.Largest = max(c.Largest, d)
}

// deviation returns the largest deviation of two tensors of the same type and length, and what is allowed.
func deviation(want, got *tensor.Tensor) (largest, limit float64) {
	if bytes.Equal(want.Data, got.Data) {
		return 0, 0
	}
	switch want.Type {
	case tensor.Float32:
		b := got.Float32s()
		for i, a := range want.Float32s() {
			largest = max(largest, apart(a, b[i]))
		}
		return largest, maxDeviation
	case tensor.Float16:
		b := got.Float16s()
		for i, a := range want.Float16s() {
			largest = max(largest, apart(half.ToFloat32(a), half.ToFloat32(b[i])))
		}
		return largest, maxHalfDeviation
	}
	return math.MaxFloat64, 0
}

// apart returns |a-b| / (1+|a|), no limit allows what is no number in one of both only.
func apart(a, b float32) float64 {
	x, y := float64(a), float64(b)
	if x == y || math.IsNaN(x) && math.IsNaN(y) {
		return 0
	}
	if d := math.Abs(x-y) / (1 + math.Abs(x)); d <= math.MaxFloat64 {
		return d
	}
	return math.MaxFloat64 // also for NaN
}

// outputs runs the compared pictures through a model, n at once, and returns copies of its outputs, run by run.
func (m *Model) outputs(ctx context.Context, info *models.Model, n int) ([][]*tensor.Tensor, error) {
	o := m.rt.options
	o.Threads, o.OwnAllocator = m.rt.setting.pool(), false
	session, err := m.openPlain(info, o)
	if err != nil {
		return nil, err
	}
	l := lane.New(lane.Options{})
	defer l.Close() // and the session
	program, err := l.Add(info, session, []int{n}, nil)
	if err == nil {
		err = l.Record(ctx)
	}
	if err != nil {
		return nil, err
	}
	var runs [][]*tensor.Tensor
	for batch := range slices.Chunk(comparedFrames(), n) {
		outputs, err := runOnce(ctx, program, batch)
		if err != nil {
			return nil, err
		}
		runs = append(runs, outputs)
	}
	return runs, nil
}

// runOnce runs pictures together and returns copies of the outputs.
func runOnce(ctx context.Context, p *lane.Program, batch []*frame.Frame) ([]*tensor.Tensor, error) {
	set, err := p.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer set.Put()
	for _, f := range batch {
		if err := set.Fill(f); err != nil {
			return nil, err
		}
	}
	if err := set.Run(ctx); err != nil {
		return nil, err
	}
	outputs := slices.Clone(set.Outputs())
	for i, t := range outputs {
		outputs[i] = &tensor.Tensor{Name: t.Name, Type: t.Type, Shape: slices.Clone(t.Shape), Data: bytes.Clone(t.Data)}
	}
	return outputs, nil
}

// comparedFrames are pictures that have nothing in common: coloured squares, of another size in each.
var comparedFrames = sync.OnceValue(func() []*frame.Frame {
	const width, height = 320, 240
	frames := make([]*frame.Frame, comparedPictures)
	for i := range frames {
		side := 5 << (2 * i)
		data := make([]byte, 0, width*height*3)
		for k := range width * height {
			square := (k/width/side)*width + k%width/side
			for channel := range 3 {
				data = append(data, lane.Noise((i*width*height+square)*3+channel))
			}
		}
		f, err := frame.New(frame.RGB24, width, height, []frame.Plane{{Data: data, Stride: width * 3}}, time.Time{}, nil)
		if err != nil {
			panic(err) // a constant
		}
		frames[i] = f
	}
	return frames
})

package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// shapeBatch is Shape or Size of a value that carries the batch: it becomes the constant that it is for one picture. What
// is made of it follows as of any other constant.
func shapeBatch(c *batchCall) error {
	shape, err := c.r.complete(c.Outputs[0])
	if err != nil {
		return err
	}
	dims := &batchCall{call: &call{Node: &Node{Inputs: c.Outputs[:1]}, s: c.s}} // what it gives, as somebody reads it
	list, ok := dims.constInts(0)
	if !ok {
		return errors.New("its result is not known")
	}
	t := &Initializer{Type: tensor.Int64, Dims: shape, raw: int64Bytes(list)}
	*c.Node = Node{Op: "Constant", Name: c.Name, Outputs: c.Outputs, Attrs: []Attr{Tensor("value", t)}}
	return nil
}

// reshapeBatch keeps the elements in their order. In that order the pictures come behind what the axes in front of the
// batch count, so the result has them on the axis that has as many elements in front of it.
func reshapeBatch(c *batchCall) error {
	k, in, err := c.single()
	if err != nil {
		return err
	}
	out, err := c.r.complete(c.Outputs[0])
	if err != nil {
		return err
	}
	at, before := 0, product(in[:k])
	for at < len(out) && product(out[:at]) != before {
		at++
	}
	if at == len(out) {
		return fmt.Errorf("makes %s of %s, which puts pictures together", showShape(out), showShape(in))
	}
	if !c.has(1) {
		return errors.New("has no target")
	}
	target := slices.Clone(out)
	target[at] = -1
	if now, ok := c.constInts(1); !ok || !slices.Equal(now, target) {
		c.replace(1, c.r.ints(target))
	}
	return c.carry(0, at)
}

// flattenBatch makes a matrix: the axes in front of one, and the others.
func flattenBatch(c *batchCall) error {
	k, in, err := c.single()
	if err != nil {
		return err
	}
	a := int(c.Int("axis", 1))
	if a < 0 {
		a += len(in)
	}
	from, at := 0, 0
	if k >= a {
		from, at = a, 1
	}
	if from < 0 || from > k || product(in[from:k]) != 1 {
		return fmt.Errorf("makes a matrix of %s, which puts pictures together", showShape(in))
	}
	return c.carry(0, at)
}

func squeezeBatch(c *batchCall) error {
	k, in, err := c.single()
	if err != nil {
		return err
	}
	axes, given, ok := c.attrOrInput("axes", 1)
	switch {
	case !ok:
		return errors.New("its axes are not known")
	case !given && in[k] == 1:
		return errDropped
	case !given:
		for d, n := range in {
			if n == 1 {
				axes = append(axes, d)
			}
		}
	}
	at := k
	for _, a := range axes {
		switch d, _ := axis(a, len(in)); {
		case d == k:
			return errDropped
		case d < k:
			at--
		}
	}
	return c.carry(0, at)
}

func unsqueezeBatch(c *batchCall) error {
	k, in, err := c.single()
	if err != nil {
		return err
	}
	axes, _, ok := c.attrOrInput("axes", 1)
	if !ok {
		return errors.New("its axes are not known")
	}
	rank := len(in) + len(axes)
	added := make([]bool, rank)
	for _, a := range axes {
		if d, ok := axis(a, rank); ok {
			added[d] = true
		}
	}
	seen := -1
	for d := range added {
		if !added[d] {
			seen++
		}
		if seen == k {
			return c.carry(0, d)
		}
	}
	return errDropped
}

func transposeBatch(c *batchCall) error {
	k, in, err := c.single()
	if err != nil {
		return err
	}
	perm := toInts(c.Ints("perm"))
	if perm == nil {
		return c.carry(0, len(in)-1-k)
	}
	return c.carry(0, slices.Index(perm, k))
}

// expandBatch repeats what has one entry along other axes.
func expandBatch(c *batchCall) error {
	k, in, err := c.single()
	if err != nil {
		return err
	}
	target, ok := c.constInts(1)
	out, err := c.r.complete(c.Outputs[0])
	if !ok || err != nil {
		return errors.New("its target is not known")
	}
	at := k + len(out) - len(in)
	if out[at] != in[k] {
		return errors.New("repeats the pictures")
	}
	if i := at - (len(out) - len(target)); i >= 0 && target[i] != 1 {
		target[i] = 1 // which keeps the length that there is
		c.replace(1, c.r.ints(target))
	}
	return c.carry(0, at)
}

func tileBatch(c *batchCall) error {
	k, _, err := c.single()
	if err != nil {
		return err
	}
	if repeats, ok := c.constInts(1); !ok || k >= len(repeats) || repeats[k] != 1 {
		return errors.New("repeats the pictures")
	}
	return c.carry(0, k)
}

// concatBatch joins parts that all hold the pictures on the same other axis.
func concatBatch(c *batchCall) error {
	at := -1
	for i := range c.Inputs {
		k, ok := c.batch(i)
		switch {
		case !ok:
			return fmt.Errorf("joins its input %d, which is the same for all pictures, to others", i)
		case at >= 0 && k != at:
			return errors.New("its inputs hold the pictures on different axes")
		}
		at = k
	}
	shape, err := c.r.complete(c.Inputs[0])
	if err != nil {
		return err
	}
	a, err := c.along(1, len(shape))
	if err == nil && a == at {
		err = errAlong(at)
	}
	if err != nil {
		return err
	}
	return c.carry(0, at)
}

func splitBatch(c *batchCall) error {
	k, shape, err := c.single()
	if err != nil {
		return err
	}
	a, err := c.along(0, len(shape))
	if err == nil && a == k {
		err = errAlong(k)
	}
	if err != nil {
		return err
	}
	return c.carryAll(k)
}

// sliceBatch may take all of the axis of the batch: the end is then that of any number of pictures.
func sliceBatch(c *batchCall) error {
	k, shape, err := c.single()
	if err != nil {
		return err
	}
	starts, ends := toInts(c.Ints("starts")), toInts(c.Ints("ends")) // opset 9 and older
	axes, given, ok := c.attrOrInput("axes", 3)
	steps := []int(nil)
	if c.Attr("starts") == nil {
		var first, second, third bool
		starts, first = c.constInts(1)
		ends, second = c.constInts(2)
		third = true
		if c.has(4) {
			steps, third = c.constInts(4)
		}
		ok = ok && first && second && third
	}
	if !ok || len(ends) != len(starts) || given && len(axes) != len(starts) || steps != nil && len(steps) != len(starts) {
		return errors.New("its range is not known")
	}
	for i := range starts {
		a := i
		if given {
			a, _ = axis(axes[i], len(shape))
		}
		if a != k {
			continue
		}
		if starts[i] != 0 || ends[i] < shape[k] || steps != nil && steps[i] != 1 {
			return fmt.Errorf("cuts along axis %d, which tells the pictures apart", k)
		}
		if ends[i] >= math.MaxInt32 {
			continue // as exporters write "to the end"
		}
		if !c.has(2) {
			return fmt.Errorf("its attributes end at %d pictures", ends[i])
		}
		ends = slices.Clone(ends)
		ends[i] = math.MaxInt32
		c.replace(2, c.r.ends(ends, c.in(2).typ))
	}
	return c.carry(0, k)
}

// ends adds the ends of a Slice, of the type that they were: starts, axes and steps have the same.
func (r *rebatcher) ends(list []int, t tensor.Type) string {
	if t != tensor.Int32 {
		return r.ints(list)
	}
	data := make([]byte, 0, 4*len(list))
	for _, v := range list {
		data = binary.LittleEndian.AppendUint32(data, uint32(int32(v)))
	}
	return r.constant(tensor.Int32, len(list), data)
}

func padBatch(c *batchCall) error {
	k, shape, err := c.single()
	if err != nil {
		return err
	}
	pads, given, ok := c.attrOrInput("pads", 1)
	axes, hasAxes, known := c.attrOrInput("axes", 3)
	n := len(shape)
	if hasAxes {
		n = len(axes)
	}
	if !given || !ok || !known || len(pads) != 2*n {
		return errors.New("its pads are not known")
	}
	for i := range n {
		a := i
		if hasAxes {
			a, _ = axis(axes[i], len(shape))
		}
		if a == k && (pads[i] != 0 || pads[i+n] != 0) {
			return errAlong(k)
		}
	}
	return c.carry(0, k)
}

// gatherBatch picks entries along one axis: of every picture the same, or for every picture its own of something that is the
// same for all.
func gatherBatch(c *batchCall) error {
	k, picked := c.batch(0)
	ik, picks := c.batch(1)
	data, index := c.in(0).shape, c.in(1).shape
	if data == nil || index == nil {
		return errors.New("its shapes are not known")
	}
	a, err := c.along(0, len(data))
	switch {
	case err != nil:
		return err
	case picked && picks && a == k:
		return c.gatherOwn()
	case picked && picks:
		return errors.New("picks from all pictures")
	case picks:
		return c.carry(0, a+ik)
	case a == k && len(index) == 0:
		return errDropped
	case a == k:
		return errAlong(k)
	case a < k:
		k += len(index) - 1
	}
	return c.carry(0, k)
}

// gatherOwn is Gather along axis 0 of the entries that each picture's own indices name, as heads without NMS do with their best
// boxes. For several pictures it becomes GatherND, whose indices count within a picture.
func (c *batchCall) gatherOwn() error {
	k, _ := c.batch(0)
	ik, _ := c.batch(1)
	if k != 0 || ik != 0 || c.opset < 12 || c.in(1).typ != tensor.Int64 {
		return errors.New("picks from all pictures")
	}
	data, err := c.r.complete(c.Inputs[0])
	if err != nil {
		return err
	}
	index, err := c.r.complete(c.Inputs[1])
	if err != nil {
		return err
	}
	out, err := c.r.complete(c.Outputs[0])
	if err != nil {
		return err
	}
	entries := c.r.insert("Reshape", []string{c.Inputs[0], c.r.ints(join([]int{-1}, data))})
	picks := c.r.insert("Reshape", []string{c.Inputs[1], c.r.ints([]int{-1, product(index), 1})})
	picked := c.r.insert("GatherND", []string{entries, picks}, Int("batch_dims", 1))
	*c.Node = Node{Op: "Reshape", Name: c.Name, Inputs: []string{picked, c.r.ints(join([]int{-1}, out[1:]))}, Outputs: c.Outputs}
	return c.carry(0, 0)
}

// elementsBatch is GatherElements or ScatterElements along another axis, every input of which holds the pictures alike.
func elementsBatch(c *batchCall) error {
	at, size := -1, 0
	for i := range c.Inputs {
		k, ok := c.batch(i)
		if !ok {
			return fmt.Errorf("its input %d is the same for all pictures", i)
		}
		shape, err := c.r.complete(c.Inputs[i])
		if err != nil {
			return err
		}
		if at >= 0 && (k != at || shape[k] != size) {
			return errors.New("its inputs hold the pictures on different axes")
		}
		at, size = k, shape[k]
	}
	a, err := c.along(0, len(c.in(0).shape))
	if err == nil && a == at {
		err = errAlong(at)
	}
	if err != nil {
		return err
	}
	return c.carry(0, at)
}

// gatherNDBatch picks within each entry of its first batch_dims axes, one of which has to be that of the batch.
func gatherNDBatch(c *batchCall) error {
	k, first := c.batch(0)
	ik, second := c.batch(1)
	data, index := c.in(0).shape, c.in(1).shape
	if !first || !second || k != ik || int64(k) >= c.Int("batch_dims", 0) || k >= len(data) || k >= len(index) || data[k] != index[k] {
		return errors.New("picks from all pictures")
	}
	return c.carry(0, k)
}

// resizeBatch may not change the length of the axis of the batch. Sizes that say how long it is become scales, from which an
// engine computes the same.
func resizeBatch(c *batchCall) error {
	k, in, err := c.single()
	if err != nil {
		return err
	}
	out, err := c.r.complete(c.Outputs[0])
	switch {
	case err != nil:
		return err
	case len(out) != len(in) || out[k] != in[k]:
		return errAlong(k)
	case c.String("coordinate_transformation_mode", "") == "tf_crop_and_resize":
		return errors.New("crops by a region that may cut along any axis")
	}
	axes := c.resizeAxes(len(in))
	for i := range axes {
		axes[i], _ = axis(axes[i], len(in))
	}
	i := slices.Index(axes, k)
	if i < 0 {
		return c.carry(0, k)
	}
	if sizes := c.elems(3); len(sizes) == 0 {
		if scales := c.scales(); i >= len(scales) || scales[i] != 1 {
			return errAlong(k)
		}
		return c.carry(0, k)
	}
	if c.String("keep_aspect_ratio_policy", "stretch") != "stretch" {
		return errors.New("fits sizes to all axes at once")
	}
	data := make([]byte, 0, 4*len(axes))
	for _, d := range axes {
		scale := float32(out[d]) / float32(in[d])
		if scaled(in[d], float64(scale)) != out[d] {
			return fmt.Errorf("no scale makes %d of %d", out[d], in[d])
		}
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(scale))
	}
	c.Inputs = []string{c.Inputs[0], c.Inputs[1], c.r.constant(tensor.Float32, len(axes), data)}
	return c.carry(0, k)
}

package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/eyas-edge/eyas/internal/tensor"
)

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

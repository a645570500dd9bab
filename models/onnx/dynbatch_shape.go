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

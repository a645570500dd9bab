package onnx

import (
	"errors"
	"fmt"
	"slices"
)

// batchCall is a node that reads the batch, in the hands of its rule.
type batchCall struct {
	*call
	r *rebatcher
}

// batchRule settles the axes of a node's outputs. It fails where a picture's part of an output would depend on more than that
// picture.
type batchRule func(c *batchCall) error

var errDropped = errors.New("drops the axis that tells the pictures apart")

// batch returns on which axis input i carries the batch, and whether it does.
func (c *batchCall) batch(i int) (axis int, carries bool) {
	if !c.has(i) {
		return 0, false
	}
	k, ok := c.r.axes[c.Inputs[i]]
	return k, ok
}

// only fails if another input than those given carries the batch.
func (c *batchCall) only(inputs ...int) error {
	for i := range c.Inputs {
		if _, ok := c.batch(i); ok && !slices.Contains(inputs, i) {
			return fmt.Errorf("its input %d differs from picture to picture", i)
		}
	}
	return nil
}

// single returns axis and shape of input 0, where no other carries the batch.
func (c *batchCall) single() (axis int, shape []int, err error) {
	if err := c.only(0); err != nil {
		return 0, nil, err
	}
	k, _ := c.batch(0)
	shape, err = c.r.complete(c.Inputs[0])
	return k, shape, err
}

// carry notes the axis of output i, if the node has it.
func (c *batchCall) carry(i, axis int) error {
	if i >= len(c.Outputs) || c.Outputs[i] == "" {
		return nil
	}
	shape, err := c.r.complete(c.Outputs[i])
	if err != nil {
		return err
	}
	if axis < 0 || axis >= len(shape) {
		return fmt.Errorf("its output is %s", showShape(shape))
	}
	c.r.axes[c.Outputs[i]] = axis
	return nil
}

// carryAll notes the same axis for all outputs.
func (c *batchCall) carryAll(axis int) error {
	for i := range c.Outputs {
		if err := c.carry(i, axis); err != nil {
			return err
		}
	}
	return nil
}

// replace makes another value input i.
func (c *batchCall) replace(i int, name string) {
	c.Inputs = slices.Clone(c.Inputs)
	c.Inputs[i] = name
}

// along returns an axis attribute for an input of that rank, counted from the front.
func (c *batchCall) along(def int64, rank int) (int, error) {
	a, ok := axis(int(c.Int("axis", def)), rank)
	if !ok {
		return 0, fmt.Errorf("axis %d is outside of its %d", c.Int("axis", def), rank)
	}
	return a, nil
}

// errAlong is for what works along the axis of the batch.
func errAlong(k int) error {
	return fmt.Errorf("works along axis %d, which tells the pictures apart", k)
}

// batchRules has what is known of each operator.
var batchRules = map[string]batchRule{
	// Every element by itself.
	"Abs": keepsBatch, "Neg": keepsBatch, "Floor": keepsBatch, "Ceil": keepsBatch, "Round": keepsBatch, "Sqrt": keepsBatch,
	"Relu": keepsBatch, "LeakyRelu": keepsBatch, "Sigmoid": keepsBatch, "HardSigmoid": keepsBatch, "HardSwish": keepsBatch,
	"Tanh": keepsBatch, "Exp": keepsBatch, "Log": keepsBatch, "Clip": keepsBatch, "Elu": keepsBatch, "Selu": keepsBatch,
	"Celu": keepsBatch, "Gelu": keepsBatch, "Mish": keepsBatch, "Swish": keepsBatch, "Softplus": keepsBatch, "Softsign": keepsBatch,
	"ThresholdedRelu": keepsBatch, "Erf": keepsBatch, "Reciprocal": keepsBatch, "Sign": keepsBatch, "Sin": keepsBatch,
	"Cos": keepsBatch, "Tan": keepsBatch, "Not": keepsBatch, "Shrink": keepsBatch, "Identity": keepsBatch, "Cast": keepsBatch,
	"IsNaN": keepsBatch, "IsInf": keepsBatch, "QuantizeLinear": quantizeBatch, "DequantizeLinear": quantizeBatch,

	// Elements of the same place.
	"Add": broadcastBatch, "Sub": broadcastBatch, "Mul": broadcastBatch, "Div": broadcastBatch, "Pow": broadcastBatch,
	"Mod": broadcastBatch, "Min": broadcastBatch, "Max": broadcastBatch, "Sum": broadcastBatch, "Mean": broadcastBatch,
	"And": broadcastBatch, "Or": broadcastBatch, "Xor": broadcastBatch, "Equal": broadcastBatch, "Greater": broadcastBatch,
	"Less": broadcastBatch, "GreaterOrEqual": broadcastBatch, "LessOrEqual": broadcastBatch, "Where": broadcastBatch,
	"PRelu": broadcastBatch,

	// [batch, channels, ...], each entry of the batch by itself.
	"Conv": entryBatch, "ConvInteger": entryBatch, "QLinearConv": entryBatch, "ConvTranspose": entryBatch,
	"MaxPool": entryBatch, "AveragePool": entryBatch, "LpPool": entryBatch, "GlobalAveragePool": entryBatch,
	"GlobalMaxPool": entryBatch, "GlobalLpPool": entryBatch, "BatchNormalization": entryBatch,
	"InstanceNormalization": entryBatch, "GroupNormalization": entryBatch, "LRN": entryBatch,
	"DepthToSpace": entryBatch, "SpaceToDepth": entryBatch,
	"GridSample": gridBatch, "Resize": resizeBatch, "Upsample": resizeBatch,

	// Along one axis or some.
	"Softmax": softmaxBatch, "LogSoftmax": softmaxBatch, "Hardmax": softmaxBatch, "LayerNormalization": tailBatch,
	"ReduceMax": reduceBatch, "ReduceMin": reduceBatch, "ReduceSum": reduceBatch, "ReduceProd": reduceBatch,
	"ReduceMean": reduceBatch, "ReduceL1": reduceBatch, "ReduceL2": reduceBatch, "ReduceSumSquare": reduceBatch,
	"ReduceLogSum": reduceBatch, "ReduceLogSumExp": reduceBatch, "ArgMax": argBatch, "ArgMin": argBatch, "TopK": alongBatch,

	"MatMul": matMulBatch, "MatMulInteger": matMulBatch, "Gemm": gemmBatch,

	"Shape": shapeBatch, "Size": shapeBatch, "Reshape": reshapeBatch, "Flatten": flattenBatch, "Squeeze": squeezeBatch,
	"Unsqueeze": unsqueezeBatch, "Transpose": transposeBatch, "Expand": expandBatch, "Tile": tileBatch,
	"Concat": concatBatch, "Split": splitBatch, "Slice": sliceBatch, "Pad": padBatch,
	"Gather": gatherBatch, "GatherElements": elementsBatch, "ScatterElements": elementsBatch, "GatherND": gatherNDBatch,
}

// keepsBatch is for operators that look at each element of input 0 by itself.
func keepsBatch(c *batchCall) error {
	k, _, err := c.single()
	if err != nil {
		return err
	}
	return c.carryAll(k)
}

// quantizeBatch allows a scale for each entry of another axis.
func quantizeBatch(c *batchCall) error {
	k, shape, err := c.single()
	if err != nil {
		return err
	}
	if scale := c.in(1).shape; scale == nil || product(scale) != 1 {
		a, err := c.along(1, len(shape))
		if err != nil {
			return err
		}
		if len(scale) != 1 || a == k {
			return fmt.Errorf("has scales of shape %s along the axis that tells the pictures apart, or in blocks", showShape(scale))
		}
	}
	return c.carry(0, k)
}

// broadcastBatch is for inputs that broadcast (numpy's rule): axes are counted from the back.
func broadcastBatch(c *batchCall) error {
	return c.broadcast(0, func(shape []int) []int { return shape })
}

// broadcast settles output 0, which is made of the inputs' axes of a part of their shapes and of more axes behind. The batch
// has to be on the same axis of all inputs that carry it, as long for one picture, and the others have one entry there or none.
func (c *batchCall) broadcast(behind int, part func(shape []int) []int) error {
	back, size := -1, 0 // the axis of the batch counted from the back, and its length for one picture
	for i := range c.Inputs {
		k, ok := c.batch(i)
		if !ok {
			continue
		}
		shape, err := c.r.complete(c.Inputs[i])
		if err != nil {
			return err
		}
		if shape = part(shape); k >= len(shape) {
			return errAlong(k)
		}
		if b := len(shape) - 1 - k; back >= 0 && (b != back || shape[k] != size) {
			return fmt.Errorf("its inputs hold the pictures on different axes")
		}
		back, size = len(shape)-1-k, shape[k]
	}
	for i := range c.Inputs {
		if _, ok := c.batch(i); ok || !c.has(i) {
			continue
		}
		shape := c.in(i).shape
		if shape == nil {
			return fmt.Errorf("the shape of its input %d is not known", i)
		}
		if shape = part(shape); back < len(shape) && shape[len(shape)-1-back] != 1 {
			return fmt.Errorf("its input %d, %s, has entries of its own where the other tells the pictures apart", i, showShape(c.in(i).shape))
		}
	}
	out, err := c.r.complete(c.Outputs[0])
	if err != nil {
		return err
	}
	return c.carry(0, len(out)-behind-1-back)
}

// entryBatch is for operators on [batch, channels, ...] that look at each entry of the batch by itself. Weights are the same for
// all pictures.
func entryBatch(c *batchCall) error {
	k, _, err := c.single()
	switch {
	case err != nil:
		return err
	case k != 0:
		return fmt.Errorf("its input tells the pictures apart on axis %d, not 0", k)
	case c.Op == "MaxPool" && len(c.Outputs) > 1:
		return errors.New("gives indices over all pictures")
	case c.Op == "BatchNormalization" && (c.Int("training_mode", 0) != 0 || len(c.Outputs) > 1):
		return errors.New("takes its statistics from all pictures of a batch")
	}
	return c.carry(0, 0)
}

// gridBatch is GridSample: every picture has a grid.
func gridBatch(c *batchCall) error {
	x, first := c.batch(0)
	grid, second := c.batch(1)
	if !first || !second || x != 0 || grid != 0 {
		return errors.New("its picture and its grid do not both tell the pictures apart on axis 0")
	}
	return c.carry(0, 0)
}

// softmaxBatch works along one axis, before opset 13 along that and all behind it.
func softmaxBatch(c *batchCall) error {
	if c.opset < 13 {
		return tail(c, 1)
	}
	return alongBatch(c)
}

// alongBatch works along one axis: Softmax, and TopK, which gives the best along it and where they are.
func alongBatch(c *batchCall) error {
	k, shape, err := c.single()
	if err != nil {
		return err
	}
	a, err := c.along(-1, len(shape))
	if err == nil && a == k {
		err = errAlong(k)
	}
	if err != nil {
		return err
	}
	return c.carryAll(k)
}

// tailBatch works on an axis and all behind it.
func tailBatch(c *batchCall) error { return tail(c, -1) }

func tail(c *batchCall, def int64) error {
	k, shape, err := c.single()
	if err != nil {
		return err
	}
	a, err := c.along(def, len(shape))
	if err == nil && k >= a {
		err = errAlong(k)
	}
	if err != nil {
		return err
	}
	return c.carryAll(k)
}

// reduceBatch leaves axes out, or with one entry.
func reduceBatch(c *batchCall) error {
	k, shape, err := c.single()
	if err != nil {
		return err
	}
	axes, given, ok := c.attrOrInput("axes", 1)
	switch {
	case !ok:
		return errors.New("its axes are not known")
	case !given || len(axes) == 0:
		if c.Int("noop_with_empty_axes", 0) != 0 {
			return c.carry(0, k)
		}
		return errAlong(k) // along all
	}
	return c.without(axes, c.Int("keepdims", 1) != 0, k, shape)
}

// without settles output 0, which is input 0 without axes, or with one entry there.
func (c *batchCall) without(axes []int, keep bool, k int, shape []int) error {
	at := k
	for d := range shape {
		gone := slices.ContainsFunc(axes, func(a int) bool { i, _ := axis(a, len(shape)); return i == d })
		switch {
		case gone && d == k:
			return errAlong(k)
		case gone && !keep && d < k:
			at--
		}
	}
	return c.carry(0, at)
}

// argBatch gives where along an axis the extreme is.
func argBatch(c *batchCall) error {
	k, shape, err := c.single()
	if err != nil {
		return err
	}
	return c.without([]int{int(c.Int("axis", 0))}, c.Int("keepdims", 1) != 0, k, shape)
}

// matMulBatch is numpy's matmul: the batch is one of the axes in front of the matrices, or the rows of the first matrix where
// the second is the same for all.
func matMulBatch(c *batchCall) error {
	if err := c.only(0, 1); err != nil {
		return err
	}
	a, b := c.in(0).shape, c.in(1).shape
	if len(a) < 2 || len(b) < 2 {
		return errors.New("multiplies vectors")
	}
	k, first := c.batch(0)
	if _, second := c.batch(1); first && !second && k == len(a)-2 {
		out, err := c.r.complete(c.Outputs[0])
		if err != nil {
			return err
		}
		return c.carry(0, len(out)-2)
	}
	matrices := *c.call.Node
	matrices.Inputs = matrices.Inputs[:2] // zero points are the same for all
	pair := &batchCall{call: &call{Node: &matrices, s: c.s, opset: c.opset}, r: c.r}
	return pair.broadcast(2, func(shape []int) []int { return shape[:max(len(shape)-2, 0)] })
}

// gemmBatch is for rows of the first matrix.
func gemmBatch(c *batchCall) error {
	k, _, err := c.single()
	if err != nil {
		return err
	}
	rows := 0
	if c.Int("transA", 0) != 0 {
		rows = 1
	}
	if k != rows {
		return errAlong(k)
	}
	if bias := c.in(2).shape; c.has(2) && (bias == nil || len(bias) == 2 && bias[0] != 1) {
		return fmt.Errorf("adds %s, which has a row for each", showShape(bias))
	}
	return c.carry(0, 0)
}

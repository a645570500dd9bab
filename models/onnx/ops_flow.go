package onnx

import (
	"fmt"
	"math"
	"slices"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// ifNode infers both branches, or the one that runs when the condition is a constant. Where they
// differ the dimension is not known.
func ifNode(c *call) error {
	then, other := c.Graph("then_branch"), c.Graph("else_branch")
	if then == nil || other == nil {
		return fmt.Errorf("a branch is missing")
	}
	branches := []*Graph{then, other}
	if e := c.elems(0); len(e) == 1 && !math.IsNaN(e[0]) {
		branches = branches[:1]
		if e[0] == 0 {
			branches = []*Graph{other}
		}
	}
	first := true
	for _, g := range branches {
		if err := c.s.graph(g); err != nil {
			continue // a branch that cannot run is the one that is not taken
		}
		for k := range min(len(c.out), len(g.Outputs)) {
			v := c.s.vals[g.Outputs[k].Name]
			if v == nil {
				v = unknown
			}
			if first {
				c.out[k] = *v
			} else {
				c.out[k] = value{typ: v.typ, shape: common(c.out[k].shape, v.shape)}
			}
		}
		first = false
	}
	return nil
}

// common is what two shapes agree on.
func common(a, b []int) []int {
	if a == nil || len(a) != len(b) {
		return nil
	}
	out := slices.Clone(a)
	for d := range out {
		if b[d] != a[d] {
			out[d] = -1
		}
	}
	return out
}

// loopNode infers the body of a Loop once, with the shapes that it starts with. The values
// inside are those of the first iteration.
func loopNode(c *call) error {
	body := c.Graph("body")
	if body == nil {
		return fmt.Errorf("the body is missing")
	}
	carried := max(len(c.Inputs)-2, 0) // inputs: trip count, condition, carried values
	for i, in := range body.Inputs {
		switch {
		case i == 0:
			c.s.vals[in.Name] = &value{typ: tensor.Int64, shape: []int{}}
		case i == 1:
			c.s.vals[in.Name] = &value{typ: tensor.Bool, shape: []int{}}
		case i-2 < carried:
			v := c.in(i)
			c.s.vals[in.Name] = &value{typ: v.typ, shape: v.shape}
		}
	}
	if err := c.s.graph(body); err != nil {
		return err
	}
	for k := range c.out {
		if k+1 >= len(body.Outputs) { // output 0 of the body is the condition
			break
		}
		v := c.s.vals[body.Outputs[k+1].Name]
		switch {
		case v == nil:
		case k < carried:
			c.set(k, v.typ, common(c.in(k+2).shape, v.shape))
		case v.shape != nil: // one result an iteration, stacked
			c.set(k, v.typ, join([]int{-1}, v.shape))
		}
	}
	return nil
}

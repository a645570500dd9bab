package estimate

import (
	"fmt"
	"slices"
	"strings"
)

// fold computes what depends on no input, and takes out operators that do nothing or the same as another.
func (g *graph) fold() {
	for _, n := range g.order() {
		switch {
		case n.op == "Constant":
			n.remove()
			n.out[0].constant = true
			n.out[0].data = n.src.Tensor("value")
		case n.foldable():
			n.remove()
			for _, v := range n.out {
				if v != nil {
					v.constant = true
				}
			}
		case n.idle() && !n.out[0].output:
			n.remove()
			n.out[0].replace(n.in[0])
		}
	}
	g.prune()
	g.merge()
	g.prune()
}

// foldable says whether the node's outputs are known when the model is loaded. Quantised weights stay
// as they are, for the kernels that take them so.
func (n *node) foldable() bool {
	switch n.op {
	case "Shape", "Size":
		return n.in[0] != nil && n.in[0].static()
	case "DequantizeLinear", "QuantizeLinear", "If", "Loop", "Scan":
		return false
	}
	if strings.HasPrefix(n.op, "Random") {
		return false
	}
	return len(n.in) > 0 && !slices.ContainsFunc(n.in, func(v *value) bool { return v != nil && (!v.constant || v.listed) })
}

// idle says whether the node's output is its input.
func (n *node) idle() bool {
	switch n.op {
	case "Identity", "Dropout":
		return n.in[0] != nil && !slices.ContainsFunc(n.out[1:], (*value).needed)
	case "Cast":
		return n.in[0] != nil && n.in[0].typ == n.out[0].typ
	}
	return false
}

// merge makes nodes that do the same with the same inputs one.
func (g *graph) merge() {
	first := map[string]*node{}
	for _, n := range g.order() {
		key, ok := n.identity()
		if !ok || slices.ContainsFunc(n.out, func(v *value) bool { return v != nil && v.output }) {
			continue
		}
		f := first[key]
		if f == nil {
			first[key] = n
			continue
		}
		n.remove()
		for i, v := range n.out {
			if v != nil && f.out[i] != nil {
				v.replace(f.out[i])
			}
		}
	}
}

// identity is equal for nodes that compute the same. Nodes with tensors or graphs inside have none.
func (n *node) identity() (string, bool) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d", n.op, len(n.out))
	for _, v := range n.in {
		b.WriteByte(' ')
		b.WriteString(v.identity())
	}
	for _, a := range n.src.Attrs {
		if a.T != nil || a.G != nil || a.Graphs != nil {
			return "", false
		}
		fmt.Fprintf(&b, " %q=%v,%v,%q,%v,%v,%q", a.Name, a.F, a.I, a.S, a.Floats, a.Ints, a.Strings)
	}
	return b.String(), !strings.HasPrefix(n.op, "Random")
}

// smallConstant is the number of elements up to which constants are compared by value.
const smallConstant = 8

// identity is equal for values that are the same; small constants are, if they hold the same.
func (v *value) identity() string {
	switch {
	case v == nil:
		return "-"
	case v.data != nil && !v.listed && v.data.Elements() <= smallConstant:
		if data, err := v.data.Bytes(); err == nil {
			return fmt.Sprintf("%s%v%x", v.typ, v.shape, data)
		}
	}
	return fmt.Sprintf("%q", v.name)
}

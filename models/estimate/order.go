package estimate

import (
	"cmp"
	"slices"
)

// order returns the nodes as the library runs them: depth first from the outputs, and of a node's inputs
// the one from the node of the highest index first.
func (g *graph) order() []*node {
	g.link()
	type entry struct {
		n     *node
		leave bool
	}
	var stack []entry
	for _, n := range g.nodes {
		if !n.dead && !slices.ContainsFunc(n.out, func(v *value) bool { return v != nil && len(v.to) > 0 }) {
			stack = append(stack, entry{n, false})
		}
	}
	var list []*node
	seen := make([]bool, len(g.nodes))
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if top.leave {
			list = append(list, top.n)
			continue
		}
		if seen[top.n.index] {
			continue
		}
		seen[top.n.index] = true
		stack = append(stack, entry{top.n, true})
		var before []*node
		for _, v := range top.n.in {
			if v != nil && v.from != nil && !seen[v.from.index] {
				before = append(before, v.from)
			}
		}
		slices.SortFunc(before, func(a, b *node) int { return cmp.Compare(a.index, b.index) })
		for _, b := range before {
			stack = append(stack, entry{b, false})
		}
	}
	return list
}

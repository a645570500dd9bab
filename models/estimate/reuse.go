package estimate

import (
	"fmt"
	"slices"

	"github.com/eyas-edge/eyas/memplan"
)

// alignment of buffers in the arena, in bytes.
const alignment = 64

// block is a piece of memory that values share one after the other.
type block struct {
	first *value // which value it was made for
	owned bool   // made in the run, and not for an output: a buffer of the arena
	uses  int    // producers and consumers still to come, of all values in it
	at    int    // its place in the problem, once it is there
}

// sharing goes through the nodes of a run in their order and decides, as ONNX Runtime's planner does when it
// loads a model, which memory each value lies in. It knows only the shapes that are known then.
type sharing struct {
	g       *graph
	blocks  map[*value]*block
	free    []*block // the one freed last comes last
	problem memplan.Problem
}

// buffers returns what a run asks for.
func (g *graph) buffers(cpu CPU) memplan.Problem {
	order := g.order()
	s := &sharing{g: g, blocks: map[*value]*block{}}
	s.count(order)
	for now, n := range order {
		for i, v := range n.out {
			if v != nil {
				s.place(n, i, v, now)
			}
		}
		for i, bytes := range n.scratch(g, cpu) {
			s.request(fmt.Sprintf("%s scratch %d", n.label(), i), now, bytes)
		}
		for _, v := range append(append([]*value{}, n.in...), n.out...) {
			if v != nil {
				s.release(s.blocks[v], now)
			}
		}
	}
	return s.problem
}

// label is what plans call the node.
func (n *node) label() string {
	if n.src != nil && n.src.Name != "" {
		return n.src.Name
	}
	return n.op
}

// count makes a block for each value. Inputs, constants and outputs have a use more than those of
// nodes, so their memory is never taken over.
func (s *sharing) count(order []*node) {
	of := func(v *value) *block {
		b := s.blocks[v]
		if b == nil {
			b = &block{first: v, at: -1, owned: !v.input && !v.constant && !v.output}
			if !b.owned {
				b.uses = 1
			}
			s.blocks[v] = b
		}
		return b
	}
	for _, n := range order {
		for _, v := range append(append([]*value{}, n.in...), n.out...) {
			if v != nil {
				of(v).uses++
			}
		}
	}
}

// place decides where output i of the node lies.
func (s *sharing) place(n *node, i int, v *value, now int) {
	own := s.blocks[v]
	if v.output {
		return
	}
	if b := s.shared(n, i, v); b != nil {
		b.uses += own.uses
		s.blocks[v] = b
		return
	}
	if n := len(s.problem.Buffers); s.request(v.name, now, v.size()) {
		own.at = n
	}
}

// shared returns the memory that output i may lie in, nil for new memory: that of the input that it is a
// view of, of an input that it overwrites, or of a value of the same shape that nobody needs any more.
func (s *sharing) shared(n *node, i int, v *value) *block {
	if views[n.op] && i == 0 && n.in[0] != nil {
		return s.blocks[n.in[0]]
	}
	if x := n.overwritten(i); x != nil && s.blocks[x].uses == 1 && same(x, v) {
		return s.blocks[x]
	}
	for k := len(s.free) - 1; k >= 0; k-- {
		if b := s.free[k]; same(b.first, v) && len(v.shape) > 0 {
			s.free = append(s.free[:k], s.free[k+1:]...)
			return b
		}
	}
	return nil
}

// same says whether the library knows, before a run, that two values are equally large.
func same(a, b *value) bool {
	return a.dims != nil && a.typ.Bits() == b.typ.Bits() && slices.Equal(a.dims, b.dims) && !slices.Contains(a.dims, "")
}

// request adds a buffer that is freed at once, unless its end is moved; nothing for one without bytes.
func (s *sharing) request(id string, now int, bytes int64) bool {
	if bytes < 0 {
		s.g.notes = append(s.g.notes, fmt.Sprintf("the size of value %.60q is not known before a run: it is not counted", id))
		bytes = 0
	}
	if bytes == 0 {
		return false
	}
	bytes = (bytes + alignment - 1) / alignment * alignment
	s.problem.Buffers = append(s.problem.Buffers, memplan.Buffer{ID: id, Lower: now, Upper: now + 1, Size: bytes, Align: alignment})
	return true
}

// release takes one use off a block; after the last one it can be taken over, until then it is kept.
func (s *sharing) release(b *block, now int) {
	if b.at >= 0 {
		s.problem.Buffers[b.at].Upper = now + 1
	}
	if b.uses--; b.uses == 0 && b.owned {
		s.free = append(s.free, b)
	}
}

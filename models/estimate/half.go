package estimate

import "github.com/eyas-edge/eyas/internal/tensor"

// halfKernels are the operators that the library runs on the CPU in float16: those that only move elements.
var halfKernels = map[string]bool{
	"Reshape": true, "Transpose": true, "Concat": true, "Slice": true, "Gather": true, "Squeeze": true, "Unsqueeze": true,
	"Flatten": true, "Expand": true, "Identity": true, "Shape": true, "Size": true, "Cast": true, "Pad": true, "Tile": true,
	"GatherElements": true, "GatherND": true, "ScatterND": true, "Dropout": true,
}

// widenHalf runs in float32 what has no float16 kernel, with casts where the types meet.
func (g *graph) widenHalf() {
	g.link()
	wide := map[*node]bool{}
	order := g.order()
	for _, n := range order {
		wide[n] = n.half() && !halfKernels[n.op]
	}
	// An operator in between two that run in float32 does so as well.
	var between []*node
	for _, n := range order {
		if halfKernels[n.op] && n.op != "Cast" && n.half() && n.isolated(wide) {
			between = append(between, n)
		}
	}
	for _, n := range between {
		wide[n] = true
	}
	g.insertCasts(order, wide)
}

// half says whether the node takes or makes float16.
func (n *node) half() bool {
	for _, v := range n.in {
		if v != nil && v.typ == tensor.Float16 {
			return true
		}
	}
	for _, v := range n.out {
		if v != nil && v.typ == tensor.Float16 {
			return true
		}
	}
	return false
}

// isolated says whether all that the node takes and makes in float16 comes from and goes to nodes that run
// in float32.
func (n *node) isolated(wide map[*node]bool) bool {
	for _, v := range n.in {
		if v != nil && v.typ == tensor.Float16 && (v.from == nil || !wide[v.from]) {
			return false
		}
	}
	for _, v := range n.out {
		if v == nil || v.typ != tensor.Float16 {
			continue
		}
		if v.output {
			return false
		}
		for _, u := range v.to {
			if !wide[u] {
				return false
			}
		}
	}
	return true
}

// insertCasts gives every float16 value a float32 twin where a wide node takes or makes it.
func (g *graph) insertCasts(order []*node, wide map[*node]bool) {
	twins := map[*value]*value{}
	twin := func(v *value) *value {
		w := twins[v]
		if w == nil {
			w = &value{name: v.name + " as float32", typ: tensor.Float32, shape: v.shape, dims: v.dims, constant: v.constant, listed: v.listed}
			twins[v] = w
		}
		return w
	}
	for _, n := range order {
		if !wide[n] {
			continue
		}
		for i, v := range n.in {
			if v != nil && v.typ == tensor.Float16 {
				if twins[v] == nil && !(v.constant && !v.listed) {
					g.add("Cast", nil, []*value{v}, []*value{twin(v)})
				}
				n.in[i] = twin(v)
			}
		}
		for i, v := range n.out {
			if v != nil && v.typ == tensor.Float16 {
				n.out[i] = twin(v)
				g.add("Cast", nil, []*value{twin(v)}, []*value{v})
			}
		}
	}
	// A cast back to float32 of what was made in float32 is not needed, nor one that an exporter wrote.
	for _, n := range order {
		if n.op == "Cast" && !n.dead && n.out[0].typ == tensor.Float32 && twins[n.in[0]] != nil && n.in[0].typ == tensor.Float16 && !n.out[0].output {
			n.remove()
			n.out[0].replace(twins[n.in[0]])
		}
	}
	g.prune()
}

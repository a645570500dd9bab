package estimate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// blocking rewrites a graph so that convolutions and what lies between them work on the NCHWc layout: channels
// in blocks, padded to whole ones. Values change to it and back in operators of their own.
type blocking struct {
	g       *graph
	size    int
	twins   map[*value]*twin
	list    []*twin
	entered map[*value]*value // plain values that were already brought to the layout
}

// twin is a value in the layout, beside the plain one.
type twin struct {
	plain, blocked *value
	channels       int // without padding
	uses           int // how many nodes take the plain value, at first
	left           int // how many still do
}

// block brings a graph to the layout.
func (g *graph) block(size int) {
	b := &blocking{g: g, size: size, twins: map[*value]*twin{}, entered: map[*value]*value{}}
	for _, n := range g.order() {
		switch n.op {
		case "Conv", contrib + "FusedConv":
			b.conv(n)
		case "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool":
			b.pool(n)
		case "Add", "Sum", "Mul":
			b.binary(n)
		case "Concat":
			b.concat(n)
		case "Relu", "Sigmoid", "Tanh", contrib + "QuickGelu":
			b.activation(n)
		case "Resize", "Upsample":
			b.resize(n)
		}
	}
	for _, t := range b.list {
		if t.left > 0 || t.plain.output {
			g.add(blocked+"ReorderOutput", nil, []*value{t.blocked}, []*value{t.plain})
		}
	}
	g.prune()
}

func roundTo(n, step int) int { return (n + step - 1) / step * step }

// padded is v with its channels in whole blocks.
func (b *blocking) padded(v *value, channels int) *value {
	w := &value{name: v.name + " in blocks", typ: v.typ, shape: slices.Clone(v.shape), dims: slices.Clone(v.dims)}
	c := roundTo(channels, b.size)
	if len(w.shape) > 1 {
		w.shape[1] = c
	}
	if len(w.dims) > 1 {
		w.dims[1] = strconv.Itoa(c)
	}
	return w
}

// make makes output 0 of the node a value in the layout.
func (b *blocking) make(n *node, channels int) {
	v := n.out[0]
	t := &twin{plain: v, blocked: b.padded(v, channels), channels: channels, uses: len(v.to), left: len(v.to)}
	if v.output {
		t.uses++
	}
	n.out[0] = t.blocked
	t.blocked.from = n
	b.twins[v] = t
	b.list = append(b.list, t)
}

// use makes the node take the twin.
func (b *blocking) use(n *node, t *twin) {
	for i := range n.in {
		if n.in[i] == t.plain {
			n.in[i] = t.blocked
			t.left--
		}
	}
}

// enter makes the node take input 0 in the layout, which it is brought to if it is not there yet.
func (b *blocking) enter(n *node, channels int) {
	v := n.in[0]
	if t := b.twins[v]; t != nil {
		b.use(n, t)
		return
	}
	w := b.entered[v]
	if w == nil {
		w = b.padded(v, channels)
		b.entered[v] = w
		b.g.add(blocked+"ReorderInput", nil, []*value{v}, []*value{w})
	}
	n.in[0] = w
}

// channelStep is what the channels of a reordered value have to be a multiple of.
const channelStep = 4

func (b *blocking) conv(n *node) {
	w := n.input(1)
	if w == nil || !w.constant || w.listed || w.typ != tensor.Float32 || len(w.shape) != 4 {
		return
	}
	out, in, group := w.shape[0], w.shape[1], int(n.src.Int("group", 1))
	total := in
	switch {
	case group > 1 && out%channelStep != 0:
		return
	case group > 1 && in == 1 && out == group:
		total = out
	case group > 1 && (in%b.size != 0 || out%group != 0 || (out/group)%b.size != 0):
		return
	case group > 1:
		total = in * group
	case in >= b.size && in%channelStep != 0:
		return
	}
	// The convolution becomes a node of its own, behind all others.
	c := b.g.add(blocked+"Conv", n.src, slices.Clone(n.in), slices.Clone(n.out))
	c.activity = n.activity
	n.dead = true
	if group > 1 || in >= b.size { // few channels are taken as they are
		b.enter(c, total)
	}
	b.make(c, out)
}

func (b *blocking) pool(n *node) {
	x := n.in[0]
	if len(n.out) > 1 && n.out[1] != nil || x.typ != tensor.Float32 || len(x.shape) != 4 {
		return
	}
	channels := 0
	if t := b.twins[x]; t != nil {
		channels = t.channels
	} else if c, err := strconv.Atoi(dim(x, 1)); err == nil && c > 0 && c%b.size == 0 && !strings.HasPrefix(n.op, "Global") {
		channels = c
	} else {
		return
	}
	p := b.g.add(blocked+n.op, n.src, slices.Clone(n.in), slices.Clone(n.out))
	n.dead = true
	b.enter(p, channels)
	b.make(p, channels)
}

// all returns the twins of the node's inputs, nil unless all have one.
func (b *blocking) all(n *node) []*twin {
	var list []*twin
	for _, v := range n.in {
		t := b.twins[v]
		if t == nil {
			return nil
		}
		list = append(list, t)
	}
	return list
}

func (b *blocking) binary(n *node) {
	list := b.all(n)
	if list == nil {
		return
	}
	for _, t := range list[1:] {
		if !slices.Equal(t.plain.shape, list[0].plain.shape) {
			return
		}
	}
	for _, t := range list {
		b.use(n, t)
	}
	if n.op != "Mul" && len(list) == 2 {
		for i, t := range list {
			c := t.blocked.from
			if c.op == blocked+"Conv" && !c.sum && t.uses == 1 && c.activity == "" {
				c.in = append(c.in, list[1-i].blocked)
				c.sum = true
				b.absorb(n, c, t)
				return
			}
		}
	}
	b.make(n, list[0].channels)
}

// absorb makes the convolution c, whose result is t, do the node's work as well.
func (b *blocking) absorb(n, c *node, t *twin) {
	n.dead = true
	t.left = 0
	v := n.out[0]
	w := &twin{plain: v, blocked: t.blocked, channels: t.channels, uses: len(v.to), left: len(v.to)}
	if v.output {
		w.uses++
	}
	b.twins[v] = w
	b.list = append(b.list, w)
}

func (b *blocking) concat(n *node) {
	list := b.all(n)
	if list == nil || n.src.Int("axis", 0) != 1 {
		return
	}
	channels := 0
	for _, t := range list {
		if t.channels%b.size != 0 {
			return
		}
		channels += t.channels
	}
	for _, t := range list {
		b.use(n, t)
	}
	b.make(n, channels)
}

func (b *blocking) activation(n *node) {
	t := b.twins[n.in[0]]
	if t == nil {
		return
	}
	b.use(n, t)
	c := t.blocked.from
	if c.op == blocked+"Conv" && t.uses == 1 && c.activity == "" && n.op != contrib+"QuickGelu" {
		c.activity = n.op
		b.absorb(n, c, t)
		return
	}
	b.make(n, t.channels)
}

// resize keeps whole-numbered magnification in the layout.
func (b *blocking) resize(n *node) {
	t := b.twins[n.in[0]]
	if t == nil {
		return
	}
	if len(n.in) > 2 && n.in[2] != nil && !n.in[2].constant || len(n.in) > 3 {
		return
	}
	u := b.g.add(blocked+"Upsample", n.src, []*value{n.in[0]}, slices.Clone(n.out))
	n.dead = true
	b.use(u, t)
	b.make(u, t.channels)
}

package memplan

import (
	"context"
	"runtime"
	"time"
)

// Limits of the search.
const (
	// DefaultNodes is how many placements Solve tries if nothing else is said: a few seconds to a minute. For problems
	// of more than 256 buffers, where each takes longer, it is less in proportion.
	DefaultNodes = 6_000_000

	mostItems   = 1 << 12 // the search's lists grow with the square: 32 MB a worker
	mostStretch = 1 << 22 // and its time with the items' sections; beyond either the greedy plan is the answer
	mostWorkers = 8
)

type options struct {
	nodes   int64 // 0 for the default
	workers int
	off     prune
}

// Option changes how Solve searches.
type Option func(*options)

// MaxNodes limits the placements that Solve tries, all orders together. Twenty thousand are some hundredths
// of a second for a few hundred buffers.
func MaxNodes(n int64) Option { return func(o *options) { o.nodes = max(n, 1) } }

// Solve finds a plan as low as it can: greedy ones first, then a search for one at the lower bound, then for
// ever lower ones. It ends when the plan is proven minimal or as low as the problem's capacity, at the limit
// of nodes, or with ctx; in each case it returns the lowest plan found. An error means that the problem is none.
//
// The same problem and options give the same plan and nodes on every machine, with any GOMAXPROCS, unless
// ctx ends the search. The search runs on up to GOMAXPROCS threads.
func Solve(ctx context.Context, p Problem, opts ...Option) (Solution, error) {
	start := time.Now()
	o := options{workers: min(runtime.GOMAXPROCS(0), mostWorkers)}
	for _, set := range opts {
		set(&o)
	}
	in, err := compile(p)
	if err != nil {
		return Solution{}, err
	}
	if o.nodes == 0 {
		o.nodes = DefaultNodes * 256 / int64(max(len(in.items), 256))
	}
	c := &climb{ctx: ctx, in: in, options: o, bound: in.lowerBound()}
	c.enough = max(p.Capacity, c.bound)
	c.refuted = c.bound - 1
	c.run()
	return Solution{
		Height: c.height, LowerBound: c.bound, Proven: c.proven(), Nodes: c.spent,
		Seconds: time.Since(start).Seconds(), Offsets: in.spread(p, c.best),
	}, nil
}

// climb is one call of Solve. It climbs down.
type climb struct {
	options
	ctx     context.Context
	in      *instance
	bound   int64 // no plan is lower
	enough  int64 // a plan as low as this ends the search
	refuted int64 // no plan is as low as this: found by search
	best    []int64
	height  int64 // of best
	spent   int64 // nodes
	pool    []*search
	parent  order  // that of the last plan found, none at first
	seed    uint64 // of the last order drawn
}

func (c *climb) proven() bool {
	return c.height == c.bound || c.height-c.in.step <= c.refuted
}

// more says whether the search need and may go on.
func (c *climb) more() bool {
	return c.height > c.enough && !c.proven() && c.spent < c.nodes && c.ctx.Err() == nil
}

func (c *climb) take(offsets []int64) {
	if h := c.in.height(offsets); c.best == nil || h < c.height {
		c.best, c.height = offsets, h
	}
}

func (c *climb) run() {
	c.take(c.in.firstFit(bySize))
	if len(c.in.items) > mostItems || c.in.stretch > mostStretch {
		return
	}
	for _, by := range []firstOrder{byArea, byLife} {
		if c.more() {
			c.take(c.in.firstFit(by))
		}
	}
	if !c.more() {
		return
	}
	for range c.workers {
		c.pool = append(c.pool, newSearch(c.in, c.off))
	}
	// Most problems have a plan at the lower bound, and there the bound prunes best.
	const first = 1024
	for limit := int64(first); limit <= 16*first && c.refuted < c.enough && c.more(); limit *= 2 {
		c.try(c.enough, limit, plainOrders)
	}
	// Twice as many orders, then nodes twice as many, and so on: nobody knows which of the two is missing.
	for limit, width := int64(first), 32; c.more(); {
		c.descend(limit, width)
		limit *= 2
		if c.more() {
			c.descend(limit, width)
		}
		width *= 2
	}
}

// descend looks for lower plans, each with width orders of limit nodes, until none is found one step lower.
// The steps are large first: what a search finds is rarely lower than what it was asked for.
func (c *climb) descend(limit int64, width int) {
	step := c.in.step
	for stride := (c.height - c.bound) / 4; c.more(); {
		stride = max(stride/step*step, step)
		target := max(c.height-stride, c.enough)
		if target > c.refuted && c.try(target, limit, c.draw(width)) == found {
			continue
		}
		if stride == step {
			break
		}
		stride /= 2
	}
	// What proves that there is none is one order that ends.
	if c.more() {
		c.try(max(c.height-step, c.enough), 16*limit, plainOrders)
	}
}

// draw makes orders by chance: half of them new, half from the one that led to the last plan. An order
// that fits a problem well can be bettered step by step, as in an evolution.
func (c *climb) draw(width int) []order {
	orders := make([]order, width)
	n := len(c.in.items)
	for k := range orders {
		c.seed++
		switch kind := k % 4; {
		case kind == 0 || kind == 2 && c.parent.by == "":
			orders[k] = order{by: "LTA"}.vary(n, c.seed, 1)
		case kind == 1 || c.parent.by == "":
			orders[k] = order{by: "WTA"}.vary(n, c.seed, 1)
		case kind == 2:
			orders[k] = c.parent.vary(n, c.seed, 8)
		default:
			orders[k] = c.parent.vary(n, c.seed, 3)
		}
	}
	return orders
}

package memplan

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

type options struct {
	nodes   int64
	workers int
	off     prune
}

// Option changes how Solve searches.
type Option func(*options)

// MaxNodes limits the placements that the search tries, all orders together. It defaults to DefaultNodes.
func MaxNodes(n int64) Option { return func(o *options) { o.nodes = n } }

// DefaultNodes is about a minute's search on one core for a few hundred buffers.
const DefaultNodes = 20_000_000

const (
	firstLimit  = 1000 // nodes that an order has in the first round
	mostStretch = 1 << 22
)

// Solve finds the lowest plan that it can.
func Solve(ctx context.Context, p Problem, opts ...Option) (Solution, error) {
	start := time.Now()
	o := options{nodes: DefaultNodes, workers: runtime.GOMAXPROCS(0)}
	for _, set := range opts {
		set(&o)
	}
	in, err := compile(p)
	if err != nil {
		return Solution{}, err
	}
	c := &climb{ctx: ctx, in: in, options: o, bound: in.lowerBound()}
	c.solve(p.Capacity)
	return Solution{
		Height: c.height, LowerBound: c.bound, Proven: c.proven, Nodes: c.nodes,
		Seconds: time.Since(start).Seconds(), Offsets: in.spread(p, c.best),
	}, nil
}

// climb is one call of Solve.
type climb struct {
	options
	ctx     context.Context
	in      *instance
	bound   int64 // lower bound
	refuted int64 // no plan is that low or lower
	best    []int64
	height  int64 // of best
	proven  bool
	nodes   int64
	pool    []*search
}

func (c *climb) take(offsets []int64) {
	if h := c.in.height(offsets); c.best == nil || h < c.height {
		c.best, c.height = offsets, h
	}
}

func (c *climb) solve(enough int64) {
	enough = max(enough, c.bound)
	c.refuted = c.bound - 1
	for _, order := range []firstOrder{bySize, byArea, byLife} {
		c.take(c.in.firstFit(order))
		if c.height <= enough || c.ctx.Err() != nil {
			break
		}
	}
	if c.in.stretch > mostStretch {
		c.proven = c.height == c.bound
		return
	}
	for range min(c.workers, len(orders)) {
		c.pool = append(c.pool, newSearch(c.in, c.off))
	}
	for limit := int64(firstLimit); c.height > enough && c.more(); limit *= 2 {
		if c.refuted < enough {
			c.try(enough, limit)
		}
		if limit >= 8*firstLimit {
			c.round(enough, limit)
		}
	}
	c.proven = c.height == c.bound || c.height-c.in.step <= c.refuted
}

// more says whether the search may and need go on.
func (c *climb) more() bool {
	return c.ctx.Err() == nil && c.nodes < c.nodes0() && c.height-c.in.step > c.refuted
}
func (c *climb) nodes0() int64 { return c.options.nodes }

func (c *climb) round(enough, limit int64) {
	for stride := (c.height - c.bound) / 4; c.height > enough && c.more(); {
		stride = max(stride/c.in.step*c.in.step, c.in.step)
		target := max(c.height-stride, enough)
		switch {
		case target > c.refuted && c.try(target, limit) == found:
		case stride == c.in.step:
			return
		default:
			stride /= 2
		}
	}
}

func (c *climb) try(capacity, limit int64) outcome {
	n := len(orders)
	outcomes, counts, plans := make([]outcome, n), make([]int64, n), make([][]int64, n)
	var next, winner atomic.Int64
	winner.Store(int64(n))
	var wg sync.WaitGroup
	for _, s := range c.pool {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= winner.Load() {
					return
				}
				halt := func() bool { return winner.Load() < i || c.ctx.Err() != nil }
				outcomes[i] = s.run(orders[i], capacity, limit, halt)
				counts[i] = s.nodes
				if outcomes[i] == stopped {
					continue
				}
				if outcomes[i] == found {
					plans[i] = append([]int64(nil), s.at...)
				}
				for w := winner.Load(); i < w && !winner.CompareAndSwap(w, i); w = winner.Load() {
				}
				return
			}
		})
	}
	wg.Wait()
	w := int(winner.Load())
	for i := range min(w+1, n) {
		c.nodes += counts[i]
	}
	if w == n {
		return stopped
	}
	if outcomes[w] == found {
		c.take(plans[w])
	} else {
		c.refuted = max(c.refuted, capacity)
	}
	return outcomes[w]
}

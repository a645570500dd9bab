package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/eyas-edge/eyas/internal/pressure"
)

// limiter runs batches of at most so many pictures; one that is under way may be larger. It is called from another goroutine.
type limiter interface{ limitBatch(most int) }

// squeeze takes the largest batches out of all streams while memory is short, and what only they need out of the lanes.
type squeeze struct {
	sizes  []int                                               // what batches can be limited to, ascending; the last limits nothing
	lanes  func(ctx context.Context, most int) error           // gives the memory of larger batches back, or takes it again
	tell   func(text string)                                   // what has changed
	watch  func(context.Context, func(pressure.Level, string)) // until the context is done
	limits atomic.Uint64                                       // how often the largest batches were taken out

	turn sync.Mutex // one watch at a time
	mu   sync.Mutex
	runs []limiter          // streams under way
	most int                // one of sizes
	end  context.CancelFunc // of the watch
	over chan struct{}      // closed when it has ended
}

// newSqueeze returns the one of a runtime whose lanes are there.
func (rt *Runtime) newSqueeze() *squeeze {
	ladders := make([][]int, len(rt.models))
	for i, m := range rt.models {
		ladders[i] = m.program.Ladder()
	}
	sizes := limits(ladders)
	return &squeeze{
		sizes: sizes, most: sizes[len(sizes)-1],
		lanes: func(ctx context.Context, most int) error {
			var failed error
			for _, l := range rt.lanes {
				failed = errors.Join(failed, l.Limit(ctx, most))
			}
			return failed
		},
		tell:  func(text string) { rt.warn("", "", text) },
		watch: func(ctx context.Context, changed func(pressure.Level, string)) { pressure.Watch(ctx, "/", changed) },
	}
}

// limits returns the sizes of all ladders that each model can keep to, ascending.
func limits(ladders [][]int) []int {
	floor := 0
	for _, ladder := range ladders {
		floor = max(floor, ladder[0])
	}
	sizes := slices.DeleteFunc(slices.Concat(ladders...), func(n int) bool { return n < floor })
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// join lets the squeeze limit a stream until leave is called, which waits. Where there is one batch size only, memory is not watched.
func (q *squeeze) join(runs limiter) (leave func()) {
	if len(q.sizes) < 2 {
		return func() {}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.runs = append(q.runs, runs)
	runs.limitBatch(q.most)
	if len(q.runs) == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		over := make(chan struct{})
		q.end, q.over = cancel, over
		go func() {
			defer close(over)
			q.heed(ctx)
		}()
	}
	return sync.OnceFunc(func() { q.leave(runs) })
}

func (q *squeeze) leave(runs limiter) {
	q.mu.Lock()
	q.runs = slices.DeleteFunc(q.runs, func(r limiter) bool { return r == runs })
	var over chan struct{}
	if len(q.runs) == 0 {
		q.end()
		over = q.over
	}
	q.mu.Unlock()
	if over != nil {
		<-over
	}
}

// heed limits batches as the pressure wants it. When ctx is done they are free again.
func (q *squeeze) heed(ctx context.Context) {
	q.turn.Lock()
	defer q.turn.Unlock()
	q.watch(ctx, func(level pressure.Level, why string) { q.limit(ctx, q.at(level), why) })
	if all := q.at(pressure.None); q.most < all {
		q.set(all)
		_ = q.lanes(context.Background(), all) // pages that are not there come when they are touched
	}
}

// at returns the largest batch at a level: all, without the largest, or the smallest alone.
func (q *squeeze) at(level pressure.Level) int {
	switch level {
	case pressure.None:
		return q.sizes[len(q.sizes)-1]
	case pressure.Some:
		return q.sizes[len(q.sizes)-2]
	}
	return q.sizes[0]
}

func (q *squeeze) set(most int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.most = most
	for _, r := range q.runs {
		r.limitBatch(most)
	}
}

// limit keeps batches at most so large. Only the watch's goroutine changes that.
func (q *squeeze) limit(ctx context.Context, most int, why string) {
	before, text := q.most, ""
	var err error
	switch {
	case most < before:
		q.limits.Add(1)
		q.set(most) // no large batch begins while its memory goes
		err = q.lanes(ctx, most)
		text = fmt.Sprintf("memory is short (%s): batches of at most %d", why, most)
	case most > before:
		err = q.lanes(ctx, most)
		q.set(most)
		text = fmt.Sprintf("memory is less short: batches of up to %d again", most)
	default:
		return
	}
	if err != nil && ctx.Err() == nil {
		text = fmt.Sprintf("%s; lanes keep their memory: %v", text, err)
	}
	q.tell(text)
}

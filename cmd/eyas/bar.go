package main

import (
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// bar is a progress bar on standard error. Lines for people go above it while it is there.
type bar struct {
	e    *env
	bars *mpb.Progress
	bar  *mpb.Bar
	done int64
}

func newBar(e *env, before, after []decor.Decorator) *bar {
	bars := mpb.New(mpb.WithOutput(e.stderr), mpb.WithRefreshRate(150*time.Millisecond))
	b := &bar{e: e, bars: bars, bar: bars.AddBar(0, mpb.PrependDecorators(before...), mpb.AppendDecorators(after...))}
	e.lines.to(bars)
	return b
}

// set moves the bar. total may be too small, or 0, while it is not known.
func (b *bar) set(done, total int64) {
	b.done = done
	b.bar.SetTotal(max(total, done), false)
	b.bar.SetCurrent(done)
}

// close ends the bar where it is.
func (b *bar) close() {
	b.bar.SetTotal(b.done, true)
	b.bars.Wait()
	b.e.lines.to(b.e.stderr)
}

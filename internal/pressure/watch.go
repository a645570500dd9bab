package pressure

import (
	"context"
	"time"
)

// interval is the time between two samples. A trigger of the kernel tells of stalls at most half a second sooner, and of
// nothing else.
const interval = time.Second

// Watch reads below root, "/" outside of tests, once a second, and calls changed with each new level and what made it rise
// last. It returns when ctx is done.
func Watch(ctx context.Context, root string, changed func(level Level, why string)) {
	s := newSampler(root)
	defer s.close()
	t := time.NewTicker(interval)
	defer t.Stop()
	var m Meter
	start, level := time.Now(), None
	for {
		now, why := m.Observe(s.read(time.Since(start)))
		if now != level {
			level = now
			changed(level, why)
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

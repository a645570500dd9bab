package pressure

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatch(t *testing.T) {
	root := t.TempDir()
	available := func(kB string) {
		write(t, root, map[string]string{"proc/meminfo": "MemTotal: 100000 kB\nMemAvailable: " + kB + " kB\n"})
	}
	available("50000")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var told []Level
		var whys []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			Watch(ctx, root, func(level Level, why string) { told, whys = append(told, level), append(whys, why) })
		}()
		pass := func(d time.Duration, want ...Level) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if !slices.Equal(told, want) {
				t.Fatalf("told %v (%q), want %v", told, whys, want)
			}
		}
		pass(10 * time.Second)
		available("5000")
		pass(2*time.Second, Some)
		pass(time.Minute, Some)
		available("1000")
		pass(2*time.Second, Some, High)
		available("40000")
		pass(8*time.Second, Some, High)
		pass(20*time.Second, Some, High, Some, None)
		cancel()
		<-done
	})
}

// A watch that is over before it begins, of a machine that tells nothing.
func TestWatchOfNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	Watch(ctx, t.TempDir(), func(Level, string) { t.Error("told") })
}

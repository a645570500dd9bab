package runtime

import (
	"testing"
	"time"
)

// What is left is what has to be measured, and of what may be measured again only as much as there is time for.
func TestProgressLeft(t *testing.T) {
	for _, c := range []struct {
		name              string
		steps, must, done int
		after, want       time.Duration
	}{
		{"one round", 6, 6, 2, 4 * time.Second, 8 * time.Second},
		{"one round that takes longer than the search", 6, 6, 2, 40 * time.Second, 80 * time.Second},
		{"rounds for which there is no time", 40, 8, 1, time.Second, roundsWithin - time.Second},
		{"rounds that are short", 40, 8, 10, time.Second, 3 * time.Second},
		{"the last round", 33, 8, 15, roundsWithin - time.Second, time.Second},
	} {
		p := progress{steps: c.steps, must: c.must, done: c.done}
		if got := p.left(c.after); got != c.want {
			t.Errorf("%s: %v left, want %v", c.name, got, c.want)
		}
	}
}

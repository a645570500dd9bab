package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/eyas-edge/eyas/internal/pressure"
)

// script records what a squeeze does, in order.
type script struct {
	mu    sync.Mutex
	lines []string
}

func (s *script) add(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// took returns what was done since the last call.
func (s *script) took() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.lines
	s.lines = nil
	return lines
}

type scripted struct {
	name string
	*script
}

func (s scripted) limitBatch(most int) { s.add("%s %d", s.name, most) }

// newScripted returns a squeeze whose levels are sent.
func newScripted(sizes ...int) (*squeeze, *script, chan pressure.Level) {
	s, levels := &script{}, make(chan pressure.Level)
	return &squeeze{
		sizes: sizes, most: sizes[len(sizes)-1],
		lanes: func(_ context.Context, most int) error {
			s.add("lanes %d", most)
			return nil
		},
		tell: func(text string) { s.add("%s", text) },
		watch: func(ctx context.Context, changed func(pressure.Level, string)) {
			s.add("watch")
			for {
				select {
				case l := <-levels:
					changed(l, "why")
				case <-ctx.Done():
					s.add("over")
					return
				}
			}
		},
	}, s, levels
}

func TestSqueeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, did, levels := newScripted(1, 4, 8)
		want := func(lines ...string) {
			t.Helper()
			synctest.Wait()
			if got := did.took(); !slices.Equal(got, lines) {
				t.Errorf("got %q, want %q", got, lines)
			}
		}
		leaveA := q.join(scripted{"a", did})
		want("a 8", "watch")
		levels <- pressure.Some
		want("a 4", "lanes 4", "memory is short (why): batches of at most 4")
		leaveB := q.join(scripted{"b", did})
		want("b 4")
		levels <- pressure.High
		want("a 1", "b 1", "lanes 1", "memory is short (why): batches of at most 1")
		levels <- pressure.Some
		want("lanes 4", "a 4", "b 4", "memory is less short: batches of up to 4 again")
		leaveA()
		leaveA()
		want()
		levels <- pressure.None
		want("lanes 8", "b 8", "memory is less short: batches of up to 8 again")
		levels <- pressure.High
		want("b 1", "lanes 1", "memory is short (why): batches of at most 1")
		leaveB() // who comes next finds everything as it was
		want("over", "lanes 8")
		if n := q.limits.Load(); n != 3 {
			t.Errorf("limited %d times, want 3", n)
		}
		leave := q.join(scripted{"c", did})
		want("c 8", "watch")
		leave()
		want("over")
	})
}

// Two batch sizes leave one limit: it is told once.
func TestSqueezeOfTwoSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, did, levels := newScripted(1, 8)
		q.lanes = func(context.Context, int) error { return errors.New("no") }
		leave := q.join(scripted{"a", did})
		levels <- pressure.Some
		levels <- pressure.High
		leave()
		want := []string{"a 8", "watch", "a 1", "memory is short (why): batches of at most 1; lanes keep their memory: no", "over"}
		if got := did.took(); !slices.Equal(got, want) || q.limits.Load() != 1 {
			t.Errorf("got %q, %d times", got, q.limits.Load())
		}
	})
}

// Without a larger batch there is nothing to watch for.
func TestSqueezeOfOneSize(t *testing.T) {
	q, did, _ := newScripted(1)
	q.join(scripted{"a", did})()
	if got := did.took(); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name    string
		ladders [][]int
		want    []int
	}{
		{"one", [][]int{{1, 2, 4}}, []int{1, 2, 4}},
		{"several", [][]int{{1, 2, 4}, {1, 8}}, []int{1, 2, 4, 8}},
		{"a model that runs four at once", [][]int{{1, 2, 8}, {4}}, []int{4, 8}},
		{"nothing to limit", [][]int{{1}, {1}}, []int{1}},
	} {
		if got := limits(c.ladders); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

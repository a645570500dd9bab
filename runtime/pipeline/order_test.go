package pipeline

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestOrder(t *testing.T) {
	o := NewOrder[string](2)
	a1, b1, a2, a3 := o.Begin(0, "a1"), o.Begin(1, "b1"), o.Begin(0, "a2"), o.Begin(0, "a3")
	take := func(want ...string) {
		t.Helper()
		if o.Ready() != len(want) {
			t.Errorf("%d are ready, want %v", o.Ready(), want)
		}
		for _, w := range want {
			if got, ok := o.Next(); !ok || got != w {
				t.Errorf("next is %q, want %q", got, w)
			}
		}
		if got, ok := o.Next(); ok {
			t.Errorf("%q is ready, too", got)
		}
	}
	take()
	o.Done(a2)
	take() // a1 comes before it
	o.Done(b1)
	take("b1")
	o.Done(a1)
	take("a1", "a2")
	if o.Open() != 1 {
		t.Errorf("%d are open", o.Open())
	}
	o.Done(a3)
	take("a3")
	if o.Open() != 0 {
		t.Errorf("%d are open", o.Open())
	}
}

// Whatever ends when, each group comes out whole and in order, and without allocations once the queues have grown.
func TestOrderIsKept(t *testing.T) {
	const groups, most = 3, 40
	r := rand.New(rand.NewPCG(1, 2))
	o := NewOrder[[2]int](groups)
	var open []Ticket
	var begun, out [groups]int
	step := func() {
		if len(open) < most && r.IntN(2) == 0 {
			g := r.IntN(groups)
			open = append(open, o.Begin(g, [2]int{g, begun[g]}))
			begun[g]++
		} else if len(open) > 0 {
			i := r.IntN(len(open))
			o.Done(open[i])
			open[i] = open[len(open)-1]
			open = open[:len(open)-1]
		}
		for item, ok := o.Next(); ok; item, ok = o.Next() {
			if item[1] != out[item[0]] {
				t.Fatalf("group %d gave %d, want %d", item[0], item[1], out[item[0]])
			}
			out[item[0]]++
		}
	}
	for range 100_000 {
		step()
	}
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
	for len(open) > 0 {
		o.Done(open[0])
		open = open[1:]
	}
	for item, ok := o.Next(); ok; item, ok = o.Next() {
		out[item[0]]++
	}
	if !slices.Equal(out[:], begun[:]) || o.Open() != 0 {
		t.Errorf("%v begun, %v came out, %d open", begun, out, o.Open())
	}
}

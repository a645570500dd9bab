package memplan

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/eyas-edge/eyas/internal/testenv"
)

func ptr[T any](v T) *T { return &v }

// solved solves a problem and checks the plan.
func solved(t testing.TB, p Problem, opts ...Option) Solution {
	t.Helper()
	s, err := Solve(context.Background(), p, opts...)
	if err != nil {
		t.Fatal(err)
	}
	if err := Validate(p, s); err != nil {
		t.Fatalf("%v: %+v for %+v", err, s, p)
	}
	return s
}

// without leaves parts of the search out.
func without(off prune) Option { return func(o *options) { o.off = off } }

// workedExample is that of Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (2020).
func workedExample() Problem {
	return Problem{Buffers: []Buffer{
		{ID: "0", Lower: 0, Upper: 2, Size: 32}, {ID: "1", Lower: 1, Upper: 5, Size: 28},
		{ID: "2", Lower: 2, Upper: 6, Size: 36}, {ID: "3", Lower: 3, Upper: 6, Size: 16},
		{ID: "4", Lower: 4, Upper: 6, Size: 8}, {ID: "5", Lower: 5, Upper: 8, Size: 64},
		{ID: "6", Lower: 6, Upper: 9, Size: 10}, {ID: "7", Lower: 7, Upper: 9, Size: 40},
	}}
}

func TestSolveKnownOptima(t *testing.T) {
	for name, c := range map[string]struct {
		problem Problem
		height  int64
	}{
		"nothing":          {Problem{}, 0},
		"no bytes":         {Problem{Buffers: []Buffer{{Upper: 1}}}, 0},
		"no bytes, fixed":  {Problem{Buffers: []Buffer{{Upper: 1, Fixed: ptr(int64(7))}}}, 0},
		"one":              {Problem{Buffers: []Buffer{{Lower: -5, Upper: -4, Size: 9, Align: 64}}}, 9},
		"one after other":  {Problem{Buffers: []Buffer{{Upper: 4, Size: 9}, {Lower: 4, Upper: 9, Size: 7}}}, 9},
		"worked example":   {workedExample(), 124},
		"aligned":          {Problem{Buffers: []Buffer{{Upper: 1, Size: 5, Align: 4}, {Upper: 1, Size: 6, Align: 4}}}, 13},
		"fixed, gap below": {Problem{Buffers: []Buffer{{Upper: 1, Size: 8, Fixed: ptr(int64(8))}, {Upper: 1, Size: 8}, {Upper: 1, Size: 1}}}, 17},
		"fixed, too high":  {Problem{Buffers: []Buffer{{Upper: 1, Size: 8, Fixed: ptr(int64(100))}, {Upper: 1, Size: 8}}}, 108},
		"alias": {Problem{Buffers: []Buffer{
			{Upper: 2, Size: 8}, {Lower: 2, Upper: 4, Size: 4, Alias: ptr(0)}, {Lower: 3, Upper: 5, Size: 8}}}, 16},
		"aliases in a ring": {Problem{Buffers: []Buffer{
			{Upper: 2, Size: 8, Alias: ptr(1)}, {Lower: 2, Upper: 4, Size: 4, Alias: ptr(0)}}}, 8},
	} {
		t.Run(name, func(t *testing.T) {
			if s := solved(t, c.problem); s.Height != c.height || !s.Proven {
				t.Errorf("height %d, proven %v, want %d", s.Height, s.Proven, c.height)
			}
		})
	}
}

func TestSolveRefuses(t *testing.T) {
	ok := Buffer{Upper: 1, Size: 1}
	for name, p := range map[string]Problem{
		"empty lifetime":      {Buffers: []Buffer{{Lower: 3, Upper: 3, Size: 1}}},
		"backward lifetime":   {Buffers: []Buffer{{Lower: 3, Upper: 1, Size: 1}}},
		"negative size":       {Buffers: []Buffer{{Upper: 1, Size: -1}}},
		"huge size":           {Buffers: []Buffer{{Upper: 1, Size: 1 << 62}}},
		"sum too large":       {Buffers: []Buffer{{Upper: 1, Size: MaxBytes}, ok}},
		"negative alignment":  {Buffers: []Buffer{{Upper: 1, Size: 1, Align: -8}}},
		"huge alignment":      {Buffers: []Buffer{{Upper: 1, Size: 1, Align: 1 << 60}}},
		"negative fixed":      {Buffers: []Buffer{{Upper: 1, Size: 1, Fixed: ptr(int64(-1))}}},
		"fixed not aligned":   {Buffers: []Buffer{{Upper: 1, Size: 1, Align: 8, Fixed: ptr(int64(4))}}},
		"fixed overlap":       {Buffers: []Buffer{{Upper: 1, Size: 8, Fixed: ptr(int64(4))}, {Upper: 1, Size: 8, Fixed: ptr(int64(8))}}},
		"alias out of range":  {Buffers: []Buffer{{Upper: 1, Size: 1, Alias: ptr(1)}}},
		"alias negative":      {Buffers: []Buffer{{Upper: 1, Size: 1, Alias: ptr(-1)}}},
		"aliases disagree":    {Buffers: []Buffer{{Upper: 1, Size: 1, Fixed: ptr(int64(0))}, {Upper: 1, Size: 1, Fixed: ptr(int64(8)), Alias: ptr(0)}}},
		"aliases' alignments": {Buffers: []Buffer{{Upper: 1, Size: 1, Align: 1<<31 - 1}, {Upper: 1, Size: 1, Align: 1 << 31, Alias: ptr(0)}}},
		"alias's alignment":   {Buffers: []Buffer{{Upper: 1, Size: 1, Fixed: ptr(int64(4))}, {Upper: 1, Size: 1, Align: 8, Alias: ptr(0)}}},
		"too many":            {Buffers: slices.Repeat([]Buffer{ok}, MaxBuffers+1)},
		"negative capacity":   {Buffers: []Buffer{ok}, Capacity: -1},
	} {
		t.Run(name, func(t *testing.T) {
			if s, err := Solve(context.Background(), p); err == nil {
				t.Errorf("no error, height %d", s.Height)
			}
			if _, err := Greedy(p); err == nil {
				t.Error("no error from Greedy")
			}
		})
	}
}

func TestSolveStopsAtTheCapacity(t *testing.T) {
	p := tight(t, "D")
	p.Capacity = 1100000
	s := solved(t, p)
	if s.Height > p.Capacity || s.Proven || s.Nodes > 100_000 {
		t.Errorf("height %d after %d nodes, want at most %d soon", s.Height, s.Nodes, p.Capacity)
	}
}

// randomProblem has few buffers, so that all orders can be tried, and much of what makes problems hard:
// equal buffers, alignment, fixed offsets, aliases.
func randomProblem(r *rand.Rand, n int) Problem {
	var p Problem
	units := []int64{1, 4, 3}[r.IntN(3)]
	for range n {
		lower := r.IntN(8)
		p.Buffers = append(p.Buffers, Buffer{Lower: lower, Upper: lower + 1 + r.IntN(5), Size: units * int64(r.IntN(9))})
	}
	switch r.IntN(4) {
	case 0:
		for i := range p.Buffers {
			p.Buffers[i].Align = []int64{0, 1, 4, 6, 8}[r.IntN(5)]
		}
	case 1:
		for i := range p.Buffers {
			p.Buffers[i].Align = 8
		}
	}
	if r.IntN(4) == 0 {
		b := &p.Buffers[r.IntN(n)]
		b.Fixed = ptr(int64(r.IntN(4)) * 24)
	}
	if r.IntN(4) == 0 {
		i := r.IntN(n)
		if j := r.IntN(n); p.Buffers[j].Fixed == nil {
			p.Buffers[j].Alias = &i
		}
	}
	return p
}

// optimum tries every order of placement, each buffer as low as it fits. A lowest plan is among them: take
// its buffers by offset, and none of them comes to lie higher than it does there.
func optimum(p Problem) int64 {
	type box struct{ lower, upper, at, size, align int64 }
	var fixed, free []box
	n := len(p.Buffers)
	group := make([]int, n)
	for i := range group {
		group[i] = i
	}
	for range n {
		for i, b := range p.Buffers {
			if b.Alias != nil {
				low := min(group[i], group[*b.Alias])
				group[i], group[*b.Alias] = low, low
			}
		}
	}
	for g := range n {
		u, is, at := box{lower: 1 << 40, upper: -1 << 40, align: 1}, false, int64(-1)
		for i, b := range p.Buffers {
			if group[i] != g {
				continue
			}
			is = true
			u.lower, u.upper, u.size = min(u.lower, int64(b.Lower)), max(u.upper, int64(b.Upper)), max(u.size, b.Size)
			for one := u.align; u.align%max(b.Align, 1) != 0; {
				u.align += one
			}
			if b.Fixed != nil {
				at = *b.Fixed
			}
		}
		switch {
		case !is || u.size == 0:
		case at >= 0:
			u.at = at
			fixed = append(fixed, u)
		default:
			free = append(free, u)
		}
	}
	best := int64(1 << 60)
	var place func(done, rest []box, top int64)
	place = func(done, rest []box, top int64) {
		if top >= best {
			return
		}
		if len(rest) == 0 {
			best = top
			return
		}
		for i, u := range rest {
			u.at = 0
			for again := true; again; {
				again = false
				for _, d := range done {
					if d.lower < u.upper && u.lower < d.upper && d.at < u.at+u.size && u.at < d.at+d.size {
						u.at = (d.at + d.size + u.align - 1) / u.align * u.align
						again = true
					}
				}
			}
			others := slices.Concat(rest[:i], rest[i+1:])
			place(slices.Concat(done, []box{u}), others, max(top, u.at+u.size))
		}
	}
	top := int64(0)
	for _, f := range fixed {
		top = max(top, f.at+f.size)
	}
	place(fixed, free, top)
	return best
}

// withoutOne leaves out one prune after the other, and all of them.
var withoutOne = map[string]prune{
	"everything":   {},
	"no bound":     {noBound: true},
	"no dominance": {noDominance: true},
	"no split":     {noSplit: true},
	"no memo":      {noMemo: true},
	"no twins":     {noTwins: true},
	"nothing":      {noBound: true, noDominance: true, noSplit: true, noMemo: true, noTwins: true},
}

func TestSolveIsOptimal(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	refused := 0
	for k := range 400 {
		p := randomProblem(r, 1+r.IntN(7))
		want := optimum(p)
		for name, off := range withoutOne {
			s, err := Solve(context.Background(), p, without(off))
			if err != nil {
				refused++
				break
			}
			if err := Validate(p, s); err != nil {
				t.Fatalf("%d, %s: %v: %+v for %+v", k, name, err, s, p.Buffers)
			}
			if s.Height != want || !s.Proven {
				t.Fatalf("%d, %s: height %d, proven %v, want %d: %+v", k, name, s.Height, s.Proven, want, p.Buffers)
			}
		}
	}
	if refused > 100 {
		t.Errorf("%d problems of 400 were refused", refused)
	}
}

// With more buffers than can be tried in every order, the search has to agree with itself.
func TestPrunesChangeNoAnswer(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for k := range 60 {
		p := randomProblem(r, 8+r.IntN(7))
		want, err := Solve(context.Background(), p)
		if err != nil {
			continue
		}
		for name, off := range withoutOne {
			// Without any prune the search may not come to its end: then it can only be higher.
			s := solved(t, p, without(off), MaxNodes(200_000))
			if s.Height < want.Height || s.Proven && s.Height != want.Height {
				t.Fatalf("%d, %s: height %d, proven %v, with all prunes %d: %+v", k, name, s.Height, s.Proven, want.Height, p.Buffers)
			}
		}
		if !want.Proven {
			t.Errorf("%d: not proven after %d nodes", k, want.Nodes)
		}
	}
}

// tight reads one of MiniMalloc's problems.
func tight(t testing.TB, name string) Problem {
	t.Helper()
	f, err := os.Open(filepath.Join(testenv.Assets(t), "minimalloc", name+".csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := ReadCSV(f)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSolveReachesTheLowerBoundOfTightProblems(t *testing.T) {
	for _, name := range []string{"A", "B", "C", "E", "F", "G", "H", "I", "K"} {
		t.Run(name, func(t *testing.T) {
			if s := solved(t, tight(t, name)); s.Height != s.LowerBound || !s.Proven {
				t.Errorf("height %d, proven %v, lower bound %d", s.Height, s.Proven, s.LowerBound)
			}
		})
	}
}

// For D and J nobody knows the optimum. The limits are the best of MiniMalloc; what is reached in the end,
// BenchmarkMiniMalloc tells.
func TestSolveGetsCloseToTheBoundOfOpenProblems(t *testing.T) {
	for _, c := range []struct {
		name   string
		nodes  int64
		height int64
	}{{"D", 1_000_000, 1033216}, {"J", 400_000, 1041408}} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() {
				t.Skip("takes seconds")
			}
			if s := solved(t, tight(t, c.name), MaxNodes(c.nodes)); s.Height > c.height || s.Nodes > c.nodes {
				t.Errorf("height %d after %d nodes, want at most %d", s.Height, s.Nodes, c.height)
			}
		})
	}
}

// detector is a graph as detectors have them: stages of ever smaller and deeper pictures, blocks of a few short-lived
// tensors with one that skips them, and heads that read what earlier stages left.
func detector(r *rand.Rand, blocks int) Problem {
	var p Problem
	now := 0
	size := int64(1 << 20)
	add := func(length int, size int64) {
		p.Buffers = append(p.Buffers, Buffer{Lower: now, Upper: now + length, Size: size / 64 * 64, Align: 64})
	}
	for k := range blocks {
		add(6+r.IntN(4), size) // the skip
		for range 3 + r.IntN(3) {
			add(2+r.IntN(2), size/int64(1+r.IntN(3)))
			now++
		}
		if r.IntN(5) == 0 {
			add(10+r.IntN(40), size/4) // for a head
		}
		if k%8 == 7 {
			size = max(size/2, 4096)
		}
	}
	return p
}

func TestSolveIsFastOnDetectors(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	for k := range 20 {
		p := detector(r, 5+7*k)
		greedy, err := Greedy(p)
		if err != nil {
			t.Fatal(err)
		}
		s := solved(t, p, MaxNodes(50_000))
		t.Logf("%d buffers: greedy %.3f, height %.3f of the lower bound, %d nodes, %.3f s", len(p.Buffers),
			float64(greedy.Height)/float64(s.LowerBound), float64(s.Height)/float64(s.LowerBound), s.Nodes, s.Seconds)
		if !s.Proven {
			t.Errorf("%d buffers: %d bytes are not proven minimal after %d nodes, lower bound %d", len(p.Buffers), s.Height, s.Nodes, s.LowerBound)
		}
	}
}

func TestSolveGivesTheSamePlanAgain(t *testing.T) {
	for _, name := range []string{"B", "F", "D"} { // D ends at the limit
		p := tight(t, name)
		var first Solution
		for _, procs := range []int{1, 2, 4} {
			old := runtime.GOMAXPROCS(procs)
			s := solved(t, p, MaxNodes(350_000))
			runtime.GOMAXPROCS(old)
			if s.Seconds = 0; procs == 1 {
				first = s
			}
			if !reflect.DeepEqual(s, first) {
				t.Errorf("%s: with %d threads height %d after %d nodes, with one %d after %d", name, procs, s.Height, s.Nodes, first.Height, first.Nodes)
			}
		}
	}
}

func TestSolveEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p := tight(t, "D")
	s, err := Solve(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	if err := Validate(p, s); err != nil || s.Proven || s.Nodes > 0 {
		t.Errorf("%v, proven %v, %d nodes", err, s.Proven, s.Nodes)
	}
}

func TestGreedyIsValid(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for range 300 {
		p := randomProblem(r, 1+r.IntN(30))
		s, err := Greedy(p)
		if err != nil {
			continue
		}
		if err := Validate(p, s); err != nil {
			t.Fatalf("%v: %+v for %+v", err, s, p.Buffers)
		}
	}
}

func TestSolveOfLargeProblems(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	r := rand.New(rand.NewPCG(5, 5))
	all, some := make([]Buffer, MaxBuffers/2), make([]Buffer, 3000)
	for i := range all { // at once, and padded
		all[i] = Buffer{Upper: 1 + r.IntN(1000), Size: 1 + r.Int64N(1<<20), Align: 64}
	}
	for i := range some {
		lower := r.IntN(100000)
		some[i] = Buffer{Lower: lower, Upper: lower + 1 + r.IntN(2000), Size: 1 + r.Int64N(1<<20)}
	}
	for name, buffers := range map[string][]Buffer{"all": all, "some": some} {
		s := solved(t, Problem{Buffers: buffers}, MaxNodes(20_000))
		t.Logf("%s: %.3f of the lower bound, %d nodes, %.2f s", name, float64(s.Height)/float64(s.LowerBound), s.Nodes, s.Seconds)
	}
}

func FuzzSolve(f *testing.F) {
	f.Add(uint64(1), 5)
	f.Add(uint64(2), 40)
	f.Fuzz(func(t *testing.T, seed uint64, n int) {
		p := randomProblem(rand.New(rand.NewPCG(seed, 0)), 1+int(uint(n)%60))
		s, err := Solve(context.Background(), p, MaxNodes(2_000))
		if err != nil {
			return
		}
		if err := Validate(p, s); err != nil {
			t.Fatalf("%v: %+v for %+v", err, s, p.Buffers)
		}
	})
}

func BenchmarkMiniMalloc(b *testing.B) {
	for _, name := range []string{"A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K"} {
		b.Run(name, func(b *testing.B) {
			p := tight(b, name)
			var s Solution
			for b.Loop() {
				s = solved(b, p)
			}
			b.ReportMetric(float64(s.Height), "height")
			b.ReportMetric(100*(float64(s.Height)/float64(s.LowerBound)-1), "%above")
			b.ReportMetric(float64(s.Nodes), "nodes")
		})
	}
}

func ExampleSolve() {
	s, err := Solve(context.Background(), workedExample())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Height, s.LowerBound, s.Proven)
	// Output: 124 124 true
}

package batch

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

// linear is the profile of a machine whose runs take a + c*batch.
func linear(a, c time.Duration, sizes ...int) Profile {
	var p Profile
	for _, b := range sizes {
		l := a + time.Duration(b)*c
		p = append(p, Timing{b, l, l + l/50, l + l/20})
	}
	return p
}

// newTest returns a batcher with cameras 0 to n-1.
func newTest(t testing.TB, c Config, n int, cam Camera) *Batcher[int] {
	t.Helper()
	if c.Profile == nil {
		c.Profile = linear(4*ms, ms, 1, 2, 4, 8)
	}
	b, err := New[int](c)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if got, err := b.AddCamera(cam); err != nil || got != i {
			t.Fatalf("camera %d is %d: %v", i, got, err)
		}
	}
	return b
}

func handles[T any](list []T, handle func(T) int) (out []int) {
	for _, e := range list {
		out = append(out, handle(e))
	}
	return out
}

func ran(d Decision[int]) []int { return handles(d.Frames, func(f Frame[int]) int { return f.Handle }) }
func lost(d []Drop[int]) []int  { return handles(d, func(f Drop[int]) int { return f.Handle }) }
func frame(h, camera int, at, slo time.Duration) Frame[int] {
	f := Frame[int]{Handle: h, Camera: camera, Captured: at, Deadline: Never}
	if slo > 0 {
		f.Deadline = at + slo
	}
	return f
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestOfferDrops(t *testing.T) {
	b := newTest(t, Config{}, 2, Camera{Room: 2})
	for _, c := range []struct {
		name  string
		frame Frame[int]
		lost  []int
		cause Cause
	}{
		{"room", frame(1, 0, 0, 100*ms), nil, 0},
		{"too late to be done", frame(2, 1, 0, 4*ms), []int{2}, Late},
		{"more room", frame(3, 0, 1*ms, 100*ms), nil, 0},
		{"the oldest makes room", frame(4, 0, 2*ms, 100*ms), []int{1}, Superseded},
		{"without a deadline", frame(5, 1, 2*ms, 0), nil, 0},
		{"unknown camera", frame(6, 2, 2*ms, 0), []int{6}, Withdrawn},
		{"negative camera", frame(7, -1, 2*ms, 0), []int{7}, Withdrawn},
	} {
		d := b.Offer(c.frame, c.frame.Captured)
		if !equal(lost(d), c.lost) || len(d) > 0 && d[0].Cause != c.cause {
			t.Errorf("%s: lost %v, want %v for %v", c.name, d, c.lost, c.cause)
		}
	}
	if !b.Full(0) || b.Full(1) || b.Waiting() != 3 {
		t.Errorf("full %v %v, %d wait", b.Full(0), b.Full(1), b.Waiting())
	}
	if d := b.RemoveCamera(0); !equal(lost(d), []int{3, 4}) || d[0].Cause != Withdrawn {
		t.Errorf("removing the camera gives up %v", d)
	}
	if d := b.RemoveCamera(0); d != nil {
		t.Errorf("removing it again gives up %v", d)
	}
	if d := b.Decide(0, 3*ms); d.Action != Run || !equal(ran(d), []int{5}) || d.Size != 1 {
		t.Errorf("decided %+v", d)
	}
	if n, err := b.AddCamera(Camera{}); n != 0 || err != nil {
		t.Errorf("the next camera is %d, %v; want the free number", n, err)
	}
	if d := b.Decide(0, 9*ms); d.Action != Idle {
		t.Errorf("decided %+v with nothing waiting", d)
	}
}

func TestBadConfig(t *testing.T) {
	for name, p := range map[string]Profile{
		"empty":      {},
		"descending": {{4, ms, ms, ms}, {2, ms, ms, ms}},
		"zero":       {{0, ms, ms, ms}},
		"no time":    {{1, 0, ms, ms}},
		"quantiles":  {{1, 3 * ms, 2 * ms, 4 * ms}},
		"too many":   linear(ms, ms, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17),
	} {
		if _, err := New[int](Config{Profile: p}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	b := newTest(t, Config{}, 0, Camera{})
	for _, c := range []Camera{{Weight: -1}, {Weight: 1e9}, {Room: -1}, {Room: 1 << 20}} {
		if _, err := b.AddCamera(c); err == nil {
			t.Errorf("%+v: accepted", c)
		}
	}
}

// What fits goes together, and what waits for more is run in the end.
func TestRunsWhatFits(t *testing.T) {
	b := newTest(t, Config{}, 1, Camera{Room: 16})
	for i := range 9 {
		b.Offer(frame(i, 0, 0, 50*ms), 0)
	}
	if d := b.Decide(0, 0); d.Action != Run || d.Size != 8 || !equal(ran(d), []int{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Fatalf("decided %+v", d)
	}
	// The next batch may be asked for while that one runs, but not a third.
	if d := b.Decide(0, 0); d.Action != Run || !equal(ran(d), []int{8}) {
		t.Fatalf("decided %+v for the second set of inputs", d)
	}
	b.Offer(frame(9, 0, ms, 50*ms), ms)
	if d := b.Decide(0, ms); d.Action != Wait || d.Until <= ms {
		t.Fatalf("decided %+v for a lane with two batches", d)
	}
	b.Finished(0, 12*ms, 12*ms)
	d := b.Decide(0, 12*ms)
	for d.Action == Wait {
		d = b.Decide(0, d.Until)
	}
	if d.Action != Run || !equal(ran(d), []int{9}) {
		t.Fatalf("decided %+v after the first ended", d)
	}
}

// Memory pressure takes the largest sizes out and gives them back.
func TestLimit(t *testing.T) {
	for _, c := range []struct{ limit, want int }{{0, 8}, {5, 4}, {2, 2}, {1, 1}, {-3, 8}, {100, 8}} {
		b := newTest(t, Config{}, 1, Camera{Room: 16})
		b.Limit(1)
		b.Limit(c.limit)
		for i := range 8 {
			b.Offer(frame(i, 0, 0, 0), 0)
		}
		if d := b.Decide(0, 0); d.Size != c.want {
			t.Errorf("limit %d: a batch of %d, want %d", c.limit, d.Size, c.want)
		}
	}
	b := newTest(t, Config{Profile: linear(ms, ms, 4, 8)}, 1, Camera{Room: 16})
	b.Limit(2)
	b.Offer(frame(0, 0, 0, 0), 0)
	if d := b.Decide(0, 0); d.Size != 4 || len(d.Frames) != 1 {
		t.Errorf("a model of fixed batch 4 is told %+v", d)
	}
}

func TestLearnsSpeed(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name   string
		factor float64
		noise  float64
	}{{"twice as slow", 2, 0.05}, {"faster", 0.7, 0.02}, {"a little slower", 1.15, 0.02}, {"twice as slow, noisy", 2, 0.1}} {
		l := learn(linear(16*ms, ms, 1, 2, 4, 8))
		for range 200 {
			i := rng.IntN(4)
			l.saw(i, l.size[i]*(1+c.noise*rng.NormFloat64()))
		}
		if l.speed < 0.9 || l.speed > 1.1 || l.sigma > 2*c.noise || l.sigma < c.noise/2 {
			t.Errorf("%s: before: speed %.3f, sigma %.3f", c.name, l.speed, l.sigma)
		}
		for range 10 {
			i := rng.IntN(4)
			l.saw(i, c.factor*l.size[i]*(1+c.noise*rng.NormFloat64()))
		}
		if off := l.mean(1) / l.size[1] / c.factor; off < 0.85 || off > 1.15 {
			t.Errorf("%s: after ten runs the factor is %.2f of what it is", c.name, off)
		}
	}
	// One run that takes ten times as long says little.
	l := learn(linear(16*ms, ms, 1, 2))
	l.saw(0, 10*l.size[0])
	if l.speed > 1.02 || l.sigma > 0.1 {
		t.Errorf("one slow run: speed %.3f, sigma %.3f", l.speed, l.sigma)
	}
	l.saw(0, 0) // what cannot be is not learned from
	l.saw(0, -1)
}

func TestAdmission(t *testing.T) {
	p := linear(16*ms, ms, 1, 2, 4, 8)
	var slo *SLOError
	if err := p.CheckSLO(10 * ms); !errors.As(err, &slo) || slo.SLO != 10*ms || slo.P99 != 17850*time.Microsecond || slo.Batch != 1 {
		t.Errorf("refused with %v", err)
	}
	if err := p.CheckSLO(18 * ms); err != nil {
		t.Error(err)
	}
	alone, other := Share{Name: "a", Profile: p, SLO: 10 * ms}, Share{Name: "b", Profile: p}
	if _, err := NewScheduler(alone); err != nil {
		t.Errorf("a model that has the lane to itself: %v", err)
	}
	if _, err := NewScheduler(alone, other); !errors.As(err, &slo) {
		t.Errorf("one that has not: %v", err)
	}
	if d := (Demand{Needs: 120.2, Does: 95.9}); d.String() != "needs 120 fps, this machine does 96 in time" {
		t.Error(d)
	}
}

// What waits for company that will not come runs.
func TestDrain(t *testing.T) {
	b, err := New[int](Config{Profile: linear(16*ms, ms, 1, 2, 4), Policy: Fixed(4)})
	if err != nil {
		t.Fatal(err)
	}
	camera, _ := b.AddCamera(Camera{Room: 4})
	for i := range 3 {
		b.Offer(Frame[int]{Handle: i, Camera: camera, Deadline: time.Hour}, 0)
	}
	if d := b.Decide(0, 0); d.Action != Wait {
		t.Fatalf("%+v", d)
	}
	b.Drain()
	first := len(b.Decide(0, 0).Frames)
	if second := len(b.Decide(0, 0).Frames); first != 2 || second != 1 || b.Waiting() != 0 {
		t.Errorf("batches of %d and %d, %d wait", first, second, b.Waiting())
	}
}

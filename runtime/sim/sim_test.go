package sim

import (
	"errors"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/runtime/batch"
)

const ms = time.Millisecond

func machine(noise float64) *Machine {
	return &Machine{A: 8 * ms, C: 2 * ms, Sizes: []int{1, 2, 4, 8}, Noise: noise}
}

func simulate(t *testing.T, s Setup) Outcome {
	t.Helper()
	o, err := Simulate(s)
	if err != nil {
		t.Fatal(err)
	}
	if sum := o.InTime + o.Overdue + o.Dropped[0] + o.Dropped[1] + o.Dropped[2]; sum != o.Offered {
		t.Errorf("%d frames offered, %d accounted for: %+v", o.Offered, sum, o)
	}
	return o
}

// Every policy accounts for every frame, on any number of lanes.
func TestAccounts(t *testing.T) {
	m := machine(0.1)
	for _, h := range Habits {
		for lanes := 1; lanes <= 3; lanes++ {
			for _, p := range []batch.Policy{nil, batch.Fixed(4), batch.Timeout(8, 10*ms), batch.AIMD(), batch.EarlyDrop(8)} {
				trace := Arrivals(h, 5, 500, 1.2*float64(lanes)*m.Best(8), rng(uint64(lanes)))
				simulate(t, Setup{Trace: trace, Cameras: 5, Machine: m, Lanes: lanes, SLO: 60 * ms, Policy: p, Room: 4})
			}
		}
	}
}

// Two lanes do what two lanes can.
func TestLanes(t *testing.T) {
	m := machine(0.05)
	for lanes := 1; lanes <= 3; lanes++ {
		trace := Arrivals(Staggered, 6, 3000, 0.9*float64(lanes)*m.Best(8), rng(1))
		o := simulate(t, Setup{Trace: trace, Cameras: 6, Machine: m, Lanes: lanes, SLO: 3 * m.Nominal(8)})
		if got := share(o.InTime, o.Offered); got < 0.97 {
			t.Errorf("%d lanes: %.3f of the frames in time: %+v", lanes, got, o)
		}
	}
}

// Under overload cameras share by weight, whatever their phases; none starves.
func TestFairness(t *testing.T) {
	m := machine(0.02)
	for _, h := range Habits {
		for _, weights := range [][]float64{{1, 1, 1, 1, 1, 1, 1, 1}, {2, 1, 1, 1, 1, 1, 1, 1}} {
			trace := Arrivals(h, 8, 8000, 2*m.Best(8), rng(5))
			o := simulate(t, Setup{Trace: trace, Cameras: 8, Weights: weights, Machine: m, SLO: 2 * m.Nominal(8)})
			total, off := 0.0, 0.25
			if h == Bursty { // who has sent nothing for a while cannot make up for it later
				off = 0.4
			}
			for _, w := range weights {
				total += w
			}
			for c, n := range o.PerCamera {
				// Half of the frames are served: no camera can have more than twice the mean, and weight 2 has what all others leave.
				want := float64(o.InTime) * weights[c] / total
				if got := float64(n) / want; got < 1-off || got > 1+off {
					t.Errorf("%v, weights %v: camera %d has %.2f of its share: %v", h, weights, c, got, o.PerCamera)
				}
			}
		}
	}
}

// A machine that is suddenly half as fast costs at most 2 % more than had it been known beforehand.
func TestSlowDown(t *testing.T) {
	for _, noise := range []float64{0, 0.05} {
		m := machine(noise)
		trace := Arrivals(Staggered, 4, 4000, 0.4*m.Best(8), rng(2))
		half := trace[len(trace)/2].At
		slow := *m
		slow.Speed = func(at time.Duration) float64 {
			if at < half {
				return 1
			}
			return 2
		}
		slo := 3 * m.Nominal(8)
		o := simulate(t, Setup{Trace: trace, Cameras: 4, Machine: &slow, SLO: slo})
		always := *m
		always.A, always.C = 2*m.A, 2*m.C
		known := Optimum(trace[:len(trace)/2], m, slo) + Optimum(trace[len(trace)/2:], &always, slo)
		if got := share(o.InTime, known); got < 0.98 {
			t.Errorf("noise %g: %.3f of the frames that could be had: %+v of %d", noise, got, o, known)
		}
	}
}

// A lone camera's frames are run also while the machine is too slow for them, since nobody else wants it: its recovery is
// noticed at once.
func TestSlowSpell(t *testing.T) {
	m := &Machine{A: 5 * ms, C: ms, Sizes: []int{1}, Noise: 0.1}
	m.Speed = func(at time.Duration) float64 {
		if at >= time.Second && at < 2*time.Second {
			return 3
		}
		return 1
	}
	trace := Arrivals(Jittered, 1, 90, 30, rng(2))
	o := simulate(t, Setup{Trace: trace, Cameras: 1, Machine: m, SLO: 10 * ms})
	if o.InTime < 90-30-3-3 || o.Dropped[batch.Late] > 3 { // three runs are believed
		t.Errorf("%+v", o)
	}
}

// After a burst of twice the rate the queue is back within two SLOs: frames that come later are in time as before.
func TestBurstIsOver(t *testing.T) {
	m := machine(0)
	slo := 3 * m.Nominal(8)
	rate := 0.7 * m.Best(8)
	var trace []Arrival
	at, burst := time.Duration(0), time.Duration(0)
	for i := range 2000 {
		gap := time.Duration(1e9 / rate)
		if i >= 1000 && i < 1200 {
			gap /= 2
			burst = at
		}
		trace = append(trace, Arrival{at, i % 4})
		at += gap
	}
	until := 0
	for until < len(trace) && trace[until].At < burst+2*slo {
		until++
	}
	whole := simulate(t, Setup{Trace: trace, Cameras: 4, Machine: m, SLO: slo})
	before := simulate(t, Setup{Trace: trace[:until], Cameras: 4, Machine: m, SLO: slo})
	if after := whole.InTime - before.InTime; after < len(trace)-until-1 {
		t.Errorf("of %d frames after the burst %d are in time", len(trace)-until, after)
	}
}

// A first run that takes five times as long is an accident, not a slow machine.
func TestColdStart(t *testing.T) {
	m := machine(0)
	m.Cold = 5
	trace := Arrivals(Staggered, 4, 2000, 0.8*m.Best(8), rng(2))
	o := simulate(t, Setup{Trace: trace, Cameras: 4, Machine: m, SLO: 2 * m.Nominal(8)})
	if got := share(o.InTime, o.Offered); got < 0.9 { // 100 ms of cold runs in the first 250, and 16 frames for each step back
		t.Errorf("%.3f of the frames in time: %+v", got, o)
	}
}

// A heavy model that never rests and a light one with an SLO.
func TestSharedLane(t *testing.T) {
	heavy := &Machine{A: 10 * ms, C: 10 * ms, Sizes: []int{1, 2, 4, 8}, Noise: 0.03}
	light := &Machine{A: 3 * ms, C: ms, Sizes: []int{1, 2, 4}, Noise: 0.03}
	tenants := []Tenant{
		{Share: batch.Share{Name: "heavy", Profile: heavy.Profile(), MaxHold: 45 * ms}, Machine: heavy},
		{
			Share:   batch.Share{Name: "light", Profile: light.Profile(), SLO: 66 * ms},
			Machine: light, Trace: Arrivals(Jittered, 1, 1000, 30, rng(1)),
		},
	}
	r, err := SimulateShared(tenants, 30*time.Second, 1)
	if err != nil {
		t.Fatal(err)
	}
	rest := 30*time.Second - r[1].Held
	t.Logf("light: %d of %d in time, holds %v; heavy: %v of %v, longest %v", r[1].InTime, r[1].Offered, r[1].Held, r[0].Held, rest, r[0].Longest)
	if misses := 1 - share(r[1].InTime, r[1].Offered-1); misses > 0.01 {
		t.Errorf("the light model misses %.3f", misses)
	}
	if r[0].Longest > 45*ms {
		t.Errorf("the heavy model holds the lane for %v", r[0].Longest)
	}
	if got := float64(r[0].Held) / float64(rest); got < 0.8 {
		t.Errorf("the heavy model gets %.2f of the rest", got)
	}
	tenants[1].SLO = 20 * ms
	var hold *batch.HoldError
	if _, err := SimulateShared(tenants, time.Second, 1); !errors.As(err, &hold) || hold.Hold <= hold.Slack {
		t.Errorf("a light model that cannot wait for the heavy one: %v", err)
	}
}

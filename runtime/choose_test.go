package runtime

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSettingsFor(t *testing.T) {
	for _, c := range []struct {
		name                 string
		cpus, lanes, threads int
		choice               bool
		want                 []Setting
	}{
		{"no choice", 4, 0, 0, false, []Setting{{1, 4}}},
		{"no choice, threads by hand", 4, 0, 2, false, []Setting{{1, 2}}},
		{"no choice, lanes by hand", 4, 2, 0, false, []Setting{{2, 2}}},
		{"by hand", 4, 3, 2, true, []Setting{{3, 2}}},
		{"more lanes than CPUs", 2, 3, 0, true, []Setting{{3, 1}}},
		{"lanes by hand", 4, 2, 0, true, []Setting{{2, 2}}},
		{"threads by hand", 4, 0, 2, true, []Setting{{1, 2}, {2, 2}}},
		{"all threads by hand", 4, 0, 4, true, []Setting{{1, 4}}},
		{"one CPU", 1, 0, 0, true, []Setting{{1, 1}}},
		{"two", 2, 0, 0, true, []Setting{{1, 2}, {2, 1}}},
		{"six", 6, 0, 0, true, []Setting{{1, 6}, {2, 3}, {3, 2}, {6, 1}}},
		{"seven", 7, 0, 0, true, []Setting{{1, 7}, {7, 1}}},
		{"twelve", 12, 0, 0, true, []Setting{{1, 12}, {2, 6}, {3, 4}, {6, 2}, {12, 1}}},
		{"sixty-four", 64, 0, 0, true, []Setting{{1, 64}, {2, 32}, {4, 16}, {8, 8}, {16, 4}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := settingsFor(c.cpus, c.lanes, c.threads, c.choice); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestPool(t *testing.T) {
	for s, want := range map[Setting]int{{1, 4}: 4, {4, 1}: 1, {2, 2}: 3} {
		if got := s.pool(); got != want {
			t.Errorf("%v: %d threads, want %d", s, got, want)
		}
	}
}

// rungs makes a ladder of profiles from batch, milliseconds of a run, and pictures a second.
func rungs(of ...[3]int) (ladder []Profile) {
	for _, r := range of {
		ms := time.Duration(r[1]) * time.Millisecond
		run := Spread{ms, ms, ms}
		ladder = append(ladder, Profile{Batch: r[0], Alone: run, Latency: run, Busy: run, Turn: run, FPS: float64(r[2])})
	}
	return ladder
}

func TestChoose(t *testing.T) {
	one := func(s Setting, of ...[3]int) trial { return trial{Setting: s, models: [][]Profile{rungs(of...)}} }
	wide := one(Setting{1, 2}, [3]int{1, 9, 100}, [3]int{2, 18, 110}, [3]int{4, 36, 112})
	narrow := one(Setting{2, 1}, [3]int{1, 15, 130}, [3]int{2, 30, 131}, [3]int{4, 60, 150})
	short := trial{Setting: Setting{2, 1}, short: errors.New("plan: 9 MiB needed")}
	for _, c := range []struct {
		name   string
		slo    time.Duration
		trials []trial
		best   int
		batch  int
		why    string
	}{
		{"room for everything", 500 * time.Millisecond, []trial{wide, narrow}, 1, 4, "2 lanes of 1 thread: 150 fps against 110 with 1 lane of 2 threads, p99 120 ms within the SLO of 500 ms"},
		{"room for one of the more lanes", 50 * time.Millisecond, []trial{wide, narrow}, 1, 1, "2 lanes of 1 thread: 130 fps against 110 with 1 lane of 2 threads, p99 30 ms within the SLO of 50 ms"},
		{"room for the fast one only", 25 * time.Millisecond, []trial{wide, narrow}, 0, 1, "1 lane of 2 threads: 100 fps against 130 with 2 lanes of 1 thread (p99 30 ms, too long), p99 18 ms within the SLO of 25 ms"},
		{"room for none", 10 * time.Millisecond, []trial{narrow, wide}, 1, 1, "1 lane of 2 threads: 100 fps against 130 with 2 lanes of 1 thread, p99 18 ms over the SLO of 10 ms"},
		{"room for none, and hardly slower with fewer threads", 10 * time.Millisecond, []trial{one(Setting{1, 2}, [3]int{1, 14, 70}), one(Setting{2, 1}, [3]int{1, 15, 130})}, 1, 1, "2 lanes of 1 thread: 130 fps against 70 with 1 lane of 2 threads, p99 30 ms over"},
		{"hardly more with more lanes", time.Second, []trial{one(Setting{1, 1}, [3]int{1, 9, 100}), one(Setting{2, 1}, [3]int{1, 15, 102})}, 0, 1, "1 lane of 1 thread: 100 fps against 102 with 2 lanes of 1 thread, p99"},
		{"hardly less with fewer threads", time.Second, []trial{one(Setting{1, 2}, [3]int{1, 9, 100}), one(Setting{2, 1}, [3]int{1, 15, 95})}, 1, 1, "2 lanes of 1 thread: 95 fps against 100 with 1 lane of 2 threads (more, but threads that wait for each other lose that beside other work), p99 30 ms within"},
		{"less with fewer threads", time.Second, []trial{one(Setting{1, 2}, [3]int{1, 9, 100}), one(Setting{2, 1}, [3]int{1, 15, 90})}, 0, 1, "1 lane of 2 threads: 100 fps against 90 with 2 lanes of 1 thread, p99"},
		{"no memory for more lanes", time.Second, []trial{wide, short}, 0, 2, "1 lane of 2 threads: 110 fps, p99 36 ms within the SLO of 1000 ms; 2 lanes of 1 thread: plan: 9 MiB needed"},
		{"by hand", time.Second, []trial{narrow}, 0, 4, "2 lanes of 1 thread: 150 fps, p99 120 ms within"},
		{"two models wait for each other", 60 * time.Millisecond, []trial{
			{Setting: Setting{1, 2}, models: [][]Profile{rungs([3]int{1, 10, 100}, [3]int{2, 20, 120}), rungs([3]int{1, 30, 50})}},
		}, 0, 1, "1 lane of 2 threads: 33 fps, p99 70 ms over the SLO of 60 ms"},
		{"nothing", time.Second, []trial{short}, -1, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			best, p, why := choose(c.slo, c.trials)
			if best != c.best || p.batch != c.batch || !strings.HasPrefix(why, c.why) || c.why == "" && why != "" {
				t.Errorf("trial %d at batch %d: %s", best, p.batch, why)
			}
		})
	}
}

func TestLadderFor(t *testing.T) {
	for _, c := range []struct {
		name string
		slo  time.Duration
		of   []Profile
		want []int
	}{
		{"all", time.Second, rungs([3]int{1, 10, 100}, [3]int{2, 16, 125}, [3]int{4, 28, 143}), []int{1, 2, 4}},
		{"no time for the largest", 20 * time.Millisecond, rungs([3]int{1, 10, 100}, [3]int{2, 16, 125}, [3]int{4, 28, 143}), []int{1, 2}},
		{"no time for any", time.Millisecond, rungs([3]int{1, 10, 100}, [3]int{2, 16, 125}), []int{1}},
		{"the largest brings nothing", time.Second, rungs([3]int{1, 10, 100}, [3]int{2, 16, 125}, [3]int{4, 32, 126}), []int{1, 2}},
		{"none brings anything", time.Second, rungs([3]int{1, 10, 100}, [3]int{2, 20, 101}, [3]int{4, 40, 99}), []int{1}},
		{"one in between brings nothing", time.Second, rungs([3]int{1, 10, 100}, [3]int{2, 20, 90}, [3]int{4, 28, 143}), []int{1, 2, 4}},
		{"a fixed batch", time.Millisecond, rungs([3]int{3, 10, 300}), []int{3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ladderFor(c.slo, c.of); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestExhausted(t *testing.T) {
	for _, c := range []struct {
		name string
		slo  time.Duration
		of   []Profile
		want bool
	}{
		{"one", time.Second, rungs([3]int{1, 10, 100}), false},
		{"one that is too long", 5 * time.Millisecond, rungs([3]int{1, 10, 100}), true},
		{"one step for nothing", time.Second, rungs([3]int{1, 10, 100}, [3]int{2, 20, 100}), false},
		{"two steps for nothing", time.Second, rungs([3]int{1, 10, 100}, [3]int{2, 20, 100}, [3]int{4, 40, 102}), true},
		{"the second brings something", time.Second, rungs([3]int{1, 10, 100}, [3]int{2, 20, 100}, [3]int{4, 36, 110}), false},
		{"the first has brought something", time.Second, rungs([3]int{1, 10, 100}, [3]int{2, 18, 110}, [3]int{4, 40, 100}), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := exhausted(c.slo, c.of); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func times(ms ...int) (list []time.Duration) {
	for _, n := range ms {
		list = append(list, time.Duration(n)*time.Millisecond)
	}
	return list
}

func TestSpread(t *testing.T) {
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = 100 - i
	}
	for _, c := range []struct {
		name string
		of   []int
		want []int
	}{{"one", []int{7}, []int{7, 7, 7}}, {"few", []int{3, 1, 2}, []int{2, 3, 3}}, {"a hundred", hundred, []int{50, 95, 99}}} {
		t.Run(c.name, func(t *testing.T) {
			want := times(c.want...)
			if got := newSpread(times(c.of...)); got != (Spread{want[0], want[1], want[2]}) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestSteadyAndTrusted(t *testing.T) {
	saved := Spread{P50: 10 * time.Millisecond}
	for _, c := range []struct {
		name            string
		of              []int
		steady, trusted bool
	}{
		{"nothing", nil, false, false},
		{"one", []int{10}, false, true},
		{"coming down", []int{40, 20, 10}, false, true},
		{"down", []int{40, 10, 11}, true, true},
		{"a hiccup at the end", []int{10, 10, 30}, false, true},
		{"slowed down", []int{14, 14}, true, false},
		{"slow once", []int{20, 12}, false, true},
		{"sped up", []int{5, 5}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			runs := times(c.of...)
			if got := steady(runs); got != c.steady {
				t.Errorf("steady: %v", got)
			}
			if got := saved.trusts(runs); got != c.trusted {
				t.Errorf("trusted: %v", got)
			}
		})
	}
}

// A saved choice that could not have been made is none.
func TestWholeChoice(t *testing.T) {
	list := []*Model{{key: "a"}}
	good := func() Choice {
		return Choice{Setting: Setting{2, 1}, Models: []ModelChoice{{Model: "a", Ladder: []int{1, 2}, Profiles: rungs([3]int{1, 9, 100}, [3]int{2, 18, 110})}}}
	}
	for name, change := range map[string]func(*Choice){
		"":                 func(*Choice) {},
		"no lane":          func(c *Choice) { c.Lanes = 0 },
		"many lanes":       func(c *Choice) { c.Lanes = 1 << 40 },
		"no thread":        func(c *Choice) { c.Threads = -1 },
		"many threads":     func(c *Choice) { c.Threads = 1 << 40 },
		"no model":         func(c *Choice) { c.Models = nil },
		"another model":    func(c *Choice) { c.Models[0].Model = "b" },
		"no ladder":        func(c *Choice) { c.Models[0].Ladder, c.Models[0].Profiles = nil, nil },
		"a falling one":    func(c *Choice) { slices.Reverse(c.Models[0].Ladder); slices.Reverse(c.Models[0].Profiles) },
		"batch 0":          func(c *Choice) { c.Models[0].Ladder[0], c.Models[0].Profiles[0].Batch = 0, 0 },
		"a huge batch":     func(c *Choice) { c.Models[0].Ladder[1], c.Models[0].Profiles[1].Batch = 1<<40, 1<<40 },
		"no profile":       func(c *Choice) { c.Models[0].Profiles = c.Models[0].Profiles[:1] },
		"another batch":    func(c *Choice) { c.Models[0].Profiles[1].Batch = 3 },
		"turns of no time": func(c *Choice) { c.Models[0].Profiles[0].Turn = Spread{} },
		"runs of no time":  func(c *Choice) { c.Models[0].Profiles[0].Alone = Spread{} },
	} {
		c := good()
		change(&c)
		if got := c.whole(list); got != (name == "") {
			t.Errorf("%q: whole %v", name, got)
		}
	}
}

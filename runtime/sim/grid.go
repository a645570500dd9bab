package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/eyas-edge/eyas/runtime/batch"
)

// Limit is an SLO in terms of the machine.
type Limit uint8

// The limits.
const (
	Single3 Limit = iota // 3 L(1)
	Eight12              // 1.2 L(8)
	Eight2               // 2 L(8)
	Eight3               // 3 L(8)
)

// Limits lists all.
var Limits = []Limit{Single3, Eight12, Eight2, Eight3}

func (l Limit) String() string { return [...]string{"3 L(1)", "1.2 L(8)", "2 L(8)", "3 L(8)"}[l] }

// Of returns the SLO for a machine.
func (l Limit) Of(m *Machine) time.Duration {
	if l == Single3 {
		return 3 * m.Nominal(1)
	}
	return scale(m.Nominal(8), [...]float64{0, 1.2, 2, 3}[l])
}

// Cell is one point of the grid.
type Cell struct {
	Cameras int
	Habit   Habit
	Ratio   float64 // a/c of the run time a + c*batch
	Load    float64 // offered rate over the highest of one lane with batches up to 8
	Limit   Limit
	Noise   float64
	Salt    uint64 // other traces of the same kind. Those of 0 are what figures are told of: nothing is tuned on them.
}

func (c Cell) String() string {
	return fmt.Sprintf("%d cameras %s, a/c %g, load %g, slo %s, noise %g %%", c.Cameras, c.Habit, c.Ratio, c.Load, c.Limit, 100*c.Noise)
}

// Machine returns the machine of the cell: the ladder goes to 16 for 16 cameras, else to 8.
func (c Cell) Machine() *Machine {
	m := &Machine{A: time.Duration(c.Ratio * float64(time.Millisecond)), C: time.Millisecond, Sizes: []int{1, 2, 4, 8}, Noise: c.Noise}
	if c.Cameras >= 16 {
		m.Sizes = append(m.Sizes, 16)
	}
	return m
}

// Baselines are the policies that ours is compared with.
var Baselines = []string{"fixed 4", "timeout", "aimd", "early drop"}

// Score is what came out of a cell, in frames in time.
type Score struct {
	Cell
	Optimum, Ours int
	Baseline      [4]int // by Baselines; the timeout is the best of its delays
	Late          int    // of ours, delivered
	Foreseen      int    // what ours does when it is told when frames will come
}

// Ratio returns ours over the optimum.
func (s *Score) Ratio() float64 { return share(s.Ours, s.Optimum) }

func share(n, of int) float64 {
	if of == 0 {
		return 1
	}
	return float64(n) / float64(of)
}

func times(trace []Arrival) []time.Duration {
	list := make([]time.Duration, len(trace))
	for i, a := range trace {
		list[i] = a.At
	}
	return list
}

// delays are the queue delays that the timeout baseline is tried with, as shares of the SLO.
var delays = []float64{0.05, 0.15, 0.3, 0.5}

// Play runs a cell of so many frames; without baselines only ours, and not with foresight.
func (c Cell) Play(frames int, baselines bool) (Score, error) {
	m := c.Machine()
	slo := c.Limit.Of(m)
	rate := c.Load * m.Best(8)
	// The seed leaves out noise: the same trace for all of them.
	seed := uint64(c.Cameras)<<32 | uint64(c.Habit)<<24 | uint64(c.Limit)<<16 | uint64(100*c.Load)<<4 | uint64(c.Ratio)
	seed ^= c.Salt << 40
	trace := Arrivals(c.Habit, c.Cameras, frames, rate, rand.New(rand.NewPCG(seed, 0)))
	score := Score{Cell: c, Optimum: Optimum(trace, m, slo)}
	play := func(p batch.Policy) (Outcome, error) {
		o, err := Simulate(Setup{Trace: trace, Cameras: c.Cameras, Machine: m, SLO: slo, Policy: p, Seed: seed})
		if err != nil {
			err = fmt.Errorf("%v: %w", c, err)
		}
		return o, err
	}
	o, err := play(nil)
	if err != nil {
		return score, err
	}
	score.Ours, score.Late = o.InTime, o.Overdue
	if !baselines {
		return score, nil
	}
	if o, err = play(batch.Foreseen(times(trace), slo)); err != nil {
		return score, err
	}
	score.Foreseen = o.InTime
	set := func(i int, p batch.Policy) {
		o, e := play(p)
		if e != nil {
			err = e
		}
		score.Baseline[i] = max(score.Baseline[i], o.InTime)
	}
	set(0, batch.Fixed(4))
	for _, d := range delays {
		set(1, batch.Timeout(m.Sizes[len(m.Sizes)-1], scale(slo, d)))
	}
	set(2, batch.AIMD())
	set(3, batch.EarlyDrop(8))
	return score, err
}

// Full is the whole grid.
func Full() []Cell {
	return cells([]int{1, 4, 8, 16}, Habits, []float64{0.25, 1, 4, 16}, []float64{0.5, 0.8, 0.95, 1.1, 1.5}, Limits, []float64{0, 0.05, 0.1})
}

func cells(cameras []int, habits []Habit, ratios, loads []float64, limits []Limit, noises []float64) (list []Cell) {
	for _, n := range cameras {
		for _, h := range habits {
			for _, r := range ratios {
				for _, l := range loads {
					for _, s := range limits {
						for _, z := range noises {
							list = append(list, Cell{n, h, r, l, s, z, 0})
						}
					}
				}
			}
		}
	}
	return list
}

// PlayAll runs cells on all processors; the scores come in their order.
func PlayAll(ctx context.Context, list []Cell, frames int, baselines bool) ([]Score, error) {
	scores := make([]Score, len(list))
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	jobs := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range jobs {
				scores[i], errs[i] = list[i].Play(frames, baselines)
			}
		})
	}
	for i := range list {
		if ctx.Err() != nil {
			break
		}
		jobs <- i
	}
	close(jobs)
	wg.Wait()
	for _, err := range append(errs, ctx.Err()) {
		if err != nil {
			return nil, err
		}
	}
	return scores, nil
}

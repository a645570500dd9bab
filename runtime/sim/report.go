package sim

import (
	"cmp"
	"fmt"
	"io"
	"slices"
)

// Class is a part of the grid for which one figure is asked.
type Class struct {
	Name   string
	Wide   bool // SLO of at least 2 L(8)
	Random bool // bursty or Poisson
	Noise  float64
}

// Class returns the class of a cell.
func (c Cell) Class() Class {
	k := Class{Wide: c.Limit >= Eight2, Random: c.Habit.Random(), Noise: c.Noise}
	habit, slo := "periodic, jittered", "tight SLO"
	if k.Random {
		habit = "bursty, Poisson"
	}
	if k.Wide {
		slo = "SLO >= 2 L(8)"
	}
	k.Name = fmt.Sprintf("%s, %s, noise %g %%", slo, habit, 100*k.Noise)
	return k
}

// Targets of a class: the mean and the worst cell of ours over the optimum.
func (c Class) Targets() (mean, worst float64) {
	switch {
	case c.Wide && c.Noise == 0 && !c.Random:
		return 0.98, 0.98
	case c.Wide && c.Noise == 0:
		return 0.95, 0.95
	case c.Wide && !c.Random:
		return 0.98, 0.85
	case c.Wide:
		return 0.97, 0.85
	case c.Noise == 0:
		return 0.97, 0.70
	}
	return 0.94, 0.70
}

// Summary is what came out of a class.
type Summary struct {
	Class
	Cells       int
	Mean, Worst float64    // ours over the optimum
	Below       int        // cells below their target
	Behind      float64    // the most that ours is behind the best of the first three baselines, in shares of the optimum
	Past        int        // cells in which that is more than the target: 0.01, 0.05 with 10 % noise
	Foreseen    float64    // mean of ours with known arrivals, over the optimum
	Baseline    [4]float64 // means, over the optimum
	Overload    float64    // frames in time at loads of 1.1 and more: ours over the mean of the first three baselines
}

// Summarise returns the classes in a fixed order.
func Summarise(scores []Score) []Summary {
	by := map[Class][]Score{}
	var classes []Class
	for _, s := range scores {
		c := s.Class()
		if by[c] == nil {
			classes = append(classes, c)
		}
		by[c] = append(by[c], s)
	}
	slices.SortFunc(classes, func(a, b Class) int {
		return cmp.Or(-cmp.Compare(btoi(a.Wide), btoi(b.Wide)), cmp.Compare(btoi(a.Random), btoi(b.Random)), cmp.Compare(a.Noise, b.Noise))
	})
	var list []Summary
	for _, c := range classes {
		list = append(list, c.summary(by[c]))
	}
	return list
}

func (c Class) summary(scores []Score) Summary {
	m := Summary{Class: c, Cells: len(scores), Worst: 2}
	_, worst := c.Targets()
	past := 0.01
	if c.Noise > 0.05 {
		past = 0.05
	}
	ours, theirs := 0, 0
	for i := range scores {
		s := &scores[i]
		r := s.Ratio()
		m.Mean += r / float64(len(scores))
		m.Worst = min(m.Worst, r)
		if r < worst {
			m.Below++
		}
		m.Foreseen += share(s.Foreseen, s.Optimum) / float64(len(scores))
		for b := range s.Baseline {
			m.Baseline[b] += share(s.Baseline[b], s.Optimum) / float64(len(scores))
		}
		behind := share(max(s.Baseline[0], s.Baseline[1], s.Baseline[2]), s.Optimum) - r
		m.Behind = max(m.Behind, behind)
		if behind > past {
			m.Past++
		}
		if s.Load >= 1.1 {
			ours, theirs = ours+3*s.Ours, theirs+s.Baseline[0]+s.Baseline[1]+s.Baseline[2]
		}
	}
	m.Overload = share(ours, theirs)
	return m
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Report prints the classes, and the worst cells of each.
func Report(w io.Writer, scores []Score, worst int) {
	fmt.Fprintf(w, "%-45s %5s %6s %6s %5s %6s %4s %8s %8s |", "class", "cells", "mean", "worst", "below", "behind", "past", "overload", "foreseen")
	for _, b := range Baselines {
		fmt.Fprintf(w, " %10s", b)
	}
	fmt.Fprintln(w)
	for _, m := range Summarise(scores) {
		fmt.Fprintf(w, "%-45s %5d %6.3f %6.3f %5d %6.3f %4d %8.2f %8.3f |", m.Name, m.Cells, m.Mean, m.Worst, m.Below, m.Behind, m.Past, m.Overload, m.Foreseen)
		for _, b := range m.Baseline {
			fmt.Fprintf(w, " %10.3f", b)
		}
		fmt.Fprintln(w)
	}
	if worst == 0 {
		return
	}
	for _, m := range Summarise(scores) {
		var of []Score
		for _, s := range scores {
			if s.Class() == m.Class {
				of = append(of, s)
			}
		}
		slices.SortStableFunc(of, func(a, b Score) int { return cmp.Compare(a.Ratio(), b.Ratio()) })
		fmt.Fprintf(w, "\n%s:\n", m.Name)
		for _, s := range of[:min(worst, len(of))] {
			fmt.Fprintf(w, "  %.3f  %v: %d of %d, late %d; foreseen %d, baselines %v\n", s.Ratio(), s.Cell, s.Ours, s.Optimum, s.Late, s.Foreseen, s.Baseline)
		}
	}
}

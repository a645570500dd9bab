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

// Of returns the class of a cell.
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

// Summary is what came out of a class.
type Summary struct {
	Class
	Cells       int
	Mean, Worst float64 // ours over the optimum
	WorstCell   Cell
	Behind      float64 // the most that ours is behind the best of the first three baselines, in shares of the optimum
	BehindCell  Cell
	Baseline    [4]float64 // means, over the optimum
	Overload    float64    // the least of ours over the mean of the first three baselines, at loads of 1.1 and more
}

// Summarise returns the classes in a fixed order.
func Summarise(scores []Score) []Summary {
	var list []Summary
	for i := range scores {
		s := &scores[i]
		class := s.Class()
		at := slices.IndexFunc(list, func(m Summary) bool { return m.Class == class })
		if at < 0 {
			at = len(list)
			list = append(list, Summary{Class: class, Worst: 2})
		}
		m := &list[at]
		m.Cells++
		r := s.Ratio()
		m.Mean += r
		if r < m.Worst {
			m.Worst, m.WorstCell = r, s.Cell
		}
		for b := range s.Baseline {
			m.Baseline[b] += share(s.Baseline[b], s.Optimum)
		}
		if behind := share(max(s.Baseline[0], s.Baseline[1], s.Baseline[2]), s.Optimum) - r; behind > m.Behind {
			m.Behind, m.BehindCell = behind, s.Cell
		}
	}
	for i := range list {
		n := float64(list[i].Cells)
		list[i].Mean /= n
		for b := range list[i].Baseline {
			list[i].Baseline[b] /= n
		}
	}
	slices.SortFunc(list, func(a, b Summary) int {
		return cmp.Or(-cmp.Compare(btoi(a.Wide), btoi(b.Wide)), cmp.Compare(btoi(a.Random), btoi(b.Random)), cmp.Compare(a.Noise, b.Noise))
	})
	return list
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Report prints the classes, and the worst cells of each.
func Report(w io.Writer, scores []Score, worst int) {
	fmt.Fprintf(w, "%-45s %5s %6s %6s %7s |", "class", "cells", "mean", "worst", "behind")
	for _, b := range Baselines {
		fmt.Fprintf(w, " %10s", b)
	}
	fmt.Fprintln(w)
	for _, m := range Summarise(scores) {
		fmt.Fprintf(w, "%-45s %5d %6.3f %6.3f %7.3f |", m.Name, m.Cells, m.Mean, m.Worst, m.Behind)
		for _, b := range m.Baseline {
			fmt.Fprintf(w, " %10.3f", b)
		}
		fmt.Fprintln(w)
	}
	for _, m := range Summarise(scores) {
		var of []Score
		for _, s := range scores {
			if s.Class() == m.Class {
				of = append(of, s)
			}
		}
		slices.SortStableFunc(of, func(a, b Score) int { return cmp.Compare(a.Ratio(), b.Ratio()) })
		if worst > 0 {
			fmt.Fprintf(w, "\n%s:\n", m.Name)
		}
		for _, s := range of[:min(worst, len(of))] {
			fmt.Fprintf(w, "  %.3f  %v: %d of %d, baselines %v, late %d\n", s.Ratio(), s.Cell, s.Ours, s.Optimum, s.Baseline, s.Late)
		}
	}
}

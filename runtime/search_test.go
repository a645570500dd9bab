package runtime

import (
	"slices"
	"testing"
	"time"
)

// Of several rounds the one in the middle counts, in whatever order they come.
func TestTrialRounds(t *testing.T) {
	round := func(fps float64) Profile {
		run := Spread{time.Duration(fps), time.Duration(fps), time.Duration(fps)}
		return Profile{Batch: 2, Turn: run, FPS: fps}
	}
	for _, c := range []struct {
		rounds []float64
		want   float64
	}{
		{[]float64{90}, 90},
		{[]float64{90, 50}, 90}, // until the third decides it is the better one: noise only slows
		{[]float64{50, 90, 87}, 87},
		{[]float64{90, 50, 87}, 87},
		{[]float64{87, 87, 50}, 87},
	} {
		var tr trial
		tr.add(0, Profile{Batch: 1, FPS: 60})
		for _, fps := range c.rounds {
			tr.add(0, round(fps))
		}
		if got := tr.models[0][1]; got != round(c.want) || len(tr.models[0]) != 2 || tr.models[0][0].FPS != 60 {
			t.Errorf("rounds of %v: %+v counts, of %d sizes", c.rounds, got, len(tr.models[0]))
		}
	}
}

func TestRivals(t *testing.T) {
	of := func(fps ...int) (tr trial) {
		for i, v := range fps {
			tr.add(0, Profile{Batch: 1 << i, FPS: float64(v)})
		}
		return tr
	}
	short := trial{short: ErrBudget}
	for _, c := range []struct {
		name     string
		trials   []trial
		want     []int // trials
		doubtful []int // batch sizes of the first trial
	}{
		{"one size of one setting", []trial{of(50)}, nil, []int{1}},
		{"two sizes", []trial{of(50, 60)}, []int{0}, []int{1, 2}},
		{"close settings", []trial{of(50), of(60)}, []int{0, 1}, []int{1}},
		{"a setting that is far behind, and nothing else", []trial{of(30), of(60)}, nil, []int{1}},
		{"a setting that is far behind", []trial{of(50, 60), of(30)}, []int{0}, []int{1, 2}},
		{"a size that is far behind", []trial{of(87, 52, 75), of(70)}, []int{0, 1}, []int{1, 4}},
		{"the smallest is far behind", []trial{of(20, 52, 75)}, []int{0}, []int{1, 4}},
		{"no memory", []trial{short, of(60, 61)}, []int{1}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got, sizes []int
			for _, tr := range rivals(c.trials) {
				got = append(got, slices.IndexFunc(c.trials, func(o trial) bool { return slices.Equal(o.batches(), tr.batches()) && o.most() == tr.most() }))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("trials %v, want %v", got, c.want)
			}
			if first := &c.trials[0]; first.short == nil {
				sizes = first.doubtful()[0]
			}
			if !slices.Equal(sizes, c.doubtful) {
				t.Errorf("sizes %v, want %v", sizes, c.doubtful)
			}
		})
	}
}

package batch

import "time"

// Policy chooses what a lane does. Frames that cannot be done in time by the smallest run are given up
// before a policy is asked, and it is asked only when frames wait.
type Policy interface {
	Choose(v *View) Choice
	// Done tells that a run of a size has ended, and whether a frame of it was late.
	Done(size int, late bool)
}

// Choice is what a policy wants: give up the first Drop frames, then run the next Count as a batch of the Index-th size, or with
// a Count of 0 be asked again at Until, or at the next arrival.
type Choice struct {
	Drop         int
	Index, Count int
	Until        time.Duration
	// Fair says that not all waiting frames will be done in time: instead of the next Count frames those of the cameras that
	// have had least are run, as long as they can be done in time.
	Fair bool
}

// shown is the number of waiting frames that a policy sees.
const shown = 64

// View is what a policy sees. All times are on the caller's clock.
type View struct {
	Now     time.Duration
	Start   time.Duration   // when the lane may start: now, or when its present run should end
	Waiting int             // frames
	Due     []time.Duration // deadlines of the first 64 of them, ascending but for frames behind an older one of their camera; Never is none
	Oldest  time.Duration   // when the first of them was captured
	Sizes   []int           // of the ladder, as far as it may be used now
	Time    []time.Duration // expected run time per size, with the margin
	Lanes   int
	Rate    float64 // frames that arrive per second; 0 while unknown

	core *core
}

// Fit returns the index of the smallest size that holds n frames, else of the largest.
func (v *View) Fit(n int) int {
	i := 0
	for i < len(v.Sizes)-1 && v.Sizes[i] < n {
		i++
	}
	return i
}

// Floor returns the index of the largest size that n frames fill, else 0.
func (v *View) Floor(n int) int {
	i := len(v.Sizes) - 1
	for i > 0 && v.Sizes[i] > n {
		i--
	}
	return i
}

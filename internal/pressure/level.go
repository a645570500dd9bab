// Package pressure watches whether memory runs short while the program runs: how long tasks wait for it (the kernel's pressure
// stall information), what the machine and the control groups have left, and the events that control groups count.
//
// What cannot be read is not known and never an error. The control groups are those that the process was in when the
// watch began.
package pressure

import (
	"fmt"
	"time"
)

// Level says how short memory is.
type Level int

// The levels.
const (
	None Level = iota
	Some       // the kernel begins to take pages back that are in use
	High       // work comes to a halt soon, or tasks are killed
)

func (l Level) String() string {
	switch l {
	case None:
		return "none"
	case Some:
		return "some"
	case High:
		return "high"
	}
	return fmt.Sprintf("level %d", int(l))
}

// Sample is what can be read at one moment. Counters only grow.
type Sample struct {
	At       time.Duration // on any clock
	Stalled  time.Duration // counter: at least one task waited for memory
	Left, Of uint64        // bytes, of the machine or the control group that has the least share left; Of 0 is unknown
	Limited  uint64        // counter: how often the control group was at a limit
	Killed   uint64        // counter: how often memory ran out in the control group
}

// share returns what is left of what there is, 1 where that is unknown.
func (s *Sample) share() float64 {
	if s.Of == 0 {
		return 1
	}
	return float64(s.Left) / float64(s.Of)
}

const (
	someStall, highStall = 0.05, 0.20 // share of the time

	leastShare = 1.0 / 16  // a smaller share left is some pressure ...
	leastLeft  = 256 << 20 // ... but not with so many bytes left, however large the machine

	shortHold = 10 * time.Second // so long a level has to be over before it falls ...
	longHold  = 5 * time.Minute  // ... or longer, where it comes back whenever it falls

	ease = 2.0 / 3 // part of what makes a level rise that keeps it
)

// Meter makes a level out of samples. It rises at once and falls a step at a time, after a while in which the
// samples were clearly below it. The zero value is ready.
type Meter struct {
	level Level
	why   string
	last  Sample
	begun bool
	first float64       // share left at the first sample
	calm  time.Duration // since when the level has not been confirmed
	fell  time.Duration // when it fell last
	hold  time.Duration
}

// Observe takes the next sample and returns the level, and what made it rise last.
func (m *Meter) Observe(s Sample) (Level, string) {
	if !m.begun {
		m.begun, m.hold, m.calm = true, shortHold, s.At
		m.last = s // the counters' beginning
		m.first = s.share()
	}
	up, why := m.judge(s, 1)
	down, _ := m.judge(s, ease)
	m.last = s
	switch {
	case up > m.level:
		if m.level == None {
			m.lengthen(s.At)
		}
		m.level, m.why, m.calm = up, why, s.At
	case down >= m.level:
		m.calm = s.At
	case s.At-m.calm >= m.hold:
		m.level--
		m.calm, m.fell = s.At, s.At
	}
	return m.level, m.why
}

// lengthen makes a level stay longer that comes back soon after it fell: most likely because it fell.
func (m *Meter) lengthen(now time.Duration) {
	if m.fell > 0 && now-m.fell < 2*m.hold {
		m.hold = min(2*m.hold, longHold)
	} else {
		m.hold = shortHold
	}
}

// judge returns the level that a sample alone stands for, where that part of what makes a level rise is enough.
func (m *Meter) judge(s Sample, part float64) (Level, string) {
	level, why := None, ""
	raise := func(to Level, format string, args ...any) {
		if to > level {
			level, why = to, fmt.Sprintf(format, args...)
		}
	}
	// Once everything is planned and taken little may be left for good: then only what takes of that counts.
	some := uint64(min(float64(s.Of)*min(leastShare, m.first/2), leastLeft))
	left := uint64(float64(s.Left) * part)
	if s.Of > 0 && left < some {
		raise(levelOf(left < some/2), "%s of %s are left", mebibytes(s.Left), mebibytes(s.Of))
	}
	if took := s.At - m.last.At; took > 0 && s.Stalled > m.last.Stalled {
		stall := float64(s.Stalled-m.last.Stalled) / float64(took)
		if stall >= someStall*part {
			raise(levelOf(stall >= highStall*part), "tasks waited for memory %.0f %% of the time", 100*min(stall, 1))
		}
	}
	// A group that is full of files is at its limit all the time and lacks nothing.
	if s.Limited > m.last.Limited && left < 2*some {
		raise(Some, "the control group was at a limit, %s of %s are left", mebibytes(s.Left), mebibytes(s.Of))
	}
	if s.Killed > m.last.Killed {
		raise(High, "the control group ran out of memory")
	}
	return level, why
}

func levelOf(high bool) Level {
	if high {
		return High
	}
	return Some
}

func mebibytes(n uint64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

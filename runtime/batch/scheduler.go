package batch

import (
	"errors"
	"fmt"
	"time"
)

// Share is how a model takes part in the turns of a lane.
type Share struct {
	Name     string
	Profile  Profile
	SLO      time.Duration // 0: none
	MaxHold  time.Duration // the longest that one of its runs may take; 0: as long as the others can wait
	Priority int           // of two models that both would be late the higher goes first; equal ones by turn
}

// Scheduler says which of several models that share a lane runs next. Runs are not interrupted, so that a model holds the lane for
// one batch. Turns are by time: the model that has used the lane least goes first, as long as no other would be late for
// that. A model that was idle does not save up time.
type Scheduler struct {
	models []share
	least  time.Duration // what the model had used that ran last
}

type share struct {
	Share
	hold  time.Duration // the longest run that it may do
	used  time.Duration // of the lane
	limit int           // the largest batch within hold
}

// NewScheduler checks that the models can share a lane: where even the shortest run of one is longer than another can wait, or
// than its own MaxHold, an error says so with both numbers (*HoldError); an SLO under the fastest run is an *SLOError. The SLO of a model that has
// the lane to itself is not looked at: profiles are of lanes that never rest, and it may be in time where they do.
func NewScheduler(models ...Share) (*Scheduler, error) {
	if len(models) == 0 {
		return nil, errors.New("scheduler: no models")
	}
	s := &Scheduler{}
	for _, m := range models {
		if err := m.Profile.Check(); err != nil {
			return nil, fmt.Errorf("model %s: %w", m.Name, err)
		}
		if m.SLO > 0 && len(models) > 1 {
			if err := m.Profile.CheckSLO(m.SLO); err != nil {
				return nil, fmt.Errorf("model %s: %w", m.Name, err)
			}
		}
		if shortest := m.Profile[0].P99; m.MaxHold > 0 && shortest > m.MaxHold {
			return nil, fmt.Errorf("model %s: its shortest run takes %v (p99), more than its max_hold of %v: raise that", m.Name, shortest, m.MaxHold)
		}
		s.models = append(s.models, share{Share: m})
	}
	for i := range s.models {
		if err := s.bound(i); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// bound finds the longest run that the i-th model may do.
func (s *Scheduler) bound(i int) error {
	m := &s.models[i]
	m.hold = Never
	if m.MaxHold > 0 {
		m.hold = m.MaxHold
	}
	for j := range s.models {
		o := &s.models[j]
		if i == j || o.SLO == 0 {
			continue
		}
		slack := o.SLO - o.Profile[0].P99
		if shortest := m.Profile[0].P99; shortest > slack {
			return &HoldError{Heavy: m.Name, Light: o.Name, Hold: shortest, Slack: slack}
		}
		m.hold = min(m.hold, slack)
	}
	for _, t := range m.Profile {
		if t.P99 <= m.hold || m.limit == 0 {
			m.limit = t.Batch
		}
	}
	return nil
}

// Limit is the largest batch that a model may run, for its Batcher's Limit.
func (s *Scheduler) Limit(model int) int { return s.models[model].limit }

// Request is what a model would do with the lane now, as its Batcher says.
type Request struct {
	Ready bool          // frames wait. Who was told to wait by Decide sets it to false until the time is over.
	Took  time.Duration // how long their run should take
	Due   time.Duration // the earliest of their deadlines; Never: none
}

// Next returns the model whose batch goes next at now, or -1: the lane stays free, because none is ready or because the run of
// one that is would make another late that still waits for more frames. There is one request for each model.
func (s *Scheduler) Next(now time.Duration, requests []Request) int {
	next := -1
	for i := range s.models {
		if requests[i].Ready && (next < 0 || s.before(i, next, now, requests)) {
			next = i
		}
	}
	if next < 0 {
		return -1
	}
	for i := range s.models {
		if !requests[i].Ready && presses(now, requests[i], requests[next]) {
			return -1
		}
	}
	m := &s.models[next]
	// Who was idle comes back at the end of the line, not with all the time that it has not used.
	m.used = max(m.used, s.least)
	s.least = m.used
	return next
}

// before says whether model a goes before b.
func (s *Scheduler) before(a, b int, now time.Duration, r []Request) bool {
	x, y := &s.models[a], &s.models[b]
	first, second := presses(now, r[a], r[b]), presses(now, r[b], r[a])
	switch {
	case first != second:
		return first
	case first && x.Priority != y.Priority:
		return x.Priority > y.Priority
	case first:
		return r[a].Due < r[b].Due
	}
	return max(x.used, s.least) < max(y.used, s.least)
}

// presses says that a would be in time now, and late after b.
func presses(now time.Duration, a, b Request) bool {
	return a.Due != Never && now+a.Took <= a.Due && now+b.Took+a.Took > a.Due
}

// Ran tells how long the model held the lane.
func (s *Scheduler) Ran(model int, took time.Duration) { s.models[model].used += max(took, 0) }

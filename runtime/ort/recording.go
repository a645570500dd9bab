package ort

import (
	"fmt"
	"math"
	"slices"

	"github.com/eyas-edge/eyas/memplan"
)

// Event is a request for memory by a run, or the free of one. It is the unit of time
// of a schedule.
type Event struct {
	Request int   `json:"r"`           // which request of the run, from 0
	Free    bool  `json:"f,omitempty"` // it is freed, else made
	Bytes   int64 `json:"b"`           // asked for
}

// Recording is the events of one run in their order. A buffer that is never freed in
// it outlived the run, or was freed by another thread.
type Recording []Event

// Limits of a recording, against files that were tampered with. Real models make
// 35-710 requests.
const (
	maxEvents = 1 << 16
	maxBytes  = 1 << 40
)

func (r Recording) check() error {
	if len(r) > maxEvents {
		return fmt.Errorf("recording has %d events, at most %d can be planned", len(r), maxEvents)
	}
	next := 0
	live := map[int]int64{}
	for i, e := range r {
		bytes, ok := live[e.Request]
		switch {
		case !e.Free && (e.Request != next || e.Bytes <= 0 || e.Bytes > maxBytes):
			return fmt.Errorf("recording: event %d: request %d of %d bytes cannot be number %d", i, e.Request, e.Bytes, next)
		case !e.Free:
			live[next] = e.Bytes
			next++
		case !ok || bytes != e.Bytes:
			return fmt.Errorf("recording: event %d frees %d bytes of request %d, which are not in use", i, e.Bytes, e.Request)
		default:
			delete(live, e.Request)
		}
	}
	return nil
}

// peak returns the most bytes in use at once among the requests that count names,
// each taken as size says.
func (r Recording) peak(count func(request int) bool, size func(int64) int64) int64 {
	var now, most int64
	for _, e := range r {
		switch {
		case !count(e.Request):
		case e.Free:
			now -= size(e.Bytes)
		default:
			now += size(e.Bytes)
			most = max(most, now)
		}
	}
	return most
}

// Peak returns the most bytes in use at once, each request rounded up to 64 bytes.
func (r Recording) Peak() int64 { return r.peak(func(int) bool { return true }, aligned) }

func aligned(n int64) int64 { return (n + alignment - 1) / alignment * alignment }

// slot is where a request is served from; see eyas_slot. A size of 0 means that it
// never comes from the arena.
type slot struct {
	offset, size int64
	need, rank   uint32
}

// Schedule is what recorded runs have in common: which requests come from the arena,
// how large they may be and how long they live.
//
// Where the recordings disagree on the order of events (NMS in the graph runs more
// operators the more it finds), the schedule ends; what is asked for after that comes
// from the spill block. Sizes may differ: a slot is as large as the largest.
type Schedule struct {
	slots   []slot // by request, without offsets
	problem memplan.Problem
	request []int // of each buffer of problem
	events  int
	open    bool // runs go on after the last slot
	check   bool
	spill   int64
}

// NewSchedule makes a schedule of at least one recording. check puts guards behind the
// slots: Replay then has every run verify them, and returns an error for the one that
// wrote past the end of a slot. Slots are then 64 bytes larger.
func NewSchedule(check bool, recordings ...Recording) (*Schedule, error) {
	if len(recordings) == 0 {
		return nil, fmt.Errorf("schedule: no run was recorded")
	}
	for _, r := range recordings {
		if err := r.check(); err != nil {
			return nil, err
		}
	}
	s := &Schedule{check: check, events: common(recordings)}
	first := recordings[0][:s.events]
	for _, r := range recordings {
		s.open = s.open || len(r) > s.events
	}
	s.build(first, sizes(recordings), outliving(recordings))
	s.measure(recordings)
	return s, nil
}

// common returns how many events all recordings begin with.
func common(recordings []Recording) int {
	n := math.MaxInt
	for _, r := range recordings {
		n = min(n, len(r))
	}
	for _, r := range recordings[1:] {
		for i := range n {
			if r[i].Request != recordings[0][i].Request || r[i].Free != recordings[0][i].Free {
				n = i
				break
			}
		}
	}
	return n
}

// sizes returns the largest size of each request.
func sizes(recordings []Recording) map[int]int64 {
	m := map[int]int64{}
	for _, r := range recordings {
		for _, e := range r {
			m[e.Request] = max(m[e.Request], e.Bytes)
		}
	}
	return m
}

// outliving returns the requests that some run does not free: outputs.
func outliving(recordings []Recording) map[int]bool {
	m := map[int]bool{}
	for _, r := range recordings {
		live := map[int]bool{}
		for _, e := range r {
			if e.Free {
				delete(live, e.Request)
			} else {
				live[e.Request] = true
			}
		}
		for id := range live {
			m[id] = true
		}
	}
	return m
}

// build turns events into slots, and buffers whose lifetimes count events.
func (s *Schedule) build(events Recording, size map[int]int64, outlives map[int]bool) {
	buffer := map[int]int{} // by request
	frees := uint32(0)
	for now, e := range events {
		switch {
		case outlives[e.Request]:
			if !e.Free {
				s.slots = append(s.slots, slot{})
			}
		case e.Free:
			s.slots[e.Request].rank = frees
			s.problem.Buffers[buffer[e.Request]].Upper = now
			frees++
		default:
			bytes := aligned(size[e.Request])
			s.slots = append(s.slots, slot{size: bytes, need: frees, rank: none})
			buffer[e.Request] = len(s.request)
			s.request = append(s.request, e.Request)
			if s.check {
				bytes += guardSize
			}
			s.problem.Buffers = append(s.problem.Buffers, memplan.Buffer{
				ID: fmt.Sprint(e.Request), Lower: now, Upper: len(events), Size: bytes, Align: alignment,
			})
		}
	}
}

// measure sums up what comes from the spill block.
func (s *Schedule) measure(recordings []Recording) {
	loose := func(id int) bool { return id >= len(s.slots) || s.slots[id].size == 0 }
	withHeader := func(n int64) int64 { return aligned(n) + alignment }
	for _, r := range recordings {
		s.spill = max(s.spill, r.peak(loose, withHeader))
	}
}

// Problem returns what is to be planned: the requests served from the arena, with
// lifetimes in events, sizes and alignments in bytes. Its identifiers are the numbers
// of the requests.
func (s *Schedule) Problem() memplan.Problem {
	return memplan.Problem{Buffers: slices.Clone(s.problem.Buffers)}
}

// Events returns how many events are planned, Complete whether that is all of a run.
func (s *Schedule) Events() int    { return s.events }
func (s *Schedule) Complete() bool { return !s.open }

// Spill returns the most bytes that the recorded runs needed at once beside their
// slots, with the spill block's own: outputs that the library allocates, and what comes
// after the end of the schedule. Each binding that shares the block needs them; room for as
// much again keeps it from running out of pieces that are large enough.
func (s *Schedule) Spill() int64 { return s.spill }

// place returns the slots with their offsets, after it has checked that no two that
// live at the same time share a byte, and that all lie within height bytes.
func (s *Schedule) place(offsets []int64, height int64) ([]slot, error) {
	buffers := s.problem.Buffers
	if len(offsets) != len(buffers) {
		return nil, fmt.Errorf("%d offsets for %d buffers", len(offsets), len(buffers))
	}
	slots := slices.Clone(s.slots)
	var live []int
	for i, b := range buffers { // in the order of Lower
		if at := offsets[i]; at < 0 || at%alignment != 0 || at > height-b.Size {
			return nil, fmt.Errorf("request %s: %d bytes at %d do not fit an arena of %d, aligned to %d", b.ID, b.Size, at, height, alignment)
		}
		live = slices.DeleteFunc(live, func(j int) bool { return buffers[j].Upper <= b.Lower })
		for _, j := range live {
			if offsets[i] < offsets[j]+buffers[j].Size && offsets[j] < offsets[i]+b.Size {
				return nil, fmt.Errorf("requests %s and %s overlap", buffers[j].ID, b.ID)
			}
		}
		live = append(live, i)
		slots[s.request[i]].offset = offsets[i]
	}
	return slots, nil
}

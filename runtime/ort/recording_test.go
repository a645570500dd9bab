package ort

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/memplan"
)

// take and drop are events of a recording.
func take(id int, bytes int64) Event { return Event{Request: id, Bytes: bytes} }
func drop(id int, bytes int64) Event { return Event{Request: id, Free: true, Bytes: bytes} }

func buffer(id string, lower, upper int, size int64) memplan.Buffer {
	return memplan.Buffer{ID: id, Lower: lower, Upper: upper, Size: size, Align: 64}
}

func TestSchedule(t *testing.T) {
	for _, c := range []struct {
		name       string
		check      bool
		recordings []Recording
		buffers    []memplan.Buffer
		slots      []slot
		open       bool
		spill      int64
	}{
		{
			name:       "one run",
			recordings: []Recording{{take(0, 100), take(1, 64), drop(0, 100), take(2, 1), drop(1, 64), drop(2, 1)}},
			buffers:    []memplan.Buffer{buffer("0", 0, 2, 128), buffer("1", 1, 4, 64), buffer("2", 3, 5, 64)},
			slots:      []slot{{0, 128, 0, 0}, {0, 64, 0, 1}, {0, 64, 1, 2}},
		},
		{
			name:       "guards",
			check:      true,
			recordings: []Recording{{take(0, 100), drop(0, 100)}},
			buffers:    []memplan.Buffer{buffer("0", 0, 1, 192)},
			slots:      []slot{{0, 128, 0, 0}},
		},
		{
			name: "sizes differ",
			recordings: []Recording{
				{take(0, 100), take(1, 640), drop(1, 640), drop(0, 100)},
				{take(0, 200), take(1, 64), drop(1, 64), drop(0, 200)},
			},
			buffers: []memplan.Buffer{buffer("0", 0, 3, 256), buffer("1", 1, 2, 640)},
			slots:   []slot{{0, 256, 0, 1}, {0, 640, 0, 0}},
		},
		{
			name: "one run goes on", // and the buffer that the other frees lives to the end
			recordings: []Recording{
				{take(0, 64), take(1, 64), drop(1, 64), drop(0, 64)},
				{take(0, 64), take(1, 64), drop(1, 64), take(2, 1000), take(3, 64), drop(2, 1000), drop(3, 64), drop(0, 64)},
			},
			buffers: []memplan.Buffer{buffer("0", 0, 3, 64), buffer("1", 1, 2, 64)},
			slots:   []slot{{0, 64, 0, none}, {0, 64, 0, 0}},
			open:    true,
			spill:   1024 + 64 + 64 + 64,
		},
		{
			name: "an output", // of either run
			recordings: []Recording{
				{take(0, 64), take(1, 10), drop(0, 64)},
				{take(0, 64), take(1, 500), drop(0, 64)},
			},
			buffers: []memplan.Buffer{buffer("0", 0, 2, 64)},
			slots:   []slot{{0, 64, 0, 0}, {}},
			spill:   512 + 64,
		},
		{name: "nothing", recordings: []Recording{{}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := schedule(t, c.check, c.recordings...)
			if got := s.Problem().Buffers; !reflect.DeepEqual(got, c.buffers) {
				t.Errorf("buffers %+v", got)
			}
			if !reflect.DeepEqual(s.slots, c.slots) {
				t.Errorf("slots %+v", s.slots)
			}
			if s.Complete() == c.open || s.Spill() != c.spill {
				t.Errorf("complete %v, spill %d", s.Complete(), s.Spill())
			}
		})
	}
}

func TestScheduleRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		r    []Recording
		want string
	}{
		{"no recording", nil, "no run was recorded"},
		{"a request out of order", []Recording{{take(1, 64)}}, "event 0: request 1 of 64 bytes cannot be number 0"},
		{"twice the same", []Recording{{take(0, 64), take(0, 64)}}, "cannot be number 1"},
		{"no bytes", []Recording{{take(0, 0)}}, "of 0 bytes"},
		{"too many bytes", []Recording{{take(0, 1<<62)}}, "cannot be number 0"},
		{"a free of nothing", []Recording{{drop(0, 64)}}, "not in use"},
		{"a double free", []Recording{{take(0, 64), drop(0, 64), drop(0, 64)}}, "not in use"},
		{"a free of another size", []Recording{{take(0, 64), drop(0, 65)}}, "event 1 frees 65 bytes"},
		{"too long", []Recording{make(Recording, maxEvents+1)}, "at most 65536"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := NewSchedule(false, c.r...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestPlace(t *testing.T) {
	s := schedule(t, false, Recording{take(0, 64), take(1, 128), drop(0, 64), take(2, 64), drop(1, 128), drop(2, 64)})
	for _, c := range []struct {
		name    string
		offsets []int64
		height  int64
		want    string // empty: accepted
	}{
		{"stacked", []int64{0, 64, 192}, 256, ""},
		{"one place in turn", []int64{128, 0, 128}, 192, ""},
		{"at one time", []int64{0, 0, 128}, 256, "requests 0 and 1 overlap"},
		{"partly", []int64{0, 64, 128}, 256, "requests 1 and 2 overlap"},
		{"past the end", []int64{0, 64, 192}, 192, "request 2: 64 bytes at 192 do not fit an arena of 192"},
		{"negative", []int64{-64, 64, 192}, 256, "request 0"},
		{"not aligned", []int64{0, 65, 193}, 512, "aligned to 64"},
		{"too few", []int64{0, 64}, 256, "2 offsets for 3 buffers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			slots, err := s.place(c.offsets, c.height)
			if c.want == "" {
				if err != nil || slots[2].offset != c.offsets[2] {
					t.Errorf("%v: %v", slots, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// Recordings come from saved plans: whatever they hold is refused or planned.
func FuzzSchedule(f *testing.F) {
	for _, text := range []string{
		`[[{"r":0,"b":64},{"r":1,"b":10},{"r":0,"f":true,"b":64}]]`,
		`[[{"r":0,"b":64},{"r":0,"f":true,"b":64}],[{"r":0,"b":1},{"r":1,"b":2}]]`,
		`[[{"r":-1,"b":64}]]`, `[null]`, `[]`,
	} {
		f.Add([]byte(text), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, check bool) {
		var rs []Recording
		if json.Unmarshal(text, &rs) != nil {
			return
		}
		s, err := NewSchedule(check, rs...)
		if err != nil {
			return
		}
		offsets, height := greedy(s.Problem())
		slots, err := s.place(offsets, height)
		if err != nil {
			t.Fatal(err)
		}
		ranks := map[uint32]bool{}
		for _, x := range slots {
			if x.size > 0 && x.rank != none {
				ranks[x.rank] = true
			}
		}
		for i := range len(ranks) {
			if !ranks[uint32(i)] {
				t.Fatalf("no slot is freed as number %d", i)
			}
		}
	})
}

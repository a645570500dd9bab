package ort

import (
	"errors"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestArena(t *testing.T) {
	for _, c := range []struct {
		name         string
		slots, spill int64
		shared       bool
	}{
		{"small", 1000, 100, false},
		{"empty", 0, 0, false},
		{"huge pages", 5 << 20, 1 << 16, false},
		{"shared memory", 3 << 20, 1 << 16, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := NewArena(c.slots, c.spill, c.shared)
			if err != nil {
				t.Fatal(err)
			}
			if a.Slots() != aligned(c.slots) || a.Spill() != aligned(c.spill) || a.Mapped() < a.Slots()+a.Spill()+overrun {
				t.Errorf("%d slots, %d spill, %d mapped", a.Slots(), a.Spill(), a.Mapped())
			}
			if at := uintptr(a.mem); at%uintptr(os.Getpagesize()) != 0 || c.slots >= hugePage && at%hugePage != 0 {
				t.Errorf("it lies at %#x", at)
			}
			if n := present(t, a.bytes()); n*int64(os.Getpagesize()) != a.Mapped() {
				t.Errorf("%d of %d bytes are present", n*int64(os.Getpagesize()), a.Mapped())
			}
			t.Logf("locked: %v", a.Locked())
			for range 2 {
				if err := a.Close(); err != nil {
					t.Error(err)
				}
			}
			if err := a.join(); err == nil {
				t.Error("a closed arena was joined")
			}
		})
	}
	for _, n := range [][2]int64{{-1, 0}, {0, -1}, {1 << 62, 0}, {0, 1 << 62}} {
		if a, err := NewArena(n[0], n[1], false); a != nil || err == nil {
			t.Errorf("an arena of %v bytes was made", n)
		}
	}
}

// present counts pages in memory.
func present(t *testing.T, data []byte) (n int64) {
	t.Helper()
	page := os.Getpagesize()
	vec := make([]byte, len(data)/page)
	if _, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)), uintptr(unsafe.Pointer(&vec[0]))); e != 0 {
		t.Fatal(e)
	}
	for _, v := range vec {
		n += int64(v & 1)
	}
	return n
}

// Replay and its kin need our allocator and an open binding, and refuse plans that do not fit.
func TestReplayRefuses(t *testing.T) {
	theirs := open(t, "yolox_nano_person_192", Options{Threads: 1})
	b := bound(t, theirs)
	if _, err := b.Record(); !errors.Is(err, ErrRun) || !strings.Contains(err.Error(), "the library's allocator") {
		t.Errorf("record without our allocator: %v", err)
	}
	if err := b.Limit(nil); !errors.Is(err, ErrRun) {
		t.Errorf("limit without our allocator: %v", err)
	}
	b.Plain()
	if b.Counts() != (Counts{}) {
		t.Errorf("counts %+v", b.Counts())
	}

	b = bound(t, open(t, "yolox_nano_person_192", own))
	run(t, b)
	s := schedule(t, false, record(t, b))
	offsets, height := greedy(s.Problem())
	if err := b.Replay(arena(t, height-64, 0), s, offsets); !errors.Is(err, ErrRun) || !strings.Contains(err.Error(), "do not fit an arena") {
		t.Errorf("an arena that is too small: %v", err)
	}
	closed, err := NewArena(height, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Replay(closed, s, offsets); !errors.Is(err, ErrRun) {
		t.Errorf("a closed arena: %v", err)
	}
	run(t, b) // from the heap
	first, second := arena(t, height, 0), arena(t, height, 0)
	replay(t, b, first, s, offsets)
	run(t, b)
	replay(t, b, second, s, offsets) // leaves the first
	run(t, b)
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	b.Close()
	if err := b.Replay(second, s, offsets); !errors.Is(err, ErrRun) {
		t.Errorf("a closed binding: %v", err)
	}
	if _, err := b.Record(); !errors.Is(err, ErrRun) {
		t.Errorf("record after close: %v", err)
	}
	if _, ok := b.Mismatch(); ok || b.Counts() != (Counts{}) {
		t.Error("a closed binding counts")
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// Sessions that come and go, a hot reload, leave nothing behind.
func TestCycles(t *testing.T) {
	l, path := library(t), model(t, "yolox_nano_person_192")
	cycles := 60
	if testing.Short() {
		cycles = 20
	}
	var tenth int
	live := Totals().HeapLive
	for i := range cycles {
		s, err := l.OpenFile(path, own)
		if err != nil {
			t.Fatal(err)
		}
		in := inputs(t, s, 1, 0)
		b, err := s.Bind(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		run(t, b)
		sch := schedule(t, false, record(t, b))
		offsets, height := greedy(sch.Problem())
		a, err := NewArena(height, 2*sch.Spill(), false)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Replay(a, sch, offsets); err != nil {
			t.Fatal(err)
		}
		run(t, b)
		if err := errors.Join(s.Close(), a.Close(), FreeTensor(in[0])); err != nil {
			t.Fatal(err)
		}
		if i == 9 {
			tenth = residentKiB(t)
		}
	}
	last := residentKiB(t)
	t.Logf("%d KiB after 10 cycles, %d after %d", tenth, last, cycles)
	if last > tenth*13/10 { // the heap's pieces vary by a few MB from one process to the next
		t.Errorf("resident memory grew from %d to %d KiB", tenth, last)
	}
	if got := Totals().HeapLive; got != live {
		t.Errorf("%d bytes of our allocator are left", got-live)
	}
}

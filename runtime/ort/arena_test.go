package ort

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/machine"
	"github.com/eyas-edge/eyas/internal/tensor"
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
			if int64(len(a.Bytes())) != a.Mapped() || present(t, a.Bytes()) != a.Mapped() {
				t.Errorf("%d of %d bytes are present", present(t, a.Bytes()), a.Mapped())
			}
			huge := a.Huge()
			if huge < 0 || huge > a.Mapped() || huge > 0 && a.Mapped() < hugePage {
				t.Errorf("%d of %d bytes in huge pages", huge, a.Mapped())
			}
			t.Logf("locked: %v, %d bytes in huge pages", a.Locked(), huge)
			for range 2 {
				if err := a.Close(); err != nil {
					t.Error(err)
				}
			}
			if err := a.join(); err == nil || a.Bytes() != nil || a.Huge() != 0 {
				t.Error("a closed arena was joined, or has bytes")
			}
		})
	}
	for _, n := range [][2]int64{{-1, 0}, {0, -1}, {1 << 62, 0}, {0, 1 << 62}} {
		if a, err := NewArena(n[0], n[1], false); a != nil || err == nil {
			t.Errorf("an arena of %v bytes was made", n)
		}
	}
}

// present returns the bytes of pages in memory.
func present(t testing.TB, data []byte) int64 {
	t.Helper()
	n, err := machine.Present(data)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestParseHuge(t *testing.T) {
	const smaps = `7f0000000000-7f0000400000 rw-p 00000000 00:00 0
Size:               4096 kB
AnonHugePages:      4096 kB
ShmemPmdMapped:        0 kB
7f0000400000-7f0000500000 rw-s 00000000 00:01 12 /dev/zero (deleted)
AnonHugePages:         0 kB
ShmemPmdMapped:     1024 kB
VmFlags: rd wr sh
`
	for _, c := range []struct {
		name     string
		text     string
		from, to uint64
		want     int64
	}{
		{"an area", smaps, 0x7f0000000000, 0x7f0000400000, 4 << 20},
		{"two areas", smaps, 0x7f0000000000, 0x7f0000500000, 5 << 20},
		{"a part of one", smaps, 0x7f0000300000, 0x7f0000480000, 3 << 19},
		{"none", smaps, 0x7f0000500000, 0x7f0000600000, 0},
		{"junk", "7f-x\nAnonHugePages: 7 kB\n-\n7f00-7f10\nAnonHugePages: 99999999999999999999 kB\nAnonHugePages:", 0, 1 << 47, 0},
		{"more than the area", "7f00-7f10\nAnonHugePages: 9999 kB\nAnonHugePages: 9999 kB\n", 0x7f00, 0x7f10, 16},
		{"nothing", "", 0, 1 << 20, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := parseHuge(strings.NewReader(c.text), c.from, c.to); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func FuzzParseHuge(f *testing.F) {
	f.Add("7f00-7f10 rw-p\nAnonHugePages: 4 kB\n", uint64(0x7f00), uint64(0x100))
	f.Add("0-ffffffffffffffff\nShmemPmdMapped: 17592186044415 kB\n", uint64(1), uint64(1<<40))
	f.Fuzz(func(t *testing.T, text string, from, size uint64) {
		from, size = from%(1<<47), size%(1<<47)
		if n := parseHuge(strings.NewReader(text), from, from+size); n < 0 || n > int64(size) {
			t.Errorf("%d bytes of %d", n, size)
		}
	})
}

// Where the kernel cannot fill in pages they are touched, and keep what is in them.
func TestTouchedPages(t *testing.T) {
	x, err := NewSharedTensor("x", tensor.Uint8, 5*os.Getpagesize()+1)
	if err != nil {
		t.Fatal(err)
	}
	defer FreeTensor(x)
	x.Data[0] = 7
	touch(x.Data)
	if n := present(t, x.Data); n != int64(len(x.Data)) || x.Data[0] != 7 {
		t.Errorf("%d of %d bytes are present, the first is %d", n, len(x.Data), x.Data[0])
	}
}

// What is shared counts as shared memory of the process, is there from the start, and works
// as what is private does.
func TestSharedMemory(t *testing.T) {
	const size = 3 << 20
	shared := func() int64 { return int64(machine.ReadProcess("/").RSSShmem) }
	before := shared()
	if before == 0 && machine.ReadProcess("/").RSSAnon == 0 {
		t.Skip("/proc/self/status does not tell kinds of memory")
	}
	x, err := NewSharedTensor("x", tensor.Uint8, 1, size)
	if err != nil {
		t.Fatal(err)
	}
	if n := present(t, x.Data); n != 0 {
		t.Errorf("%d bytes of a tensor that nobody has touched are present", n)
	}
	t.Logf("lock the tensor: %v", LockTensor(x))
	if n := present(t, x.Data); n != size {
		t.Errorf("%d of %d bytes are present", n, size)
	}
	w, err := ReadSharedWeights(bytes.NewReader(x.Data), size, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewArena(size, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{x.Data, w.Bytes(), a.Bytes()} {
		if n := present(t, data); n != int64(len(data)) {
			t.Errorf("%d of %d bytes are present", n, len(data))
		}
	}
	if got := shared() - before; got < 3*size {
		t.Errorf("%d bytes of shared memory, want %d", got, 3*size)
	}
	if err := errors.Join(FreeTensor(x), FreeTensor(x), w.Close(), a.Close()); err != nil {
		t.Error(err)
	}
	if got := shared() - before; got > size/2 {
		t.Errorf("%d bytes of shared memory are left", got)
	}
	if x, err := NewSharedTensor("x", tensor.Uint8, -1); x != nil || err == nil {
		t.Error("a tensor of -1 elements was made")
	}
	none, err := NewSharedTensor("x", tensor.Uint8, 0)
	if err != nil || len(none.Data) != 0 {
		t.Errorf("a tensor without elements: %v", err)
	}
	if err := errors.Join(LockTensor(none), FreeTensor(none)); err != nil {
		t.Error(err)
	}

	s := open(t, "nanodet_m_416", own)
	b := bound(t, s)
	want := digest(run(t, b))
	shm, err := library(t).OpenORT("shared", sharedCopy(t, saved(t, "nanodet_m_416", own)).Bytes(), own)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shm.Close() })
	var in, out []*tensor.Tensor
	for i, list := range [][]*tensor.Tensor{b.in, b.out} {
		for _, x := range list {
			y, err := NewSharedTensor(x.Name, x.Type, x.Shape...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { FreeTensor(y) })
			if i == 0 {
				copy(y.Data, x.Data)
				in = append(in, y)
			} else {
				out = append(out, y)
			}
		}
	}
	b = bind(t, shm, in, out...)
	run(t, b)
	sch := schedule(t, false, record(t, b))
	offsets, height := greedy(sch.Problem())
	block, err := NewArena(height, 2*sch.Spill(), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { block.Close() })
	replay(t, b, block, sch, offsets)
	if digest(run(t, b)) != want {
		t.Error("outputs differ in shared memory")
	}
}

func sharedCopy(t testing.TB, w *Weights) *Weights {
	t.Helper()
	c, err := ReadSharedWeights(bytes.NewReader(w.Bytes()), int64(len(w.Bytes())), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
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

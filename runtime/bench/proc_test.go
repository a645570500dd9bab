package bench

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseLocked(t *testing.T) {
	const two = "7f00-7f10 rw-p 00000000 00:00 0 \nSize:    8 kB\nKernelPageSize: 4 kB\nRss:    4 kB\nVmFlags: rd wr mr mw me lo ac \n" +
		"7f20-7f30 rw-p 00000000 00:00 0  [heap: lo]\nSize:  100 kB\nRss:  96 kB\nVmFlags: rd wr mr mw me ac \n"
	for _, c := range []struct {
		name, text     string
		bytes, present int64
		fails          bool
	}{
		{"nothing", "", 0, 0, false},
		{"one of two", two, 8 << 10, 4 << 10, false},
		{"the flag comes last", "Size: 8 kB\nRss: 8 kB\nVmFlags: rd lo\n", 8 << 10, 8 << 10, false},
		{"no number", "Size: many kB\nVmFlags: lo\n", 0, 0, true},
		{"too large", "Rss: 99999999999999999999 kB\n", 0, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bytes, present, err := parseLocked(c.text)
			if bytes != c.bytes || present != c.present || (err != nil) != c.fails {
				t.Errorf("%d bytes, %d present, error %v", bytes, present, err)
			}
		})
	}
}

func TestRollup(t *testing.T) {
	for text, want := range map[string]int64{
		"": 0,
		"7f00-7fff ---p [rollup]\nRss:   120 kB\nPss: 9 kB\n": 120 << 10,
		"x\nRss: 0 kB\n":                      0,
		"x\nRss:    ":                         0,
		"x\nRss: 12":                          0,
		"x\nRss: many kB\n":                   0,
		"x\nPss: 5 kB\n":                      0,
		"x\nRss: 99999999999999999999999999 ": 0,
	} {
		if got := rollup([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// The memory of this process is seen to grow, and reading it allocates nothing.
func TestStatus(t *testing.T) {
	before, err := status()
	if err != nil {
		t.Fatal(err)
	}
	const size = 8 << 20
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	after, err := status()
	if err != nil {
		t.Fatal(err)
	}
	if grown := after.Anon - before.Anon; grown < size/2 || after.Resident < after.Anon || after.Go <= 0 {
		t.Errorf("grew by %d: %+v, then %+v", grown, before, after)
	}
	r, err := newRSSReader()
	if err != nil {
		t.Skip("this kernel has no smaps_rollup: ", err)
	}
	defer r.close()
	if n := r.bytes(); n < size {
		t.Errorf("%d bytes resident", n)
	}
	if n := testing.AllocsPerRun(10, func() { r.bytes() }); n != 0 {
		t.Errorf("reading allocates %v times", n)
	}
}

package bench

import (
	"testing"

	"golang.org/x/sys/unix"
)

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

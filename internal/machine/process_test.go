package machine

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestProcess(t *testing.T) {
	for _, c := range []struct {
		name, status string
		want         Process
	}{
		{"unknown", "", Process{}},
		{"known", "Name:\tx\nRssAnon:\t    1 kB\nRssFile:\t    20 kB\nRssShmem:\t    300 kB\n", Process{RSSAnon: 1 << 10, RSSFile: 20 << 10, RSSShmem: 300 << 10}},
		{"an old kernel", "VmRSS:\t    1 kB\n", Process{}},
		{"nonsense", "RssAnon: many\nRssFile: -1 kB\nRssShmem: 99999999999999999999 kB\n", Process{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ReadProcess(tree(t, map[string]string{"proc/self/status": c.status}))
			if got.MinorFaults == 0 {
				t.Error("a process without a page fault")
			}
			got.MinorFaults, got.MajorFaults = 0, 0
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// mapping returns anonymous pages that nobody touched, small ones.
func mapping(t *testing.T, size int) []byte {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Madvise(mem, unix.MADV_NOHUGEPAGE); err != nil {
		t.Logf("huge pages stay: %v", err) // a kernel without them
	}
	return mem
}

func TestPresent(t *testing.T) {
	page := os.Getpagesize()
	mem := mapping(t, 100*page)
	check := func(name string, mem []byte, want int) {
		t.Helper()
		if got, err := Present(mem); err != nil || got != int64(want) {
			t.Errorf("%s: %d bytes present, %v, want %d", name, got, err, want)
		}
	}
	check("nothing", nil, 0)
	check("untouched", mem, 0)
	for at := 0; at < len(mem)/2; at += page {
		mem[at] = 1
	}
	check("half touched", mem, len(mem)/2)
	check("half, to the middle of a page", mem[:20*page+1], 20*page+1)
	for at := 0; at < len(mem); at += 2 * page {
		mem[at] = 1
	}
	check("and every second page", mem, 75*page)
	if _, err := Present(mem[1:]); err == nil {
		t.Error("no error for memory that does not begin at a page")
	}
}

// A mapping that takes several calls.
func TestPresentOfLarge(t *testing.T) {
	page := os.Getpagesize()
	mem := mapping(t, (2<<14+3)*page)
	for _, i := range []int{0, 1<<14 - 1, 1 << 14, 2<<14 + 2} {
		mem[i*page] = 1
	}
	if got, err := Present(mem); err != nil || got != int64(4*page) {
		t.Errorf("%d bytes present, %v, want %d", got, err, 4*page)
	}
}

func TestFaultsAreCounted(t *testing.T) {
	before := ReadProcess("/")
	page := os.Getpagesize()
	mem := mapping(t, 64*page)
	for at := 0; at < len(mem); at += page {
		mem[at] = 1
	}
	after := ReadProcess("/")
	if n := after.MinorFaults - before.MinorFaults; n < 64 {
		t.Errorf("%d faults for 64 new pages", n)
	}
	if after.RSSAnon == 0 {
		t.Skip("this kernel does not tell resident memory by kind")
	}
}

package prep

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// guarded returns n bytes that lie between two pages that nobody may touch: right behind the one, or up against
// the other. Reading or writing a byte too far ends the test.
func guarded(tb testing.TB, n int, atEnd bool) []byte {
	tb.Helper()
	page := os.Getpagesize()
	room := (n + page - 1) / page * page
	all, err := unix.Mmap(-1, 0, room+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = unix.Munmap(all) })
	for _, guard := range [][]byte{all[:page], all[page+room:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			tb.Fatal(err)
		}
	}
	from := page
	if atEnd {
		from += room - n
	}
	return all[from : from+n : from+n]
}

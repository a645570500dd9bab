package bench

import (
	"bytes"
	"errors"
	"os"
	goruntime "runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/internal/machine"
)

// Status is the resident memory of a process, in bytes.
type Status struct {
	Resident int64 `json:"resident_bytes"` // the sum of the next three
	Anon     int64 `json:"anon_bytes"`
	File     int64 `json:"file_bytes"`
	Shmem    int64 `json:"shmem_bytes"`
	Go       int64 `json:"go_bytes"` // what Go's runtime has from the system, mostly anonymous
}

// status reads the memory of this process, once Go has given back what it does not use.
func status() (Status, error) {
	goruntime.GC() // twice: what the first leaves to finalizers and to the sweep
	goruntime.GC()
	debug.FreeOSMemory()
	p := machine.ReadProcess("/")
	s := Status{Anon: int64(p.RSSAnon), File: int64(p.RSSFile), Shmem: int64(p.RSSShmem)}
	if s.Resident = s.Anon + s.File + s.Shmem; s.Anon == 0 {
		return s, errors.New("this kernel does not say how much memory of which kind is resident")
	}
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	s.Go = int64(m.Sys - m.HeapReleased)
	return s, nil
}

// faults returns the page faults of this process so far.
func faults() (int64, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return u.Minflt + u.Majflt, nil
}

// rssReader reads the resident memory over and over without allocating. The kernel's exact sum is taken: the figures in
// status and statm are off by up to some dozens of pages.
type rssReader struct {
	f   *os.File
	fd  int
	buf [4096]byte
}

func newRSSReader() (*rssReader, error) {
	f, err := os.Open("/proc/self/smaps_rollup")
	if err != nil {
		return nil, err
	}
	r := &rssReader{f: f, fd: int(f.Fd())}
	return r, nil
}

var rssField = []byte("\nRss:")

// bytes returns the resident memory, 0 if it cannot be read.
func (r *rssReader) bytes() int64 {
	n, err := unix.Pread(r.fd, r.buf[:], 0)
	if err != nil {
		return 0
	}
	return rollup(r.buf[:max(n, 0)])
}

// rollup finds the line "Rss: 123 kB".
func rollup(text []byte) int64 {
	at := bytes.Index(text, rssField)
	if at < 0 {
		return 0
	}
	var n int64
	for _, c := range text[at+len(rssField):] {
		switch {
		case n >= 1<<40:
			return 0
		case c >= '0' && c <= '9':
			n = 10*n + int64(c-'0')
		case c != ' ' || n > 0:
			return n << 10
		}
	}
	return 0 // cut off
}

func (r *rssReader) close() { r.f.Close() }

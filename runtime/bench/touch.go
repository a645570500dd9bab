package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Touch is what memory of one kind costs when it is written to (a mapped file: read) for the first time.
type Touch struct {
	Kind    string  `json:"kind"`
	Missing string  `json:"missing,omitempty"` // why it could not be measured here
	Bytes   int64   `json:"bytes"`
	Take    float64 `json:"take_us"`  // to map it, and to lock it or to ask for huge pages
	First   float64 `json:"first_us"` // to write to each byte for the first time
	Rate    float64 `json:"first_gb_per_s"`
	Again   float64 `json:"again_gb_per_s"` // the second time
}

const (
	touchBytes  = 32 << 20 // about an arena
	touchRounds = 5
)

// mapper maps memory of one kind, of touchBytes.
type mapper func(dir string) ([]byte, error)

// touchKinds are the kinds of memory that the runtime takes.
var touchKinds = []struct {
	name string
	mapper
}{
	{"heap", private(nil)},
	{"locked", private(unix.Mlock)},
	{"huge", private(func(mem []byte) error { return unix.Madvise(mem, unix.MADV_HUGEPAGE) })},
	{"shared", sharedMemory},
	{"mapped file", mappedFile},
}

// cudaKinds need a program that is linked against CUDA, which this one is not.
var cudaKinds = []string{"cuda device", "cuda pinned", "cuda managed"}

// private maps memory of the process's own.
func private(prepare func([]byte) error) mapper {
	return func(string) ([]byte, error) {
		mem, err := unix.Mmap(-1, 0, touchBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil || prepare == nil {
			return mem, err
		}
		if err := prepare(mem); err != nil {
			_ = unix.Munmap(mem) // it was mapped just now
			return nil, err
		}
		return mem, nil
	}
}

func sharedMemory(string) ([]byte, error) {
	fd, err := unix.MemfdCreate("eyas-bench", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return mapFile(os.NewFile(uintptr(fd), "memfd"), unix.PROT_READ|unix.PROT_WRITE)
}

// mappedFile maps a file that lies in the page cache, for reading.
func mappedFile(dir string) ([]byte, error) {
	path := filepath.Join(dir, "touch")
	if _, err := os.Stat(path); err != nil {
		if err := os.WriteFile(path, make([]byte, touchBytes), 0o600); err != nil {
			return nil, err
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return mapFile(f, unix.PROT_READ)
}

func mapFile(f *os.File, access int) ([]byte, error) {
	defer f.Close()
	if access&unix.PROT_WRITE != 0 {
		if err := f.Truncate(touchBytes); err != nil {
			return nil, err
		}
	}
	return unix.Mmap(int(f.Fd()), 0, touchBytes, access, unix.MAP_SHARED)
}

func (b *bench) touches(ctx context.Context) error {
	b.say("first touch of memory")
	rep, err := b.ask(ctx, request{Job: jobTouch})
	b.report.Touch = rep.Touch
	return err
}

// touch measures each kind of memory, medians of some rounds.
func (q request) touch(ctx context.Context, _ *setup) (r reply, err error) {
	for _, k := range touchKinds {
		t := Touch{Kind: k.name, Bytes: touchBytes}
		var take, first, again []float64
		for range touchRounds {
			if ctx.Err() != nil {
				return reply{}, ctx.Err()
			}
			start := time.Now()
			mem, err := k.mapper(q.Cache)
			if err != nil {
				t.Missing = err.Error()
				break
			}
			take = append(take, microseconds(time.Since(start)))
			first, again = append(first, pass(mem, k.name)), append(again, pass(mem, k.name))
			if err := unix.Munmap(mem); err != nil {
				return reply{}, err
			}
		}
		if t.Missing == "" {
			t.Take, t.First = median(take), median(first)
			t.Rate, t.Again = gigabytes(t.First), gigabytes(median(again))
		}
		r.Touch = append(r.Touch, t)
	}
	for _, name := range cudaKinds {
		r.Touch = append(r.Touch, Touch{Kind: name, Missing: "not here: this build is not linked against CUDA"})
	}
	return r, nil
}

// gigabytes returns the rate of touchBytes in so many microseconds.
func gigabytes(us float64) float64 { return ratio(touchBytes/1e9, us/1e6) }

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// pass writes to every byte, or reads those of a file, and returns the microseconds that took.
func pass(mem []byte, kind string) float64 {
	start := time.Now()
	if kind == "mapped file" {
		var buf [4096]byte
		for at := 0; at < len(mem); at += len(buf) {
			copy(buf[:], mem[at:])
		}
		goruntime.KeepAlive(&buf)
	} else {
		clear(mem)
	}
	return microseconds(time.Since(start))
}

func (r *Report) touchText(w io.Writer) {
	if len(r.Touch) == 0 {
		return
	}
	fmt.Fprintf(w, "\nfirst touch\tsize\ttaken in\ttouched in\t\tagain\n")
	for _, t := range r.Touch {
		if t.Missing != "" {
			fmt.Fprintf(w, "%s\t%s\n", t.Kind, t.Missing)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%.0f us\t%.0f us\t%.2f GB/s\t%.2f GB/s\n", t.Kind, mega(t.Bytes), t.Take, t.First, t.Rate, t.Again)
	}
}

func (r *Report) touchFigures(each func(string, float64)) {
	for _, t := range r.Touch {
		if t.Missing == "" {
			each("touch "+t.Kind+" first, us", t.First)
			each("touch "+t.Kind+" again, GB/s", t.Again)
		}
	}
}

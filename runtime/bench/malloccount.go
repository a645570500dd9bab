package bench

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/internal/child"
)

// The counter lies in a folder of its own: a package of Go with a C file would need cgo.
//
//go:embed preload/malloccount.c
var mallocCount []byte

const (
	countsEnv   = "EYAS_MALLOC_COUNTS" // as preload/malloccount.c has it
	countsBytes = 16
	compileTime = time.Minute
)

// counter compiles the counter of libc's allocations if there is a compiler; else the report says that there was none.
func (b *bench) counter(ctx context.Context) error {
	cc, err := child.Look("cc")
	if err != nil {
		b.report.Libc = "not counted: no C compiler (cc)"
		return nil
	}
	lib, err := compile(ctx, cc, b.dir)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		b.report.Libc = "not counted: " + err.Error()
		return nil
	}
	b.lib = lib
	b.report.Libc = "counted"
	return nil
}

// compile makes the library to preload and has a process of no account try it: a loader that cannot use it, for want of
// glibc, would keep the child that is to be measured from starting.
func compile(ctx context.Context, cc, dir string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, compileTime)
	defer cancel()
	source, lib := filepath.Join(dir, "malloccount.c"), filepath.Join(dir, "malloccount.so")
	if err := os.WriteFile(source, mallocCount, 0o600); err != nil {
		return "", err
	}
	start := func(s child.Spec) error {
		c, err := child.Start(ctx, s)
		if err != nil {
			return err
		}
		return errors.Join(c.Wait(), c.Stop())
	}
	if err := start(child.Spec{Program: cc, Args: []string{"-O2", "-shared", "-fPIC", "-o", lib, source}}); err != nil {
		return "", fmt.Errorf("compile the counter: %w", err)
	}
	if err := start(child.Spec{Program: cc, Args: []string{"--version"}, Env: []string{"LD_PRELOAD=" + lib}}); err != nil {
		return "", fmt.Errorf("preload the counter: %w", err)
	}
	return lib, nil
}

// newCounts makes a file for one child's counts.
func newCounts(dir string) (string, error) {
	f, err := os.CreateTemp(dir, "counts-")
	if err != nil {
		return "", err
	}
	return f.Name(), errors.Join(f.Truncate(countsBytes), f.Close())
}

// libcCounts reads what the preloaded counter counts in this process. The zero value counts nothing.
type libcCounts struct{ page []byte }

func openCounts(path string) (libcCounts, error) {
	if path == "" {
		return libcCounts{}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return libcCounts{}, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || st.Size() < countsBytes {
		return libcCounts{}, fmt.Errorf("%s holds no counts", path)
	}
	page, err := unix.Mmap(int(f.Fd()), 0, countsBytes, unix.PROT_READ, unix.MAP_SHARED)
	return libcCounts{page}, err
}

// allocations returns how many there were so far.
func (c libcCounts) allocations() uint64 { return c.at(0) }
func (c libcCounts) frees() uint64       { return c.at(8) }

func (c libcCounts) at(offset int) uint64 {
	if c.page == nil {
		return 0
	}
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&c.page[offset])))
}

func (c libcCounts) close() error {
	if c.page == nil {
		return nil
	}
	return unix.Munmap(c.page)
}

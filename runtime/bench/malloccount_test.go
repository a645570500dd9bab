package bench

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/child"
	"github.com/eyas-edge/eyas/internal/testenv"
)

// A program that allocates a known number of blocks is counted to the last one.
func TestAllocationsAreCounted(t *testing.T) {
	cc, err := child.Look("cc")
	testenv.Require(t, err == nil, "no C compiler (cc)")
	dir := t.TempDir()
	lib, err := compile(t.Context(), cc, dir)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "allocate")
	start := func(s child.Spec) {
		t.Helper()
		c, err := child.Start(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	start(child.Spec{Program: cc, Args: []string{"-O0", "-o", program, filepath.Join("testdata", "allocate.c")}})
	count := func(n, kept int) (allocations, frees int) {
		t.Helper()
		path, err := newCounts(dir)
		if err != nil {
			t.Fatal(err)
		}
		c, err := openCounts(path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		start(child.Spec{
			Program: program, Args: []string{strconv.Itoa(n), strconv.Itoa(kept)},
			Env: []string{"LD_PRELOAD=" + lib, countsEnv + "=" + path},
		})
		return int(c.allocations()), int(c.frees())
	}
	a0, f0 := count(0, 0)
	a, f := count(1000, 100)
	// malloc, calloc, realloc, posix_memalign, aligned_alloc; what is not freed is what the program keeps.
	if a-a0 != 5000 || f-f0 != 4900 {
		t.Errorf("%d allocations and %d frees, want 5000 and 4900", a-a0, f-f0)
	}
}

// Without a compiler, or with one that fails, the report says so and everything else is measured.
func TestNoCompiler(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ name, script, want string }{
		{"none", "", "not counted: no C compiler (cc)"},
		{"a broken one", "#!/bin/sh\necho out of order >&2\nexit 1\n", "not counted: compile the counter: cc: exit status 1: out of order"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("PATH", dir)
			if c.script != "" {
				testenv.Script(t, filepath.Join(dir, "cc"), c.script)
			}
			b := &bench{report: &Report{}, dir: t.TempDir()}
			if err := b.counter(t.Context()); err != nil {
				t.Fatal(err)
			}
			if b.lib != "" || b.report.Libc != c.want {
				t.Errorf("%q, library %q", b.report.Libc, b.lib)
			}
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&bench{report: &Report{}, dir: t.TempDir()}).counter(ended); err == nil {
		t.Error("compiled after the end")
	}
}

func TestCountsOfNothing(t *testing.T) {
	c, err := openCounts("")
	if err != nil || c.allocations() != 0 || c.frees() != 0 || c.close() != nil {
		t.Errorf("%v %d %d", err, c.allocations(), c.frees())
	}
	short := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(short, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{short, filepath.Join(t.TempDir(), "none")} {
		if _, err := openCounts(path); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

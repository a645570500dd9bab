// Package cache keeps, between runs, what takes long to make and depends only on a model and a
// machine: the model as ONNX Runtime optimised it for this processor, and the plan of its memory.
//
// A cache is a folder of its own, mode 0700. Each entry is one file that is named by its key and
// says its format's version, its kind, its key, its size and its hash; a file that is not exactly
// that (cut off, damaged, of another key) is thrown away and built once more. Files are written under
// another name, synced and renamed, so that a reader sees a whole file or none, also after a crash.
//
// A cache never decides whether a model runs: where it cannot read or write, what is needed is built
// in memory and the reason is said. It holds at most 2 GiB in 256 files; the files that were used
// longest ago go first.
//
// Limits: Linux only. The folder has to be on a file system that renames atomically; without locks
// on it (some network file systems) two processes may build the same at once, which costs time and
// nothing else. Who may write to the folder can replace an entry and its hash together: that is
// why it has to be ours.
package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/eyas-edge/eyas/internal/fserr"
)

const (
	// maxFiles and maxTotal bound what a cache keeps: some 50 models of a detector's size with their
	// plans, on a board whose disk may have 16 GB.
	maxFiles = 256
	maxTotal = 2 << 30

	// patience bounds how long one waits for another process that builds the same. It is longer
	// than any model of the kind takes on a slow board; a holder that died does not count.
	patience = 60 * time.Second
)

// Cache is an open cache. Its methods may be called from any goroutine.
type Cache struct {
	dir  string
	root *os.Root // nil: keeps nothing
	why  error    // why root is nil; nil where that was asked for

	shared bool // weights go to shared memory

	maxFiles int
	maxTotal int64
	patience time.Duration
}

// None returns a cache that holds nothing and keeps nothing, as the user asked for.
func None() *Cache { return new(Cache) }

// Open opens the cache in the folder dir, which it makes, with mode 0700, if it is not there. It
// removes what processes that died in mid-write have left.
//
// A folder of another user, or one that others may write to, is refused: its entries
// could be anybody's. A folder that cannot be made or opened is no error: the cache then keeps
// nothing and each Origin says why.
func Open(dir string) (*Cache, error) {
	c := &Cache{dir: dir, maxFiles: maxFiles, maxTotal: maxTotal, patience: patience}
	if abs, err := filepath.Abs(dir); err == nil {
		c.dir = abs
	}
	err := os.MkdirAll(dir, 0o700)
	if err == nil || errors.Is(err, fs.ErrExist) {
		c.root, err = os.OpenRoot(dir)
	}
	if err != nil {
		c.why = c.unkept("optimised model", err)
		return c, nil
	}
	if err := c.check(); err != nil {
		c.root.Close()
		return nil, err
	}
	c.sweep()
	return c, nil
}

// check refuses a folder that is not ours alone.
func (c *Cache) check() error {
	info, err := c.root.Stat(".")
	if err != nil {
		return fmt.Errorf("cache %s: %w", c.dir, fserr.Bare(err))
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if uid := os.Geteuid(); !ok || int(st.Uid) != uid {
		return fmt.Errorf("cache %s: the folder belongs to user %d and this is user %d: remove it, or name another folder with EYAS_HOME", c.dir, st.Uid, uid)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("cache %s: others may write to the folder (mode %04o): empty it and take that right away with chmod 700, or name another folder with EYAS_HOME", c.dir, mode)
	} else if mode != 0o700 {
		// Nobody else could write so far. On a read-only file system it stays readable by others.
		_ = c.root.Chmod(".", 0o700)
	}
	return nil
}

// Shared returns the same cache, whose Weights lie in shared memory instead of private. One of the two is closed.
func (c *Cache) Shared() *Cache {
	s := *c
	s.shared = true
	return &s
}

// Close closes the folder. No method but Close may be called after it.
func (c *Cache) Close() error {
	if c.root == nil {
		return nil
	}
	return c.root.Close()
}

// Forget removes the entries of a key. It is for the weights that ONNX Runtime refuses though they
// are what was kept: they are then built again, once.
func (c *Cache) Forget(key Key) {
	if c.root == nil {
		return
	}
	for _, k := range []kind{weightsKind, planKind} {
		_ = c.root.Remove(k.file(key)) // what cannot be removed is replaced by the next write
	}
}

var errTooLarge = errors.New("is too large")

// unkept says that something cannot be kept.
func (c *Cache) unkept(what string, err error) error {
	if errors.Is(err, errTooLarge) {
		return fmt.Errorf("cache %s: the %s %w: it will be made again at the next start", c.dir, what, err)
	}
	return fmt.Errorf("cache %s: cannot keep the %s (%w), it will be made again at the next start: make room there, or name another folder with EYAS_HOME",
		c.dir, what, bare(err))
}

// bare takes the paths off an error: the folder is named beside it, and the temporary file is gone.
func bare(err error) error {
	var le *os.LinkError
	if errors.As(err, &le) {
		return le.Err
	}
	return fserr.Bare(err)
}

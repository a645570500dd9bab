package cache

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/internal/fserr"
)

const (
	lockName   = "lock"
	tempPrefix = "eyas-"
	tempSuffix = ".tmp"
	keyDigits  = 2 * len(Key{})

	// maxNames bounds how many names are read in one go. Ours are far fewer.
	maxNames = 8192
)

// open opens an entry's file and reads its header. What is there but not the entry is an error
// that is not fs.ErrNotExist. The caller closes f, which stands at the content.
func (c *Cache) open(k kind, key Key) (f *os.File, h header, err error) {
	name := k.file(key)
	seen, err := c.root.Lstat(name)
	if err != nil {
		return nil, header{}, fserr.Bare(err)
	}
	if !seen.Mode().IsRegular() {
		return nil, header{}, errors.New("is not a file")
	}
	if f, err = c.root.Open(name); err != nil {
		return nil, header{}, fserr.Bare(err)
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, header{}, fserr.Bare(err)
	}
	if !os.SameFile(seen, info) && !info.Mode().IsRegular() { // replaced in between: by another process, with a file
		return nil, header{}, errors.New("is not a file")
	}
	b := make([]byte, headerSize)
	if n, err := io.ReadFull(f, b); err != nil {
		b = b[:n] // which decodeHeader refuses
	}
	h, err = decodeHeader(b, info.Size(), k, key)
	return f, h, err
}

// used notes the time of use, by which entries go.
func (c *Cache) used(k kind, key Key) {
	now := time.Now()
	_ = c.root.Chtimes(k.file(key), now, now) // on a read-only file system nothing goes, either
}

// discard removes an entry that is no good and returns what to tell the user of it.
func (c *Cache) discard(k kind, key Key, bad error) error {
	name := k.file(key)
	_ = c.root.Remove(name) // what cannot be removed is replaced, or reported then
	return fmt.Errorf("cache %s: %s %w: thrown away and made again", c.dir, name, bad)
}

// write keeps an entry: under another name, synced, renamed. Room for it is made before.
func (c *Cache) write(h header, data []byte) error {
	if h.size > h.kind.limit() || headerSize+h.size > c.maxTotal {
		return fmt.Errorf("%w (%d bytes, kept are at most %d)", errTooLarge, h.size, min(h.kind.limit(), c.maxTotal-headerSize))
	}
	c.evict(h.kind.file(h.key), headerSize+h.size)
	f, name, err := c.temp()
	if err != nil {
		return err
	}
	defer f.Close() // after the rename, and with it the lock that says that somebody is writing
	_, err = f.Write(h.encode())
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = c.root.Rename(name, h.kind.file(h.key))
	}
	if err != nil {
		_ = c.root.Remove(name)
		return err
	}
	return c.sync()
}

// sync makes a rename last.
func (c *Cache) sync() error {
	dir, err := c.root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// temp makes a file to write to. It is locked as long as it is open.
func (c *Cache) temp() (*os.File, string, error) {
	for range 8 {
		name := tempPrefix + rand.Text() + tempSuffix
		f, err := c.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, "", err
		}
		locked, err := tryLock(f, 0)
		if err != nil { // a file system without locks: then nobody sweeps there
			return f, name, nil
		}
		// Between making and locking it another process may have taken it for a dead one's.
		if info, err := f.Stat(); locked && err == nil && info.Sys().(*syscall.Stat_t).Nlink > 0 {
			return f, name, nil
		}
		f.Close()
		_ = c.root.Remove(name)
	}
	return nil, "", errors.New("other processes remove what is being written")
}

// sweep removes the temporary files that nobody is writing to: their writers died. Names are
// never used twice, so what is removed is what was looked at.
func (c *Cache) sweep() {
	for _, name := range c.names() {
		if !strings.HasPrefix(name, tempPrefix) || !strings.HasSuffix(name, tempSuffix) {
			continue
		}
		if info, err := c.root.Lstat(name); err != nil || !info.Mode().IsRegular() {
			continue
		}
		f, err := c.root.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if locked, err := tryLock(f, 0); locked && err == nil {
			_ = c.root.Remove(name)
		}
		f.Close()
	}
}

// evict removes the entries that were used longest ago until one more, of size bytes and named name, fits.
func (c *Cache) evict(name string, size int64) {
	var entries []fs.FileInfo
	for _, n := range c.names() {
		if n == name || !isEntry(n) {
			continue
		}
		if info, err := c.root.Lstat(n); err == nil && info.Mode().IsRegular() {
			entries = append(entries, info)
		}
	}
	slices.SortFunc(entries, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	files, total := 1, size
	for _, e := range entries {
		files++
		total += e.Size()
		if files > c.maxFiles || total > c.maxTotal {
			_ = c.root.Remove(e.Name())
		}
	}
}

// isEntry says whether a name is one that an entry's file has. Nothing else is ever removed.
func isEntry(name string) bool {
	digits, suffix, _ := strings.Cut(name, ".")
	return len(digits) == keyDigits && strings.Trim(digits, "0123456789abcdef") == "" && (suffix == "ort" || suffix == "plan")
}

func (c *Cache) names() []string {
	dir, err := c.root.Open(".")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(maxNames)
	return names
}

// lock waits until no other process, and nobody else in this one, builds the entries of a key. After c.patience
// it goes on without: both then build, and the second rename wins. The same goes for a folder where
// nothing can be locked. The error is ctx's.
func (c *Cache) lock(ctx context.Context, key Key) (unlock func(), err error) {
	f, err := c.root.OpenFile(lockName, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return func() {}, nil
	}
	unlock = func() { f.Close() } // which frees the lock, as the end of the process does
	deadline := time.NewTimer(c.patience)
	defer deadline.Stop()
	// The system has no wait for a lock that ends; the work waited for takes a fraction of a second.
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	// One byte a key in one file: locks need no bytes, and there is no file to clean up.
	at := int64(binary.LittleEndian.Uint64(key[:]) >> 2)
	for {
		if locked, err := tryLock(f, at); locked || err != nil {
			return unlock, nil
		}
		select {
		case <-again.C:
		case <-deadline.C:
			return unlock, nil
		case <-ctx.Done():
			unlock()
			return nil, ctx.Err()
		}
	}
}

// tryLock locks one byte of an open file, which belongs to that opening: not to the process, and
// it is gone when the file is closed.
func tryLock(f *os.File, at int64) (bool, error) {
	l := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: at, Len: 1}
	switch err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &l); {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES):
		return false, nil
	default:
		return false, err
	}
}

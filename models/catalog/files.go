package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/internal/atomicfile"
)

// private makes home and dir below it, for this user alone, and refuses folders of others.
func private(home, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, d := range []string{home, dir} {
		if err := ours(d); err != nil {
			return err
		}
	}
	return nil
}

// lockPoll is how often a waiting Pull looks whether the other one is done.
const lockPoll = 200 * time.Millisecond

// lock waits until no other process, and no other Pull of this one, holds path.
func lock(ctx context.Context, path string) (func(), error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if errors.Is(err, unix.EWOULDBLOCK) { // a blocking flock could not be interrupted by ctx
			err = sleep(ctx, lockPoll)
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// write makes a file that is there whole, and on the disk, or not at all.
func write(path string, r io.Reader) error {
	err := atomicfile.Write(path, func(w io.Writer) error {
		_, err := io.Copy(w, r)
		return err
	})
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir puts a folder's entries on the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// maxNote bounds the small files that are kept beside downloads.
const maxNote = 1 << 20

func sumFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return sumOf(f)
}

// sumOf returns the hexadecimal SHA-256 of all of f.
func sumOf(f io.ReadSeeker) (string, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

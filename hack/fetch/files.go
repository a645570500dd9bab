package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/internal/atomicfile"
)

// sealName is the list of what a finished fetch left, in sha256sum's format. Its first
// line names the version of this list: raise it when what is fetched or converted changes.
const (
	sealName    = "SHA256SUMS"
	sealVersion = "# eyas fetch 3"
)

// lock makes a second fetch of the same folder wait for the first.
func lock(deps string) (func(), error) {
	f, err := os.OpenFile(filepath.Join(deps, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if err != unix.EINTR {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
}

// put writes a file whole or not at all, and makes its folder.
func put(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// link gives the library its other name, the one that linkers and ORT's own tools look for.
func link(deps string) error {
	name := filepath.Join(deps, "onnxruntime", "libonnxruntime.so")
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.Symlink("libonnxruntime.so.1", name)
}

// seal records the sums of all fetched files; from then on intact says yes.
func seal(deps string) error {
	var lines []string
	for _, dir := range []string{"onnxruntime", "models", "photos"} {
		err := filepath.WalkDir(filepath.Join(deps, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || strings.HasPrefix(d.Name(), ".") {
				return err
			}
			sum, err := sumFile(path)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(deps, path)
			lines = append(lines, sum+"  "+filepath.ToSlash(rel))
			return err
		})
		if err != nil {
			return err
		}
	}
	sort.Strings(lines)
	say("%d files are in %s", len(lines), deps)
	return put(filepath.Join(deps, sealName), []byte(sealVersion+"\n"+strings.Join(lines, "\n")+"\n"))
}

// intact says whether everything that an earlier fetch sealed is still as it was.
func intact(deps string) bool {
	f, err := os.Open(filepath.Join(deps, sealName))
	if err != nil {
		return false
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	if !lines.Scan() || lines.Text() != sealVersion {
		return false
	}
	n := 0
	for lines.Scan() {
		want, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok || !filepath.IsLocal(name) {
			return false
		}
		got, err := sumFile(filepath.Join(deps, filepath.FromSlash(name)))
		if err != nil || got != want {
			say("%s is missing or was changed, fetching again", name)
			return false
		}
		n++
	}
	_, err = os.Stat(filepath.Join(deps, "onnxruntime", "libonnxruntime.so"))
	return n > 0 && lines.Err() == nil && err == nil
}

func sumFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

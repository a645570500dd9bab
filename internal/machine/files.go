package machine

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/eyas-edge/eyas/internal/shown"
)

// maxFile bounds what is read of a file, in bytes. /proc/cpuinfo of a machine with
// many cores is the longest, and its beginning is enough.
const maxFile = 256 << 10

// files reads below a root directory.
type files struct{ root string }

func (f files) path(name string) string { return filepath.Join(f.root, name) }

// text returns the beginning of a file, empty if it cannot be read.
func (f files) text(name string) string {
	file, err := os.Open(f.path(name))
	if err != nil {
		return ""
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		return ""
	}
	return string(data)
}

// line returns the first line of a file without spaces at its ends.
func (f files) line(name string) string {
	first, _, _ := strings.Cut(f.text(name), "\n")
	return printable(first)
}

func (f files) exists(name string) bool {
	_, err := os.Stat(f.path(name))
	return err == nil
}

// glob returns the paths below the root that match, at most a hundred.
func (f files) glob(pattern string) []string {
	list, _ := filepath.Glob(f.path(pattern)) // the only error is a bad pattern
	return list[:min(len(list), 100)]
}

// field returns the value of a "key: value" line, empty if there is none.
func field(text, key string) string {
	for line := range strings.Lines(text) {
		k, v, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(k) == key {
			return printable(v)
		}
	}
	return ""
}

// printable makes outside text fit for one line of a terminal.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if !shown.Rune(r) || r == 0xfffd {
			return -1
		}
		return r
	}, s)
	s = strings.TrimSpace(s)
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "")
	}
	return s
}

// number parses a whole number of bytes or microseconds; ok is false for "max", -1
// and whatever else is no count.
func number(s string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
	return n, err == nil
}

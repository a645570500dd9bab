package ring

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// socketSuffix ends the names of the rings' sockets.
const socketSuffix = ".ring"

// maxFileName is the longest name of a file, in bytes.
const maxFileName = 255

// fileName returns a ring's name as part of a file's name: what a file name cannot have or a terminal
// should not see is written as %XX, and so is a first dot, which would hide the file.
func fileName(name string) string {
	var b strings.Builder
	for i, r := range name {
		size := utf8.RuneLen(r)
		if r == utf8.RuneError {
			_, size = utf8.DecodeRuneInString(name[i:])
		}
		if r == '/' || r == '%' || r == '.' && i == 0 || !unicode.IsPrint(r) || r == utf8.RuneError && size == 1 {
			for _, c := range []byte(name[i : i+size]) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// socketName returns the file name of a ring's socket.
func socketName(name string) (string, error) {
	file := fileName(name) + socketSuffix
	switch {
	case name == "":
		return "", fmt.Errorf("a ring needs a name")
	case len(file) > maxFileName:
		return "", fmt.Errorf("ring %.40s...: its name is too long for a file's: give the source a shorter one (NAME=...)", name)
	}
	return file, nil
}

// List returns the names of the rings that have a socket in dir, sorted, whether their writer still lives or not. A
// folder that is not there has none.
func List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list rings: %w", err)
	}
	var names []string
	for _, e := range entries {
		file, ok := strings.CutSuffix(e.Name(), socketSuffix)
		if !ok || e.Type()&os.ModeSocket == 0 {
			continue
		}
		// A name that we would write otherwise is nobody's ring: Connect would look for another file.
		if name, err := url.PathUnescape(file); err == nil && name != "" && fileName(name) == file {
			names = append(names, name)
		}
	}
	return names, nil
}

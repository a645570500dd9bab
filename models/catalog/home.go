package catalog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

const library = "libonnxruntime.so"

// Home returns the folder of models and libraries: $EYAS_HOME, else $XDG_DATA_HOME/eyas, else
// ~/.local/share/eyas. Relative values count from the current folder, as a shell would read them.
func Home() (string, error) {
	if dir := os.Getenv("EYAS_HOME"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) { // the specification ignores others
		return filepath.Join(dir, "eyas"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("no home directory is known: set EYAS_HOME to a folder for models and libraries")
	}
	return filepath.Join(home, ".local", "share", "eyas"), nil
}

var nameOf = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Find returns the file of something pulled: the .onnx of a model, libonnxruntime.so of
// "onnxruntime:KIND". It looks into Home, then into .deps of Eyas' own source tree where the
// program runs in or from one. Folders that others may write to are not trusted.
func Find(name string) (string, bool) {
	var below string
	dep := "models/" + name + ".onnx"
	if kind, ok := strings.CutPrefix(name, "onnxruntime:"); ok {
		below, name = "onnxruntime/"+ortVersion+"-"+kind+"/"+library, kind
		dep = "onnxruntime/" + library // npm's library knows the CPU only
		if kind != "cpu" {
			dep = ""
		}
	} else {
		below = dep
	}
	if !nameOf.MatchString(name) {
		return "", false
	}
	if home, err := Home(); err == nil {
		if path := filepath.Join(home, below); usable(path) {
			return path, true
		}
	}
	if root := sourceTree(); root != "" && dep != "" {
		if path := filepath.Join(root, ".deps", dep); usable(path) {
			return path, true
		}
	}
	return "", false
}

// usable says whether path is a file in a folder of ours.
func usable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && ours(filepath.Dir(path)) == nil
}

// ours fails for a folder that belongs to somebody else, or that others may write to: they
// could exchange what was checked. Root's folders count as ours.
func ours(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", dir)
	case ok && st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user (id %d): set EYAS_HOME to a folder of your own", dir, st.Uid)
	case info.Mode().Perm()&0o002 != 0:
		return fmt.Errorf("%s can be written by everybody: run chmod o-w %s", dir, dir)
	}
	return nil
}

// sourceTree returns the root of Eyas' source tree, or "": the folder above the program's own
// (bin/eyas), else the nearest go.mod above the current folder (go run, go test).
func sourceTree() string {
	if exe, err := os.Executable(); err == nil {
		if root := filepath.Dir(filepath.Dir(exe)); isSource(root) {
			return root
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			if isSource(dir) {
				return dir
			}
			return ""
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

func isSource(dir string) bool {
	f, err := os.Open(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 4096)).ReadString('\n')
	return strings.TrimSpace(line) == "module github.com/eyas-edge/eyas"
}

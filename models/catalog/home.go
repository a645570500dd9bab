package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/eyas-edge/eyas/internal/places"
)

const library = "libonnxruntime.so"

// Home returns the folder of models and libraries: $EYAS_HOME, else $XDG_DATA_HOME/eyas, else
// ~/.local/share/eyas. A relative EYAS_HOME counts from the current folder, as a shell would read it.
func Home() (string, error) { return places.Here().Home() }

var nameOf = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Find returns the file of something pulled: the .onnx of a model, libonnxruntime.so of
// "onnxruntime:KIND". It looks into Home, then into .deps of Eyas' own source tree where the
// program is built in or from one. Folders that others may write to are not trusted.
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
	here := places.Here()
	if home, err := here.Home(); err == nil {
		if path := filepath.Join(home, below); usable(path) {
			return path, true
		}
	}
	if root := here.SourceTree(); root != "" && dep != "" {
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

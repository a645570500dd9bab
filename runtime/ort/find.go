package ort

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/eyas-edge/eyas/internal/machine"
	"github.com/eyas-edge/eyas/internal/places"
)

// Found is a library that Find came upon.
type Found struct {
	Path  string   // the file
	Why   string   // which rule found it, for doctor: "--ort", "EYAS_ORT_LIB", ...
	Tried []string // the files and directories looked at before, in order
}

const libraryName = "libonnxruntime.so"

// Find looks for ONNX Runtime's library: explicit (a file or directory, from
// --ort), EYAS_ORT_LIB, beside the executable, the project's fetched copy, the
// copy that `eyas pull` made, the system's directories. An explicit choice that is
// not there is an error, never a reason to look further. It does not load or check
// the library. Errors are ErrLibrary; Tried is filled in either case.
func Find(explicit string) (Found, error) {
	return finder{Surroundings: places.Here(), root: "/"}.find(explicit)
}

// finder is Find with its surroundings.
type finder struct {
	places.Surroundings
	root string // prefix of the system's directories
}

// place is one directory to look into, by the rule why.
type place struct{ dir, why string }

func (f finder) find(explicit string) (Found, error) {
	for _, choice := range []place{{explicit, "--ort"}, {f.Env("EYAS_ORT_LIB"), "EYAS_ORT_LIB"}} {
		if choice.dir == "" {
			continue
		}
		if path := libraryAt(choice.dir); path != "" {
			return Found{Path: path, Why: choice.why}, nil
		}
		return Found{Tried: []string{choice.dir}}, fail(ErrLibrary, "onnx runtime: %s %s: no %s there", choice.why, choice.dir, libraryName)
	}
	found := Found{}
	for _, p := range f.places() {
		if path := libraryAt(p.dir); path != "" {
			found.Path, found.Why = path, p.why
			return found, nil
		}
		found.Tried = append(found.Tried, p.dir)
	}
	return found, fail(ErrLibrary, "onnx runtime: no %s found; run `eyas pull onnxruntime:cpu` or name one with --ort", libraryName)
}

// places lists the directories to look into, best first, each once.
func (f finder) places() []place {
	var list []place
	add := func(why string, dirs ...string) {
		for _, d := range dirs {
			if filepath.IsAbs(d) && !slices.ContainsFunc(list, func(p place) bool { return p.dir == filepath.Clean(d) }) {
				list = append(list, place{filepath.Clean(d), why})
			}
		}
	}
	if f.Exe != "" {
		dir := filepath.Dir(f.Exe)
		add("beside the executable", dir, filepath.Join(dir, "..", "lib"))
	}
	if root := f.SourceTree(); root != "" {
		add("the project's copy", filepath.Join(root, ".deps", "onnxruntime"))
	}
	add("pulled", f.pulled()...)
	triplet := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[goruntime.GOARCH]
	for _, dir := range []string{"usr/lib", "usr/lib/" + triplet, "usr/lib64", "usr/local/lib", "opt/onnxruntime/lib"} {
		add("the system", filepath.Join(f.root, dir))
	}
	add("LD_LIBRARY_PATH", filepath.SplitList(f.Env("LD_LIBRARY_PATH"))...)
	return list
}

// pulled lists the directories of pulled builds. Where there are several, a build
// for the GPU comes first on a machine that has one and last elsewhere, then the
// newer name.
func (f finder) pulled() []string {
	home, err := f.Home()
	if err != nil {
		return nil // nobody has pulled anything to nowhere
	}
	base := filepath.Join(home, "onnxruntime")
	entries, _ := os.ReadDir(base) // no directory, nothing pulled
	var builds []string
	for _, e := range entries {
		if e.IsDir() && e.Name() != "lib" && e.Name()[0] != '.' { // a build that is being unpacked is hidden
			builds = append(builds, e.Name())
		}
	}
	gpu := machine.NVIDIA(f.root).Present
	slices.SortFunc(builds, func(a, b string) int {
		ca, cb := strings.Contains(a, "cuda") == gpu, strings.Contains(b, "cuda") == gpu
		if ca != cb {
			if ca {
				return -1
			}
			return 1
		}
		return natural(b, a)
	})
	dirs := []string{base, filepath.Join(base, "lib")}
	for _, b := range builds {
		dirs = append(dirs, filepath.Join(base, b), filepath.Join(base, b, "lib"))
	}
	return dirs
}

// libraryAt returns the library that path means: the file itself, or in a directory
// libonnxruntime.so or else its newest versioned name. Empty if there is none.
func libraryAt(path string) string {
	st, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if !st.IsDir() {
		return path
	}
	if p := filepath.Join(path, libraryName); exists(p) {
		return p
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return ""
	}
	best := ""
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), libraryName+".") && exists(filepath.Join(path, e.Name())) && natural(e.Name(), best) > 0 {
			best = e.Name()
		}
	}
	if best == "" {
		return ""
	}
	return filepath.Join(path, best)
}

// natural compares names part by part between dots and dashes, numbers as numbers:
// 1.9 comes before 1.30.
func natural(a, b string) int {
	split := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return r == '.' || r == '-' })
	}
	pa, pb := split(a), split(b)
	for i := range min(len(pa), len(pb)) {
		na, ea := strconv.Atoi(pa[i])
		nb, eb := strconv.Atoi(pb[i])
		switch {
		case ea == nil && eb == nil && na != nb:
			return na - nb
		case (ea != nil || eb != nil) && pa[i] != pb[i]:
			return strings.Compare(pa[i], pb[i])
		}
	}
	return len(pa) - len(pb)
}

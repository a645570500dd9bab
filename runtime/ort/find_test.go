package ort

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/eyas-edge/eyas/internal/places"
)

// tree makes files below a temporary directory; a file called go.mod is the
// project's.
func tree(t *testing.T, files ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, f := range files {
		path := filepath.Join(root, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		text := ""
		if filepath.Base(f) == "go.mod" {
			text = "module github.com/eyas-edge/eyas\n\ngo 1.26\n"
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestFind(t *testing.T) {
	const so = libraryName
	for _, c := range []struct {
		name     string
		files    []string
		explicit string            // below the root
		exe, wd  string            // below the root
		env      map[string]string // values below the root
		want     string            // below the root; empty: none is found
		why      string
	}{
		{name: "nothing", exe: "bin/eyas"},
		{name: "explicit file", files: []string{"x/my.so", "bin/" + so}, explicit: "x/my.so", exe: "bin/eyas", want: "x/my.so", why: "--ort"},
		{name: "explicit directory", files: []string{"x/" + so + ".1.9.0", "x/" + so + ".1.30.0"}, explicit: "x", want: "x/" + so + ".1.30.0", why: "--ort"},
		{name: "explicit and gone", files: []string{"bin/" + so}, explicit: "y", exe: "bin/eyas"},
		{name: "explicit empty directory", files: []string{"x/readme", "bin/" + so}, explicit: "x", exe: "bin/eyas"},
		{name: "variable", files: []string{"x/" + so, "bin/" + so}, env: map[string]string{"EYAS_ORT_LIB": "x"}, exe: "bin/eyas", want: "x/" + so, why: "EYAS_ORT_LIB"},
		{name: "variable and gone", files: []string{"bin/" + so}, env: map[string]string{"EYAS_ORT_LIB": "x"}, exe: "bin/eyas"},
		{name: "flag over variable", files: []string{"x/" + so, "y/" + so}, explicit: "y", env: map[string]string{"EYAS_ORT_LIB": "x"}, want: "y/" + so, why: "--ort"},
		{name: "beside", files: []string{"bin/" + so, "lib/" + so}, exe: "bin/eyas", want: "bin/" + so, why: "beside the executable"},
		{name: "lib", files: []string{"lib/" + so}, exe: "bin/eyas", want: "lib/" + so, why: "beside the executable"},
		{name: "project", files: []string{"p/go.mod", "p/.deps/onnxruntime/" + so + ".1"}, exe: "p/bin/eyas", want: "p/.deps/onnxruntime/" + so + ".1", why: "the project's copy"},
		{name: "go run", files: []string{"p/go.mod", "p/.deps/onnxruntime/" + so}, exe: "go-build1/b001/eyas", wd: "p/cmd/eyas", want: "p/.deps/onnxruntime/" + so, why: "the project's copy"},
		{name: "installed, in some project", files: []string{"p/go.mod", "p/.deps/onnxruntime/" + so}, exe: "usr/bin/eyas", wd: "p"},
		{name: "pulled", files: []string{"home/onnxruntime/cpu-1.30.0/lib/" + so}, exe: "bin/eyas", env: map[string]string{"EYAS_HOME": "home"}, want: "home/onnxruntime/cpu-1.30.0/lib/" + so, why: "pulled"},
		{name: "pulled, not whole", files: []string{"home/onnxruntime/.unpack-1.30.0-cpu-7/" + so}, exe: "bin/eyas", env: map[string]string{"EYAS_HOME": "home"}},
		{name: "pulled, default place", files: []string{"h/.local/share/eyas/onnxruntime/" + so}, env: map[string]string{"HOME": "h"}, want: "h/.local/share/eyas/onnxruntime/" + so, why: "pulled"},
		{name: "pulled, newest", files: []string{"d/eyas/onnxruntime/cpu-1.9.0/" + so, "d/eyas/onnxruntime/cpu-1.30.0/" + so, "d/eyas/onnxruntime/cuda12-1.31.0/" + so},
			env: map[string]string{"XDG_DATA_HOME": "d"}, want: "d/eyas/onnxruntime/cpu-1.30.0/" + so, why: "pulled"},
		{name: "pulled, with a GPU", files: []string{"dev/nvidia0", "d/eyas/onnxruntime/cpu-1.30.0/" + so, "d/eyas/onnxruntime/cuda12-1.30.0/" + so},
			env: map[string]string{"XDG_DATA_HOME": "d"}, want: "d/eyas/onnxruntime/cuda12-1.30.0/" + so, why: "pulled"},
		{name: "system", files: []string{"usr/local/lib/" + so, "opt/onnxruntime/lib/" + so}, want: "usr/local/lib/" + so, why: "the system"},
		{name: "library path", files: []string{"x/" + so}, env: map[string]string{"LD_LIBRARY_PATH": "x"}, want: "x/" + so, why: "LD_LIBRARY_PATH"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := tree(t, c.files...)
			below := func(p string) string {
				if p == "" {
					return ""
				}
				return filepath.Join(root, p)
			}
			f := finder{root: root, Surroundings: places.Surroundings{
				Exe: below(c.exe), Wd: below(c.wd), Env: func(k string) string { return below(c.env[k]) },
			}}
			got, err := f.find(below(c.explicit))
			if c.want == "" {
				if !errors.Is(err, ErrLibrary) || len(got.Tried) == 0 {
					t.Errorf("found %+v, %v", got, err)
				}
				return
			}
			if err != nil || got.Path != below(c.want) || got.Why != c.why {
				t.Errorf("found %s (%s), %v; want %s (%s)", got.Path, got.Why, err, below(c.want), c.why)
			}
		})
	}
}

// A relative EYAS_HOME is the folder that pull writes to: below the working directory.
func TestFindInARelativeHome(t *testing.T) {
	root := tree(t, "w/home/onnxruntime/1.30.0-cpu/"+libraryName)
	f := finder{root: root, Surroundings: places.Surroundings{
		Exe: filepath.Join(root, "bin", "eyas"), Wd: filepath.Join(root, "w"),
		Env: func(k string) string { return map[string]string{"EYAS_HOME": "home"}[k] },
	}}
	if got, err := f.find(""); err != nil || got.Why != "pulled" {
		t.Errorf("found %+v, %v", got, err)
	}
}

// Find itself, with the surroundings that it really has.
func TestFindExplicit(t *testing.T) {
	root := tree(t, "lib.so")
	if got, err := Find(filepath.Join(root, "lib.so")); err != nil || got.Why != "--ort" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Find(filepath.Join(root, "none")); !errors.Is(err, ErrLibrary) {
		t.Errorf("%v", err)
	}
}

func TestNatural(t *testing.T) {
	want := []string{"", "libonnxruntime.so.1", "libonnxruntime.so.1.9.0", "libonnxruntime.so.1.30.0", "libonnxruntime.so.1.30.0.1", "libonnxruntime.so.2"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, natural)
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

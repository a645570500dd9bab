package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// first is what a start with its cache shows: results without their times, and what was made.
type first struct {
	found    string
	recorded int64 // runs
	warnings []string
}

// cacheRun returns the arguments of a run that says what it made.
func cacheRun(t testing.TB, args ...string) []string {
	return append(fast(t, picture(t, "classic/zidane.jpg"), "--events"), args...)
}

// read splits what such a run has written.
func read(t testing.TB, stdout, stderr string, code int) first {
	t.Helper()
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var f first
	for line := range strings.Lines(stdout) {
		var r struct {
			Event      string
			Detections json.RawMessage
			Memory     *struct{ Recordings int64 }
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		f.found += string(r.Detections)
		if r.Event == "summary" {
			f.recorded = r.Memory.Recordings
		}
	}
	if !strings.Contains(f.found, "person") {
		t.Fatalf("nothing was found: %s", stdout)
	}
	for line := range strings.Lines(stderr) {
		f.warnings = append(f.warnings, strings.TrimSuffix(line, "\n"))
	}
	return f
}

// begin runs with a folder for caches.
func begin(t testing.TB, home string, args ...string) first {
	t.Helper()
	c := command(cacheRun(t, args...)...)
	c.Env = append(c.Env, "EYAS_HOME="+home)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	code := ends(t, c)
	return read(t, out.String(), errs.String(), code)
}

// entries returns the files of a cache by their suffix; their identity tells whether they were made anew.
func entries(t testing.TB, home string) map[string]fs.FileInfo {
	t.Helper()
	all := map[string]fs.FileInfo{}
	files, err := os.ReadDir(filepath.Join(home, "cache"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if errors.Is(err, fs.ErrNotExist) { // it was being written, and is there by its own name now
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		kind := filepath.Ext(f.Name())
		data, _ := os.ReadFile(filepath.Join(home, "cache", f.Name()))
		if kind == ".plan" && bytes.Contains(data, []byte(`"profiles"`)) {
			kind = ".profiles" // how fast all models were, and not what one of them allocates
		}
		if all[kind] == nil || kind != ".plan" {
			all[kind] = info
		} else {
			t.Errorf("two plans of one model: %s and %s", all[kind].Name(), f.Name())
		}
	}
	return all
}

// warm checks that a start finds everything, says nothing, and finds the same objects.
func warm(t testing.TB, home, want string) {
	t.Helper()
	before := entries(t, home)
	f := begin(t, home)
	if f.recorded != 0 || len(f.warnings) > 0 || f.found != want {
		t.Errorf("the next start records %d runs, says %q, finds %s, want %s", f.recorded, f.warnings, f.found, want)
	}
	after := entries(t, home)
	for _, kind := range []string{".ort", ".plan"} {
		if before[kind] == nil || after[kind] == nil || !os.SameFile(before[kind], after[kind]) {
			t.Errorf("the next start makes its %s anew, or there is none", kind)
		}
	}
}

// one checks that the warnings are one line with a text, or none where there is no text.
func one(t testing.TB, warnings []string, text string) {
	t.Helper()
	if (text == "") != (len(warnings) == 0) || len(warnings) > 1 || !strings.Contains(strings.Join(warnings, "\n"), text) {
		t.Errorf("says %q, want one line with %q", warnings, text)
	}
	for _, line := range warnings {
		saysOnce(t, line)
	}
}

// Whatever has become of the files of a cache, a run gives the same results with one warning at most, and the next
// one finds what it needs.
func TestDamagedCache(t *testing.T) {
	home := t.TempDir()
	cold := begin(t, home)
	if cold.recorded == 0 || len(cold.warnings) > 0 {
		t.Errorf("the first start records %d runs and says %q", cold.recorded, cold.warnings)
	}
	warm(t, home, cold.found)
	elsewhere := t.TempDir()
	write(t, filepath.Join(elsewhere, "other"), strings.Repeat("ORTM and nothing that follows from it", 1000))
	path := func(kind string) string { return filepath.Join(home, "cache", entries(t, home)[kind].Name()) }
	content := func(kind string) []byte {
		data, err := os.ReadFile(path(kind))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	replace := func(kind string, data []byte) {
		to := path(kind)
		if err := os.Remove(to); err != nil {
			t.Fatal(err)
		}
		write(t, to, string(data))
	}
	flipped := func(kind string, at int) []byte {
		data := content(kind)
		data[at%len(data)] ^= 0x10
		return data
	}
	half := func(kind string) []byte { data := content(kind); return data[:len(data)/2] }
	for _, c := range []struct {
		name     string
		damage   func()
		warning  string // "" for none
		recorded bool   // a plan goes with the weights that it was made for
	}{
		{"torn weights", func() { replace(".ort", half(".ort")) }, "is cut off", true},
		{"damaged weights", func() { replace(".ort", flipped(".ort", 100_000)) }, "is damaged", true},
		{"empty weights", func() { replace(".ort", nil) }, "is cut off", true},
		{"foreign weights", func() { replace(".ort", []byte(strings.Repeat("ORTM", 1000))) }, "is no file of this cache", true},
		{"a plan as weights", func() { replace(".ort", content(".plan")) }, "holds an entry of kind 2", true},
		{"a link to elsewhere", func() {
			to := path(".ort")
			if err := os.Remove(to); err != nil {
				t.Fatal(err)
			}
			link(t, filepath.Join(elsewhere, "other"), to)
		}, "is not a file", true},
		{"no weights", func() { _ = os.Remove(path(".ort")) }, "", true},
		{"torn plan", func() { replace(".plan", half(".plan")) }, "", true},
		{"damaged plan", func() { replace(".plan", flipped(".plan", 200)) }, "", true},
		{"foreign plan", func() { replace(".plan", content(".ort")) }, "", true},
		{"no plan", func() { _ = os.Remove(path(".plan")) }, "", true},
		{"a torn plan and torn weights", func() {
			replace(".plan", half(".plan"))
			replace(".ort", half(".ort"))
		}, "is cut off", true},
		{"a temporary file of a dead process", func() { write(t, filepath.Join(home, "cache", "eyas-DEAD.tmp"), "half") }, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.damage()
			f := begin(t, home)
			if f.found != cold.found {
				t.Errorf("finds %s, want %s", f.found, cold.found)
			}
			one(t, f.warnings, c.warning)
			if c.recorded != (f.recorded > 0) {
				t.Errorf("%d runs were recorded", f.recorded)
			}
			warm(t, home, cold.found)
		})
	}
	if left := entries(t, home)[".tmp"]; left != nil {
		t.Errorf("%s is left", left.Name())
	}
	if data, err := os.ReadFile(filepath.Join(elsewhere, "other")); err != nil || !strings.HasPrefix(string(data), "ORTM") {
		t.Errorf("the file that a link of the cache pointed to was touched: %v", err)
	}
}

// A process that is killed at its first start, at any moment of it, leaves nothing that is in the way of the next one.
func TestKilledAtTheFirstStart(t *testing.T) {
	want := begin(t, t.TempDir(), "--no-cache").found
	has := func(home, kind string) bool { return entries(t, home)[kind] != nil }
	for _, c := range []struct {
		name  string
		reach func(home string) bool // the moment
	}{
		{"the folder is made", func(home string) bool { _, err := os.Stat(filepath.Join(home, "cache")); return err == nil }},
		{"weights are being written", func(home string) bool { return has(home, ".tmp") || has(home, ".ort") }},
		{"weights are there", func(home string) bool { return has(home, ".ort") }},
		{"a plan is there", func(home string) bool { return has(home, ".plan") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			p := command(cacheRun(t)...)
			p.Env = append(p.Env, "EYAS_HOME="+home)
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(20 * time.Second); !c.reach(home); runtime.Gosched() {
				if time.Now().After(deadline) {
					t.Error("the moment does not come")
					break
				}
			}
			if err := p.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			ends(t, p)
			var names []string
			for _, info := range entries(t, home) {
				names = append(names, info.Name())
			}
			t.Logf("left are %q", names)
			f := begin(t, home)
			one(t, f.warnings, "")
			if f.found != want {
				t.Errorf("finds %s, want %s", f.found, want)
			}
			warm(t, home, want)
			if left := entries(t, home)[".tmp"]; left != nil {
				t.Errorf("%s is left", left.Name())
			}
		})
	}
}

// Two processes that start at once with nothing in the cache both run, and neither has a word to say.
func TestTwoFirstStarts(t *testing.T) {
	want := begin(t, t.TempDir(), "--no-cache").found
	home := t.TempDir()
	var both [2]*exec.Cmd
	var out, errs [2]bytes.Buffer
	for i := range both {
		c := command(cacheRun(t)...)
		c.Env = append(c.Env, "EYAS_HOME="+home)
		c.Stdout, c.Stderr = &out[i], &errs[i]
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		both[i] = c
	}
	for i, c := range both {
		code := ends(t, c)
		f := read(t, out[i].String(), errs[i].String(), code)
		one(t, f.warnings, "")
		if f.found != want {
			t.Errorf("process %d finds %s, want %s", i, f.found, want)
		}
	}
	warm(t, home, want)
}

// disk mounts a file system of 16 MiB for caches.
func disk(t *testing.T) (home string) {
	t.Helper()
	home = t.TempDir()
	if err := unix.Mount("tmpfs", home, "tmpfs", 0, "mode=700,size=16m"); err != nil {
		t.Skipf("cannot mount a file system here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(home, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return home
}

// On a full disk everything runs, with one warning, and what fits is kept; once there is room the next start but one
// is warm.
func TestCacheOnAFullDisk(t *testing.T) {
	roomy := t.TempDir()
	cold := begin(t, roomy)
	page := int64(os.Getpagesize())
	weights := (entries(t, roomy)[".ort"].Size() + page - 1) / page * page
	for _, c := range []struct {
		name string
		room int64
		kept []string
	}{
		{"no room at all", 0, nil},
		{"room for the plan", weights - page, []string{".plan"}},
		{"room for the weights", weights, []string{".ort"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := disk(t)
			others := filepath.Join(home, "others")
			write(t, others, strings.Repeat("x", 16<<20-int(c.room)))
			for range 2 {
				f := begin(t, home)
				if f.found != cold.found {
					t.Errorf("finds %s, want %s", f.found, cold.found)
				}
				one(t, f.warnings, "no space left on device")
				all := entries(t, home)
				for _, kind := range []string{".ort", ".plan", ".tmp"} {
					if (all[kind] != nil) != slices.Contains(c.kept, kind) {
						t.Errorf("a file %s is there: %v", kind, all[kind] != nil)
					}
				}
			}
			if err := os.Remove(others); err != nil {
				t.Fatal(err)
			}
			one(t, begin(t, home).warnings, "")
			warm(t, home, cold.found)
		})
	}
}

// A place that cannot be written to is read; what is not there is made in memory.
func TestReadOnlyCache(t *testing.T) {
	home := disk(t)
	readOnly := func(flag uintptr) {
		t.Helper()
		if err := unix.Mount("", home, "", unix.MS_REMOUNT|flag, ""); err != nil {
			t.Fatal(err)
		}
	}
	readOnly(unix.MS_RDONLY)
	cold := begin(t, home)
	one(t, cold.warnings, "read-only file system")
	readOnly(0)
	begin(t, home)
	readOnly(unix.MS_RDONLY)
	warm(t, home, cold.found)
	c := command(fast(t, "test:pattern?size=64x64&frames=20", "-o", os.DevNull)...)
	c.Env = append(c.Env, "EYAS_HOME="+home)
	var errs bytes.Buffer
	c.Stderr = &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if code := ends(t, c); code != 0 {
		t.Errorf("exit code %d", code)
	}
	// What such a run took is not kept for the next: nothing that a user has to know.
	if errs.Len() > 0 {
		t.Errorf("a warm run from a read-only cache says %s", errs.String())
	}
}

// --no-cache reads nothing and writes nothing.
func TestNoCache(t *testing.T) {
	home := t.TempDir()
	want := begin(t, home)
	before := entries(t, home)
	write(t, filepath.Join(home, "cache", before[".ort"].Name()), "damaged")
	f := begin(t, home, "--no-cache")
	one(t, f.warnings, "")
	if f.found != want.found || f.recorded == 0 {
		t.Errorf("%d runs recorded, finds %s, want %s", f.recorded, f.found, want.found)
	}
	empty := t.TempDir()
	begin(t, empty, "--no-cache")
	if files, err := os.ReadDir(filepath.Join(empty, "cache")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, %v", files, err)
	}
}

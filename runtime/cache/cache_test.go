package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/eyas-edge/eyas/runtime/ort"
)

func TestMain(m *testing.M) {
	if job := os.Getenv(childJob); job != "" {
		os.Exit(child(job))
	}
	goleak.VerifyTestMain(m)
}

// open opens a cache for the life of a test.
func open(t testing.TB, dir string) *Cache {
	t.Helper()
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// content returns size bytes that differ by seed and place.
func content(seed byte, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = seed + byte(i) + byte(i>>8)*31 + byte(i>>16)*7
	}
	return b
}

// builder builds data and counts how often.
type builder struct {
	data   []byte
	builds int
}

func (b *builder) build(path string) error {
	b.builds++
	return os.WriteFile(path, b.data, 0o600)
}

// get has weights made or found, checks their bytes and gives them back.
func get(t testing.TB, c *Cache, key Key, b *builder) Origin {
	t.Helper()
	w, origin, err := c.Weights(context.Background(), key, b.build)
	if err != nil {
		t.Fatal(err)
	}
	checkWeights(t, w, b.data)
	if origin.Warning != nil && strings.Contains(origin.Warning.Error(), "\n") {
		t.Errorf("the warning has more than one line: %v", origin.Warning)
	}
	return origin
}

func checkWeights(t testing.TB, w *ort.Weights, want []byte) {
	t.Helper()
	if !bytes.Equal(w.Bytes(), want) {
		t.Error("other bytes")
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// warns checks that a warning is there and names what it is about.
func warns(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no warning, want one with %q", parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("warning %q does not say %q", err, p)
		}
	}
	t.Log(err)
}

// files returns the names in a folder but the lock's.
func files(t testing.TB, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		if e.Name() != lockName {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestWeightsAreFoundAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "cache")
	key, b := NewKey("model"), &builder{data: content(1, 100_000)}
	if o := get(t, open(t, dir), key, b); o != (Origin{Kept: true}) {
		t.Errorf("first: %+v", o)
	}
	for range 2 {
		if o := get(t, open(t, dir), key, b); o != (Origin{Found: true, Kept: true}) {
			t.Errorf("again: %+v", o)
		}
	}
	other := &builder{data: content(2, 50_000)}
	if o := get(t, open(t, dir), NewKey("other"), other); o.Found {
		t.Errorf("another key: %+v", o)
	}
	if b.builds != 1 || other.builds != 1 {
		t.Errorf("built %d and %d times", b.builds, other.builds)
	}
	for _, name := range append(files(t, dir), ".") {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", name, st.Mode())
		}
	}
	if n := files(t, dir); len(n) != 2 {
		t.Errorf("files %q", n)
	}
}

func TestPlans(t *testing.T) {
	dir := t.TempDir()
	c, key := open(t, dir), NewKey("plan")
	if _, ok := c.Plan(key); ok {
		t.Error("a plan that nobody saved")
	}
	for _, plan := range [][]byte{[]byte("first"), content(3, 70_000), {}} {
		if err := c.SavePlan(key, plan); err != nil {
			t.Fatal(err)
		}
		if got, ok := open(t, dir).Plan(key); !ok || !bytes.Equal(got, plan) {
			t.Errorf("got %d bytes, %v, want %d", len(got), ok, len(plan))
		}
	}
	if err := c.SavePlan(key, make([]byte, planKind.limit()+1)); err == nil {
		t.Error("a plan of any size is kept")
	} else {
		t.Log(err)
	}
	path := filepath.Join(dir, planKind.file(key))
	if err := os.WriteFile(path, []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Plan(key); ok {
		t.Error("a torn plan")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a torn plan stays")
	}
	// Weights and plan of one key are two entries.
	get(t, c, key, &builder{data: content(1, 10)})
	if err := c.SavePlan(key, []byte("p")); err != nil {
		t.Fatal(err)
	}
	if n := files(t, dir); len(n) != 2 {
		t.Errorf("files %q", n)
	}
	c.Forget(key)
	c.Forget(key)
	if n := files(t, dir); len(n) != 0 {
		t.Errorf("files %q are not forgotten", n)
	}
}

// Caches that keep nothing: the answer is the same, and the reason is said, unless it was asked for.
func TestNothingIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		cache *Cache
		want  string // of the warning, "" for none
	}{
		{"none", None(), ""},
		{"a file as the folder", open(t, file), "not a directory"},
		{"below a file", open(t, filepath.Join(file, "cache")), "not a directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			key, b := NewKey("model"), &builder{data: content(1, 5000)}
			for i := range 2 {
				o := get(t, c.cache, key, b)
				if o.Found || o.Kept || b.builds != i+1 {
					t.Errorf("%+v after %d builds", o, b.builds)
				}
				if c.want != "" {
					warns(t, o.Warning, c.want, "EYAS_HOME")
				} else if o.Warning != nil {
					t.Error(o.Warning)
				}
			}
			if err := c.cache.SavePlan(key, []byte("x")); (err == nil) != (c.want == "") {
				t.Errorf("save a plan: %v", err)
			}
			if _, ok := c.cache.Plan(key); ok {
				t.Error("a plan is kept")
			}
			c.cache.Forget(key)
			for range 2 {
				if err := c.cache.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestFoldersThatAreNotOursAlone(t *testing.T) {
	for _, c := range []struct {
		name string
		mode os.FileMode
		uid  int
		want string // of the error, "" for none
	}{
		{"ours", 0o700, 0, ""},
		{"readable by others", 0o755, 0, ""},
		{"writable by the group", 0o770, 0, "chmod 700"},
		{"writable by all", 0o1777, 0, "chmod 700"},
		{"another user's", 0o700, 12345, "belongs to user 12345"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, c.mode); err != nil {
				t.Fatal(err)
			}
			if c.uid != 0 {
				if err := os.Chown(dir, c.uid, -1); err != nil {
					t.Skipf("cannot give a folder away: %v", err)
				}
			}
			opened, err := Open(dir)
			if c.want != "" {
				warns(t, err, dir, c.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer opened.Close()
			if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
				t.Errorf("mode %v, %v", st.Mode(), err)
			}
		})
	}
	// A link to the folder is the user's own choice: systemd makes one.
	t.Run("a link", func(t *testing.T) {
		dir := t.TempDir()
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(dir, link); err != nil {
			t.Fatal(err)
		}
		get(t, open(t, link), NewKey("x"), &builder{data: content(1, 10)})
		if len(files(t, dir)) != 1 {
			t.Error("nothing is kept")
		}
	})
}

func TestFailedBuilds(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name  string
		build func(string) error
		want  string
	}{
		{"an error", func(string) error { return errors.New("no such operator") }, "no such operator"},
		{"nothing written", func(string) error { return nil }, "cannot hold 0 bytes"},
		{"too large", func(path string) error { return os.Truncate(path, weightsKind.limit()+1) }, "at most 2147483648"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, cache := range []*Cache{open(t, dir), None()} {
				w, _, err := cache.Weights(context.Background(), NewKey("x"), c.build)
				if w != nil || err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			}
			if n := files(t, dir); len(n) != 0 {
				t.Errorf("files %q are left", n)
			}
		})
	}
}

// The entries that were used longest ago go, by their number and by their bytes. What is no
// entry stays.
func TestEviction(t *testing.T) {
	const size = 1000
	for _, c := range []struct {
		name  string
		files int
		total int64
	}{
		{"files", 3, 1 << 20},
		{"bytes", 100, 3*(size+headerSize) + 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			foreign := filepath.Join(dir, "notes.txt")
			if err := os.WriteFile(foreign, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			cache := open(t, dir)
			cache.maxFiles, cache.maxTotal = c.files, c.total
			long := time.Now().Add(-time.Hour)
			for i := range 3 {
				key := NewKey(fmt.Sprint(i))
				get(t, cache, key, &builder{data: content(byte(i), size)})
				at := long.Add(time.Duration(i) * time.Minute)
				if err := os.Chtimes(filepath.Join(dir, weightsKind.file(key)), at, at); err != nil {
					t.Fatal(err)
				}
			}
			// 0 is used again, so that 1 is the one to go, then 2.
			if o := get(t, cache, NewKey("0"), &builder{data: content(0, size)}); !o.Found {
				t.Error("0 was not kept")
			}
			for i, want := range []string{"0 2 3", "0 3 4"} {
				get(t, cache, NewKey(fmt.Sprint(i+3)), &builder{data: content(9, size)})
				var left []string
				for k := range 5 {
					if _, err := os.Stat(filepath.Join(dir, weightsKind.file(NewKey(fmt.Sprint(k))))); err == nil {
						left = append(left, fmt.Sprint(k))
					}
				}
				if got := strings.Join(left, " "); got != want {
					t.Errorf("kept %q, want %q", got, want)
				}
			}
			if _, err := os.Stat(foreign); err != nil {
				t.Error(err)
			}
			// One that is larger than all of the cache displaces nobody.
			if c.total < 1<<20 {
				o := get(t, cache, NewKey("large"), &builder{data: content(1, int(c.total))})
				warns(t, o.Warning, "is too large")
				if n := files(t, dir); len(n) != 4 {
					t.Errorf("left %q", n)
				}
			}
		})
	}
}

// The file is header and content, as documented.
func TestFileIsAsDocumented(t *testing.T) {
	dir := t.TempDir()
	data, key := content(7, 1000), NewKey("k")
	get(t, open(t, dir), key, &builder{data: data})
	file, err := os.ReadFile(filepath.Join(dir, weightsKind.file(key)))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file, entry(weightsKind, key, data)) {
		t.Error("the file is not header and content")
	}
	sum := digestBytes(data)
	want := "eyascach\x01\x00\x00\x00\x01\x00\x00\x00" + string(key[:]) + "\xe8\x03\x00\x00\x00\x00\x00\x00" + string(sum[:])
	if string(file[:headerSize]) != want {
		t.Errorf("header %x, want %x", file[:headerSize], want)
	}
}

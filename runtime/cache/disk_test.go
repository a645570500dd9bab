package cache

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// mount mounts something on a folder for the life of a test, or skips it.
func mount(t *testing.T, source, dir, typ string, flags uintptr, data string) {
	t.Helper()
	if err := unix.Mount(source, dir, typ, flags, data); err != nil {
		t.Skipf("cannot mount a file system here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// On a full disk the weights are there all the same, nothing is left half written, and what
// fits is kept.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	mount(t, "tmpfs", dir, "tmpfs", 0, "size=1m,mode=700")
	cache := open(t, dir)
	for _, size := range []int{2_000_000, 1 << 20} { // the second would fit without its header
		o := get(t, cache, NewKey("large"), &builder{data: content(1, size)})
		if o.Kept || o.Found {
			t.Errorf("%+v", o)
		}
		warns(t, o.Warning, dir, "no space left on device", "EYAS_HOME")
	}
	if n := files(t, dir); len(n) > 1 {
		t.Errorf("left %q", n)
	}
	for _, found := range []bool{false, true} {
		if o := get(t, cache, NewKey("small"), &builder{data: content(1, 500_000)}); o != (Origin{Found: found, Kept: true}) {
			t.Errorf("%+v", o)
		}
	}
	warns(t, cache.SavePlan(NewKey("plan"), content(1, 900_000)), "cannot keep the plan", "no space left")
	if n := files(t, dir); len(n) != 1 {
		t.Errorf("left %q", n)
	}
}

// A cache that cannot be written is read; what is not in it is built and not kept.
func TestReadOnlyFolder(t *testing.T) {
	dir := t.TempDir()
	key, bad, data := NewKey("kept"), NewKey("bad"), content(1, 5000)
	get(t, open(t, dir), key, &builder{data: data})
	if err := os.WriteFile(filepath.Join(dir, weightsKind.file(bad)), entry(weightsKind, key, data), 0o600); err != nil {
		t.Fatal(err)
	}
	mount(t, dir, dir, "", unix.MS_BIND, "")
	if err := unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("cannot mount a folder read-only here: %v", err)
	}
	cache := open(t, dir)
	if o := get(t, cache, key, &builder{data: data}); o != (Origin{Found: true, Kept: true}) {
		t.Errorf("%+v", o)
	}
	o := get(t, cache, NewKey("new"), &builder{data: data})
	if o.Kept {
		t.Errorf("%+v", o)
	}
	warns(t, o.Warning, "read-only file system")
	o = get(t, cache, bad, &builder{data: data})
	warns(t, o.Warning, "another key", "read-only file system")
	if err := cache.SavePlan(key, data); err == nil {
		t.Error("a plan is kept")
	}
}

// The limit on a file's size is a full disk without one, and works for everybody.
func TestFileSizeLimit(t *testing.T) {
	dir := t.TempDir()
	_, _, out := start(t, "limit", dir)
	if got := line(t, out); got != "done" {
		t.Error(got)
	}
	if n := files(t, dir); len(n) != 0 {
		t.Errorf("left %q", n)
	}
}

// childLimit lets no file, also none in memory, grow beyond 64 KiB.
func childLimit(c *Cache) int {
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 64 << 10, Max: 64 << 10}); err != nil {
		fmt.Println(err)
		return 1
	}
	b := &builder{data: content(1, 64<<10)} // with its header too long for the cache, not for memory
	w, origin, err := c.Weights(context.Background(), NewKey("x"), b.build)
	if err != nil || origin.Kept || origin.Warning == nil || len(w.Bytes()) != len(b.data) {
		fmt.Printf("at the limit: %+v, %v\n", origin, err)
		return 1
	}
	b.data = content(1, 65<<10)
	if w, _, err := c.Weights(context.Background(), NewKey("y"), b.build); err == nil {
		fmt.Printf("beyond the limit: %d bytes\n", len(w.Bytes()))
		return 1
	}
	if err := c.SavePlan(NewKey("x"), b.data); err == nil {
		fmt.Println("a plan beyond the limit is kept")
		return 1
	}
	fmt.Println("done")
	return 0
}

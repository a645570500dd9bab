package cache

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Child processes are the test's own program. The environment says what they do, in which folder.
const (
	childJob = "EYAS_CACHE_TEST_JOB"
	childDir = "EYAS_CACHE_TEST_DIR"
)

const (
	largeBytes = 48 << 20
	smallBytes = 200_000
)

// child is what a child process does: it builds one entry and says how that went.
func child(job string) int {
	c, err := Open(os.Getenv(childDir))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	size := smallBytes
	build := func(path string) error { return os.WriteFile(path, content(1, size), 0o600) }
	switch job {
	case "large":
		size = largeBytes
	case "hold": // builds until a line comes
		quick := build
		build = func(path string) error {
			fmt.Println("building")
			if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
				return err
			}
			return quick(path)
		}
	case "limit":
		return childLimit(c)
	}
	w, origin, err := c.Weights(context.Background(), NewKey("shared"), build)
	if err != nil || string(w.Bytes()) != string(content(1, size)) {
		fmt.Println("failed:", err)
		return 1
	}
	fmt.Printf("%+v\n", origin)
	return 0
}

// start starts a child that the test ends.
func start(t *testing.T, job, dir string) (cmd *exec.Cmd, stdin io.WriteCloser, stdout *bufio.Reader) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childJob+"="+job, childDir+"="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, in, bufio.NewReader(out)
}

func line(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	s, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(s)
}

const (
	builtLine = "{Found:false Kept:true Warning:<nil>}"
	foundLine = "{Found:true Kept:true Warning:<nil>}"
)

// Of processes that need the same at once one builds it, and the others find it.
func TestProcessesAtOnce(t *testing.T) {
	dir := t.TempDir()
	_, release, first := start(t, "hold", dir)
	if got := line(t, first); got != "building" {
		t.Fatal(got)
	}
	var others []*bufio.Reader
	for range 3 {
		_, _, out := start(t, "build", dir)
		others = append(others, out)
	}
	fmt.Fprintln(release)
	if got := line(t, first); got != builtLine {
		t.Errorf("first: %s", got)
	}
	for _, out := range others {
		if got := line(t, out); got != foundLine {
			t.Errorf("other: %s", got)
		}
	}
	if n := files(t, dir); len(n) != 1 {
		t.Errorf("files %q", n)
	}
}

// The same in one process.
func TestGoroutinesAtOnce(t *testing.T) {
	cache, key := open(t, t.TempDir()), NewKey("shared")
	var mu sync.Mutex
	builds := 0
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			w, _, err := cache.Weights(context.Background(), key, func(path string) error {
				mu.Lock()
				builds++
				mu.Unlock()
				return os.WriteFile(path, content(1, smallBytes), 0o600)
			})
			if err != nil {
				t.Error(err)
				return
			}
			checkWeights(t, w, content(1, smallBytes))
		})
	}
	all.Wait()
	if builds != 1 {
		t.Errorf("%d builds", builds)
	}
}

// A process that dies while it builds holds nobody up.
func TestBuilderDies(t *testing.T) {
	dir := t.TempDir()
	cmd, _, out := start(t, "hold", dir)
	if got := line(t, out); got != "building" {
		t.Fatal(got)
	}
	_, _, second := start(t, "build", dir)
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := line(t, second); got != builtLine {
		t.Error(got)
	}
}

// The wait for one that lives is bounded, and the caller can end it.
func TestWaitIsBounded(t *testing.T) {
	cache, key := open(t, t.TempDir()), NewKey("shared")
	unlock, err := cache.lock(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if w, _, err := cache.Weights(ctx, key, (&builder{data: content(1, 10)}).build); w != nil || err != context.Canceled {
		t.Errorf("ended by the caller: %v", err)
	}
	cache.patience = time.Millisecond
	if o := get(t, cache, key, &builder{data: content(1, 10)}); o != (Origin{Kept: true}) {
		t.Errorf("after the wait: %+v", o)
	}
	if o := get(t, cache, NewKey("another"), &builder{data: content(1, 10)}); o != (Origin{Kept: true}) {
		t.Errorf("another key: %+v", o)
	}
}

// temps returns the temporary files in a folder.
func temps(t testing.TB, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, tempPrefix+"*"+tempSuffix))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Open removes what a dead process left, and not what a living one writes.
func TestStaleTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	cache := open(t, dir)
	f, name, err := cache.temp()
	if err != nil {
		t.Fatal(err)
	}
	stale := filepath.Join(dir, tempPrefix+"STALE"+tempSuffix)
	if err := os.WriteFile(stale, []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	if got := temps(t, dir); len(got) != 1 || filepath.Base(got[0]) != name {
		t.Errorf("left %q, want %q", got, name)
	}
	f.Close()
	open(t, dir)
	if got := temps(t, dir); len(got) != 0 {
		t.Errorf("left %q", got)
	}
}

// A process that is killed in mid-write leaves nothing that is taken for an entry, and the next one
// cleans up behind it.
func TestKilledInMidWrite(t *testing.T) {
	partial := 0
	for range 3 {
		dir := t.TempDir()
		watch, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(watch)
		if _, err := unix.InotifyAddWatch(watch, dir, unix.IN_MODIFY); err != nil {
			t.Fatal(err)
		}
		cmd, _, _ := start(t, "large", dir)
		// The first change is the header's; the content follows.
		if _, err := unix.Read(watch, make([]byte, 4096)); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		for _, path := range temps(t, dir) {
			st, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if st.Size() < headerSize+largeBytes {
				partial++
			}
			t.Logf("killed after %d bytes", st.Size())
		}
		cache := open(t, dir)
		if n := temps(t, dir); len(n) != 0 {
			t.Errorf("left %q", n)
		}
		b := &builder{data: content(1, largeBytes)}
		o := get(t, cache, NewKey("shared"), b)
		if o.Warning != nil || !o.Kept || o.Found != (b.builds == 0) {
			t.Errorf("%+v after %d builds", o, b.builds)
		}
		if o := get(t, cache, NewKey("shared"), b); !o.Found {
			t.Errorf("again: %+v", o)
		}
	}
	t.Logf("%d of 3 were killed with the file cut off", partial)
}

// Package testenv finds what tests need outside of the repository: the assets, ONNX
// Runtime's library, ffmpeg. Only tests import it.
//
// A test whose needs are missing skips with one line. In continuous integration
// (CI=true or EYAS_REQUIRE=1) library and tools have to be there, and the test fails
// instead; the assets may be absent there too.
package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// Root returns the project's root: the nearest directory above the working directory,
// which is the package's in a test, that has a go.mod. It panics if there is none,
// which cannot happen under go test.
func Root() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			panic("testenv: no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}

// Assets returns the root of the test assets: EYAS_ASSETS, or ../shared/assets beside
// the project.
func Assets(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("EYAS_ASSETS")
	if dir == "" {
		dir = filepath.Join(Root(), "..", "shared", "assets")
	}
	if st, err := os.Stat(filepath.Join(dir, "models")); err != nil || !st.IsDir() {
		t.Skipf("no test assets in %s (EYAS_ASSETS names another place)", dir)
	}
	return dir
}

// Library returns the path of ONNX Runtime's library: EYAS_ORT_LIB (a file or its
// directory), or the project's fetched copy.
func Library(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(Root(), ".deps", "onnxruntime")
	if path := os.Getenv("EYAS_ORT_LIB"); path != "" {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatalf("EYAS_ORT_LIB: %v", err)
		}
		if !st.IsDir() {
			return path
		}
		dir = path
	}
	found, _ := filepath.Glob(filepath.Join(dir, "libonnxruntime.so*")) // the pattern is good
	if len(found) == 0 {
		missing(t, "no ONNX Runtime in "+dir+": run `make deps`, or set EYAS_ORT_LIB")
	}
	return slices.Min(found)
}

// FFmpeg returns the path of ffmpeg.
func FFmpeg(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("ffmpeg")
	if err != nil {
		missing(t, "ffmpeg is not installed")
	}
	return path
}

// Require goes on if something is there, else it skips the test or fails it, by the rule of
// this package. what is the line that says what is missing.
func Require(t testing.TB, there bool, what string) {
	t.Helper()
	if !there {
		missing(t, what)
	}
}

// missing skips the test, or fails it where everything has to be there.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" || os.Getenv("EYAS_REQUIRE") == "1" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// Script writes a program of the shell that tests start in place of another. While it is written no process is
// started: a child that is just being made would hold the file open, and starting it would fail with "text file
// busy".
func Script(t testing.TB, path, body string) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(body), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}

// MemoryGroup makes a control group whose processes have so many bytes of memory, and returns its folder, which goes with the
// test. Where none can be made the test skips: only root can, and not in every container.
func MemoryGroup(t testing.TB, limit int) string {
	t.Helper()
	name := fmt.Sprintf("eyas-test-%d", os.Getpid())
	for _, c := range []struct{ root, file string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"},
	} {
		group := filepath.Join(c.root, name)
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(group) })
		if os.WriteFile(filepath.Join(group, c.file), []byte(strconv.Itoa(limit)), 0) == nil {
			return group
		}
	}
	t.Skip("no control group with a memory limit can be made here")
	return ""
}

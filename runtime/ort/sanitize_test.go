package ort

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/testenv"
)

// The allocator passes its C tests under each sanitizer: two lanes, two models, one
// shared arena, frees by other threads, every way to leave a recording.
func TestSanitized(t *testing.T) {
	cc, err := exec.LookPath("gcc")
	testenv.Require(t, err == nil, "gcc is not installed")
	for _, sanitizer := range []string{"address,undefined", "thread"} {
		t.Run(sanitizer, func(t *testing.T) {
			dir := t.TempDir()
			empty := filepath.Join(dir, "empty.c")
			if err := os.WriteFile(empty, []byte("int main(void) { return 0; }\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			build := func(files ...string) error {
				args := []string{"-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread",
					"-fsanitize=" + sanitizer, "-fno-sanitize-recover=all", "-o", filepath.Join(dir, "check")}
				out, err := exec.Command(cc, append(args, files...)...).CombinedOutput()
				if len(out) > 0 {
					t.Logf("%s", out)
				}
				return err
			}
			check := func() (string, error) {
				out, err := exec.Command(filepath.Join(dir, "check")).CombinedOutput()
				return string(out), err
			}
			if err := build(empty); err != nil {
				t.Skipf("gcc has no -fsanitize=%s", sanitizer)
			}
			if out, err := check(); err != nil {
				t.Skipf("a program with -fsanitize=%s does not run here: %s", sanitizer, strings.TrimSpace(out))
			}
			if err := build("alloc.c", filepath.Join("testdata", "alloc_check.c")); err != nil {
				t.Fatal(err)
			}
			if out, err := check(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

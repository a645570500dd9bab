package bench

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/child"
)

func TestOwnGroup(t *testing.T) {
	const both = "9:name=systemd:/\n4:cpu,memory:/a/b\n0::/user.slice/x\n"
	for _, c := range []struct {
		name, text string
		v2         bool
		want       string
	}{
		{"version 1", both, false, "/a/b"},
		{"version 2", both, true, "/user.slice/x"},
		{"no memory", "3:cpuset:/\n", false, ""},
		{"none", "", true, ""},
		{"damaged", "4:memory\n0:\n::::\nx", false, ""},
		{"relative", "4:memory:a/b\n", false, ""},
		{"upwards", "0::/../../etc\n", true, "/etc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ownGroup(c.text, c.v2); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// Without a hierarchy there is no group and one line that says so.
func TestNoGroup(t *testing.T) {
	if g, err := newGroup("", 1<<30); g != nil || err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, %v", g, err)
	}
	if err := joinGroup(t.TempDir() + "/none"); err == nil {
		t.Error("joined what is not there")
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("memory.failcnt", "12\n")
	write("memory.events", "low 0\nhigh 3\nmax 34\n")
	write("cgroup.procs", "")
	if v1, v2 := (&group{dir: dir}).full(), (&group{dir: dir, v2: true}).full(); v1 != 12 || v2 != 34 {
		t.Errorf("the limit was met %d and %d times", v1, v2)
	}
	if err := joinGroup(dir); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs")); err != nil || string(text) != strconv.Itoa(os.Getpid()) {
		t.Errorf("%q, %v", text, err)
	}
}

// What a co-runner cannot do is said in its second answer, or in its first.
func TestBadCorunners(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown", `{"version":1,"job":"corun","candidate":"sleep"}`, `co-runner "sleep" is not known`},
		{"no file", `{"version":1,"job":"corun","candidate":"bursts"}`, "no such file"},
		{"bursts of nothing", `{"version":1,"job":"corun","candidate":"bursts","file":"group_test.go"}`, "bursts of 0 bytes"},
		{"bursts without bound", `{"version":1,"job":"corun","candidate":"bursts","file":"group_test.go","bytes":9000000000000000000}`, "bursts of 9000000000000000000"},
		{"no group", `{"version":1,"job":"corun","candidate":"streams","group":"/nowhere"}`, "join the control group"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := Child(t.Context(), strings.NewReader(c.text), &out); err != nil || !strings.Contains(out.String(), strings.ReplaceAll(c.want, `"`, `\"`)) {
				t.Errorf("%s, %v", out.String(), err)
			}
		})
	}
	for _, as := range []string{"child-babbles", "child-empty", "child-fails", "child-refuses"} {
		b := &bench{Options: Options{Self: self(as)}, dir: t.TempDir()}
		if r, err := b.startCorunner(t.Context(), request{Job: jobCorun}); err == nil {
			t.Errorf("%s: started", as)
			r.stop()
		}
	}
}

// A child that the kernel has ended is told from one that has failed.
func TestKilled(t *testing.T) {
	for script, want := range map[string]bool{"kill -KILL $$": true, "kill -TERM $$": false, "exit 9": false} {
		c, err := child.Start(t.Context(), child.Spec{Program: "sh", Args: []string{"-c", script}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); killed(err) != want {
			t.Errorf("%s: %v", script, err)
		}
	}
	if killed(nil) || killed(errors.New("x")) {
		t.Error("nothing was killed")
	}
}

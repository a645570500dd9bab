package ort

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/testenv"
)

func TestLoadOnce(t *testing.T) {
	l := library(t)
	again, err := Load(l.Path())
	if err != nil || again != l {
		t.Errorf("the second load gives %p, %v; want %p", again, err, l)
	}
	other := filepath.Join(t.TempDir(), "libonnxruntime.so")
	if err := os.WriteFile(other, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(other); !errors.Is(err, ErrLibrary) || !strings.Contains(err.Error(), "already uses") {
		t.Errorf("loading another library: %v", err)
	}
	if err := checkVersion(l.Path(), l.Version()); err != nil {
		t.Error(err)
	}
	if p := l.Providers(); len(p) == 0 || p[len(p)-1] != "CPUExecutionProvider" {
		t.Errorf("providers %v", p)
	}
}

// compile builds a shared library from C source.
func compile(t *testing.T, path, source string, flags ...string) {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	src := filepath.Join(t.TempDir(), "x.c")
	if err := os.WriteFile(src, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-shared", "-fPIC", "-o", path, src}, flags...)
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// fakeRuntime is the source of a library that says it is ONNX Runtime.
func fakeRuntime(version string) string {
	return `static const void *api(unsigned v) { return 0; }
static const char *version(void) { return "` + version + `"; }
static const struct { const void *(*a)(unsigned); const char *(*v)(void); } base = {api, version};
const void *OrtGetApiBase(void) { return &base; }`
}

func TestWrongLibraries(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(file("text.so"), []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	compile(t, file("old.so"), fakeRuntime("1.18.1"))
	compile(t, file("dev.so"), fakeRuntime("unknown"))
	compile(t, file("mute.so"), fakeRuntime("1.30.0"))
	compile(t, file("other.so"), "int x;")
	foreign := filepath.Join(bindingDir(t), "test_data", "onnxruntime_arm64.so")
	for _, c := range []struct{ name, path, want string }{
		{"missing", file("none.so"), "no such file"},
		{"directory", dir, "is not a file"},
		{"text", file("text.so"), "text.so is not a shared library"},
		{"too old", file("old.so"), `old.so is version "1.18.1", needed is 1.24 or newer; run ` + "`eyas pull onnxruntime:cpu`"},
		{"no version", file("dev.so"), `is version "unknown"`},
		{"no API", file("mute.so"), "does not speak API 24"},
		{"another library", file("other.so"), "other.so is not ONNX Runtime"},
		{"another processor", foreign, "is built for arm64, this machine is " + goruntime.GOARCH},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.path == foreign && goruntime.GOARCH == "arm64" {
				t.Skip("it is this processor's")
			}
			before := os.Getenv("TMPDIR")
			_, err := load(c.path)
			if !errors.Is(err, ErrLibrary) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if now := os.Getenv("TMPDIR"); now != before {
				t.Errorf("TMPDIR is left at %q", now)
			}
		})
	}
}

// Loading, opening and running leave no file behind: no telemetry database, device
// id or log. It runs in a process of its own, whose directories start empty.
func TestNoTelemetry(t *testing.T) {
	if os.Getenv("EYAS_TEST_CHILD") == "telemetry" {
		s := open(t, "yolox_nano_person_192", Options{Threads: 1})
		run(t, bind(t, s, inputs(t, s, 1, 640)))
		return
	}
	model(t, "yolox_nano_person_192")
	lib, err := filepath.Abs(testenv.Library(t))
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestNoTelemetry$", "-test.v")
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ORT_DISABLE_TELEMETRY=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "EYAS_TEST_CHILD=telemetry", "EYAS_ORT_LIB="+lib, "HOME="+home,
		"XDG_CACHE_HOME="+filepath.Join(home, "cache"), "XDG_DATA_HOME="+filepath.Join(home, "data"), "TMPDIR="+filepath.Join(home, "tmp"))
	for _, d := range []string{"cache", "data", "tmp"} {
		if err := os.Mkdir(filepath.Join(home, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestNoTelemetry") {
		t.Fatalf("child: %v\n%s", err, out)
	}
	err = filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(home, path); err == nil && strings.Contains(rel, "/") || (err == nil && !d.IsDir()) {
			t.Errorf("left behind: %s", rel)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func content(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	for _, s := range []string{"first", "", strings.Repeat("long", 100_000)} {
		if err := Write(path, content(s)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != s {
			t.Fatalf("got %d bytes, %v; want %d", len(got), err, len(s))
		}
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	alone(t, filepath.Dir(path), "a.txt")
}

func TestWriteInWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := Write("b.txt", content("here")); err != nil {
		t.Fatal(err)
	}
	alone(t, ".", "b.txt")
}

func TestFailedWriteLeavesTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	if err := Write(path, content("old")); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no picture")
	err := Write(path, func(w io.Writer) error {
		if err := content("half")(w); err != nil {
			return err
		}
		return full
	})
	if !errors.Is(err, full) || err.Error() != "write "+path+": no picture" {
		t.Errorf("got %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "old" {
		t.Errorf("the file holds %q", got)
	}
	alone(t, filepath.Dir(path), "a.txt")
}

func TestFailedRenameCleansUp(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "taken", "by a folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "taken"), content("x")); err == nil {
		t.Error("a folder was replaced")
	}
	alone(t, dir, "taken")
}

func TestNoFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "a.txt")
	if err := Write(path, content("x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// alone checks that dir holds name and nothing else.
func alone(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("folder holds %v, %v; want only %s", entries, err, name)
	}
}

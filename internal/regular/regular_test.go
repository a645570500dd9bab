package regular

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if data, err := io.ReadAll(f); err != nil || string(data) != "text" {
		t.Errorf("read %q, %v", data, err)
	}
	for path, want := range map[string]string{dir: "a folder", pipe: "a pipe", "/dev/null": "a device"} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path+": is "+want) {
			t.Errorf("%s: %v, want that it is %s", path, err, want)
		}
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestReadIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := Read(path, 4); err != nil || string(data) != "text" {
		t.Errorf("read %q, %v", data, err)
	}
	if _, err := Read(path, 3); err == nil || !strings.Contains(err.Error(), "has 4 bytes, at most 3 are read") {
		t.Errorf("a file above the limit: %v", err)
	}
}

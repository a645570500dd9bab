package cache

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/models/onnx"
	"github.com/eyas-edge/eyas/runtime/ort"
)

func library(t testing.TB) *ort.Library {
	t.Helper()
	l, err := ort.Load(testenv.Library(t))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestKeys(t *testing.T) {
	seen := map[Key]string{}
	for _, facts := range [][]string{{}, {""}, {"", ""}, {"ab", "c"}, {"a", "bc"}, {"abc"}, {"abc", ""}, {"", "abc"}, {"a", "b", "c"}, {"a\x00b"}, {"a", "b"}} {
		key := NewKey(facts...)
		if key != NewKey(facts...) {
			t.Errorf("%q has two keys", facts)
		}
		text := strings.Join(facts, "|")
		if other, ok := seen[key]; ok {
			t.Errorf("%q and %q have one key", text, other)
		}
		seen[key] = text
		if name := weightsKind.file(key); !isEntry(name) || filepath.Base(name) != name {
			t.Errorf("name %q", name)
		}
	}
	for _, name := range []string{"", "lock", "eyas-X.tmp", strings.Repeat("g", 64) + ".ort", strings.Repeat("a", 63) + ".ort", strings.Repeat("a", 64), strings.Repeat("a", 64) + ".txt"} {
		if isEntry(name) {
			t.Errorf("%q counts as an entry", name)
		}
	}
}

func TestWeightsKey(t *testing.T) {
	l := library(t)
	a, b := WeightsKey(l, Digest{1}), WeightsKey(l, Digest{2})
	if a == b || a != WeightsKey(l, Digest{1}) || a == WeightsKey(l, Digest{1}, "batch=1") {
		t.Error("keys of models")
	}
	e := Engine(l)
	for _, want := range []string{l.Version(), "onnxruntime"} {
		if !strings.Contains(e, want) {
			t.Errorf("%q does not say %q", e, want)
		}
	}
	t.Logf("%q", e)
}

// copyModel copies the model with external data into a folder of its own.
func copyModel(t testing.TB) (path, data string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"yolox_nano_external.onnx", "yolox_nano_external.data"} {
		b, err := os.ReadFile(filepath.Join(testenv.Assets(t), "models", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "yolox_nano_external.onnx"), filepath.Join(dir, "yolox_nano_external.data")
}

func readModel(t testing.TB, path string) *onnx.Model {
	t.Helper()
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func sumOf(t testing.TB, m *onnx.Model) Digest {
	t.Helper()
	sum, err := HashModel(m)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// flipByte changes one byte of a file.
func flipByte(t testing.TB, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

// The hash covers every byte of the model and of its external data, and nothing else.
func TestHashModel(t *testing.T) {
	path, data := copyModel(t)
	m := readModel(t, path)
	want := sumOf(t, m)
	if names := external(m); len(names) != 1 || names[0] != "yolox_nano_external.data" {
		t.Errorf("external data in %q", names)
	}
	flipByte(t, data, 3_000_000)
	if sumOf(t, m) == want {
		t.Error("the external data does not count")
	}
	flipByte(t, data, 3_000_000)
	flipByte(t, path, 79_000)
	if sumOf(t, m) == want {
		t.Error("the model's file does not count")
	}
	flipByte(t, path, 79_000)
	moved := filepath.Join(filepath.Dir(path), "other.onnx")
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	if sumOf(t, readModel(t, moved)) != want {
		t.Error("the file's name counts")
	}
	for _, c := range []struct {
		name   string
		damage func() error
		want   string
	}{
		{"no data", func() error { return os.Remove(data) }, "external data"},
		{"a pipe", func() error { return syscall.Mkfifo(data, 0o600) }, "is not a file"},
		{"no model", func() error { return os.Remove(moved) }, "other.onnx"},
	} {
		m.Path = moved
		if err := c.damage(); err != nil {
			t.Fatal(err)
		}
		if _, err := HashModel(m); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := HashModel(new(onnx.Model)); err == nil {
		t.Error("a model of no file has a hash")
	}
}

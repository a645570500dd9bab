package cache

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// entry returns the file of an entry.
func entry(k kind, key Key, data []byte) []byte {
	return append(describe(k, key, data).encode(), data...)
}

// flipped returns b with one bit changed.
func flipped(b []byte, bit int) []byte {
	c := bytes.Clone(b)
	c[bit/8] ^= 1 << (bit % 8)
	return c
}

// Whatever lies in the place of an entry's file: it is thrown away and built again, once.
func TestBadFiles(t *testing.T) {
	key, data := NewKey("model"), content(1, 3000)
	good := entry(weightsKind, key, data)
	files := map[string][]byte{
		"empty":                              {},
		"another key's":                      entry(weightsKind, NewKey("other"), data),
		"another kind's":                     entry(planKind, key, data),
		"no content":                         entry(weightsKind, key, nil),
		"content only":                       data,
		"too long":                           append(bytes.Clone(good), 0),
		"another format":                     append([]byte("ORTM"), good[4:]...),
		"huge size":                          append(append(bytes.Clone(good[:48]), bytes.Repeat([]byte{0xff}, 8)...), good[56:]...),
		"zeros at the end, as after a crash": append(bytes.Clone(good[:2048]), make([]byte, len(good)-2048)...),
	}
	for _, n := range []int{1, 8, headerSize - 1, headerSize, headerSize + 1, len(good) / 2, len(good) - 1} {
		files[fmt.Sprintf("torn at %d", n)] = good[:n]
	}
	later := bytes.Clone(good)
	later[8] = version + 1
	files["a later version"] = later
	for at := range headerSize {
		files[fmt.Sprintf("byte %d of the header", at)] = flipped(good, at*8+at%8)
	}
	for bit := headerSize * 8; bit < len(good)*8; bit += 1999 {
		files[fmt.Sprintf("bit %d", bit)] = flipped(good, bit)
	}
	dir := t.TempDir()
	cache := open(t, dir)
	path := filepath.Join(dir, weightsKind.file(key))
	for name, file := range files {
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		b := &builder{data: data}
		if o := get(t, cache, key, b); o.Found || !o.Kept || o.Warning == nil || b.builds != 1 {
			t.Errorf("%s: %+v after %d builds", name, o, b.builds)
		}
		if o := get(t, cache, key, b); !o.Found || o.Warning != nil || b.builds != 1 {
			t.Errorf("%s, once more: %+v after %d builds", name, o, b.builds)
		}
	}
	t.Logf("%d files", len(files))
}

// Every single bit counts.
func TestEveryBitCounts(t *testing.T) {
	key := NewKey("plan")
	good := entry(planKind, key, content(1, 500))
	for bit := range len(good) * 8 {
		file := flipped(good, bit)
		h, err := decodeHeader(file, int64(len(file)), planKind, key)
		if err == nil {
			_, err = readPlan(bytes.NewReader(file[headerSize:]), h)
		}
		if err == nil {
			t.Errorf("bit %d is not noticed", bit)
		}
	}
}

// What is no file is not opened, and makes way if it can.
func TestNoFiles(t *testing.T) {
	key, data := NewKey("model"), content(1, 3000)
	for _, c := range []struct {
		name  string
		place func(path string) error
		kept  bool
		want  string
	}{
		{"folder", func(path string) error { return os.Mkdir(path, 0o700) }, true, "is not a file"},
		{"full folder", func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) }, false, "is not a file"},
		{"pipe", func(path string) error { return syscall.Mkfifo(path, 0o600) }, true, "is not a file"},
		{"link to a good file", func(path string) error {
			target := filepath.Join(t.TempDir(), "target")
			if err := os.WriteFile(target, entry(weightsKind, key, data), 0o600); err != nil {
				return err
			}
			return os.Symlink(target, path)
		}, true, "is not a file"},
		{"link inside of the folder", func(path string) error {
			target := filepath.Join(filepath.Dir(path), "target")
			if err := os.WriteFile(target, entry(weightsKind, key, data), 0o600); err != nil {
				return err
			}
			return os.Symlink("target", path)
		}, true, "is not a file"},
		{"link to nothing", func(path string) error { return os.Symlink("nothing", path) }, true, "is not a file"},
		{"link to itself", func(path string) error { return os.Symlink(filepath.Base(path), path) }, true, "is not a file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			cache := open(t, dir)
			if err := c.place(filepath.Join(dir, weightsKind.file(key))); err != nil {
				t.Fatal(err)
			}
			o := get(t, cache, key, &builder{data: data})
			if o.Found || o.Kept != c.kept {
				t.Errorf("%+v", o)
			}
			warns(t, o.Warning, c.want)
			if o := get(t, cache, key, &builder{data: data}); o.Found != c.kept {
				t.Errorf("once more: %+v", o)
			}
		})
	}
}

// A file is taken only if it is what encode makes of its content.
func FuzzFile(f *testing.F) {
	key, data := NewKey("model"), []byte("optimised")
	good := entry(weightsKind, key, data)
	f.Add(good)
	f.Add(good[:headerSize])
	f.Add(entry(planKind, key, data))
	f.Add(entry(planKind, key, nil))
	f.Add(flipped(good, 400))
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, k := range []kind{weightsKind, planKind} {
			h, err := decodeHeader(file, int64(len(file)), k, key)
			if err != nil {
				continue
			}
			r := bytes.NewReader(file[headerSize:])
			var got []byte
			if k == planKind {
				if got, err = readPlan(r, h); err != nil {
					continue
				}
			} else {
				w, err := None().readWeights(r, h)
				if err != nil {
					continue
				}
				got = bytes.Clone(w.Bytes())
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			}
			if !bytes.Equal(entry(k, key, got), file) {
				t.Error("taken, and not what encode makes")
			}
		}
	})
}

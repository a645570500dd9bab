package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/models/catalog"
)

// deps makes a folder as a finished fetch leaves it, with made-up content.
func deps(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"onnxruntime/libonnxruntime.so.1", "models/face.onnx", "photos/sample1.jpg"} {
		if err := put(filepath.Join(dir, filepath.FromSlash(name)), []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	if intact(dir) {
		t.Fatal("intact before it is sealed")
	}
	if err := link(dir); err != nil {
		t.Fatal(err)
	}
	if err := seal(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestIntact(t *testing.T) {
	if !intact(deps(t)) {
		t.Error("not intact")
	}
	tests := []struct {
		name string
		harm func(dir string) error
	}{
		{"changed", func(dir string) error { return os.WriteFile(filepath.Join(dir, "models/face.onnx"), nil, 0o644) }},
		{"missing", func(dir string) error { return os.Remove(filepath.Join(dir, "photos/sample1.jpg")) }},
		{"link missing", func(dir string) error { return os.Remove(filepath.Join(dir, "onnxruntime/libonnxruntime.so")) }},
		{"older seal", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, sealName), []byte("# eyas fetch 0\n"), 0o644)
		}},
		{"empty seal", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, sealName), []byte(sealVersion+"\n"), 0o644)
		}},
		{"seal that leaves the folder", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, sealName), []byte(sealVersion+"\n00  ../x\n"), 0o644)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := deps(t)
			if err := tt.harm(dir); err != nil {
				t.Fatal(err)
			}
			if intact(dir) {
				t.Error("intact")
			}
		})
	}
}

// TestFromNPM runs a stand-in for npm: what it installs is checked, and nothing of it stays.
func TestFromNPM(t *testing.T) {
	tests := []struct{ name, npm, err string }{
		{"npm fails", "exit 3", "npm ci: exit status 3"},
		{"other content", "mkdir -p node_modules/a && echo hello > node_modules/a/b", "a/b: SHA-256 is 5891b5b5"},
		{"nothing installed", "true", "no such file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			if err := os.MkdirAll(filepath.Join(root, "hack", "npm"), 0o755); err != nil {
				t.Fatal(err)
			}
			bin := t.TempDir()
			if err := os.WriteFile(filepath.Join(bin, "npm"), []byte("#!/bin/sh\n"+tt.npm+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			err := fromNPM(context.Background(), root, t.TempDir(), []item{{"a/b", "photos/b", strings.Repeat("0", 64)}})
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if _, err := os.Stat(filepath.Join(root, "hack/npm/node_modules")); err == nil {
				t.Error("node_modules stays")
			}
		})
	}
}

func TestAlias(t *testing.T) {
	dir := deps(t)
	lib := filepath.Join("onnxruntime", "1.30.0-cpu", "libonnxruntime.so")
	if err := put(filepath.Join(dir, lib), []byte("release")); err != nil {
		t.Fatal(err)
	}
	if err := alias(dir, lib); err != nil {
		t.Fatal(err)
	}
	if err := seal(dir); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "onnxruntime", "libonnxruntime.so"))
	if err != nil || string(data) != "release" || !intact(dir) {
		t.Errorf("library %q, %v", data, err)
	}
}

// What is taken without npm is the version that npm takes.
func TestReleasesAreOfTheSameVersion(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(testenv.Root(), "hack", "npm", "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct{ Dependencies map[string]string }
	if err := json.Unmarshal(data, &manifest); err != nil {
		t.Fatal(err)
	}
	pinned := faceAPI + "@" + manifest.Dependencies[faceAPI] + "/"
	entry, err := catalog.Lookup("face")
	if err != nil {
		t.Fatal(err)
	}
	urls := []string{photoSource}
	for _, f := range entry.Files {
		urls = append(urls, f.URL)
	}
	for _, url := range urls {
		if !strings.Contains(url, pinned) {
			t.Errorf("%s is not of %s", url, pinned)
		}
	}
}

func TestRunElsewhere(t *testing.T) {
	if err := run(context.Background(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "project's root") {
		t.Errorf("error %v", err)
	}
}

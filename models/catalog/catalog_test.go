package catalog

import (
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// permissive are the licences whose models may be listed.
const permissive = " MIT Apache-2.0 BSD-2-Clause BSD-3-Clause ISC "

func TestEntries(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range List() {
		t.Run(e.Name, func(t *testing.T) {
			if seen[e.Name] {
				t.Error("listed twice")
			}
			seen[e.Name] = true
			if !strings.Contains(permissive, " "+e.License+" ") {
				t.Errorf("licence %q", e.License)
			}
			if e.Description == "" || e.Version == "" || len(e.Files) == 0 || strings.Contains(e.Description, "\n") {
				t.Errorf("incomplete: %+v", e)
			}
			for _, address := range []string{e.LicenseURL, e.Origin} {
				if u, err := url.Parse(address); err != nil || u.Scheme != "https" || u.Host == "" {
					t.Errorf("address %q", address)
				}
			}
			for _, f := range e.Files {
				if u, err := url.Parse(f.URL); err != nil || u.Scheme != "https" || u.RawQuery != "" {
					t.Errorf("address %q", f.URL)
				}
				if sum, err := hex.DecodeString(f.SHA256); err != nil || len(sum) != 32 || strings.ToLower(f.SHA256) != f.SHA256 {
					t.Errorf("%s: SHA-256 %q", f.URL, f.SHA256)
				}
				if f.Size < 0 || f.Size > maxFile {
					t.Errorf("%s: size %d", f.URL, f.Size)
				}
			}
			if _, err := Lookup(e.Name); err != nil {
				t.Error(err)
			}
			if e.Kind == Model && (len(e.Files) > 1) != (e.convert != nil) {
				t.Error("only a converted model has several files")
			}
		})
	}
}

func TestSize(t *testing.T) {
	e, err := Lookup("face")
	if err != nil {
		t.Fatal(err)
	}
	if n := e.Size("linux/amd64"); n != 196540 {
		t.Errorf("face has %d bytes to fetch", n)
	}
	if e, _ = Lookup("onnxruntime:cuda12"); e.Size("linux/amd64") != 0 || e.Size("linux/arm64") != 0 {
		t.Error("a size is not stated")
	}
}

func TestHome(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	tests := []struct{ name, eyas, xdg, want string }{
		{"default", "", "", "/home/me/.local/share/eyas"},
		{"XDG", "", "/data", "/data/eyas"},
		{"relative XDG is ignored", "", "data", "/home/me/.local/share/eyas"},
		{"EYAS_HOME", "/var/lib/eyas", "/data", "/var/lib/eyas"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("EYAS_HOME", tt.eyas)
			t.Setenv("XDG_DATA_HOME", tt.xdg)
			if got, err := Home(); err != nil || got != tt.want {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	t.Setenv("EYAS_HOME", "")
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("HOME", "")
	if _, err := Home(); err == nil || !strings.Contains(err.Error(), "EYAS_HOME") {
		t.Errorf("without a home: %v", err)
	}
}

func TestFind(t *testing.T) {
	home := t.TempDir()
	t.Setenv("EYAS_HOME", home)
	models := filepath.Join(home, "models")
	if err := os.Mkdir(models, 0o700); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(models, "mine.onnx")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, ok := Find("mine"); !ok || got != mine {
		t.Errorf("found %q, %v", got, ok)
	}
	for _, name := range []string{"", "absent", "../models/mine", "/etc/passwd", ".mine", "onnxruntime:../cpu", "onnxruntime:"} {
		if got, ok := Find(name); ok {
			t.Errorf("%q found as %s", name, got)
		}
	}
	if err := os.Chmod(models, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, ok := Find("mine"); ok {
		t.Error("found in a folder that everybody may write to")
	}
}

func TestFindInSourceTree(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	root := t.TempDir()
	model := filepath.Join(root, ".deps", "models", "face.onnx")
	deep := filepath.Join(root, "a", "b")
	for _, dir := range []string{filepath.Dir(model), deep} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(model, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(deep)
	for mod, want := range map[string]bool{"module example.com/other\n": false, "module github.com/eyas-edge/eyas\n\ngo 1.26\n": true} {
		if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte(mod), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, ok := Find("face"); ok != want || ok && got != model {
			t.Errorf("%q: found %q, %v", mod, got, ok)
		}
	}
}

package places

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHome(t *testing.T) {
	for _, c := range []struct {
		name string
		wd   string
		env  map[string]string
		want string // "" for an error
	}{
		{"own", "/w", map[string]string{"EYAS_HOME": "/data/", "XDG_DATA_HOME": "/x", "HOME": "/h"}, "/data"},
		{"own, relative", "/w/x", map[string]string{"EYAS_HOME": "../data", "HOME": "/h"}, "/w/data"},
		{"own, relative to nowhere", "", map[string]string{"EYAS_HOME": "data", "HOME": "/h"}, ""},
		{"XDG", "/w", map[string]string{"XDG_DATA_HOME": "/x", "HOME": "/h"}, "/x/eyas"},
		{"XDG, relative", "/w", map[string]string{"XDG_DATA_HOME": "x", "HOME": "/h"}, "/h/.local/share/eyas"},
		{"home", "", map[string]string{"HOME": "/h"}, "/h/.local/share/eyas"},
		{"none", "/w", nil, ""},
	} {
		s := Surroundings{Wd: c.wd, Env: func(k string) string { return c.env[k] }}
		if got, err := s.Home(); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

func TestCache(t *testing.T) {
	const service = "/var/cache/eyas"
	for _, c := range []struct {
		name string
		wd   string
		env  map[string]string
		want string // "" for an error
	}{
		{"own", "/w", map[string]string{"EYAS_HOME": "/data/", "CACHE_DIRECTORY": service, "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/data/cache"},
		{"own, relative", "/w/x", map[string]string{"EYAS_HOME": "../data", "HOME": "/h"}, "/w/data/cache"},
		{"own, relative to nowhere", "", map[string]string{"EYAS_HOME": "data", "HOME": "/h"}, ""},
		{"service", "/w", map[string]string{"CACHE_DIRECTORY": service, "XDG_CACHE_HOME": "/x", "HOME": "/h"}, service},
		{"service with several", "/w", map[string]string{"CACHE_DIRECTORY": "/var/cache/a:" + service, "HOME": "/h"}, service},
		{"another program's service", "/w", map[string]string{"CACHE_DIRECTORY": "/var/cache/runner", "HOME": "/h"}, "/h/.cache/eyas"},
		{"XDG", "/w", map[string]string{"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/eyas"},
		{"XDG, relative", "/w", map[string]string{"XDG_CACHE_HOME": "x", "HOME": "/h"}, "/h/.cache/eyas"},
		{"home", "/w", map[string]string{"HOME": "/h"}, "/h/.cache/eyas"},
		{"none", "/w", nil, ""},
	} {
		s := Surroundings{Wd: c.wd, Env: func(k string) string { return c.env[k] }}
		got, err := s.Cache()
		if (err == nil) != (c.want != "") || err == nil && got != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

func TestRings(t *testing.T) {
	for _, c := range []struct {
		name string
		wd   string
		env  map[string]string
		want string // "" for an error
	}{
		{"own", "/w", map[string]string{"EYAS_HOME": "/data/", "XDG_RUNTIME_DIR": "/run/user/7"}, "/data/run/rings"},
		{"own, relative to nowhere", "", map[string]string{"EYAS_HOME": "data"}, ""},
		{"XDG", "/w", map[string]string{"XDG_RUNTIME_DIR": "/run/user/7"}, "/run/user/7/eyas/rings"},
		{"XDG, relative", "/w", map[string]string{"XDG_RUNTIME_DIR": "x"}, "/run/eyas/rings"},
		{"service", "", nil, "/run/eyas/rings"},
	} {
		s := Surroundings{Wd: c.wd, Env: func(k string) string { return c.env[k] }}
		if got, err := s.Rings(); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
		}
		claims := strings.Replace(c.want, "rings", "claims", 1)
		if got, err := s.Claims(); got != claims || (err == nil) != (c.want != "") {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, claims)
		}
	}
}

func TestSourceTree(t *testing.T) {
	root := t.TempDir()
	ours, other := filepath.Join(root, "ours"), filepath.Join(root, "other")
	for dir, text := range map[string]string{ours: modulePath + "\n\ngo 1.26\n", other: "module example.com/x\n"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, exe, wd, want string }{
		{"built in it", ours + "/bin/eyas", "/", ours},
		{"in another module", other + "/bin/eyas", "/", ""},
		{"installed, started in it", "/usr/bin/eyas", ours + "/cmd", ""},
		{"go run", "/tmp/go-build1/b001/exe/eyas", ours + "/cmd/eyas", ours},
		{"go run elsewhere", "/tmp/go-build1/b001/exe/eyas", other, ""},
		{"nothing known", "", ours, ""},
	} {
		if got := (Surroundings{Exe: c.exe, Wd: c.wd}).SourceTree(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if Here().SourceTree() == "" {
		t.Error("a test does not find the tree that it is part of")
	}
}

package testenv

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRoot(t *testing.T) {
	if _, err := os.Stat(filepath.Join(Root(), "internal", "testenv")); err != nil {
		t.Error(err)
	}
}

// Each helper returns something that is there, skips, or fails where it is told to.
func TestHelpers(t *testing.T) {
	empty := t.TempDir()
	lib := filepath.Join(t.TempDir(), "libonnxruntime.so.1")
	if err := os.WriteFile(lib, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(empty, "models"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CI", "")
	t.Setenv("EYAS_REQUIRE", "")
	for _, c := range []struct {
		name, key, value string
		helper           func(testing.TB) string
		want             string // empty: skipped
	}{
		{"assets", "EYAS_ASSETS", empty, Assets, empty},
		{"no assets", "EYAS_ASSETS", filepath.Join(empty, "none"), Assets, ""},
		{"library", "EYAS_ORT_LIB", lib, Library, lib},
		{"library's directory", "EYAS_ORT_LIB", filepath.Dir(lib), Library, lib},
		{"no library", "EYAS_ORT_LIB", empty, Library, ""},
		{"no ffmpeg", "PATH", empty, FFmpeg, ""},
		{"required", "PATH", "", func(t testing.TB) string { Require(t, true, ""); return "x" }, "x"},
		{"required and missing", "PATH", "", func(t testing.TB) string { Require(t, false, ""); return "" }, ""},
	} {
		var skipped bool
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(c.key, c.value)
			defer func() { skipped = t.Skipped() }()
			if got := c.helper(t); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
		if skipped != (c.want == "") {
			t.Errorf("%s: skipped %v", c.name, skipped)
		}
	}
}

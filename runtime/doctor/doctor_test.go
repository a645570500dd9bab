package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/testenv"
)

// root makes a file tree that looks like a machine.
func root(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func find(r *Report, name string) Finding {
	for _, f := range r.Findings {
		if f.Name == name {
			return f
		}
	}
	return Finding{}
}

func TestCPUMachine(t *testing.T) {
	r := Run(context.Background(), "/", testenv.Library(t))
	for _, name := range []string{"system", "cpu", "onnxruntime", "ep cpu", "memory", "locked memory", "cache", "jpeg"} {
		if f := find(r, name); f.Status == "" || f.Found == "" {
			t.Errorf("%s is not looked at: %+v", name, f)
		}
	}
	if f := find(r, "ep cpu"); f.Status != OK {
		t.Errorf("the CPU does not work: %+v", f)
	}
	var text, doc bytes.Buffer
	if err := r.Text(&text); err != nil || strings.Count(text.String(), "\n") < len(r.Findings) {
		t.Errorf("%v in\n%s", err, text.String())
	}
	var back Report
	if err := r.JSON(&doc); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(doc.Bytes(), &back); err != nil || len(back.Findings) != len(r.Findings) {
		t.Errorf("%v, %d findings of %d", err, len(back.Findings), len(r.Findings))
	}
}

// A GPU that the library cannot use is an error with the way to the right build.
func TestUnusedGPUIsAnError(t *testing.T) {
	library := testenv.Library(t)
	for name, c := range map[string]struct {
		files map[string]string
		do    string
	}{
		"desktop": {map[string]string{
			"proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: \t\t NVIDIA RTX A2000\n",
			"dev/nvidia0": "",
		}, "onnxruntime:cuda12"},
		"jetson": {map[string]string{
			"etc/nv_tegra_release": "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64\n",
			"dev/nvhost-gpu":       "",
		}, "docs/engine.md"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Run(context.Background(), root(t, c.files), library)
			f := find(r, "gpu use")
			if f.Status != Error || !strings.Contains(f.Do, c.do) || !r.Failed() {
				t.Errorf("got %+v, want an error that names %s", f, c.do)
			}
		})
	}
}

func TestMissingLibraryIsAnError(t *testing.T) {
	r := Run(context.Background(), "/", filepath.Join(t.TempDir(), "nothing"))
	if f := find(r, "onnxruntime"); f.Status != Error || !strings.Contains(f.Do, "eyas pull onnxruntime:cpu") {
		t.Errorf("got %+v", f)
	}
}

// A cache that would not be used is said, with what to do.
func TestCache(t *testing.T) {
	home := t.TempDir()
	t.Setenv("EYAS_HOME", home)
	dir := filepath.Join(home, "cache")
	find := func() Finding {
		var r Report
		r.cache()
		return r.Findings[0]
	}
	if f := find(); f.Status != OK || !strings.Contains(f.Found, dir+", not made yet") {
		t.Errorf("%+v", f)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if f := find(); f.Status != Warn || !strings.Contains(f.Found, "not a folder") {
		t.Errorf("%+v", f)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if f := find(); f.Status != OK || f.Found != dir {
		t.Errorf("%+v", f)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if f := find(); f.Status != Warn || !strings.Contains(f.Found, "by others") || f.Do == "" {
		t.Errorf("%+v", f)
	}
}

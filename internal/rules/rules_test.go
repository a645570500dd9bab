// Package rules holds the repository's own rules as tests: who may import whom, that every package
// says what it is for, and that files stay readable.
package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/testenv"
)

const module = "github.com/eyas-edge/eyas/"

// mayImport lists per package, by longest prefix, what of the module it may import beside itself and
// internal/.
var mayImport = map[string][]string{
	"internal":     {},
	"memplan":      {},
	"camera/frame": {},
	"camera":       {"camera"},
	"models":       {"models", "camera/frame", "memplan"},
	"runtime/ort":  {"memplan"},
	"runtime":      {"runtime", "memplan", "models", "camera"},
	"jetson":       {"jetson"},
	"cmd":          {"memplan", "camera", "models", "runtime", "jetson"},
	"hack":         {"memplan", "camera", "models", "runtime", "jetson"},
}

type pkg struct {
	ImportPath, Doc            string
	Imports, GoFiles, CgoFiles []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Imports,GoFiles,CgoFiles", "./...")
	cmd.Dir = testenv.Root()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, stderr.String())
	}
	var list []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	if len(list) < 10 {
		t.Fatalf("go list names only %d packages", len(list))
	}
	return list
}

// within says whether a package's path is dir or lies in it.
func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

func TestImportsGoOneWay(t *testing.T) {
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		rule := ""
		for prefix := range mayImport {
			if within(path, prefix) && len(prefix) > len(rule) {
				rule = prefix
			}
		}
		if rule == "" {
			t.Errorf("%s: no rule says what it may import", path)
			continue
		}
		for _, imported := range p.Imports {
			to, ours := strings.CutPrefix(imported, module)
			if !ours || within(to, "internal") {
				continue
			}
			allowed := false
			for _, dir := range mayImport[rule] {
				allowed = allowed || within(to, dir)
			}
			if !allowed {
				t.Errorf("%s imports %s: %s may import only internal and %v", path, to, rule, mayImport[rule])
			}
		}
	}
}

// inC lists the packages with C code, and their only files that call it; nil for any. Beside ONNX Runtime's package these
// are one file of camera/picture, because detectors are trained on what libjpeg decodes, to the last bit, and only libjpeg
// gives that; and one of models/prep, whose vector code a Go compiler does not make. Both build without it, too.
var inC = map[string][]string{
	"runtime/ort":    nil,
	"camera/picture": {"turbo_cgo.go"},
	"models/prep":    {"vector_cgo.go"},
}

// Only runtime/ort touches ONNX Runtime, and C code stays where inC says.
func TestNativeCodeStaysBehindOneDoor(t *testing.T) {
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		for _, imported := range p.Imports {
			if path != "runtime/ort" && imported == "github.com/yalue/onnxruntime_go" {
				t.Errorf("%s imports %s: only runtime/ort does", path, imported)
			}
		}
		files, door := inC[path]
		if len(p.CgoFiles) > 0 && (!door || files != nil && !slices.Equal(p.CgoFiles, files)) {
			t.Errorf("%s has C code in %v: it may have some in %v", path, p.CgoFiles, files)
		}
		if within(path, "memplan") {
			for _, imported := range p.Imports {
				if strings.Contains(imported, ".") && !strings.HasPrefix(imported, module) {
					t.Errorf("%s imports %s: memplan stands on the standard library alone", path, imported)
				}
			}
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 && len(strings.Fields(p.Doc)) < 5 {
			t.Errorf("%s: its doc comment does not say what it is for: %q", p.ImportPath, p.Doc)
		}
	}
}

func TestFilesStayReadable(t *testing.T) {
	const most = 800
	root := testenv.Root()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") && path != root {
			return filepath.SkipDir
		}
		if ext := filepath.Ext(path); ext != ".go" && ext != ".c" && ext != ".h" {
			return nil
		}
		data, err := os.ReadFile(path)
		if n := bytes.Count(data, []byte("\n")); n > most {
			t.Errorf("%s has %d lines, more than %d", path, n, most)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

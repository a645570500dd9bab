package catalog

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type member struct {
	name string
	kind byte   // tar.TypeReg if 0
	link string // of links
	data string
}

func tgz(t testing.TB, members ...member) []byte {
	t.Helper()
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	w := tar.NewWriter(gz)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Typeflag: m.kind, Linkname: m.link, Size: int64(len(m.data)), Mode: 0o777}
		if m.kind == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(m.data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var build = []member{
	{name: "./ort/", kind: tar.TypeDir},
	{name: "./ort/LICENSE", data: "MIT"},
	{name: "./ort/ThirdPartyNotices.txt", data: "others"},
	{name: "./ort/include/onnxruntime_c_api.h", data: "#pragma"},
	{name: "./ort/lib/libonnxruntime.so", kind: tar.TypeSymlink, link: "libonnxruntime.so.1"},
	{name: "./ort/lib/libonnxruntime.so.1", kind: tar.TypeSymlink, link: "libonnxruntime.so.1.30.0"},
	{name: "./ort/lib/libonnxruntime.so.1.30.0", data: "ELF"},
	{name: "./ort/lib/libonnxruntime_providers_shared.so", data: "ELF shared"},
	{name: "./ort/lib/pkgconfig/libonnxruntime.pc", data: "Libs:"},
}

func TestExtract(t *testing.T) {
	lib := member{name: "ort/lib/libonnxruntime.so", data: "ELF"}
	tests := []struct {
		name    string
		members []member
		err     string
		names   []string
	}{
		{name: "a release", members: build,
			names: []string{"LICENSE", "ThirdPartyNotices.txt", "libonnxruntime.so.1.30.0", "libonnxruntime_providers_shared.so"}},
		{name: "library without links", members: []member{lib}, names: []string{"libonnxruntime.so"}},
		{name: "hard link", members: []member{{name: "ort/lib/libonnxruntime.so.1", data: "ELF"},
			{name: "ort/lib/libonnxruntime.so", kind: tar.TypeLink, link: "ort/lib/libonnxruntime.so.1"}}, names: []string{"libonnxruntime.so.1"}},
		{name: "path with ..", members: []member{lib, {name: "ort/lib/../../../etc/libonnxruntime.so", data: "x"}}, err: "leaves the archive's folder"},
		{name: "absolute path", members: []member{lib, {name: "/etc/passwd", data: "x"}}, err: "leaves the archive's folder"},
		{name: "link to the outside", members: []member{{name: "ort/lib/libonnxruntime.so", kind: tar.TypeSymlink, link: "/etc/passwd"}}, err: "out of its folder"},
		{name: "link upwards", members: []member{{name: "ort/lib/libonnxruntime.so", kind: tar.TypeSymlink, link: "../libx.so"}}, err: "out of its folder"},
		{name: "hard link to the outside", members: []member{{name: "ort/lib/libonnxruntime.so", kind: tar.TypeLink, link: "/etc/passwd"}}, err: "out of its folder"},
		{name: "file through a link", members: []member{{name: "ort/lib/libonnxruntime.so", kind: tar.TypeSymlink, link: "libonnxruntime.so.1"}, lib}, err: "file exists"},
		{name: "links in a circle", members: []member{{name: "ort/lib/libonnxruntime.so", kind: tar.TypeSymlink, link: "libonnxruntime.so.1"},
			{name: "ort/lib/libonnxruntime.so.1", kind: tar.TypeSymlink, link: "libonnxruntime.so"}}, err: "no usable libonnxruntime.so"},
		{name: "link to nothing", members: []member{lib, {name: "ort/lib/libonnxruntime.so.1", kind: tar.TypeSymlink, link: "libonnxruntime.so.2"}}, err: "no usable libonnxruntime.so.1"},
		{name: "twice the same", members: []member{lib, lib}, err: "file exists"},
		{name: "no library", members: build[:4], err: "no usable libonnxruntime.so"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			names, err := extract(bytes.NewReader(tgz(t, tt.members...)), dir)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil || !slices.Equal(names, tt.names) {
				t.Fatalf("names %v, %v", names, err)
			}
			if data, err := os.ReadFile(filepath.Join(dir, library)); err != nil || string(data) != "ELF" {
				t.Errorf("library %q, %v", data, err)
			}
		})
	}
	for name, data := range map[string][]byte{"not gzip": []byte("hello"), "cut": tgz(t, build...)[:150]} {
		if _, err := extract(bytes.NewReader(data), t.TempDir()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestPullRuntime(t *testing.T) {
	data := tgz(t, build...)
	o := &origin{data: data}
	opts := o.start(t)
	e := modelOf(data)
	e.Name, e.Kind, e.Version = "onnxruntime:cpu", Runtime, ortVersion
	paths, err := pull(t.Context(), e, opts)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(opts.Home, "onnxruntime", ortVersion+"-cpu")
	if len(paths) != 5 || paths[0] != filepath.Join(dir, library) {
		t.Errorf("paths %v", paths)
	}
	t.Setenv("EYAS_HOME", opts.Home)
	if got, ok := Find(e.Name); !ok || got != paths[0] {
		t.Errorf("found %q, %v", got, ok)
	}
	if err := os.Remove(filepath.Join(dir, "libonnxruntime.so.1.30.0")); err != nil {
		t.Fatal(err)
	}
	if _, err := pull(t.Context(), e, opts); err != nil || o.requests.Load() != 2 {
		t.Errorf("after damage: %v, %d requests", err, o.requests.Load())
	}
	if _, err := pull(t.Context(), e, opts); err != nil || o.requests.Load() != 2 {
		t.Errorf("intact: %v, %d requests", err, o.requests.Load())
	}
	onlyVisible(t, filepath.Dir(dir), ortVersion+"-cpu")

	// What a killed pull left goes with the next one, what another entry's pull is unpacking stays.
	stale, others := dir+"/../.unpack-"+ortVersion+"-cpu-1/lib", dir+"/../.unpack-"+ortVersion+"-cuda12-1"
	for _, d := range []string{stale, others} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pull(t.Context(), e, opts); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(stale)); err == nil {
		t.Error("what a killed pull left stays")
	}
	if _, err := os.Stat(others); err != nil {
		t.Errorf("another entry's folder: %v", err)
	}
}

func FuzzExtract(f *testing.F) {
	f.Add(tgz(f, build...))
	f.Add(tgz(f, member{name: "ort/lib/libonnxruntime.so", kind: tar.TypeSymlink, link: "/etc/passwd"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		parent := t.TempDir()
		dir := filepath.Join(parent, "in")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		names, err := extract(bytes.NewReader(data), dir)
		if entries, _ := os.ReadDir(parent); len(entries) != 1 {
			t.Errorf("wrote outside: %v", entries)
		}
		if err != nil {
			return
		}
		for _, n := range names {
			if info, err := os.Lstat(filepath.Join(dir, n)); err != nil || !info.Mode().IsRegular() {
				t.Errorf("%s: %v", n, err)
			}
		}
	})
}

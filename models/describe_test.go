package models

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestDescribe(t *testing.T) {
	for _, name := range []string{"yolov8n_int8_dynshape_op17", "yolox_nano_badnames_meta", "yolov5n_fp16_false_dynamic", "deimv2_atto_int8_320"} {
		m, err := Load(asset(t, "models/"+name+".onnx"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		m.Path = name + ".onnx"
		var text bytes.Buffer
		if err := m.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", text.Bytes())
		doc, err := json.MarshalIndent(m.Describe(), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".json", append(doc, '\n'))
	}
}

func TestCounts(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 3_160_000: "3.16 M", 4_370_000_000: "4.37 G", 507_000: "507 k"} {
		if got := countText(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{12: "12 B", 23_200: "23.2 KB", 3_150_000: "3.1 MB"} {
		if got := byteText(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

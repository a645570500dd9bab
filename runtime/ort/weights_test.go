package ort

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// saved writes a model in the library's own format and reads it into memory of ours.
func saved(t testing.TB, name string, o Options) *Weights {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".ort")
	if err := library(t).SaveORT(path, model(t, name), o); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	w, err := ReadWeights(f, st.Size(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// A session on weights of ours gives the same as one of the model's file, also with two
// sessions on the same bytes, and from an arena.
func TestORTFormat(t *testing.T) {
	for _, name := range []string{"yolox_nano_person_192", "yolox_nano_external", "yolov8n_qdq_op11_640", "yolo11n_int8_320_op12", "nanodet_m_416"} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			ref := open(t, name, own)
			cold := time.Since(start)
			want := digest(run(t, bound(t, ref)))
			w := saved(t, name, own)
			sum := sha256.Sum256(w.Bytes())
			for range 2 {
				start := time.Now()
				s, err := library(t).OpenORT(name, w.Bytes(), own)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				t.Logf("%d bytes, locked: %v, held %d (of the file: %d); opened in %v, from the file in %v",
					len(w.Bytes()), w.Locked(), s.Held(), ref.Held(), time.Since(start), cold)
				b := bound(t, s)
				if digest(run(t, b)) != want {
					t.Fatal("outputs differ")
				}
				planned(t, b, schedule(t, false, record(t, b)))
				if digest(run(t, b)) != want {
					t.Error("outputs differ from an arena")
				}
			}
			if sha256.Sum256(w.Bytes()) != sum {
				t.Error("the weights have changed")
			}
		})
	}
}

func TestORTFormatFailures(t *testing.T) {
	l, dir := library(t), t.TempDir()
	if err := l.SaveORT(filepath.Join(dir, "none", "x.ort"), model(t, "yolox_nano_person_192"), Options{}); !errors.Is(err, ErrModel) {
		t.Errorf("a folder that is not there: %v", err)
	} else {
		t.Log(err)
	}
	if err := l.SaveORT(filepath.Join(dir, "x.ort"), filepath.Join(dir, "none.onnx"), Options{}); !errors.Is(err, ErrModel) {
		t.Errorf("a model that is not there: %v", err)
	}
	if s, err := l.OpenORT("empty", nil, Options{}); s != nil || !errors.Is(err, ErrModel) {
		t.Errorf("no bytes: %v", err)
	}
	if s, err := l.OpenORT("junk", make([]byte, 4096), Options{}); s != nil || !errors.Is(err, ErrModel) {
		t.Errorf("junk: %v", err)
	} else {
		t.Log(err)
	}
}

func TestReadWeights(t *testing.T) {
	data := bytes.Repeat([]byte("weights "), 1000)
	var seen bytes.Buffer
	w, err := ReadWeights(bytes.NewReader(data), int64(len(data)), &seen)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(w.Bytes(), data) || !bytes.Equal(seen.Bytes(), data) {
		t.Error("other bytes")
	}
	for range 2 {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		name string
		size int64
		want string
	}{
		{"short file", int64(len(data)) + 1, "unexpected EOF"},
		{"nothing", 0, "cannot hold 0 bytes"},
		{"negative", -1, "cannot hold -1 bytes"},
		{"huge", 1 << 62, "cannot hold"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if w, err := ReadWeights(bytes.NewReader(data), c.size, nil); w != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

package ort

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// library loads the library of the tests.
func library(t testing.TB) *Library {
	t.Helper()
	l, err := Load(testenv.Library(t))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// model returns the path of an asset model.
func model(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(testenv.Assets(t), "models", name+".onnx")
}

func open(t testing.TB, name string, o Options) *Session {
	t.Helper()
	path := model(t, name)
	s, err := library(t).OpenFile(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// newTensor is NewTensor for the life of a test.
func newTensor(t testing.TB, name string, typ tensor.Type, shape ...int) *tensor.Tensor {
	t.Helper()
	x, err := NewTensor(name, typ, shape...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := FreeTensor(x); err != nil {
			t.Error(err)
		}
	})
	return x
}

// inputs makes zero inputs; open dimensions become batch at the front and side
// elsewhere.
func inputs(t testing.TB, s *Session, batch, side int) []*tensor.Tensor {
	t.Helper()
	var list []*tensor.Tensor
	for _, info := range s.Inputs() {
		shape := slices.Clone(info.Shape)
		for i := range shape {
			if shape[i] < 0 && i == 0 {
				shape[i] = batch
			} else if shape[i] < 0 {
				shape[i] = side
			}
		}
		list = append(list, newTensor(t, info.Name, info.Type, shape...))
	}
	return list
}

// bind binds with all outputs left to the library unless out is given.
func bind(t testing.TB, s *Session, in []*tensor.Tensor, out ...*tensor.Tensor) *Binding {
	t.Helper()
	b, err := s.Bind(in, out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func run(t testing.TB, b *Binding) []*tensor.Tensor {
	t.Helper()
	if err := b.Run(); err != nil {
		t.Fatal(err)
	}
	return b.Outputs()
}

// noise fills a tensor with the same pseudo-random values every time.
func noise(x *tensor.Tensor) {
	state := uint32(1)
	next := func() uint32 { state = state*1664525 + 1013904223; return state >> 24 }
	if f := x.Float32s(); f != nil {
		for i := range f {
			f[i] = float32(next())
		}
		return
	}
	for i := range x.Data {
		x.Data[i] = byte(next())
	}
}

func digest(list []*tensor.Tensor) uint64 {
	h := fnv.New64a()
	for _, x := range list {
		h.Write(x.Data)
	}
	return h.Sum64()
}

// Every asset model opens, runs on a zero input and does the same twice.
func TestModels(t *testing.T) {
	want := map[string]string{ // the outputs' shapes where they matter
		"yolox_nano_416":             "[1 3549 85]",
		"yolox_nano_u8_nhwc":         "[1 3549 85]",
		"yolox_nano_external":        "[1 3549 85]",
		"yolov5n_fp16_io_640":        "[1 25200 85]",
		"yolov8n_int8_dynshape_op17": "[1 84 8400]",
		"yolo26n_int8_e2e_640":       "[1 300 6]",
	}
	paths, err := filepath.Glob(filepath.Join(testenv.Assets(t), "models", "*.onnx"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no models: %v", err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".onnx")
		t.Run(name, func(t *testing.T) {
			s := open(t, name, Options{Threads: 2})
			if s.EP() != EPCPU {
				t.Errorf("ep %s", s.EP())
			}
			b := bind(t, s, inputs(t, s, 1, 640))
			out := run(t, b)
			first := digest(out)
			for i, x := range out {
				if x.Type != s.Outputs()[i].Type || x.Name != s.Outputs()[i].Name {
					t.Errorf("output %d is %s %s", i, x.Name, x.Type)
				}
				if err := x.Check(); err != nil {
					t.Error(err)
				}
			}
			if w := want[name]; w != "" && w != shapes(out) {
				t.Errorf("outputs are %s, want %s", shapes(out), w)
			}
			if again := digest(run(t, b)); again != first {
				t.Error("a second run differs")
			}
		})
	}
}

func shapes(list []*tensor.Tensor) string {
	var all []string
	for _, x := range list {
		all = append(all, fmt.Sprint(x.Shape))
	}
	return strings.Join(all, " ")
}

func TestOpenFailures(t *testing.T) {
	l := library(t)
	dir := t.TempDir()
	junk := filepath.Join(dir, "junk.onnx")
	if err := os.WriteFile(junk, []byte("not a model"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		open func() (*Session, error)
		kind error
		text string
	}{
		{"junk file", func() (*Session, error) { return l.OpenFile(junk, Options{}) }, ErrModel, junk + ": Protobuf parsing failed; export the model again, or check it with onnx.checker"},
		{"no file", func() (*Session, error) { return l.OpenFile(filepath.Join(dir, "none.onnx"), Options{}) }, ErrModel, "none.onnx"},
		{"junk bytes", func() (*Session, error) { return l.Open("m", []byte{1, 2, 3}, Options{}) }, ErrModel, "m: "},
		{"no bytes", func() (*Session, error) { return l.Open("m", nil, Options{}) }, ErrModel, "m: the model is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := c.open()
			if s != nil || !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v", err)
			}
			t.Log(err)
		})
	}
}

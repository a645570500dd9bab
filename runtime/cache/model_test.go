package cache

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// own are the options of sessions on our allocator.
var own = ort.Options{Threads: 2, OwnAllocator: true}

func modelPath(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(testenv.Assets(t), "models", name+".onnx")
}

// answer runs a session once on a grey picture and returns the bytes of its outputs.
func answer(t testing.TB, s *ort.Session) []byte {
	t.Helper()
	var in []*tensor.Tensor
	for _, info := range s.Inputs() {
		shape := slices.Clone(info.Shape)
		for i, n := range shape {
			switch {
			case n < 0 && i == 0:
				shape[i] = 1
			case n < 0:
				shape[i] = 320
			}
		}
		x, err := ort.NewTensor(info.Name, info.Type, shape...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := ort.FreeTensor(x); err != nil {
				t.Error(err)
			}
		})
		for i := range x.Float32s() {
			x.Float32s()[i] = float32(i%251) / 2
		}
		in = append(in, x)
	}
	b, err := s.Bind(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Run(); err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, out := range b.Outputs() {
		all = append(all, out.Data...)
	}
	return all
}

// The kept model is what was built, to the byte, and a session on it gives the model's own results; also
// where nothing is kept.
func TestModels(t *testing.T) {
	l := library(t)
	for _, name := range []string{"yolox_nano_person_192", "yolox_nano_external", "nanodet_m_416"} {
		t.Run(name, func(t *testing.T) {
			m := readModel(t, modelPath(t, name))
			ref, err := l.OpenFile(m.Path, own)
			if err != nil {
				t.Fatal(err)
			}
			defer ref.Close()
			want := answer(t, ref)
			sum := sumOf(t, m)
			key, build := WeightsKey(l, sum), SaveWeights(l, m, sum, own)
			dir := t.TempDir()
			var first []byte
			for i, cache := range []*Cache{open(t, dir), open(t, dir), None()} {
				w, origin, err := cache.Weights(context.Background(), key, build)
				if err != nil {
					t.Fatal(err)
				}
				if origin.Found != (i == 1) || origin.Kept != (i < 2) || origin.Warning != nil {
					t.Errorf("%d: %+v", i, origin)
				}
				s, err := l.OpenORT(name, w.Bytes(), own)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(answer(t, s), want) {
					t.Errorf("%d: other results", i)
				}
				switch i {
				case 0:
					first = bytes.Clone(w.Bytes())
				case 1:
					if !bytes.Equal(w.Bytes(), first) {
						t.Error("found other bytes than were built")
					}
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// What ONNX Runtime cut off, should it not notice itself, it refuses to open: Forget then makes room for another
// try.
func TestCutOffModel(t *testing.T) {
	l, cache := library(t), open(t, t.TempDir())
	m := readModel(t, modelPath(t, "yolox_nano_person_192"))
	sum := sumOf(t, m)
	w, _, err := None().Weights(context.Background(), NewKey(), SaveWeights(l, m, sum, own))
	if err != nil {
		t.Fatal(err)
	}
	whole := bytes.Clone(w.Bytes())
	checkWeights(t, w, whole)
	for _, n := range []int{100, 4096, len(whole) / 2, len(whole) - 4096, len(whole) - 16} {
		cut := &builder{data: whole[:n]}
		w, _, err := cache.Weights(context.Background(), WeightsKey(l, sum), cut.build)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := l.OpenORT("cut", w.Bytes(), own); err == nil {
			s.Close()
			t.Errorf("a model cut off at %d of %d bytes opens", n, len(whole))
		}
		checkWeights(t, w, whole[:n])
		cache.Forget(WeightsKey(l, sum))
	}
	if o := get(t, cache, WeightsKey(l, sum), &builder{data: whole}); o != (Origin{Kept: true}) {
		t.Errorf("%+v", o)
	}
}

// A model that is replaced while it is optimised is not kept under the old one's key.
func TestModelChangesInMidBuild(t *testing.T) {
	l, dir := library(t), t.TempDir()
	path, data := copyModel(t)
	m := readModel(t, path)
	sum := sumOf(t, m)
	flipByte(t, data, 3_000_000)
	w, _, err := open(t, dir).Weights(context.Background(), WeightsKey(l, sum), SaveWeights(l, m, sum, own))
	if w != nil || err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("got %v", err)
	}
	if n := files(t, dir); len(n) != 0 {
		t.Errorf("kept %q", n)
	}
}

package runtime

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/models"
	"github.com/eyas-edge/eyas/runtime/cache"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// A model that does not run with its dimensions fixed is kept with open ones.
func TestDimensionsStayOpenWhereTheyMust(t *testing.T) {
	lib, err := ort.Load(testenv.Library(t))
	if err != nil {
		t.Fatal(err)
	}
	info, err := models.Load(filepath.Join(testenv.Assets(t), "models", "yolox_nano_dynbatch.onnx"), models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sum, err := cache.HashModel(info.ONNX)
	if err != nil {
		t.Fatal(err)
	}
	o := ort.Options{EP: ort.EPCPU, Threads: 2, OwnAllocator: true}
	for _, c := range []struct {
		name  string
		fixed map[string]int
		want  int // of the batch axis
	}{
		{"nothing to fix", nil, -1},
		{"right", map[string]int{"batch": 1}, 1},
		{"runs differ", map[string]int{"batch": 2}, -1},
		{"refused by the library", map[string]int{"batch": -7}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &Model{rt: &Runtime{library: lib, cfg: Config{Batch: []int{1}}}, key: "m", info: info, hash: sum, fixed: c.fixed}
			w, _, err := cache.None().Weights(context.Background(), cache.Key{}, m.optimise(context.Background(), o))
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			s, err := lib.OpenORT("m", w.Bytes(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if in := s.Inputs()[0]; in.Shape[0] != c.want {
				t.Errorf("%v, want a batch of %d", in, c.want)
			}
		})
	}
	t.Run("given up", func(t *testing.T) { // says nothing about the model
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		m := &Model{rt: &Runtime{library: lib, cfg: Config{Batch: []int{1}}}, key: "m", info: info, hash: sum, fixed: map[string]int{"batch": 1}}
		if err := m.optimise(ctx, o)(filepath.Join(t.TempDir(), "m.ort")); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

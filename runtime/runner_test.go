package runtime_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/eyas-edge/eyas/internal/testenv"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// A runner that is closed twice gives its input buffer back once: two others would be handed the same one.
func TestRunnerClosesOnce(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	rt := open(t, eyas.Config{Models: map[string]eyas.ModelConfig{
		"m": {Path: filepath.Join(testenv.Assets(t), "models", "yolox_nano_person_192.onnx")},
	}})
	first, err := rt.Model("m").Runner(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	first.Close()
	for range 2 {
		r, err := rt.Model("m").Runner(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := r.Run(); err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := rt.Model("m").Runner(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a third input buffer: %v", err)
	}
}

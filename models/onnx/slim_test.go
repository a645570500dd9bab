package onnx

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eyas-edge/eyas/internal/testenv"
)

// Without the bytes of its weights a model is inferred and counted as before, and none of its file is held.
func TestDropWeights(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testenv.Assets(t), "models", "*.onnx"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".onnx"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			m, err := Parse(data, filepath.Dir(file))
			if err != nil {
				t.Fatal(err)
			}
			inputs := map[string][]int{}
			for _, in := range m.Graph.Inputs {
				inputs[in.Name] = in.Sizes()
				for i, d := range inputs[in.Name] {
					if d < 0 {
						inputs[in.Name][i] = []int{1, 3, 320, 320}[i]
					}
				}
			}
			shapes, inferErr := m.Infer(inputs)
			stats := m.Stats(shapes)
			m.DropWeights()
			for i := range data {
				data[i] = 0xff // whoever still looks at it sees nonsense
			}
			again, err := m.Infer(inputs)
			if (err == nil) != (inferErr == nil) {
				t.Fatalf("%v; before: %v", err, inferErr)
			}
			if diff := cmp.Diff(shapes, again); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(stats, m.Stats(again)); diff != "" {
				t.Error(diff)
			}
			dropped := 0
			for i := range m.Graph.Initializers {
				if _, err := m.Graph.Initializers[i].Bytes(); err != nil {
					dropped++
				}
			}
			if dropped == 0 && !strings.Contains(file, "external") {
				t.Error("nothing was dropped")
			}
		})
	}
}

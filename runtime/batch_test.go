package runtime_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/models/onnx"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// tinyYOLO writes a model of the YOLOv8 form with random weights: 64x64, two classes, a fixed batch.
func tinyYOLO(t *testing.T, batch int) string {
	t.Helper()
	return writeTiny(t, batch, []int{batch, 6, 84}, func(_ *onnx.Builder, _, y string) string { return y })
}

// hungryYOLO is tinyYOLO with a branch that takes memory for each value of the picture above 0.9, and adds 0.
func hungryYOLO(t *testing.T) string {
	t.Helper()
	return writeTiny(t, 1, []int{1, 6, 84}, func(b *onnx.Builder, x, y string) string {
		bright := b.Node("NonZero", []string{b.Node("Greater", []string{x, b.Float32("bright", []int{1}, []float32{0.9})})})
		sum := b.Node("ReduceSum", []string{b.Node("Cast", []string{bright}, onnx.Int("to", int64(tensor.Float32)))}, onnx.Int("keepdims", 0))
		none := b.Node("Mul", []string{sum, b.Float32("none", []int{1}, []float32{0})})
		return b.Node("Add", []string{y, none})
	})
}

// writeTiny writes what change makes of the picture and of what tinyYOLO gives for it, an output of that shape.
func writeTiny(t *testing.T, batch int, shape []int, change func(b *onnx.Builder, x, y string) string) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	b := onnx.NewBuilder("tiny", 13)
	b.Meta("task", "detect")
	b.Meta("names", "{0: 'a', 1: 'b'}")
	x := b.Input("images", tensor.Float32, batch, 3, 64, 64)
	var levels []string
	for _, stride := range []int{8, 16, 32} {
		weights := make([]float32, 6*3*stride*stride)
		for i := range weights {
			weights[i] = float32(rng.NormFloat64()) / float32(stride)
		}
		w := b.Float32(fmt.Sprint("w", stride), []int{6, 3, stride, stride}, weights)
		conv := b.Node("Conv", []string{x, w}, onnx.Ints("strides", int64(stride), int64(stride)))
		cells := int64(64 / stride * 64 / stride)
		levels = append(levels, b.Node("Reshape", []string{conv, b.Int64(fmt.Sprint("s", stride), int64(batch), 6, cells)}))
	}
	raw := b.Node("Sigmoid", []string{b.Node("Concat", levels, onnx.Int("axis", 2))})
	scale := b.Float32("scale", []int{1, 6, 1}, []float32{64, 64, 32, 32, 1, 1})
	b.Output(change(b, x, b.Node("Mul", []string{raw, scale})), tensor.Float32, shape...)
	data, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), fmt.Sprintf("tiny%d.onnx", batch))
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// A model with a fixed batch of 3 is fed one picture and gives what the model of batch 1 gives.
func TestFixedBatchEqualsBatchOne(t *testing.T) {
	photo := filepath.Join(testenv.Root(), ".deps", "photos", "sample1.jpg")
	_, err := os.Stat(photo)
	testenv.Require(t, err == nil, "no photo: run make fetch")
	var results []string
	for _, batch := range []int{1, 3} {
		rt := open(t, eyas.Config{Models: map[string]eyas.ModelConfig{"tiny": {Path: tinyYOLO(t, batch)}}})
		found := detect(t, rt, photo).Detections
		if len(found) == 0 {
			t.Fatalf("batch %d finds nothing: the test would compare nothing", batch)
		}
		results = append(results, fmt.Sprint(found))
	}
	if results[0] != results[1] {
		t.Errorf("batch 1 gives %s\nbatch 3 gives %s", results[0], results[1])
	}
}

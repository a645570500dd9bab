package runtime_test

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/models/onnx"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// endToEnd is tinyYOLO with a head that picks its best boxes, as YOLO26 does: by class and box from one list, the box's number
// looked up in another list.
func endToEnd(t *testing.T) string {
	t.Helper()
	return writeTiny(t, 1, []int{1, 20, 6}, func(b *onnx.Builder, _, raw string) string {
		rows := b.Node("Transpose", []string{raw}, onnx.Ints("perm", 0, 2, 1)) // [1,84,6]
		parts := b.Nodes("Split", 2, []string{rows, b.Int64("parts", 4, 2)}, onnx.Int("axis", -1))
		best := b.Nodes("TopK", 2, []string{
			b.Node("ReduceMax", []string{parts[1]}, onnx.Ints("axes", -1), onnx.Int("keepdims", 0)), b.Int64("k", 20)})[1]
		column := b.Node("Unsqueeze", []string{best, b.Int64("last", -1)})
		scores := b.Node("GatherElements", []string{parts[1], b.Node("Tile", []string{column, b.Int64("twice", 1, 1, 2)})}, onnx.Int("axis", 1))
		top := b.Nodes("TopK", 2, []string{b.Node("Flatten", []string{scores}), b.Int64("k2", 20)})
		two := b.Tensor("two", tensor.Int64, nil, []byte{2, 0, 0, 0, 0, 0, 0, 0})
		number := b.Node("Gather", []string{b.Node("Flatten", []string{column}, onnx.Int("axis", 2)), b.Node("Div", []string{top[1], two})}, onnx.Int("axis", 0))
		boxes := b.Node("GatherElements", []string{parts[0], b.Node("Tile", []string{number, b.Int64("fourfold", 1, 1, 4)})}, onnx.Int("axis", 1))
		class := b.Node("Cast", []string{b.Node("Mod", []string{top[1], two})}, onnx.Int("to", int64(tensor.Float32)))
		return b.Node("Concat", []string{boxes, b.Node("Unsqueeze", []string{top[0], b.Int64("end", -1)}),
			b.Node("Unsqueeze", []string{class, b.Int64("end2", -1)})}, onnx.Int("axis", -1))
	})
}

// What a start says of models for one picture where batches are asked for, and what they run then.
func TestRewriteIsSaid(t *testing.T) {
	asset := func(name string) func(t *testing.T) string {
		return func(t *testing.T) string { return filepath.Join(testenv.Assets(t), "models", name+".onnx") }
	}
	const done = "rewritten to a dynamic batch (compared on 3 pictures, the same to the bit)"
	for _, c := range []struct {
		name   string
		path   func(t *testing.T) string
		batch  []int
		ladder []int
		says   string // "": nothing of batches
	}{
		{"dense", func(t *testing.T) string { return tinyYOLO(t, 1) }, []int{1, 4}, []int{1, 4}, done},
		{"end to end", endToEnd, []int{1, 4}, []int{1, 4}, done},
		{"no batch asked", func(t *testing.T) string { return tinyYOLO(t, 1) }, nil, []int{1}, ""},
		{"batch 1 asked", func(t *testing.T) string { return tinyYOLO(t, 1) }, []int{1}, []int{1}, ""},
		{"three at once", func(t *testing.T) string { return tinyYOLO(t, 3) }, []int{1, 4}, []int{3},
			`runs 3 at once and nothing else (it cannot be rewritten to a dynamic batch: its input "images" is 3x3x64x64, not of one picture): it is planned for that and not for batches of [1 4]`},
		{"memory by content", hungryYOLO, []int{4}, []int{1}, `cannot be rewritten to a dynamic batch: node "NonZero`},
		{"suppression inside", asset("yolox_nano_end2end"), []int{4}, []int{1}, `node "sel" (NonMaxSuppression): puts what it keeps of all pictures into one list`},
		{"dynamic quantisation", asset("yolo11n_int8_320_op12"), []int{4}, []int{1}, "(DynamicQuantizeLinear): takes its scale from all pictures of a batch"},
		{"a dynamic batch that is none", asset("deimv2_atto_int8_320"), []int{4}, []int{1}, "runs 1 at once and nothing else: it is planned"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("EYAS_HOME", t.TempDir())
			path := c.path(t)
			for _, start := range []string{"cold", "warm"} {
				var log bytes.Buffer
				rt := open(t, eyas.Config{Batch: c.batch, Logger: slog.New(slog.NewTextHandler(&log, nil)), Models: map[string]eyas.ModelConfig{"m": {Path: path}}})
				said := strings.ReplaceAll(log.String(), `\"`, `"`)
				if c.says == "" && strings.Contains(said, "batch") || !strings.Contains(said, c.says) {
					t.Errorf("%s: it says\n%s\nnot %q", start, said, c.says)
				}
				if got := rt.Choice().Models[0].Ladder; !slices.Equal(got, c.ladder) {
					t.Errorf("%s: the ladder is %v, want %v", start, got, c.ladder)
				}
				if recorded := rt.Memory().Recordings > 0; recorded != (start == "cold") {
					t.Errorf("%s: recorded %v", start, recorded)
				}
				rt.Close()
			}
		})
	}
}

// An estimate counts on the rewrite, and says that nothing was compared.
func TestEstimateOfRewrite(t *testing.T) {
	var log bytes.Buffer
	cfg := eyas.Config{Batch: []int{1, 2, 4}, Logger: slog.New(slog.NewTextHandler(&log, nil)), Models: map[string]eyas.ModelConfig{"m": {Path: tinyYOLO(t, 1)}}}
	doc, err := eyas.Plan(context.Background(), cfg, eyas.PlanOptions{Estimate: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Batches) != 3 || !strings.Contains(log.String(), "a start compares its results first") {
		t.Errorf("%d batch sizes; it says\n%s", len(doc.Batches), log.String())
	}
}

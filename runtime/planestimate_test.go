package runtime_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/eyas-edge/eyas/internal/testenv"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// What is estimated is what a start records, also where axes are open: those that are the same in every run are
// fixed before the model is optimised, and change what a run takes.
func TestEstimateIsWhatAStartRecords(t *testing.T) {
	for _, c := range []struct {
		model string
		side  int
		batch []int
	}{
		{"yolox_nano_dynbatch", 0, nil},
		{"yolox_nano_dynbatch", 0, []int{4}},
		{"yolox_nano_dynbatch", 0, []int{1, 2}},
		{"yolov5n_fp16_false_dynamic", 0, nil},
		{"yolov5n_fp16_false_dynamic", 0, []int{1, 2}},
		{"yolov8n_int8_dynshape_op17", 320, nil},
		{"deimv2_atto_int8_320", 0, nil},
	} {
		t.Run(fmt.Sprint(c.model, c.batch), func(t *testing.T) {
			cfg := eyas.Config{ORT: testenv.Library(t), Batch: c.batch, NoCache: true, EP: "cpu", Threads: 1, Models: map[string]eyas.ModelConfig{
				"m": {Path: filepath.Join(testenv.Assets(t), "models", c.model+".onnx"), ImgSize: eyas.ImgSize{H: c.side, W: c.side}},
			}}
			recorded, err := eyas.Plan(context.Background(), cfg, eyas.PlanOptions{})
			if err != nil {
				t.Fatal(err)
			}
			estimated, err := eyas.Plan(context.Background(), cfg, eyas.PlanOptions{Estimate: true})
			if err != nil {
				t.Fatal(err)
			}
			if len(recorded.Batches) != len(estimated.Batches) {
				t.Fatalf("%d batch sizes recorded, %d estimated", len(recorded.Batches), len(estimated.Batches))
			}
			for i, r := range recorded.Batches {
				e := estimated.Batches[i]
				off := func(e, r int64) float64 { return 100 * (float64(e)/float64(r) - 1) }
				t.Logf("batch %d: arena %d estimated, %d recorded (%+.1f %%); weights %d and %d (%+.1f %%)", r.Batch,
					e.Arena.Height, r.Arena.Height, off(e.Arena.Height, r.Arena.Height), e.Weights, r.Weights, off(e.Weights, r.Weights))
				if math.Abs(off(e.Arena.Height, r.Arena.Height)) > 10 || math.Abs(off(e.Weights, r.Weights)) > 10 {
					t.Errorf("batch %d: more than 10 %% off", r.Batch)
				}
			}
		})
	}
}

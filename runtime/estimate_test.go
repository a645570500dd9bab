package runtime_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/memplan"
	"github.com/eyas-edge/eyas/models/estimate"
	"github.com/eyas-edge/eyas/models/onnx"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// estimated are runs of asset models whose estimate is compared with a recording. A side of 0 is for
// models with a fixed size.
var estimated = []struct {
	model   string
	batches []int
	side    int
}{
	{"yolox_nano_person_192", []int{1}, 0},
	{"fastestdet_352", []int{1}, 0},
	{"nanodet_m_416", []int{1}, 0},
	{"picodet_s_416", []int{1}, 0},
	{"yolox_nano_416", []int{1}, 0},
	{"yolox_nano_badnames_meta", []int{1}, 0},
	{"yolox_nano_external", []int{1}, 0},
	{"yolox_nano_u8_nhwc", []int{1}, 0},
	{"yolox_nano_end2end", []int{1}, 0},
	{"yolox_nano_dynbatch", []int{1, 2, 4}, 0},
	{"deimv2_atto_int8_320", []int{1}, 0},
	{"yolo11n_int8_320_op12", []int{1}, 0},
	{"yolov8n_seg_int8_320", []int{1}, 0},
	{"yolov8n_int8_dynshape_op17", []int{1, 2, 4}, 320},
	{"yolov8n_int8_dyn_op12_640", []int{1}, 0},
	{"yolo_human_1cls_int8_640", []int{1}, 0},
	{"yolo26n_int8_e2e_640", []int{1}, 0},
	{"yolov8n_qdq_op11_640", []int{1}, 0},
	{"yolov8n_qdq_dead_scores", []int{1}, 0},
	{"yolov5n_fp16_io_640", []int{1}, 0},
	{"yolov5n_fp16_false_dynamic", []int{1, 2, 4}, 640},
}

// tolerance is how far an estimate may be from what was measured.
const tolerance = 0.10

// TestEstimate compares estimates with what the library really asks for. EYAS_ESTIMATE=NAME,NAME takes only
// these models, for slow machines: hack/arm64 runs some of them in an emulator.
func TestEstimate(t *testing.T) {
	lib, err := ort.Load(testenv.Library(t))
	if err != nil {
		t.Fatal(err)
	}
	only := strings.FieldsFunc(os.Getenv("EYAS_ESTIMATE"), func(r rune) bool { return r == ',' })
	cpu := estimate.Host()
	cpu.Threads = 1
	var table strings.Builder
	for _, c := range estimated {
		if len(only) > 0 && !slices.Contains(only, c.model) {
			continue
		}
		for i, batch := range c.batches {
			t.Run(fmt.Sprintf("%s/%d", c.model, batch), func(t *testing.T) {
				path := filepath.Join(testenv.Assets(t), "models", c.model+".onnx")
				m, err := onnx.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				inputs := inputShapes(m, batch, c.side)
				e, err := estimate.Of(m, inputs, cpu)
				if err != nil {
					t.Fatal(err)
				}
				got, recorded := solve(t, e.Problem), recordedArena(t, lib, path, m, inputs)
				fmt.Fprintf(&table, "| %s | %d | %s |", c.model, batch, near(t, "arena", got.Height, recorded.Height))
				if i == 0 { // the weights are the same for all batches
					file, held := savedWeights(t, lib, path)
					fmt.Fprintf(&table, " %s |", near(t, "weights", e.Weights+e.Prepacked, file+held))
				}
				fmt.Fprintln(&table)
			})
		}
	}
	if table.Len() == 0 {
		t.Fatalf("EYAS_ESTIMATE names no model of this test: %q", only)
	}
	t.Logf("%s, ONNX Runtime %s; MB\n"+
		"| model | batch | arena estimated | recorded | difference | weights estimated | measured | difference |\n"+
		"|---|---|---|---|---|---|---|---|\n%s", cpu, lib.Version(), table.String())
}

// near returns both figures in MB with their difference, which is within tolerance.
func near(t *testing.T, what string, estimated, measured int64) string {
	t.Helper()
	off := float64(estimated)/float64(measured) - 1
	if off < -tolerance || off > tolerance {
		t.Errorf("%s: estimated %d bytes, measured %d: %+.1f %%", what, estimated, measured, 100*off)
	}
	return fmt.Sprintf("%.2f | %.2f | %+.1f %%", float64(estimated)/1e6, float64(measured)/1e6, 100*off)
}

// savedWeights returns the bytes of the optimised model and what a session on it holds beside them.
func savedWeights(t *testing.T, lib *ort.Library, path string) (file, held int64) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "model.ort")
	o := ort.Options{Threads: 1, OwnAllocator: true}
	if err := lib.SaveORT(out, path, o); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	s, err := lib.OpenORT(out, data, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return int64(len(data)), s.Held()
}

func solve(t *testing.T, p memplan.Problem) memplan.Solution {
	t.Helper()
	s, err := memplan.Solve(t.Context(), p, memplan.MaxNodes(50_000))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// inputShapes are the declared shapes with batch and side where they are open.
func inputShapes(m *onnx.Model, batch, side int) map[string][]int {
	shapes := map[string][]int{}
	for _, in := range m.Graph.Inputs {
		s := in.Sizes()
		for i := range s {
			switch {
			case s[i] < 0 && i == 0:
				s[i] = batch
			case s[i] < 0:
				s[i] = side
			}
		}
		shapes[in.Name] = s
	}
	return shapes
}

// recordedArena runs the model on black pictures with outputs bound where their shape is fixed, as lanes
// do, and plans what the library asked for.
func recordedArena(t *testing.T, lib *ort.Library, path string, m *onnx.Model, inputs map[string][]int) memplan.Solution {
	t.Helper()
	s, err := lib.OpenFile(path, ort.Options{Threads: 1, OwnAllocator: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	inf, err := m.InferAll(inputs)
	if err != nil {
		t.Fatal(err)
	}
	made := func(info ort.Info, shape []int) *tensor.Tensor {
		x, err := ort.NewTensor(info.Name, info.Type, shape...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ort.FreeTensor(x) })
		return x
	}
	var in, out []*tensor.Tensor
	for _, info := range s.Inputs() {
		in = append(in, made(info, inputs[info.Name]))
	}
	for _, info := range s.Outputs() {
		if shape := inf.Shapes[info.Name]; shape == nil || slices.Contains(shape, -1) {
			out = append(out, nil)
		} else {
			out = append(out, made(info, shape))
		}
	}
	b, err := s.Bind(in, out)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	r, err := b.Record()
	if err != nil {
		t.Fatal(err)
	}
	sch, err := ort.NewSchedule(false, r)
	if err != nil {
		t.Fatal(err)
	}
	return solve(t, sch.Problem())
}

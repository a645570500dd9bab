package runtime_test

import (
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/models"
	eyas "github.com/eyas-edge/eyas/runtime"
	"github.com/eyas-edge/eyas/runtime/lane"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// A session of the optimised model, of fixed dimensions, gives what one of the model's file gives, to the bit.
func TestFixedDimensionsChangeNoResult(t *testing.T) {
	lib, err := ort.Load(testenv.Library(t))
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(testenv.Assets(t), "models", "*.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".onnx"), func(t *testing.T) {
			m, err := models.Load(path, models.Options{})
			if err != nil {
				t.Skip(err) // one that is not to run
			}
			o := ort.Options{EP: ort.EPCPU, Threads: 2, Fixed: lane.Fixed(m, nil)}
			out := filepath.Join(t.TempDir(), "model.ort")
			if err := lib.SaveORT(out, path, o); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			fixed, err := lib.OpenORT(path, data, o)
			if err != nil {
				t.Fatal(err)
			}
			defer fixed.Close()
			plain, err := lib.OpenFile(path, ort.Options{EP: ort.EPCPU, Threads: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer plain.Close()
			t.Logf("fixed %v: %v gives %v", o.Fixed, fixed.Inputs(), fixed.Outputs())
			if !m.DynamicSize {
				for _, in := range fixed.Inputs() {
					if slices.Contains(in.Shape, -1) {
						t.Errorf("input %v is open", in)
					}
				}
			}
			want, got := noisyRun(t, plain, m), noisyRun(t, fixed, m)
			if !maps.Equal(got, want) {
				t.Errorf("outputs %v, want %v", got, want)
			}
		})
	}
}

// noisyRun runs a session on noise and returns a digest of each output.
func noisyRun(t *testing.T, s *ort.Session, m *models.Model) map[string]uint64 {
	t.Helper()
	shapes := m.InputShapes(m.Batch(1), m.H, m.W)
	var inputs []*tensor.Tensor
	for i, in := range s.Inputs() {
		x, err := ort.NewTensor(in.Name, in.Type, shapes[in.Name]...)
		if err != nil {
			t.Fatal(err)
		}
		defer ort.FreeTensor(x)
		switch {
		case i == m.SizeInput:
			for k := range x.Int64s() {
				x.Int64s()[k] = int64(m.W)
			}
		case x.Float32s() != nil:
			for k := range x.Float32s() {
				x.Float32s()[k] = float32(pseudo(k)) / 255
			}
		case x.Type == tensor.Float16:
			for k := range tensor.Elements(x.Shape) { // 0.5 to 1
				x.Data[2*k], x.Data[2*k+1] = pseudo(k), 0x38|pseudo(k+1)&3
			}
		default:
			for k := range x.Data {
				x.Data[k] = pseudo(k)
			}
		}
		inputs = append(inputs, x)
	}
	b, err := s.Bind(inputs, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Run(); err != nil {
		t.Fatal(err)
	}
	digests := map[string]uint64{}
	for _, x := range b.Outputs() {
		h := fnv.New64a()
		h.Write(x.Data)
		digests[fmt.Sprint(x.Name, x.Shape)] = h.Sum64()
	}
	return digests
}

// pseudo returns the ith byte of noise.
func pseudo(i int) byte {
	x := uint32(i+1) * 2654435761
	return byte(x>>24 ^ x>>11)
}

// A start that fixes dimensions, or finds them fixed in the cache, detects what every other start does, and a change
// of the ladder leads to neither the model nor the plans that were kept for another.
func TestStartsWithFixedDimensions(t *testing.T) {
	for _, name := range []string{"deimv2_atto_int8_320", "yolov5n_fp16_false_dynamic", "yolox_nano_dynbatch"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("EYAS_HOME", t.TempDir())
			var want *eyas.Result
			for _, c := range []struct {
				name     string
				batch    []int
				noCache  bool
				recorded bool
			}{
				{name: "without a cache", noCache: true, recorded: true},
				{name: "first", recorded: true},
				{name: "warm"},
				{name: "another ladder", batch: []int{1, 2}, recorded: !strings.HasPrefix(name, "deimv2")}, // which takes one frame
				{name: "the first ladder", batch: []int{1}},
			} {
				cfg := eyas.Config{Batch: c.batch, NoCache: c.noCache, Models: map[string]eyas.ModelConfig{
					"m": {Path: filepath.Join(testenv.Assets(t), "models", name+".onnx")},
				}}
				rt := open(t, cfg)
				got := detect(t, rt, filepath.Join(testenv.Assets(t), "images", "classic", "bus.jpg"))
				if want == nil {
					want = got
				}
				if len(got.Detections) == 0 || !slices.Equal(got.Detections, want.Detections) {
					t.Errorf("%s: detected %v, want %v", c.name, got.Detections, want.Detections)
				}
				u := rt.Memory()
				if u.Recordings > 0 != c.recorded || u.Heap.Count > 0 || u.Mismatches > 0 {
					t.Errorf("%s: %d recordings, %d requests served from the heap, %d mismatches", c.name, u.Recordings, u.Heap.Count, u.Mismatches)
				}
				rt.Close()
			}
		})
	}
}

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

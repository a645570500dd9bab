package runtime_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/half"
	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/internal/testenv"
	eyas "github.com/eyas-edge/eyas/runtime"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// plannedModels have one input each, in all its types; fixed and open shapes; int8 and float kernels; suppression in the
// graph.
var plannedModels = []string{
	"yolox_nano_person_192", "fastestdet_352", "yolox_nano_u8_nhwc", "yolox_nano_external", "yolox_nano_end2end",
	"yolox_nano_dynbatch", "yolov5n_fp16_io_640", "yolov8n_int8_dynshape_op17", "yolov8n_qdq_op11_640", "yolov8n_seg_int8_320",
	"yolo26n_int8_e2e_640", "picodet_s_416",
}

// A model gives bit for bit what a session of ONNX Runtime with its own allocator gives, with the arena and with
// --check-arena, whatever is in the picture. EYAS_PLANNED=NAME,NAME takes only these models, for slow machines:
// hack/arm64 runs some of them in an emulator.
func TestPlannedRunsEqualPlainOnes(t *testing.T) {
	library := testenv.Library(t)
	only := strings.FieldsFunc(os.Getenv("EYAS_PLANNED"), func(r rune) bool { return r == ',' })
	ran := 0
	for _, name := range plannedModels {
		if len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		ran++
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(testenv.Assets(t), "models", name+".onnx")
			plain := newPlainSession(t, library, path)
			for _, check := range []bool{false, true} {
				rt := open(t, eyas.Config{NoCache: true, Threads: 1, CheckArena: check, Models: map[string]eyas.ModelConfig{"m": {Path: path}}})
				equalsPlain(t, rt.Model("m"), plain)
				u := rt.Memory()
				t.Logf("check %v: %v from the arena, %v from the spill block, %v from the heap, %d mismatches", check, u.Arena, u.Spill, u.Heap, u.Mismatches)
				if u.Arena.Count == 0 {
					t.Error("nothing came from the arena")
				}
				rt.Close()
			}
		})
	}
	if ran == 0 {
		t.Fatalf("EYAS_PLANNED names no model of this test: %q", only)
	}
}

// equalsPlain compares runs on a grey input and on others.
func equalsPlain(t *testing.T, m *eyas.Model, plain *plainSession) {
	t.Helper()
	r, err := m.Runner(context.Background(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	grey := bytes.Clone(r.Input())
	for seed := range uint64(3) {
		copy(r.Input(), grey)
		if seed%2 == 1 {
			disturb(r.Input(), plain.Inputs()[0].Type, seed)
		}
		if err := r.Run(); err != nil {
			t.Fatal(err)
		}
		want := plain.run(t, m.Info().InputShape(1, m.Info().H, m.Info().W), r.Input())
		for i, got := range r.Outputs() {
			if w := want[i]; !slices.Equal(got.Shape, w.Shape) || !bytes.Equal(got.Data, w.Data) {
				t.Errorf("input %d: output %s%v differs from %v of a session with ONNX Runtime's own allocator", seed, got.Name, got.Shape, w.Shape)
			}
		}
	}
}

// disturb makes every value of an input another one, from 0 to twice what it is.
func disturb(in []byte, typ tensor.Type, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	x := tensor.Tensor{Type: typ, Data: in}
	switch typ {
	case tensor.Float32:
		for i, v := range x.Float32s() {
			x.Float32s()[i] = v * 2 * rng.Float32()
		}
	case tensor.Float16:
		for i, v := range x.Float16s() {
			x.Float16s()[i] = half.FromFloat32(half.ToFloat32(v) * 2 * rng.Float32())
		}
	default:
		for i := range in {
			in[i] = byte(rng.Uint32())
		}
	}
}

// plainSession is a session as any program has it: of the model's own file, with ONNX Runtime's allocator.
type plainSession struct{ *ort.Session }

func newPlainSession(t *testing.T, library, path string) *plainSession {
	t.Helper()
	l, err := ort.Load(library)
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.OpenFile(path, ort.Options{EP: ort.EPCPU, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &plainSession{s}
}

// run returns copies of the outputs for an input.
func (s *plainSession) run(t *testing.T, shape []int, input []byte) []*tensor.Tensor {
	t.Helper()
	in, err := ort.NewTensor(s.Inputs()[0].Name, s.Inputs()[0].Type, shape...)
	if err != nil {
		t.Fatal(err)
	}
	defer ort.FreeTensor(in)
	if n := copy(in.Data, input); n != len(in.Data) || n != len(input) {
		t.Fatalf("the input %v has %d bytes, given were %d", shape, len(in.Data), len(input))
	}
	b, err := s.Bind([]*tensor.Tensor{in}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Run(); err != nil {
		t.Fatal(err)
	}
	var out []*tensor.Tensor
	for _, o := range b.Outputs() {
		out = append(out, &tensor.Tensor{Name: o.Name, Type: o.Type, Shape: slices.Clone(o.Shape), Data: bytes.Clone(o.Data)})
	}
	return out
}

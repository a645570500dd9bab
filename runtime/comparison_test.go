package runtime

import (
	"bytes"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/internal/half"
	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/models/decode"
	"github.com/eyas-edge/eyas/models/onnx"
)

// Models that were exported for one picture find in each picture of a batch what their files find in it alone.
func TestRewrittenModelsFindTheSame(t *testing.T) {
	pictures, err := filepath.Glob(filepath.Join(testenv.Assets(t), "images", "coco", "*.jpg"))
	if err != nil || len(pictures) < 4 {
		t.Fatal(pictures, err)
	}
	pictures = pictures[:4]
	for _, name := range []string{
		"yolox_nano_external", "yolox_nano_u8_nhwc", "yolox_nano_person_192", "nanodet_m_416", "picodet_s_416",
		"fastestdet_352", "yolov5n_fp16_io_640", "yolov8n_qdq_op11_640",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("EYAS_HOME", t.TempDir())
			path := filepath.Join(testenv.Assets(t), "models", name+".onnx")
			alone, _ := openLogged(t, ModelConfig{Path: path, Conf: 0.05})
			want := findAll(t, alone, pictures, 1)
			together, log := openLogged(t, ModelConfig{Path: path, Conf: 0.05}, 1, 2, 4)
			if got := together.program.Ladder(); !slices.Equal(got, []int{1, 2, 4}) {
				t.Fatalf("the ladder is %v, it says %s", got, log)
			}
			for _, n := range []int{1, 2, 4} {
				got := findAll(t, together, pictures, n)
				for i := range pictures {
					sameFindings(t, n, filepath.Base(pictures[i]), want[i], got[i])
				}
			}
			if u := together.rt.Memory(); u.Heap.Count > 0 || u.Mismatches > 0 {
				t.Errorf("%d requests served from the heap, %d mismatches", u.Heap.Count, u.Mismatches)
			}
		})
	}
}

// openLogged opens a model, and returns what was logged.
func openLogged(t *testing.T, cfg ModelConfig, ladder ...int) (*Model, string) {
	t.Helper()
	var log bytes.Buffer
	rt, err := Open(t.Context(), Config{ORT: testenv.Library(t), Batch: ladder, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Models: map[string]ModelConfig{"m": cfg}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	return rt.models[0], log.String()
}

// findAll looks at pictures, n at once.
func findAll(t *testing.T, m *Model, pictures []string, n int) (all [][]decode.Detection) {
	t.Helper()
	for batch := range slices.Chunk(pictures, n) {
		s, err := m.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range batch {
			f, err := camera.ReadFile(path)
			if err == nil {
				err = s.Fill(f)
				f.Release()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		found := make([][]decode.Detection, n)
		if err := m.look(t.Context(), s, found); err != nil {
			t.Fatal(err)
		}
		s.Put()
		all = append(all, found...)
	}
	return all
}

// sameFindings allows for the order in which kernels add up: a thousandth of a score, a twentieth of a pixel, and boxes so
// near to the threshold that they are found one time only.
func sameFindings(t *testing.T, n int, picture string, want, got []decode.Detection) {
	t.Helper()
	missing := func(from, in []decode.Detection, what string) {
		for _, d := range from {
			if d.Score > 0.051 && !slices.ContainsFunc(in, func(o decode.Detection) bool { return sameFinding(d, o) }) {
				t.Errorf("%s, %d at once: %+v is found %s", picture, n, d, what)
			}
		}
	}
	missing(want, got, "alone only")
	missing(got, want, "in the batch only")
}

func sameFinding(a, b decode.Detection) bool {
	same := a.ClassID == b.ClassID && math.Abs(float64(a.Score-b.Score)) < 0.001
	for k := range a.Box {
		same = same && math.Abs(float64(a.Box[k]-b.Box[k])) < 0.05
	}
	return same
}

func TestComparisonAdds(t *testing.T) {
	floats := func(v ...float32) *tensor.Tensor {
		x, err := tensor.New("y", tensor.Float32, len(v))
		if err != nil {
			t.Fatal(err)
		}
		copy(x.Float32s(), v)
		return x
	}
	halves := func(v ...float32) *tensor.Tensor {
		x, err := tensor.New("y", tensor.Float16, len(v))
		if err != nil {
			t.Fatal(err)
		}
		for i := range v {
			x.Float16s()[i] = half.FromFloat32(v[i])
		}
		return x
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		name      string
		want, all *tensor.Tensor
		picture   int
		why       string
	}{
		{"the same", floats(1, 2), floats(0, 0, 1, 2, 9, 9), 1, ""},
		{"of another picture", floats(1, 2), floats(1, 2, 0, 0, 9, 9), 1, "deviates by 0.7 with other pictures beside"},
		{"another order of adding", floats(0.5, 640), floats(0.50001, 640.01, 0, 0, 0, 0), 0, ""},
		{"another score", floats(0.5, 640), floats(0.5002, 640, 0, 0, 0, 0), 0, "deviates by 0.0001"},
		{"not a number in both", floats(nan, inf), floats(-nan, inf, 0, 0, 0, 0), 0, ""},
		{"not a number in one", floats(nan, 1), floats(2, 1, 0, 0, 0, 0), 0, "deviates"},
		{"infinite in one", floats(2, 1), floats(inf, 1, 0, 0, 0, 0), 0, "deviates"},
		{"infinite in both, on two sides", floats(inf), floats(-inf, 0, 0), 0, "deviates"},
		{"rounded halves", halves(0.5), halves(0.501, 0, 0), 0, ""},
		{"other halves", halves(0.5), halves(0.51, 0, 0), 0, "deviates"},
		{"another length", floats(1, 2), floats(1, 2), 0, "is float32[2] for one picture and float32[2] for 3"},
		{"another type", floats(1), halves(1, 1, 1), 0, "float16[3] for 3"},
		{"other integers", &tensor.Tensor{Name: "y", Type: tensor.Uint8, Shape: []int{1}, Data: []byte{1}},
			&tensor.Tensor{Name: "y", Type: tensor.Uint8, Shape: []int{3}, Data: []byte{2, 1, 1}}, 0, "deviates"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := &comparison{Pictures: comparedPictures}
			got.add(c.want, c.all, c.picture)
			if (got.Why == "") != (c.why == "") || !strings.Contains(got.Why, c.why) {
				t.Errorf("why is %q, want %q", got.Why, c.why)
			}
			if math.IsNaN(got.Largest) || math.IsInf(got.Largest, 0) {
				t.Errorf("a deviation of %v cannot be kept", got.Largest)
			}
		})
	}
}

// denseModel writes a model for one picture; what it gives depends on factor.
func denseModel(t *testing.T, factor float32) string {
	t.Helper()
	b := onnx.NewBuilder("dense", 13)
	b.Meta("task", "detect")
	b.Meta("names", "{0: 'a', 1: 'b'}")
	x := b.Input("images", tensor.Float32, 1, 3, 64, 64)
	var levels []string
	for i, stride := range []int{8, 16, 32} {
		weights := make([]float32, 6*3*stride*stride)
		for k := range weights {
			weights[k] = factor * float32(k%7) / float32(stride*stride)
		}
		w := b.Float32("w"+string(rune('a'+i)), []int{6, 3, stride, stride}, weights)
		conv := b.Node("Conv", []string{x, w}, onnx.Ints("strides", int64(stride), int64(stride)))
		levels = append(levels, b.Node("Reshape", []string{conv, b.Int64("s"+string(rune('a'+i)), 1, 6, -1)}))
	}
	b.Output(b.Node("Sigmoid", []string{b.Node("Concat", levels, onnx.Int("axis", 2))}), tensor.Float32, 1, 6, 84)
	data, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "dense.onnx")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A rewritten model whose results are others is not used, and which it is, is found once.
func TestOtherResults(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	path := denseModel(t, 1)
	m, _ := openLogged(t, ModelConfig{Path: path})
	other, err := Inspect(ModelConfig{Path: denseModel(t, 2)})
	if err == nil {
		other.ONNX, err = m.dynamic(other.ONNX)
		other.Input.Batch = 0
	}
	if err != nil {
		t.Fatal(err)
	}
	found, err := m.compared(t.Context(), other)
	if err != nil || !strings.Contains(found.Why, "deviates") {
		t.Fatalf("it is %+v, %v", found, err)
	}
	m, log := openLogged(t, ModelConfig{Path: path}, 1, 4)
	if got := m.program.Ladder(); !slices.Equal(got, []int{1}) || !strings.Contains(log, "cannot be rewritten to a dynamic batch: its output") {
		t.Errorf("the ladder is %v, it says %s", got, log)
	}
}

package onnx

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/internal/testenv"
)

// assetModel returns the path of a model of the shared assets, or skips.
func assetModel(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(testenv.Assets(t), "models", name+".onnx")
}

// assetCases are the outputs of the assets' README, and figures that were compared with ONNX
// Runtime's real shapes and with what the models' authors publish.
var assetCases = []struct {
	name    string
	in      map[string][]int // nil: as declared
	out     [][]int          // of every output, in order
	opset   int64
	params  float64 // millions
	gmacs   float64
	badSize bool // the model does not run at this size
}{
	{name: "yolox_nano_416", out: [][]int{{1, 3549, 85}}, opset: 11, params: 0.904, gmacs: 0.5226},
	{name: "yolox_nano_badnames_meta", out: [][]int{{1, 3549, 85}}, opset: 11, params: 0.904, gmacs: 0.5226},
	{name: "yolox_nano_external", out: [][]int{{1, 3549, 85}}, opset: 11, params: 0.904, gmacs: 0.5226},
	{name: "yolox_nano_u8_nhwc", out: [][]int{{1, 3549, 85}}, opset: 11, params: 0.904, gmacs: 0.5226},
	{name: "yolox_nano_person_192", out: [][]int{{1, 756, 6}}, opset: 11, params: 0.889, gmacs: 0.1075},
	{name: "yolox_nano_dynbatch", in: map[string][]int{"images": {3, 3, 416, 416}}, out: [][]int{{3, 3549, 85}}, opset: 11, params: 0.904, gmacs: 3 * 0.5226},
	{name: "yolox_nano_end2end", out: [][]int{{-1, 6}}, opset: 11, params: 0.915, gmacs: 0.5226},
	{name: "yolov5n_fp16_io_640", out: [][]int{{1, 25200, 85}}, opset: 17, params: 1.968, gmacs: 2.234},
	{name: "yolov5n_fp16_false_dynamic", in: map[string][]int{"images": {4, 3, 640, 640}}, out: [][]int{{4, 25200, 85}}, opset: 12, params: 1.968, gmacs: 4 * 2.234},
	{name: "yolov5n_fp16_false_dynamic", in: map[string][]int{"images": {1, 3, 320, 416}}, badSize: true},
	{name: "yolov8n_int8_dyn_op12_640", out: [][]int{{1, 84, 8400}}, opset: 12, params: 3.194, gmacs: 4.372},
	{name: "yolov8n_int8_dynshape_op17", in: map[string][]int{"images": {1, 3, 640, 640}}, out: [][]int{{1, 84, 8400}}, opset: 17, params: 3.152, gmacs: 4.372},
	{name: "yolov8n_int8_dynshape_op17", in: map[string][]int{"images": {4, 3, 320, 416}}, out: [][]int{{4, 84, 2730}}, opset: 17, params: 3.152, gmacs: 5.684},
	{name: "yolov8n_qdq_op11_640", out: [][]int{{1, 84, 8400}}, opset: 11, params: 3.194, gmacs: 4.372},
	{name: "yolov8n_qdq_dead_scores", out: [][]int{{1, 84, 8400}}, opset: 11, params: 3.195, gmacs: 4.372},
	{name: "yolo11n_int8_320_op12", out: [][]int{{1, 84, 2100}}, opset: 12, params: 2.627, gmacs: 0.812},
	{name: "yolo26n_int8_e2e_640", out: [][]int{{1, 300, 6}}, opset: 20, params: 2.451, gmacs: 2.740},
	{name: "yolo_human_1cls_int8_640", out: [][]int{{1, 5, 8400}}, opset: 19, params: 3.048, gmacs: 4.041},
	{name: "yolov8n_seg_int8_320", out: [][]int{{1, 116, 2100}, {1, 32, 80, 80}}, opset: 20, params: 3.415, gmacs: 1.500},
	{name: "nanodet_m_416", out: [][]int{{1, 2704, 80}, {1, 676, 80}, {1, 169, 80}, {1, 2704, 32}, {1, 676, 32}, {1, 169, 32}}, opset: 11, params: 0.942, gmacs: 0.578},
	{name: "picodet_s_416", out: [][]int{{1, 2704, 80}, {1, 676, 80}, {1, 169, 80}, {1, 49, 80},
		{1, 2704, 32}, {1, 676, 32}, {1, 169, 32}, {1, 49, 32}}, opset: 11, params: 0.985, gmacs: 0.593},
	{name: "fastestdet_352", out: [][]int{{1, 85, 22, 22}}, opset: 11, params: 0.240, gmacs: 0.1215},
	{name: "deimv2_atto_int8_320", in: map[string][]int{"images": {1, 3, 320, 320}, "orig_target_sizes": {1, 2}},
		out: [][]int{{300}, {300, 4}, {300}}, opset: 16, params: 0.507, gmacs: 0.3786},
	{name: "deimv2_atto_int8_320", in: map[string][]int{"images": {2, 3, 320, 320}, "orig_target_sizes": {2, 2}}, badSize: true},
}

func TestAssetModels(t *testing.T) {
	for _, c := range assetCases {
		t.Run(c.name, func(t *testing.T) {
			m, err := Open(assetModel(t, c.name))
			if err != nil {
				t.Fatal(err)
			}
			inf, err := m.InferAll(c.in)
			if c.badSize {
				if _, ok := err.(*ShapeError); !ok {
					t.Fatalf("got error %v, want a *ShapeError", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if m.Opsets[""] != c.opset {
				t.Errorf("opset %d, want %d", m.Opsets[""], c.opset)
			}
			if len(inf.Missing) > 0 {
				t.Errorf("%d nodes without shape, the first: %s", len(inf.Missing), inf.Missing[0])
			}
			for i, o := range m.Graph.Outputs {
				got := inf.Shapes[o.Name]
				if !slices.Equal(got, c.out[i]) || !fits(got, o.Sizes()) {
					t.Errorf("output %s is %v, want %v, declared %v", o.Name, got, c.out[i], o.Sizes())
				}
				if inf.Types[o.Name] != o.Type {
					t.Errorf("output %s is %s, declared %s", o.Name, inf.Types[o.Name], o.Type)
				}
			}
			checkDeclared(t, m, inf)
			st := m.Stats(inf.Shapes)
			near(t, "million parameters", float64(st.Params)/1e6, c.params)
			near(t, "GMACs", float64(st.MACs)/1e9, c.gmacs)
			if !st.MACsComplete {
				t.Error("multiply-adds are not complete")
			}
		})
	}
}

// checkDeclared compares the inferred values with what the exporter noted.
func checkDeclared(t *testing.T, m *Model, inf *Inference) {
	t.Helper()
	for name, v := range m.Graph.Values {
		got := inf.Shapes[name]
		if got == nil { // a leftover of a node that an optimiser removed
			continue
		}
		want := v.Sizes()
		for i := range want {
			if len(got) != len(want) || (want[i] >= 0 && got[i] >= 0 && want[i] != got[i]) {
				t.Errorf("value %s is %v, noted %v", name, got, want)
				break
			}
		}
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 0.001*want+0.0005 {
		t.Errorf("%.4f %s, want %.4f", got, what, want)
	}
}

func TestWeightBytes(t *testing.T) {
	m, err := Open(assetModel(t, "yolov8n_qdq_op11_640"))
	if err != nil {
		t.Fatal(err)
	}
	st := m.Stats(nil)
	if got := st.WeightBytes[tensor.Int8]; got != 3146240 {
		t.Errorf("%d bytes of int8 weights, want 3146240", got)
	}
	if st.Float32Bytes != 4*st.Params {
		t.Errorf("%d bytes as float32 for %d parameters", st.Float32Bytes, st.Params)
	}
	if st.Ops["QuantizeLinear"] != 123 || st.MACsComplete {
		t.Errorf("%d QuantizeLinear, complete %v without shapes", st.Ops["QuantizeLinear"], st.MACsComplete)
	}
}

// TestReadsWithoutCopies holds the reader to its promise: weights are references.
func TestReadsWithoutCopies(t *testing.T) {
	data, err := os.ReadFile(assetModel(t, "yolov8n_int8_dyn_op12_640"))
	if err != nil {
		t.Fatal(err)
	}
	if _, got, err := allocated(data); err != nil || got > uint64(len(data))/2 {
		t.Errorf("parsing %d bytes allocates %d (%v)", len(data), got, err)
	}
}

// allocated parses data and returns the bytes that it allocated.
func allocated(data []byte) (*Model, uint64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := Parse(data, "")
	runtime.ReadMemStats(&after)
	return m, after.TotalAlloc - before.TotalAlloc, err
}

func TestAssetsSurviveMarshal(t *testing.T) {
	for _, name := range []string{"yolox_nano_external", "picodet_s_416", "yolov5n_fp16_false_dynamic", "deimv2_atto_int8_320"} {
		t.Run(name, func(t *testing.T) {
			path := assetModel(t, name)
			m, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			data, err := m.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			again, err := Parse(data, filepath.Dir(path))
			if err != nil {
				t.Fatal(err)
			}
			sameModel(t, m, again)
		})
	}
}

// sameModel compares two models by what they say, not by how it is stored.
func sameModel(t *testing.T, a, b *Model) {
	t.Helper()
	if len(a.Graph.Nodes) != len(b.Graph.Nodes) || len(a.Graph.Initializers) != len(b.Graph.Initializers) ||
		len(a.Metadata) != len(b.Metadata) || a.IRVersion != b.IRVersion || len(a.Graph.Values) != len(b.Graph.Values) {
		t.Fatalf("the models differ in size")
	}
	for i := range a.Graph.Nodes {
		x, y := &a.Graph.Nodes[i], &b.Graph.Nodes[i]
		if x.Op != y.Op || !slices.Equal(x.Inputs, y.Inputs) || !slices.Equal(x.Outputs, y.Outputs) || len(x.Attrs) != len(y.Attrs) {
			t.Fatalf("node %d: %+v became %+v", i, x, y)
		}
		for k := range x.Attrs {
			p, q := &x.Attrs[k], &y.Attrs[k]
			if p.Name != q.Name || p.Type != q.Type || p.I != q.I || p.F != q.F || p.S != q.S || !slices.Equal(p.Ints, q.Ints) {
				t.Fatalf("attribute %+v became %+v", p, q)
			}
		}
	}
	for i := range a.Graph.Initializers {
		x, y := &a.Graph.Initializers[i], &b.Graph.Initializers[i]
		p, err1 := x.Bytes()
		q, err2 := y.Bytes()
		if err1 != nil || err2 != nil || x.Name != y.Name || x.Type != y.Type || !slices.Equal(x.Dims, y.Dims) || string(p) != string(q) {
			t.Fatalf("tensor %s changed (%v, %v)", x.Name, err1, err2)
		}
	}
}

func TestTruncatedAsset(t *testing.T) {
	data, err := os.ReadFile(assetModel(t, "yolox_nano_person_192"))
	if err != nil {
		t.Fatal(err)
	}
	for _, keep := range []int{100, 5000, len(data) / 2, len(data) - 100} {
		_, err := Parse(data[:keep:keep], "")
		if err == nil || !strings.Contains(err.Error(), "truncated") {
			t.Errorf("cut to %d bytes: error %v, want one that says truncated", keep, err)
		}
	}
}

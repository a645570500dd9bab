package onnx

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// tiny is the smallest model that opens: y = Relu(x).
func tiny() *Builder {
	b := NewBuilder("tiny", 17)
	b.Output(b.Node("Relu", []string{b.Input("x", tensor.Float32, 1, 3, -1, -1)}), tensor.Float32, 1, 3, -1, -1)
	return b
}

func mustBytes(t testing.TB, b *Builder) []byte {
	t.Helper()
	data, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestOpenNamesOtherFiles(t *testing.T) {
	cases := []struct {
		name, file, data, want string
	}{
		{"empty", "a.onnx", "", "empty"},
		{"pytorch zip", "best.pt", "PK\x03\x04\x00\x00\x08\x08best/data.pkl", "yolo export model=best.pt format=onnx"},
		{"pytorch zip renamed", "best.onnx", "PK\x03\x04\x00\x00\x08\x08best/data.pkl", "PyTorch"},
		{"pytorch pickle", "old.pt", "\x80\x02\x8a\x0a", "PyTorch"},
		{"zip", "a.onnx", "PK\x03\x04 whatever", "zip archive"},
		{"gzip", "a.onnx", "\x1f\x8b\x08", "gzip"},
		{"engine", "a.engine", "ftrt\x00\x00\x00\x00", "TensorRT engine"},
		{"ultralytics engine", "a.engine", "\x32\x02\x00\x00{\"description\": \"x\"}", "TensorRT engine"},
		{"engine by name", "best.engine", "\x00\x01\x02\x03", "yolo export model=best.pt"},
		{"tflite", "a.tflite", "\x1c\x00\x00\x00TFL3", "TensorFlow Lite"},
		{"ort", "a.ort", "\x18\x00\x00\x00ORTM", ".ort format"},
		{"lfs pointer", "a.onnx", "version https://git-lfs.github.com/spec/v1\noid sha256:", "git lfs pull"},
		{"web page", "a.onnx", "\n <!DOCTYPE html><html>", "web page"},
		{"openvino", "a.xml", "<?xml version=\"1.0\"?><net>", "OpenVINO"},
		{"safetensors", "a.safetensors", "\x40\x00\x00\x00\x00\x00\x00\x00{\"__metadata__\"", "safetensors"},
		{"picture", "a.jpg", "\xff\xd8\xff\xe0", "picture"},
		{"noise", "a.onnx", "\xfe\xfe\xfe\xfe\xfe", "no ONNX file"},
		{"text", "a.onnx", "hello world, this is text", "no ONNX file"},
		{"only a header", "a.onnx", "\x08\x08\x12\x07pytorch", "no graph"},
		{"cut in the graph", "a.onnx", "\x08\x08\x3a\xff\x01\x0a", "truncated"},
		{"empty graph", "a.onnx", "\x08\x08\x3a\x00", "no operators"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), c.file)
			if err := os.WriteFile(path, []byte(c.data), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Open(path)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), path) {
				t.Fatalf("error %v, want %q after the path", err, c.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Errorf("a folder: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	noInput := NewBuilder("g", 17)
	noInput.Output(noInput.Node("Constant", nil, Int("value_int", 1)), tensor.Int64)
	noOutput := NewBuilder("g", 17)
	noOutput.Node("Relu", []string{noOutput.Input("x", tensor.Float32, 1)})

	deep := &Graph{Name: "deep", Nodes: []Node{{Op: "Relu"}}}
	for range maxDepth {
		deep = &Graph{Name: "g", Nodes: []Node{{Op: "If", Attrs: []Attr{Subgraph("then_branch", deep)}}}}
	}
	nested := tiny()
	nested.Add(Node{Op: "If", Attrs: []Attr{Subgraph("then_branch", deep)}})

	short := tiny() // the dimensions say more than the data holds
	short.Graph().Initializers = []Initializer{{Name: "w", Type: tensor.Float32, Dims: []int{1 << 20, 1 << 20}, raw: []byte{1, 2, 3, 4}}}
	overflow := tiny()
	overflow.Graph().Initializers = []Initializer{{Name: "w", Type: tensor.Float32, Dims: []int{1 << 40, 1 << 40}, raw: []byte{}}}

	crowd := append([]byte{0x08, 0x08, 0x3a, 0x90, 0x4e}, make([]byte, 0, 10000)...) // a graph of 5000 empty nodes
	for range 5000 {
		crowd = append(crowd, 0x0a, 0x00)
	}
	var names, attrs []byte // a graph of one node of 3000 inputs without a name and 1000 empty attributes
	for range 3000 {
		names = append(names, 0x0a, 0x00)
	}
	for range 1000 {
		attrs = append(attrs, 0x2a, 0x00)
	}
	node := protowire.AppendBytes([]byte{0x0a}, append(names, attrs...))
	wide := protowire.AppendBytes([]byte{0x08, 0x08, 0x3a}, node)
	cases := []struct {
		name string
		data func() ([]byte, error)
		want string
	}{
		{"no inputs", noInput.Bytes, "no inputs"},
		{"no outputs", noOutput.Bytes, "no outputs"},
		{"nested too deep", nested.Bytes, "nested"},
		{"data too short", short.Bytes, "the file holds 4"},
		{"dimensions overflow", overflow.Bytes, "impossible shape"},
		{"too many nodes", func() ([]byte, error) { return crowd, nil }, "more nodes"},
		{"too many inputs of a node", func() ([]byte, error) { return wide, nil }, "more inputs and outputs"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			data, err := c.data()
			if err == nil {
				_, err = Parse(data, "")
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
		})
	}
}

// hugeEmpty is a model that joins two tensors of 2^44 times nothing.
func hugeEmpty() *Builder {
	b := tiny()
	b.Graph().Initializers = []Initializer{{Name: "w", Type: tensor.Float32, Dims: []int{1 << 44, 0}, raw: []byte{}}}
	b.Add(Node{Op: "Concat", Name: "join", Inputs: []string{"w", "w"}, Outputs: []string{"ww"}, Attrs: []Attr{Int("axis", 1)}})
	return b
}

func TestEmptyTensorsCostNothing(t *testing.T) {
	m, err := Parse(mustBytes(t, hugeEmpty()), "")
	if err != nil {
		t.Fatal(err)
	}
	shapes, err := m.Infer(nil)
	if err != nil || !slices.Equal(shapes["ww"], []int{1 << 44, 0}) {
		t.Errorf("got %v, %v", shapes["ww"], err)
	}
}

func TestForeignEngine(t *testing.T) {
	b := tiny()
	b.Domain("com.microsoft", 1)
	inner := &Graph{Nodes: []Node{{Op: "EPContext", Domain: "com.microsoft", Name: "engine", Attrs: []Attr{String("ep_cache_context", "x.bin")}}}}
	b.Add(Node{Op: "If", Name: "if", Attrs: []Attr{Subgraph("then_branch", inner)}})
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if name, found := m.ForeignEngine(); !found || name != "engine" {
		t.Errorf("got %q, %v: an EPContext inside of a branch has to be found", name, found)
	}
	m, err = tiny().Model()
	if err != nil {
		t.Fatal(err)
	}
	if _, found := m.ForeignEngine(); found {
		t.Error("found an engine where there is none")
	}
}

func TestWeightsAreNoInputs(t *testing.T) {
	b := tiny()
	b.Input("w", tensor.Float32, 2) // IR 3 lists weights as inputs, too
	b.Float32("w", []int{2}, []float32{1, 2})
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Graph.Inputs) != 1 || m.Graph.Inputs[0].Name != "x" {
		t.Errorf("inputs %v, want x alone", m.Graph.Inputs)
	}
	for _, w := range m.Graph.Initializers {
		if w.Listed != (w.Name == "w") {
			t.Errorf("initialiser %s: listed among the inputs %v", w.Name, w.Listed)
		}
	}
}

func TestExternalData(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.bin")
	if err := os.WriteFile(outside, make([]byte, 64), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "w.data"), []byte("....\x00\x00\x80\x3f\x00\x00\x00\x40"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.data")); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, location string
		offset, length int64
		want           string // "" for good
	}{
		{"inside", "w.data", 4, 8, ""},
		{"missing", "gone.data", 0, 8, `"gone.data" is missing`},
		{"parent", "../secret.bin", 0, 8, "inside the model's folder"},
		{"absolute", outside, 0, 8, "inside the model's folder"},
		{"link that leaves", "link.data", 0, 8, "inside the model's folder"},
		{"memory tag", "*/_ORT_MEM_ADDR_/*", 0, 8, "inside the model's folder"},
		{"past the end", "w.data", 8, 8, "has 12 bytes"},
		{"offset overflows", "w.data", 1<<63 - 4, 8, "has 12 bytes"},
		{"negative offset", "w.data", -4, 8, "has 12 bytes"},
		{"length is not the tensor's", "w.data", 4, 4, "takes 8 bytes"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := tiny()
			b.Graph().Initializers = []Initializer{{Name: "w", Type: tensor.Float32, Dims: []int{2},
				External: &External{Location: c.location, Offset: c.offset, Length: c.length}}}
			data, err := b.m.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			m, err := Parse(data, dir)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("error %v, want %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.Graph.Initializers[0].Float32s()
			if err != nil || len(got) != 2 || got[0] != 1 || got[1] != 2 {
				t.Errorf("got %v, %v, want [1 2]", got, err)
			}
			if _, err := Parse(data, ""); err == nil || !strings.Contains(err.Error(), "another file") {
				t.Errorf("without a folder: %v", err)
			}
		})
	}
}

// TestFunctions reads a model-local function: it is tolerated, and looked into.
func TestFunctions(t *testing.T) {
	var node, fn message
	node.text(2, "y")
	node.text(4, "EPContext")
	node.text(7, "com.microsoft")
	fn.text(1, "Hidden")
	fn.text(10, "local")
	fn.bytes(7, node)
	b := tiny()
	b.Domain("local", 1)
	b.Add(Node{Op: "Hidden", Domain: "local", Name: "call", Inputs: []string{"x"}, Outputs: []string{"z"}})
	file := message(mustBytes(t, b))
	file.bytes(25, fn)
	m, err := Parse(file, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Functions) != 1 || m.Functions[0].Domain != "local" || m.Functions[0].Name != "Hidden" {
		t.Errorf("functions %+v", m.Functions)
	}
	if _, found := m.ForeignEngine(); !found {
		t.Error("an EPContext inside of a function was not found")
	}
	shapes, err := m.Infer(nil)
	if err != nil {
		t.Fatal(err)
	}
	if st := m.Stats(shapes); st.Ops["local.Hidden"] != 1 || st.MACsComplete {
		t.Errorf("operators %v, complete %v", st.Ops, st.MACsComplete)
	}
	if _, err := m.Marshal(); err == nil {
		t.Error("functions were written, though they are only read")
	}
}

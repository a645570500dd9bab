package onnx

import (
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// FuzzParse feeds bytes to everything that looks at a file: what parses has to stay within bounds
// when its shapes are inferred, its weights read and it is written again.
func FuzzParse(fz *testing.F) {
	for i := range opCases {
		m, _ := opCases[i].build(fz)
		data, err := m.Marshal()
		if err != nil {
			fz.Fatal(err)
		}
		fz.Add(data)
	}
	fz.Add(mustBytes(fz, hugeEmpty()))
	b := tiny()
	b.Meta("names", "{0: 'person'}")
	b.Add(Node{Op: "If", Name: "if", Inputs: []string{"x"}, Outputs: []string{"y"}, Attrs: []Attr{
		Subgraph("then_branch", &Graph{Outputs: []ValueInfo{{Name: "x"}}}), Subgraph("else_branch", &Graph{})}})
	b.Graph().Initializers = []Initializer{{Name: "w", Type: tensor.Float32, Dims: []int{2}, External: &External{Location: "w.data", Length: 8}}}
	data, err := b.m.Marshal()
	if err != nil {
		fz.Fatal(err)
	}
	fz.Add(data)

	fz.Fuzz(func(t *testing.T, data []byte) {
		m, allocs, err := allocated(data)
		// Other goroutines of the fuzzing process count too, hence the constant.
		if limit := uint64(len(data))*64 + 1<<20; allocs > limit {
			t.Fatalf("parsing %d bytes allocates %d", len(data), allocs)
		}
		if err != nil {
			return
		}
		shapes := map[string][]int{}
		for _, in := range m.Graph.Inputs {
			s := in.Sizes()
			for i := range s {
				if s[i] < 0 {
					s[i] = 2
				}
			}
			if s != nil && plausible(s) {
				shapes[in.Name] = s
			}
		}
		for _, in := range []map[string][]int{nil, shapes} {
			inf, err := m.InferAll(in)
			if err != nil {
				continue
			}
			for name, s := range inf.Shapes {
				if !plausible(s) {
					t.Fatalf("value %q has shape %v", name, s)
				}
			}
			if st := m.Stats(inf.Shapes); st.MACs < 0 || st.Params < 0 {
				t.Fatalf("negative counts: %+v", st)
			}
		}
		for i := range m.Graph.Initializers {
			w := &m.Graph.Initializers[i]
			_, _ = w.Float32s()
			_, _ = w.Int64s()
		}
		m.ForeignEngine()
		if again, err := m.Marshal(); err == nil {
			if _, err := Parse(again, ""); err != nil {
				t.Fatalf("what was written does not parse: %v", err)
			}
		}
	})
}

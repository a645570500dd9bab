package estimate

import (
	"testing"

	"github.com/eyas-edge/eyas/memplan"
	"github.com/eyas-edge/eyas/models/onnx"
)

// FuzzOf estimates whatever graph parses: it may refuse it, but neither panic nor make a problem that is none.
func FuzzOf(f *testing.F) {
	for _, c := range ofCases {
		n := &net{Builder: onnx.NewBuilder("test", 13)}
		c.build(n)
		data, err := n.Bytes()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint8(c.cpu.Block))
	}
	f.Fuzz(func(t *testing.T, data []byte, block uint8) {
		m, err := onnx.Parse(data, "")
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
			if s != nil {
				shapes[in.Name] = s
			}
		}
		e, err := Of(m, shapes, CPU{Block: int(block) % 3 * 8, Threads: 2})
		if err != nil {
			return
		}
		for _, b := range e.Problem.Buffers {
			if b.Size <= 0 || b.Lower < 0 || b.Upper <= b.Lower {
				t.Errorf("impossible buffer %+v", b)
			}
		}
		if s, err := memplan.Greedy(e.Problem); err == nil {
			if err := memplan.Validate(e.Problem, s); err != nil {
				t.Error(err)
			}
		}
		if e.Weights < 0 || e.Prepacked < 0 || e.Inputs < 0 || e.Outputs < 0 {
			t.Errorf("negative sizes: %+v", e)
		}
	})
}

//go:build cgo

package onnx

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// ONNX Runtime gives for each of several pictures, through every graph that is rewritten, what it gives for that picture alone
// through the graph as it was.
func TestDynamicBatchInEngine(t *testing.T) {
	lib, err := ort.Load(testenv.Library(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range batchCases {
		if c.fails != "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			m, y := c.model(t)
			inf, err := m.InferAll(nil)
			if err != nil {
				t.Fatal(err)
			}
			m.Graph.Outputs[0] = declare(y, inf.Types[y], inf.Shapes[y])
			many, err := m.DynamicBatch("x")
			if err != nil {
				t.Fatal(err)
			}
			const picture = 4 * 6
			rng := rand.New(rand.NewPCG(1, 2))
			for _, n := range []int{1, 2, 3, 5} {
				x := make([]float32, n*picture)
				for i := range x {
					x[i] = rng.Float32()
				}
				got := runGraph(t, lib, many, n, x)
				var want []byte
				for one := range slices.Chunk(x, picture) {
					want = append(want, runGraph(t, lib, m, 1, one)...)
				}
				if !alike(inf.Types[y], got, want) {
					t.Errorf("%d pictures give something else than each alone:\n%v\n%v", n, got, want)
				}
			}
		})
	}
}

// alike allows float32 values another order of adding up.
func alike(typ tensor.Type, got, want []byte) bool {
	if typ != tensor.Float32 || len(got) != len(want) {
		return bytes.Equal(got, want)
	}
	for i := 0; i < len(got); i += 4 {
		a := math.Float32frombits(binary.LittleEndian.Uint32(got[i:]))
		b := math.Float32frombits(binary.LittleEndian.Uint32(want[i:]))
		if d := math.Abs(float64(a - b)); !(d <= 1e-5*(1+math.Abs(float64(b)))) {
			return false
		}
	}
	return true
}

// runGraph runs a model on n pictures and returns the bytes of its output.
func runGraph(t *testing.T, lib *ort.Library, m *Model, n int, x []float32) []byte {
	t.Helper()
	data, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	s, err := lib.Open("g", data, ort.Options{EP: ort.EPCPU, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, err := tensor.New("x", tensor.Float32, n, 4, 6)
	if err != nil {
		t.Fatal(err)
	}
	copy(in.Float32s(), x)
	b, err := s.Bind([]*tensor.Tensor{in}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Run(); err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(b.Outputs()[0].Data)
}

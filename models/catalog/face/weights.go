package face

import (
	"encoding/json"
	"errors"
	"fmt"
)

// weight is one tensor, dequantised, in TensorFlow's order of axes.
type weight struct {
	shape []int
	data  []float32
}

// maxElements bounds one tensor; the largest of the real model has 131,072.
const maxElements = 1 << 22

// parse reads the manifest and cuts the weights out of data, which has to hold exactly
// what the manifest says.
func parse(manifest, data []byte) (map[string]weight, error) {
	var groups []struct {
		Weights []struct {
			Name         string `json:"name"`
			Shape        []int  `json:"shape"`
			DType        string `json:"dtype"`
			Quantization struct {
				DType string  `json:"dtype"`
				Scale float64 `json:"scale"`
				Min   float64 `json:"min"`
			} `json:"quantization"`
		} `json:"weights"`
	}
	if err := json.Unmarshal(manifest, &groups); err != nil {
		return nil, fmt.Errorf("weights manifest: %w", err)
	}
	if len(groups) != 1 {
		return nil, fmt.Errorf("weights manifest: %d groups, expected 1", len(groups))
	}
	out := make(map[string]weight, len(groups[0].Weights))
	for _, w := range groups[0].Weights {
		if w.DType != "float32" || w.Quantization.DType != "uint8" {
			return nil, fmt.Errorf("weights manifest: %s is %s stored as %q, expected float32 as uint8",
				w.Name, w.DType, w.Quantization.DType)
		}
		n, err := elements(w.Shape)
		if err != nil || n > len(data) {
			return nil, fmt.Errorf("weights manifest: %s of shape %v does not fit the weights file", w.Name, w.Shape)
		}
		t := weight{w.Shape, make([]float32, n)}
		for i, q := range data[:n] {
			t.data[i] = float32(float64(q)*w.Quantization.Scale + w.Quantization.Min)
		}
		out[w.Name], data = t, data[n:]
	}
	if len(data) != 0 {
		return nil, fmt.Errorf("weights file: %d bytes more than the manifest names", len(data))
	}
	return out, nil
}

func elements(shape []int) (int, error) {
	n := 1
	for _, d := range shape {
		if d < 1 || d > maxElements/n {
			return 0, errors.New("bad shape")
		}
		n *= d
	}
	return n, nil
}

// oihw reorders a filter [kh,kw,in,out] to ONNX's [out,in,kh,kw].
func (w weight) oihw() weight {
	kh, kw, in, out := w.shape[0], w.shape[1], w.shape[2], w.shape[3]
	r := weight{[]int{out, in, kh, kw}, make([]float32, 0, len(w.data))}
	for o := range out {
		for c := range in {
			for k := range kh * kw {
				r.data = append(r.data, w.data[(k*in+c)*out+o])
			}
		}
	}
	return r
}

// depthwise reads a filter [kh,kw,channels,1] as [kh,kw,1,channels], which lies in memory
// the same: what a grouped convolution with one input channel a group wants.
func (w weight) depthwise() weight {
	return weight{[]int{w.shape[0], w.shape[1], 1, w.shape[2]}, w.data}
}

package face

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/models/onnx"
)

// manifest describes weights of the real model's shapes with scale 1/128 and minimum -1.
func manifest() (text string, size int) {
	var b strings.Builder
	b.WriteString(`[{"weights":[`)
	add := func(name string, shape ...int) {
		n, dims := 1, ""
		for _, d := range shape {
			n *= d
			dims += "," + strconv.Itoa(d)
		}
		if size > 0 {
			b.WriteString(",")
		}
		b.WriteString(`{"name":"` + name + `","shape":[` + dims[1:] + `],"dtype":"float32","quantization":{"dtype":"uint8","scale":0.0078125,"min":-1}}`)
		size += n
	}
	add("conv0/filters", 3, 3, 3, 16)
	add("conv0/bias", 16)
	in := 16
	for i := 1; i <= 5; i++ {
		layer := "conv" + strconv.Itoa(i)
		add(layer+"/depthwise_filter", 3, 3, in, 1)
		add(layer+"/pointwise_filter", 1, 1, in, 2*in)
		add(layer+"/bias", 2*in)
		in *= 2
	}
	add("conv8/filters", 1, 1, 512, 25)
	add("conv8/bias", 25)
	b.WriteString(`],"paths":["x.bin"]}]`)
	return b.String(), size
}

func TestBuild(t *testing.T) {
	text, size := manifest()
	if size != WeightsSize {
		t.Fatalf("%d weights, the real file has %d", size, WeightsSize)
	}
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i % 251)
	}
	weights, err := parse([]byte(text), data)
	if err != nil {
		t.Fatal(err)
	}
	model, err := build(weights)
	if err != nil {
		t.Fatal(err)
	}
	again, err := build(weights)
	if err != nil || !bytes.Equal(model, again) {
		t.Errorf("built twice, two results (%v)", err)
	}
	m, err := onnx.Parse(model, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Metadata["eyas"]; got != recipe {
		t.Errorf("recipe %q", got)
	}
	shapes, err := m.Infer(map[string][]int{"images": {2, 3, Input, Input}})
	if err != nil {
		t.Fatal(err)
	}
	if got := shapes["output"]; len(got) != 4 || got[0] != 2 || got[1] != 25 || got[2] != Cells || got[3] != Cells {
		t.Errorf("output %v", got)
	}
}

// TestOIHW checks the reordering against its definition, element by element.
func TestOIHW(t *testing.T) {
	const kh, kw, in, out = 2, 3, 4, 5
	w := weight{[]int{kh, kw, in, out}, make([]float32, kh*kw*in*out)}
	for i := range w.data {
		w.data[i] = float32(i)
	}
	r := w.oihw()
	for y := range kh {
		for x := range kw {
			for c := range in {
				for o := range out {
					got := r.data[((o*in+c)*kh+y)*kw+x]
					if want := w.data[((y*kw+x)*in+c)*out+o]; got != want {
						t.Fatalf("[%d,%d,%d,%d] is %v, want %v", o, c, y, x, got, want)
					}
				}
			}
		}
	}
	d := weight{[]int{kh, kw, in * out, 1}, w.data}.depthwise().oihw()
	if s := d.shape; s[0] != in*out || s[1] != 1 || s[2] != kh || s[3] != kw {
		t.Errorf("depthwise shape %v", s)
	}
	if got, want := d.data[(7*kh+1)*kw+2], w.data[(1*kw+2)*in*out+7]; got != want {
		t.Errorf("depthwise value %v, want %v", got, want)
	}
}

func TestParseErrors(t *testing.T) {
	one := func(more string) string {
		return `[{"weights":[{"name":"a","shape":[2],"dtype":"float32","quantization":{"dtype":"uint8","scale":2,"min":-1}}` + more + `]}]`
	}
	tests := []struct {
		name, manifest string
		size           int
		err            string
	}{
		{"right", one(""), 2, ""},
		{"no JSON", "weights", 2, "weights manifest"},
		{"two groups", "[{},{}]", 0, "2 groups"},
		{"float weights", strings.Replace(one(""), "uint8", "", 1), 2, "expected float32 as uint8"},
		{"negative", strings.Replace(one(""), "[2]", "[-2]", 1), 2, "does not fit"},
		{"huge", strings.Replace(one(""), "[2]", "[4611686018427387904,4]", 1), 2, "does not fit"},
		{"file too short", one(""), 1, "does not fit"},
		{"file too long", one(""), 3, "1 bytes more"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, err := parse([]byte(tt.manifest), make([]byte, tt.size))
			if tt.err == "" {
				if err != nil || len(w["a"].data) != 2 || w["a"].data[0] != -1 {
					t.Errorf("%v, %v", w, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

func TestConvertErrors(t *testing.T) {
	text, size := manifest()
	if err := Convert(new(bytes.Buffer), []byte(text), make([]byte, size)); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("other files: %v", err)
	}
	weights, err := parse([]byte(text), make([]byte, size))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"conv0/filters", "conv3/depthwise_filter", "conv8/bias"} {
		w := weights[name]
		delete(weights, name)
		if _, err := build(weights); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
		weights[name] = weight{append([]int{1}, w.shape...), w.data}
		if _, err := build(weights); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s of another shape: %v", name, err)
		}
		weights[name] = w
	}
}

func FuzzParse(f *testing.F) {
	text, _ := manifest()
	f.Add([]byte(text), []byte{1, 2, 3})
	f.Add([]byte(`[{"weights":[{"name":"a","shape":[2],"dtype":"float32","quantization":{"dtype":"uint8","scale":2,"min":-1}}]}]`), []byte{1, 2})
	f.Fuzz(func(t *testing.T, manifest, data []byte) {
		weights, err := parse(manifest, data)
		if err == nil {
			_, _ = build(weights) // an error or a model, no panic
		}
	})
}

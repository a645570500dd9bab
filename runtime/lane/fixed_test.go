package lane

import (
	"maps"
	"testing"

	"github.com/eyas-edge/eyas/models"
	"github.com/eyas-edge/eyas/models/onnx"
)

// Only what is the same in every run is fixed.
func TestFixed(t *testing.T) {
	named := func(names ...string) onnx.ValueInfo {
		v := onnx.ValueInfo{Name: names[0], HasShape: true}
		for _, n := range names[1:] {
			v.Shape = append(v.Shape, onnx.Dim{Size: -1, Param: n})
		}
		return v
	}
	pictures := named("images", "N", "C", "H", "W")
	for _, c := range []struct {
		name   string
		inputs []onnx.ValueInfo
		ladder []int
		set    func(*models.Model)
		want   map[string]int
	}{
		{name: "one size", inputs: []onnx.ValueInfo{pictures}, want: map[string]int{"N": 1, "C": 3, "H": 320, "W": 640}},
		{name: "one batch", inputs: []onnx.ValueInfo{pictures}, ladder: []int{4, 4}, want: map[string]int{"N": 4, "C": 3, "H": 320, "W": 640}},
		{name: "batches", inputs: []onnx.ValueInfo{pictures}, ladder: []int{1, 2}, want: map[string]int{"C": 3, "H": 320, "W": 640}},
		{
			name: "batches of a model that takes one frame", inputs: []onnx.ValueInfo{pictures}, ladder: []int{1, 2},
			set: func(m *models.Model) { m.Input.Batch = 1 }, want: map[string]int{"N": 1, "C": 3, "H": 320, "W": 640},
		},
		{
			name: "sizes", inputs: []onnx.ValueInfo{pictures},
			set: func(m *models.Model) { m.DynamicSize = true }, want: map[string]int{"N": 1},
		},
		{
			name: "channels last", inputs: []onnx.ValueInfo{named("images", "N", "H", "W", "C")},
			set: func(m *models.Model) { m.Input.NHWC = true }, want: map[string]int{"N": 1, "C": 3, "H": 320, "W": 640},
		},
		{
			name: "a size input", inputs: []onnx.ValueInfo{pictures, named("size", "N", "two")}, ladder: []int{2},
			set: func(m *models.Model) { m.SizeInput = 1 }, want: map[string]int{"N": 2, "two": 2, "C": 3, "H": 320, "W": 640},
		},
		{
			name: "a size input of many batches", inputs: []onnx.ValueInfo{pictures, named("size", "M", "two")}, ladder: []int{1, 2},
			set: func(m *models.Model) { m.SizeInput = 1 }, want: map[string]int{"two": 2, "C": 3, "H": 320, "W": 640},
		},
		{
			name: "one name for two sizes", inputs: []onnx.ValueInfo{named("images", "N", "C", "s", "s")},
			want: map[string]int{"N": 1, "C": 3},
		},
		{
			name: "a name that means something else in another input", inputs: []onnx.ValueInfo{pictures, named("other", "H", "x")},
			want: map[string]int{"N": 1, "C": 3, "W": 640},
		},
		{
			name: "another input first", inputs: []onnx.ValueInfo{named("other", "N"), pictures},
			set: func(m *models.Model) { m.Input.Index = 1 }, want: map[string]int{"C": 3, "H": 320, "W": 640},
		},
		{name: "no names", inputs: []onnx.ValueInfo{named("images", "", "", "", "")}, want: map[string]int{}},
		{name: "no shape", inputs: []onnx.ValueInfo{{Name: "images"}}, want: map[string]int{}},
		{name: "too many axes", inputs: []onnx.ValueInfo{named("images", "N", "C", "H", "W", "x")}, want: map[string]int{"N": 1, "C": 3, "H": 320, "W": 640}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &models.Model{
				ONNX:  &onnx.Model{Graph: &onnx.Graph{Inputs: c.inputs}},
				Input: models.Input{Name: "images", Channels: 3}, SizeInput: -1, H: 320, W: 640,
			}
			if c.set != nil {
				c.set(m)
			}
			if got := Fixed(m, c.ladder); !maps.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

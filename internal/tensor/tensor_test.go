package tensor

import (
	"math"
	"testing"
)

func TestElements(t *testing.T) {
	for _, c := range []struct {
		shape []int
		want  int
	}{
		{nil, 1}, {[]int{3, 4}, 12}, {[]int{0, 4}, 0}, {[]int{-1, 4}, -1},
		{[]int{math.MaxInt, 2}, -1}, {[]int{1 << 31, 1 << 31, 4}, -1}, {[]int{math.MaxInt, 0}, 0},
	} {
		if got := Elements(c.shape); got != c.want {
			t.Errorf("%v has %d elements, want %d", c.shape, got, c.want)
		}
	}
}

func TestViewsHaveTheirType(t *testing.T) {
	x, err := New("x", Float32, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	x.Float32s()[5] = 1.5
	if len(x.Float32s()) != 6 || x.Data[23] != 0x3f || x.Data[22] != 0xc0 {
		t.Errorf("1.5 lies as % x", x.Data[20:])
	}
	if x.Float16s() != nil || x.Int64s() != nil || x.Uint8s() != nil {
		t.Error("a float32 tensor is viewed as another type")
	}
	if err := x.Check(); err != nil {
		t.Error(err)
	}
	x.Data = x.Data[:23]
	if x.Check() == nil {
		t.Error("a tensor that is short of a byte passes")
	}
	if half := (&Tensor{Type: Int4, Shape: []int{3}, Data: make([]byte, 2)}); half.Check() != nil {
		t.Errorf("three 4-bit elements take two bytes: %v", half.Check())
	}
}

func TestNewRefusesWhatCannotBe(t *testing.T) {
	for name, c := range map[string]struct {
		t     Type
		shape []int
	}{
		"strings": {String, []int{1}}, "unknown type": {Type(99), []int{1}}, "negative": {Float32, []int{-1}}, "overflow": {Float32, []int{1 << 40, 1 << 40}},
	} {
		if _, err := New(name, c.t, c.shape...); err == nil {
			t.Errorf("%s: made", name)
		}
	}
}

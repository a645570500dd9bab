package half

import (
	"math"
	"testing"
)

func TestRoundTripOfEveryHalf(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		f := ToFloat32(h)
		if f != f {
			if back := FromFloat32(f); back&0x7c00 != 0x7c00 || back&0x3ff == 0 {
				t.Fatalf("NaN %#04x came back as %#04x", h, back)
			}
			continue
		}
		if back := FromFloat32(f); back != h {
			t.Fatalf("%#04x -> %v -> %#04x", h, f, back)
		}
	}
}

// Between two neighbouring halves every float32 goes to the nearer one, the middle to the even one.
func TestRoundsToNearestEven(t *testing.T) {
	for i := range 0x7bff {
		lo, hi := ToFloat32(uint16(i)), ToFloat32(uint16(i+1))
		mid := float32((float64(lo) + float64(hi)) / 2)
		want := uint16(i + i&1)
		if got := FromFloat32(mid); got != want {
			t.Fatalf("middle of %#04x and its neighbour: got %#04x, want %#04x", i, got, want)
		}
		if got := FromFloat32(math.Nextafter32(mid, 0)); got != uint16(i) {
			t.Fatalf("just below the middle of %#04x: got %#04x", i, got)
		}
		if got := FromFloat32(math.Nextafter32(mid, 1e9)); got != uint16(i+1) {
			t.Fatalf("just above the middle of %#04x: got %#04x", i, got)
		}
	}
	if got := FromFloat32(65520); got != 0x7c00 {
		t.Errorf("65520: got %#04x, want infinity", got)
	}
	if got := FromFloat32(65519.996); got != 0x7bff {
		t.Errorf("65519.996: got %#04x, want 65504", got)
	}
}

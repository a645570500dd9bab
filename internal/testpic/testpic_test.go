package testpic

import (
	"bytes"
	"testing"
)

// TestStored checks the definition on two pixels, R on the left of G, seen upright.
func TestStored(t *testing.T) {
	const red, green = "R..", "G.."
	for _, c := range []struct {
		orientation int
		want        string
		w, h        int
	}{
		{1, red + green, 2, 1}, {2, green + red, 2, 1}, {3, green + red, 2, 1}, {4, red + green, 2, 1},
		{5, red + green, 1, 2}, {6, green + red, 1, 2}, {7, green + red, 1, 2}, {8, red + green, 1, 2},
		{0, red + green, 2, 1}, {9, red + green, 2, 1},
	} {
		got, w, h := Stored([]byte(red+green), 2, 1, c.orientation)
		if string(got) != c.want || w != c.w || h != c.h {
			t.Errorf("orientation %d: %s %dx%d, want %s %dx%d", c.orientation, got, w, h, c.want, c.w, c.h)
		}
	}
}

// TestScene checks that no orientation of the scene looks like another.
func TestScene(t *testing.T) {
	pix := Scene(48, 48)
	for o := 2; o <= 8; o++ {
		if got, _, _ := Stored(pix, 48, 48, o); bytes.Equal(got, pix) {
			t.Errorf("orientation %d looks like 1", o)
		}
	}
}

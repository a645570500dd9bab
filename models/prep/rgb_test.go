package prep

import (
	"bytes"
	"testing"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/tensor"
)

// The conversion gives the levels that Fill gives at the picture's own size.
func TestToRGBEqualsFill(t *testing.T) {
	for _, format := range formats {
		for _, colour := range []frame.Colour{{}, {Matrix: frame.BT709, Full: true}} {
			const w, h = 601, 11
			fr := picture(t, format, w, h, 9, false, 3)
			fr.Colour = colour
			direct, _ := filled(t, Recipe{NHWC: true, Type: tensor.Uint8}, w, h, fr)
			rgb := bytes.Repeat([]byte{99}, 3*w*h+1)
			if err := ToRGB(rgb, fr); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(rgb[:3*w*h], direct.Data) || rgb[3*w*h] != 99 {
				t.Errorf("%s %v: RGB differs from what Fill writes", format, colour)
			}
			rgba := make([]byte, 4*w*h)
			if err := ToRGBA(rgba, fr); err != nil {
				t.Fatal(err)
			}
			for i := range w * h {
				if !bytes.Equal(rgba[4*i:4*i+3], rgb[3*i:3*i+3]) || rgba[4*i+3] != 255 {
					t.Fatalf("%s %v: pixel %d is %v in RGBA and %v in RGB", format, colour, i, rgba[4*i:4*i+4], rgb[3*i:3*i+3])
				}
			}
		}
	}
}

// Black, white and the primaries in each colour space, with the values that the standards give.
func TestToRGBColours(t *testing.T) {
	limited, full := frame.Colour{}, frame.Colour{Full: true}
	hd, hdFull := frame.Colour{Matrix: frame.BT709}, frame.Colour{Matrix: frame.BT709, Full: true}
	for _, c := range []struct {
		name    string
		colour  frame.Colour
		y, u, v byte
		want    [3]byte
	}{
		{"limited black", limited, 16, 128, 128, [3]byte{0, 0, 0}},
		{"limited white", limited, 235, 128, 128, [3]byte{255, 255, 255}},
		{"below black", limited, 0, 128, 128, [3]byte{0, 0, 0}},
		{"full black", full, 0, 128, 128, [3]byte{0, 0, 0}},
		{"full white", full, 255, 128, 128, [3]byte{255, 255, 255}},
		{"601 red", limited, 81, 90, 240, [3]byte{254, 0, 0}},
		{"601 full red", full, 76, 85, 255, [3]byte{254, 0, 0}},
		{"709 red", hd, 63, 102, 240, [3]byte{255, 1, 0}},
		{"709 green", hd, 173, 42, 26, [3]byte{0, 255, 1}},
		{"709 full blue", hdFull, 18, 255, 116, [3]byte{0, 0, 254}},
		{"out of gamut", hd, 235, 255, 255, [3]byte{255, 160, 255}},
		{"far below", hd, 0, 0, 0, [3]byte{0, 96, 0}},
	} {
		fr := &frame.Frame{Format: frame.I420, Colour: c.colour, Width: 1, Height: 1, Planes: []frame.Plane{
			{Data: []byte{c.y}, Stride: 1}, {Data: []byte{c.u}, Stride: 1}, {Data: []byte{c.v}, Stride: 1}}}
		var got [3]byte
		if err := ToRGB(got[:], fr); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if d := int(got[i]) - int(c.want[i]); d < -1 || d > 1 {
				t.Errorf("%s: got %v, want %v", c.name, got, c.want)
				break
			}
		}
	}
}

func TestToRGBRefuses(t *testing.T) {
	fr := picture(t, frame.RGB24, 8, 8, 0, false, 1)
	want := "convert to RGB: 8x8 pixels need 3 bytes each, got 191 in all"
	if err := ToRGB(make([]byte, 191), fr); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := ToRGB(nil, nil); err == nil {
		t.Error("no frame was taken")
	}
}

package picture

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"testing"

	"github.com/eyas-edge/eyas/internal/testpic"
)

// pixels checks a frame of data against RGB values, row by row.
func pixels(t *testing.T, data []byte, w, h int, want ...byte) {
	t.Helper()
	f := decode(t, data)
	if f.Width != w || f.Height != h || !bytes.Equal(f.Planes[0].Data, want) {
		t.Errorf("%dx%d %v, want %dx%d %v", f.Width, f.Height, f.Planes[0].Data, w, h, want)
	}
	if sw, sh, err := Size(data); err != nil || sw != w || sh != h {
		t.Errorf("size %dx%d, %v", sw, sh, err)
	}
}

// rawPNG makes a PNG of one row of a given header and samples, with further chunks before
// the pixels.
func rawPNG(w int, depth, colour byte, samples []byte, extra ...[]byte) []byte {
	head := binary.BigEndian.AppendUint32(nil, uint32(w))
	head = append(binary.BigEndian.AppendUint32(head, 1), depth, colour, 0, 0, 0)
	var z bytes.Buffer
	d := zlib.NewWriter(&z)
	d.Write(append([]byte{0}, samples...))
	d.Close()
	parts := append([][]byte{[]byte(pngMagic), testpic.Chunk("IHDR", head)}, extra...)
	return bytes.Join(append(parts, testpic.Chunk("IDAT", z.Bytes()), testpic.Chunk("IEND", nil)), nil)
}

func TestPNGKinds(t *testing.T) {
	palette := testpic.Chunk("PLTE", []byte{10, 20, 30, 40, 50, 60})
	for _, c := range []struct {
		name string
		data []byte
		w    int
		want []byte
	}{
		{"grey 1", rawPNG(2, 1, 0, []byte{0x40}), 2, []byte{0, 0, 0, 255, 255, 255}},
		{"grey 2", rawPNG(2, 2, 0, []byte{0x60}), 2, []byte{85, 85, 85, 170, 170, 170}},
		{"grey 4", rawPNG(2, 4, 0, []byte{0x1f}), 2, []byte{17, 17, 17, 255, 255, 255}},
		{"grey 8", rawPNG(2, 8, 0, []byte{7, 200}), 2, []byte{7, 7, 7, 200, 200, 200}},
		{"grey 16", rawPNG(1, 16, 0, []byte{7, 200}), 1, []byte{7, 7, 7}},
		{"grey with a transparent level", rawPNG(2, 8, 0, []byte{7, 200}, testpic.Chunk("tRNS", []byte{0, 7})), 2, []byte{7, 7, 7, 200, 200, 200}},
		{"grey 16 with a transparent level", rawPNG(1, 16, 0, []byte{7, 200}, testpic.Chunk("tRNS", []byte{7, 200})), 1, []byte{7, 7, 7}},
		{"grey alpha 8", rawPNG(2, 8, 4, []byte{7, 0, 200, 128}), 2, []byte{7, 7, 7, 200, 200, 200}},
		{"grey alpha 16", rawPNG(1, 16, 4, []byte{7, 1, 0, 0}), 1, []byte{7, 7, 7}},
		{"rgb 8", rawPNG(1, 8, 2, []byte{1, 2, 3}), 1, []byte{1, 2, 3}},
		{"rgb 16", rawPNG(1, 16, 2, []byte{1, 255, 2, 255, 3, 255}), 1, []byte{1, 2, 3}},
		{"rgba 8", rawPNG(2, 8, 6, []byte{1, 2, 3, 0, 4, 5, 6, 9}), 2, []byte{1, 2, 3, 4, 5, 6}},
		{"rgba 16", rawPNG(1, 16, 6, []byte{1, 9, 2, 9, 3, 9, 0, 0}), 1, []byte{1, 2, 3}},
		{"palette 1", rawPNG(2, 1, 3, []byte{0x40}, palette), 2, []byte{10, 20, 30, 40, 50, 60}},
		{"palette 4", rawPNG(2, 4, 3, []byte{0x10}, palette), 2, []byte{40, 50, 60, 10, 20, 30}},
		{"palette 8", rawPNG(1, 8, 3, []byte{1}, palette), 1, []byte{40, 50, 60}},
		{"transparent palette", rawPNG(2, 8, 3, []byte{1, 0}, palette, testpic.Chunk("tRNS", []byte{0, 99})), 2, []byte{40, 50, 60, 10, 20, 30}},
	} {
		t.Run(c.name, func(t *testing.T) { pixels(t, c.data, c.w, 1, c.want...) })
	}
}

func TestPNGFaults(t *testing.T) {
	good := rawPNG(1, 8, 2, []byte{1, 2, 3})
	flipped := bytes.Clone(good)
	flipped[len(flipped)-20] ^= 1
	refuse(t, good[:20], Limits{}, "truncated inside its header")
	refuse(t, good[:len(good)-1], Limits{}, "decode png: the file is truncated")
	refuse(t, flipped, Limits{}, "decode png: invalid format")
	refuse(t, []byte(pngMagic+"\x00\x00\x00\x0dIDATxxxxxxxxxxxxxxxxx"), Limits{}, "decode png: invalid format")
	huge := bytes.Clone(good)
	copy(huge[16:], "\x7f\xff\xff\xff\x7f\xff\xff\xff")
	refuse(t, huge, Limits{MaxPixels: 1 << 62}, "needs")
}

func TestPNGInterlaced(t *testing.T) {
	// Adam7 of 2x2: pass 1 holds (0,0), pass 6 (1,0), pass 7 the second row.
	head := []byte{0, 0, 0, 2, 0, 0, 0, 2, 8, 0, 0, 0, 1}
	var z bytes.Buffer
	d := zlib.NewWriter(&z)
	d.Write([]byte{0, 10, 0, 20, 0, 30, 40})
	d.Close()
	data := bytes.Join([][]byte{[]byte(pngMagic), testpic.Chunk("IHDR", head), testpic.Chunk("IDAT", z.Bytes()), testpic.Chunk("IEND", nil)}, nil)
	pixels(t, data, 2, 2, 10, 10, 10, 20, 20, 20, 30, 30, 30, 40, 40, 40)
}

// TestPNGLateOrientation checks an eXIf chunk after the pixels.
func TestPNGLateOrientation(t *testing.T) {
	data := rawPNG(2, 8, 0, []byte{7, 200})
	end := len(data) - 12
	data = bytes.Join([][]byte{data[:end], testpic.Chunk("eXIf", testpic.EXIF(binary.BigEndian, 2)), data[end:]}, nil)
	pixels(t, data, 2, 1, 200, 200, 200, 7, 7, 7)
}

func TestGIF(t *testing.T) {
	red, blue := color.RGBA{255, 0, 0, 255}, color.RGBA{0, 0, 255, 255}
	first := image.NewPaletted(image.Rect(1, 0, 2, 1), color.Palette{red, blue})
	second := image.NewPaletted(image.Rect(0, 0, 3, 2), color.Palette{blue, red})
	for _, c := range []struct {
		name   string
		frames []*image.Paletted
		want   []byte
	}{
		{"first picture inside the canvas", []*image.Paletted{first, second},
			[]byte{0, 0, 0, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
		{"whole canvas", []*image.Paletted{second}, bytes.Repeat([]byte{0, 0, 255}, 6)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			g := &gif.GIF{Image: c.frames, Delay: make([]int, len(c.frames)), Config: image.Config{Width: 3, Height: 2}}
			if err := gif.EncodeAll(&b, g); err != nil {
				t.Fatal(err)
			}
			pixels(t, b.Bytes(), 3, 2, c.want...)
			refuse(t, b.Bytes()[:9], Limits{}, "truncated inside its header")
			refuse(t, b.Bytes()[:30], Limits{}, "decode gif")
		})
	}
}

// bmp makes a BMP with a 40-byte header of w x h pixels (negative h: from the top).
func bmp(w, h, depth, compression int, between, rows []byte) []byte {
	b := []byte("BM\x00\x00\x00\x00\x00\x00\x00\x00")
	b = binary.LittleEndian.AppendUint32(b, uint32(54+len(between)))
	b = binary.LittleEndian.AppendUint32(b, 40)
	b = binary.LittleEndian.AppendUint32(b, uint32(w))
	b = binary.LittleEndian.AppendUint32(b, uint32(h))
	b = append(b, 1, 0, byte(depth), 0, byte(compression), 0, 0, 0)
	b = append(b, make([]byte, 20)...)
	return append(append(b, between...), rows...)
}

func TestBMP(t *testing.T) {
	palette := append([]byte{30, 20, 10, 0, 60, 50, 40, 0}, make([]byte, 256*4-8)...) // blue first
	core := append([]byte("BM\x00\x00\x00\x00\x00\x00\x00\x00\x1a\x00\x00\x00\x0c\x00\x00\x00\x01\x00\x01\x00\x01\x00\x18\x00"), 3, 2, 1)
	masks := []byte{0xff, 0, 0, 0, 0, 0xff, 0, 0, 0, 0, 0xff, 0}
	for _, c := range []struct {
		name string
		data []byte
		w, h int
		want []byte
	}{
		{"1 bit", bmp(2, 1, 1, 0, palette[:8], []byte{0x40, 0, 0, 0}), 2, 1, []byte{10, 20, 30, 40, 50, 60}},
		{"4 bits", bmp(2, 1, 4, 0, palette[:64], []byte{0x10, 0, 0, 0}), 2, 1, []byte{40, 50, 60, 10, 20, 30}},
		{"8 bits", bmp(1, 1, 8, 0, palette, []byte{1, 0, 0, 0}), 1, 1, []byte{40, 50, 60}},
		{"16 bits", bmp(1, 1, 16, 0, nil, []byte{0x1f, 0x7c, 0, 0}), 1, 1, []byte{255, 0, 255}},
		{"24 bits from the bottom", bmp(1, 2, 24, 0, nil, []byte{1, 2, 3, 0, 4, 5, 6, 0}), 1, 2, []byte{6, 5, 4, 3, 2, 1}},
		{"24 bits from the top", bmp(1, -2, 24, 0, nil, []byte{1, 2, 3, 0, 4, 5, 6, 0}), 1, 2, []byte{3, 2, 1, 6, 5, 4}},
		{"last padding missing", bmp(1, 2, 24, 0, nil, []byte{1, 2, 3, 0, 4, 5, 6}), 1, 2, []byte{6, 5, 4, 3, 2, 1}},
		{"32 bits", bmp(1, 1, 32, 0, nil, []byte{1, 2, 3, 0}), 1, 1, []byte{3, 2, 1}},
		{"32 bits with masks", bmp(1, 1, 32, 3, masks, []byte{1, 2, 3, 0}), 1, 1, []byte{1, 2, 3}},
		{"a gap before the pixels", bmp(1, 1, 24, 0, make([]byte, 9), []byte{1, 2, 3, 0}), 1, 1, []byte{3, 2, 1}},
		{"the old header", core, 1, 1, []byte{1, 2, 3}},
	} {
		t.Run(c.name, func(t *testing.T) { pixels(t, c.data, c.w, c.h, c.want...) })
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"cut header", core[:20], "truncated inside its header"},
		{"cut palette", bmp(1, 1, 8, 0, palette[:40], nil), "truncated inside its header"},
		{"cut rows", bmp(1, 2, 24, 0, nil, []byte{1, 2, 3, 0}), "the file is truncated"},
		{"run-length coding", bmp(1, 1, 8, 1, palette, nil), "run-length coding is not supported"},
		{"embedded JPEG", bmp(1, 1, 24, 4, nil, nil), "24 bits a pixel with compression 4 is not supported"},
		{"no size", bmp(0, 1, 24, 0, nil, nil), "0x1 pixels"},
		{"negative width", bmp(-1, 1, 24, 0, nil, nil), "-1x1 pixels"},
		{"bomb", bmp(1<<31-1, -1<<31, 32, 0, nil, nil), "over the limit"},
	} {
		t.Run(c.name, func(t *testing.T) { refuse(t, c.data, Limits{}, c.want) })
	}
}

// webpSample holds a gradient of 8x6 pixels, R = 30x, G = 40y, B = 7xy mod 256, as a lossless
// and as a lossy chunk.
var webpSample = map[string]string{
	"VP8L": "2f07400100993244f43f3611d1ff8082b66d98c0297f8c6f63301e73101300e405fa3f00",
	"VP8 ": "d001009d012a0800060001402625b00274010ebaba820000fefc74f16c4261f2e4e20ebc98c1796fcdd1c3f1285489fbf3fe9df3b584ffcb9e70727bdfd373f927f837ff76ffe3840000",
}

func sample(t testing.TB, id string) []byte {
	b, err := hex.DecodeString(webpSample[id])
	if err != nil {
		t.Fatal(err)
	}
	return riffChunk(id, b)
}

func riffChunk(id string, body []byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(id), uint32(len(body)))
	return append(append(b, body...), make([]byte, len(body)&1)...)
}

func webp(parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	b := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(4+len(body)))
	return append(append(b, "WEBP"...), body...)
}

// canvas is a VP8X chunk, and animationFrame an ANMF chunk at twice left and top.
func canvas(w, h byte) []byte {
	return riffChunk("VP8X", []byte{0, 0, 0, 0, w - 1, 0, 0, h - 1, 0, 0})
}

func animationFrame(left, top, w, h byte, inner []byte) []byte {
	return riffChunk("ANMF", append([]byte{left, 0, 0, top, 0, 0, w - 1, 0, 0, h - 1, 0, 0, 0, 0, 0, 0}, inner...))
}

func TestWebP(t *testing.T) {
	gradient := make([]byte, 0, 144)
	for y := range 6 {
		for x := range 8 {
			gradient = append(gradient, byte(30*x), byte(40*y), byte(7*x*y))
		}
	}
	lossless, lossy := sample(t, "VP8L"), sample(t, "VP8 ")
	pixels(t, webp(lossless), 8, 6, gradient...)
	pixels(t, webp(canvas(8, 6), riffChunk("ICCP", []byte("abc")), lossless), 8, 6, gradient...)

	f := decode(t, webp(lossy))
	if m := meanDifference(f.Planes[0].Data, gradient); m > 30 { // 4:2:0 of a steep gradient
		t.Errorf("lossy differs by %.1f levels", m)
	}

	exif := riffChunk("EXIF", testpic.EXIF(binary.LittleEndian, 6))
	turned, w, h := testpic.Stored(gradient, 8, 6, 8) // 6 undoes what 8 stores
	pixels(t, webp(canvas(8, 6), lossless, exif), w, h, turned...)

	frame := make([]byte, 12*8*3)
	for y := range 6 {
		copy(frame[3*((y+2)*12+4):], gradient[24*y:24*y+24])
	}
	pixels(t, webp(canvas(12, 8), riffChunk("ANIM", make([]byte, 6)), animationFrame(2, 1, 8, 6, lossless),
		animationFrame(0, 0, 8, 6, lossy)), 12, 8, frame...)
}

func TestWebPFaults(t *testing.T) {
	lossless, lossy := sample(t, "VP8L"), sample(t, "VP8 ")
	inter := bytes.Clone(lossy)
	inter[8] |= 1
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"no chunk", webp(), "truncated inside its header"},
		{"cut size", webp(lossy[:14]), "truncated inside its header"},
		{"cut lossless data", webp(lossless[:30]), "decode webp: the file is truncated"},
		{"cut lossy data", webp(lossy[:60]), "decode webp: the file is truncated"},
		{"another first chunk", webp(riffChunk("JUNK", nil), lossy), `the first chunk is "JUNK"`},
		{"no key frame", webp(inter), "does not start with a key frame"},
		{"canvas alone", webp(canvas(8, 6)), "there is no picture in the container"},
		{"larger inside", webp(canvas(4, 4), lossy), "the container says 4x4, the picture inside 8x6"},
		{"larger inside a frame", webp(canvas(9, 9), animationFrame(0, 0, 4, 4, lossless)), "the container says 4x4, the picture inside 8x6"},
		{"frame outside", webp(canvas(8, 6), animationFrame(1, 0, 8, 6, lossless)), "outside of the canvas"},
		{"empty frame", webp(canvas(8, 6), animationFrame(0, 0, 8, 6, nil)), "there is no picture in the container"},
		{"frame too short", webp(canvas(8, 6), riffChunk("ANMF", make([]byte, 9))), "truncated"},
		{"bomb", webp(riffChunk("VP8X", []byte("\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff"))), "over the limit"},
	} {
		t.Run(c.name, func(t *testing.T) { refuse(t, c.data, Limits{}, c.want) })
	}
}

// FuzzDecode checks that any bytes give a frame of the size that the headers say, or one
// line, within small limits; and that libturbojpeg refuses nothing that image/jpeg decodes.
func FuzzDecode(f *testing.F) {
	scene := testpic.Scene(24, 17)
	for o := range 3 {
		for _, encode := range []func() ([]byte, error){
			func() ([]byte, error) { return testpic.PNG(scene, 24, 17, 3*o) },
			func() ([]byte, error) { return testpic.JPEG(scene, 24, 17, 3*o, 60) },
		} {
			data, err := encode()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Add(flat("CMYK", nil, 0, 52, 255, 51))
	f.Add(rawPNG(1, 16, 6, []byte{1, 9, 2, 9, 3, 9, 0, 0}))
	f.Add(bmp(1, 1, 16, 0, nil, []byte{0x1f, 0x7c, 0, 0}))
	f.Add(bmp(2, 1, 4, 0, make([]byte, 64), []byte{0x10, 0, 0, 0}))
	f.Add(webp(sample(f, "VP8L")))
	f.Add(webp(sample(f, "VP8 ")))
	f.Add(webp(canvas(12, 8), animationFrame(2, 1, 8, 6, sample(f, "VP8L"))))
	var b bytes.Buffer
	if err := gif.Encode(&b, image.NewPaletted(image.Rect(0, 0, 5, 4), color.Palette{color.White, color.Black}), nil); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	for _, c := range coded {
		f.Add(c.encode(21, 13))
	}
	limits := Limits{MaxPixels: 1 << 14, MaxBytes: 4 << 20}
	f.Fuzz(func(t *testing.T, data []byte) {
		w, h, sizeErr := Size(data)
		fr, err := Decode(data, limits)
		forceGo = true
		_, goErr := Decode(data, limits)
		forceGo = false
		switch {
		case err != nil && goErr == nil:
			t.Errorf("%s alone says %q", JPEGDecoder(), err)
		case err != nil:
			if bytes.ContainsAny([]byte(err.Error()), "\n\r") {
				t.Errorf("error of several lines: %q", err)
			}
		case sizeErr != nil || w != fr.Width || h != fr.Height || len(fr.Planes[0].Data) != 3*w*h:
			t.Errorf("size %dx%d (%v), frame %dx%d", w, h, sizeErr, fr.Width, fr.Height)
		}
	})
}

// TestImageTypes checks that a type of package image that no decoder gives is an error.
func TestImageTypes(t *testing.T) {
	if _, err := imageRows(image.NewAlpha(image.Rect(0, 0, 1, 1))); err == nil || err.Error() != "unexpected *image.Alpha" {
		t.Error(err)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray16(image.Rect(0, 0, 3, 1))); err != nil {
		t.Fatal(err)
	}
	pixels(t, b.Bytes(), 3, 1, make([]byte, 9)...)
	if got := fmt.Sprint(levels(color.Palette{color.Gray{9}})[0]); got != "[0 0 0]" {
		t.Error(got)
	}
}

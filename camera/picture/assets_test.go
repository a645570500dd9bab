package picture

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/testenv"
)

// hard says what every file of the assets' hard folder gives: a size as displayed, or part
// of the error line.
var hard = map[string]string{
	"cmyk_no_profile.jpg":            "500x333",
	"corrupt_header.jpg":             "decode jpeg: the file is truncated inside its header",
	"dog_small.bmp":                  "320x240",
	"dog_small.gif":                  "320x240",
	"empty.jpg":                      "the file is empty",
	"exif_invalid_orientation_9.jpg": "480x369",
	"exif_landscape_1.jpg":           "1800x1200",
	"exif_landscape_2.jpg":           "1800x1200",
	"exif_landscape_3.jpg":           "1800x1200",
	"exif_landscape_4.jpg":           "1800x1200",
	"exif_landscape_5.jpg":           "1800x1200",
	"exif_landscape_6.jpg":           "1800x1200",
	"exif_landscape_7.jpg":           "1800x1200",
	"exif_landscape_8.jpg":           "1800x1200",
	"exif_portrait_6.jpg":            "1200x1800",
	"jpeg_1x1.jpg":                   "1x1",
	"jpeg_cmyk_1.jpg":                "32x32",
	"jpeg_extraneous_after_sos.jpg":  "1744x2464",
	"jpeg_gray_tower.jpg":            "512x512",
	"jpeg_max_size_65535.jpg":        "decode jpeg: 65535x65535 is 4295 megapixels, over the limit of 100:",
	"jpeg_missing_sos.jpg":           "decode jpeg: there is no picture data",
	"jpeg_null_height.jpg":           "decode jpeg: the header says 0x800 pixels",
	"jpeg_progressive_tower.jpg":     "512x512",
	"mjpeg_no_dht.jpg":               "960x720",
	"png16_rgb_tbgn2c16.png":         "32x32",
	"png_2x2.png":                    "2x2",
	"png_65536x65536_bomb.png":       "decode png: 65536x65536 is 4295 megapixels, over the limit of 100:",
	"png_palette_swiss.png":          "68x68",
	"truncated.jpg":                  "decode jpeg: the file is truncated",
	"truncated.png":                  "decode png: the file is truncated",
	"webp_animated.webp":             "80x80",
	"webp_lossy_4.webp":              "1024x772",
}

func TestHardAssets(t *testing.T) {
	dir := filepath.Join(testenv.Assets(t), "images", "hard")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			want, ok := hard[e.Name()]
			if !ok {
				t.Fatal("not in the table")
			}
			path := filepath.Join(dir, e.Name())
			f, err := ReadFile(path, Limits{})
			if err != nil {
				if line := err.Error(); !strings.Contains(line, want) || !strings.HasPrefix(line, "read picture "+path+": ") || strings.Contains(line, "\n") {
					t.Fatalf("error %q, want one line with the path and %q", line, want)
				}
				return
			}
			if got := fmt.Sprintf("%dx%d", f.Width, f.Height); got != want || f.Format != frame.RGB24 {
				t.Fatalf("%s %s, want rgb24 %s", f.Format, got, want)
			}
		})
	}
}

// TestPhotos decodes every photo and checks that Size says the same from the headers.
func TestPhotos(t *testing.T) {
	root := testenv.Assets(t)
	n := 0
	for _, folder := range []string{"classic", "coco"} {
		paths, _ := filepath.Glob(filepath.Join(root, "images", folder, "*.jpg"))
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			f, err := Decode(data, Limits{})
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if w, h, err := Size(data); err != nil || w != f.Width || h != f.Height {
				t.Errorf("%s: size %dx%d (%v), frame %dx%d", path, w, h, err, f.Width, f.Height)
			}
			n++
		}
	}
	if n != 24 {
		t.Errorf("%d photos, want 24", n)
	}
}

// TestLandscapes checks the one picture that the assets hold in all eight orientations, as
// separate encodes.
func TestLandscapes(t *testing.T) {
	dir := filepath.Join(testenv.Assets(t), "images", "hard")
	var first []byte
	for o := 1; o <= 8; o++ {
		f, err := ReadFile(filepath.Join(dir, fmt.Sprintf("exif_landscape_%d.jpg", o)), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if o == 1 {
			first = f.Planes[0].Data
		}
		if m := meanDifference(first, f.Planes[0].Data); m > 5 {
			t.Errorf("orientation %d differs from 1 by a mean of %.2f levels", o, m)
		}
	}
}

// TestBombMemory holds everything that refusing a bomb allocates against the allowance over
// the smallest picture.
func TestBombMemory(t *testing.T) {
	dir := filepath.Join(testenv.Assets(t), "images", "hard")
	allocated := func(name string) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if f, err := ReadFile(filepath.Join(dir, name), Limits{}); err == nil {
			f.Release()
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	base := allocated("png_2x2.png")
	for _, name := range []string{"png_65536x65536_bomb.png", "jpeg_max_size_65535.jpg", "jpeg_null_height.jpg"} {
		if n := allocated(name); n > base+20<<20 {
			t.Errorf("%s allocates %d bytes, png_2x2.png %d", name, n, base)
		} else {
			t.Logf("%s allocates %d bytes, png_2x2.png %d", name, n, base)
		}
	}
}

// meanDifference returns the mean of the absolute differences of two pictures' levels.
func meanDifference(a, b []byte) float64 {
	if len(a) != len(b) {
		return 255
	}
	sum := 0
	for i := range a {
		sum += max(int(a[i])-int(b[i]), int(b[i])-int(a[i]))
	}
	return float64(sum) / float64(len(a))
}

package main

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/internal/testpic"
)

// badPictures are those of images/hard that give no picture, with what has to be said of them.
var badPictures = map[string]string{
	"corrupt_header.jpg":       "truncated inside its header",
	"empty.jpg":                "the file is empty",
	"jpeg_max_size_65535.jpg":  "65535x65535",
	"jpeg_missing_sos.jpg":     "there is no picture data",
	"jpeg_null_height.jpg":     "the header says 0x800 pixels",
	"png_65536x65536_bomb.png": "65536x65536",
	"truncated.jpg":            "the file is truncated",
	"truncated.png":            "the file is truncated",
}

// Every picture that cameras and people send gives a result or one clear line, in their folder and, the bad
// ones, alone.
func TestHardPictures(t *testing.T) {
	dir := picture(t, "hard")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var bad, good []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		said, isBad := badPictures[e.Name()]
		if !isBad {
			good = append(good, path)
			continue
		}
		bad = append(bad, said)
		t.Run(e.Name(), func(t *testing.T) {
			o := call(t, fast(t, path)...)
			o.want(t, 1, said)
			if o.stdout != "" || !strings.Contains(o.stderr, path+":") {
				t.Errorf("%q, %q", o.stdout, o.stderr)
			}
		})
	}
	if len(bad) != len(badPictures) {
		t.Errorf("%d bad pictures, want %d", len(bad), len(badPictures))
	}
	t.Run("folder", func(t *testing.T) {
		o := call(t, fast(t, dir)...)
		o.want(t, 1, bad...)
		all := results(t, o.stdout)
		if len(all) != len(good) {
			t.Fatalf("%d results, want %d", len(all), len(good))
		}
		seen := map[int]string{}
		for _, r := range all {
			if _, isBad := badPictures[filepath.Base(r.Source)]; isBad || seen[r.Frame] != "" {
				t.Errorf("%s as frame %d, which is %q", r.Source, r.Frame, seen[r.Frame])
			}
			seen[r.Frame] = r.Source
		}
	})
}

// A header that promises gigabytes takes no memory.
func TestBombsTakeNoMemory(t *testing.T) {
	peak := func(name string) float64 {
		file := filepath.Join(t.TempDir(), "peak")
		c := command(fast(t, picture(t, name))...)
		c.Env = append(c.Env, peakFile+"="+file)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ends(t, c)
		text, err := os.ReadFile(file)
		fields := strings.Fields(string(text))
		if err != nil || len(fields) != 3 {
			t.Fatalf("peak of %s: %q, %v", name, text, err)
		}
		kib, err := strconv.Atoi(fields[1])
		if err != nil {
			t.Fatal(err)
		}
		return float64(kib) / 1024
	}
	small := peak("hard/png_2x2.png")
	for _, name := range []string{"hard/png_65536x65536_bomb.png", "hard/jpeg_max_size_65535.jpg"} {
		got := peak(name)
		t.Logf("%s: peak %.1f MiB, png_2x2.png: %.1f MiB", name, got, small)
		if got > small+20 {
			t.Errorf("%s: peak %.1f MiB, png_2x2.png takes %.1f", name, got, small)
		}
	}
}

// The same upright pixels, stored in each of the eight orientations, give the same boxes.
func TestOrientationsGiveTheSameBoxes(t *testing.T) {
	f, err := camera.ReadFile(picture(t, "classic/bus.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	pix := make([]byte, 0, 3*f.Width*f.Height)
	for y := range f.Height {
		pix = append(pix, f.Planes[0].Data[y*f.Planes[0].Stride:][:3*f.Width]...)
	}
	dir := t.TempDir()
	for o := 1; o <= 8; o++ {
		file, err := testpic.PNG(pix, f.Width, f.Height, o)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, strconv.Itoa(o)+".png"), string(file))
	}
	out := call(t, "run", "--threads", "2", "-m", modelFile(t, "yolox_nano_416"), picture(t, "classic/bus.jpg"), dir)
	out.want(t, 0)
	all := results(t, out.stdout)
	if len(all) != 9 {
		t.Fatalf("%d results", len(all))
	}
	for _, r := range all[1:] {
		if r.Width != 810 || r.Height != 1080 || len(r.Detections) != len(all[0].Detections) {
			t.Errorf("%s: %dx%d, %v", r.Source, r.Width, r.Height, r.classes())
			continue
		}
		for i, d := range r.Detections {
			want := all[0].Detections[i]
			for j, v := range d.Box {
				side := []float64{810, 1080}[j%2]
				if d.ClassID != want.ClassID || math.Abs(v-want.Box[j]) > 0.01*side {
					t.Errorf("%s: %v, want %v", r.Source, d, want)
					break
				}
			}
		}
	}
}

// Names of files may hold what a terminal would obey. Errors and results show it, and JSON gives the same name back.
func TestNamesOfFilesAreOnlyShown(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a\x1b[2J\u009b\u202egpj.b\U000e0041.jpg")
	link(t, picture(t, "classic/bus.jpg"), name)
	write(t, filepath.Join(dir, "b\u202e.jpg"), "no picture")
	for _, format := range []string{"text", "json"} {
		o := call(t, fast(t, "--log-format", format, dir)...)
		for _, bad := range []string{"\x1b", "\u009b", "\u202e", "\U000e0041"} {
			if strings.Contains(o.stdout+o.stderr, bad) {
				t.Errorf("%q is shown in %q and %q", bad, o.stdout, o.stderr)
			}
		}
		if all := results(t, o.stdout); len(all) != 1 || all[0].Source != name {
			t.Errorf("%+v", all)
		}
		if !strings.Contains(o.stderr, `b\u202e.jpg`) && !strings.Contains(o.stderr, `b\\u202e.jpg`) {
			t.Errorf("standard error: %s", o.stderr)
		}
	}
}

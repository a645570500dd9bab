package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/testenv"
)

// Every clip runs to its end, with every frame once, in order and with its time.
func TestClips(t *testing.T) {
	testenv.FFmpeg(t)
	for _, c := range []struct {
		name          string
		frames        int
		width, height int
		people        int // frames with a person, at least
		fault         string
	}{
		{"cars-hevc.mp4", 38, 0, 0, 0, ""},
		{"udacity-vehicles.mp4", 38, 0, 0, 0, ""},
		{"mmtracking-demo.mp4", 8, 0, 0, 6, ""},
		{"person-mjpeg.avi", 50, 768, 432, 40, ""},
		{"person.ts", 50, 768, 432, 40, ""},
		{"person-rotate90.mp4", 50, 768, 432, 40, ""},
		{"person-stream.mjpeg", 20, 768, 432, 15, ""},
		{"person-vfr.mp4", 22, 768, 432, 18, ""},
		{"person-truncated.mp4", 508, 0, 0, 0, "damaged or cut off: 508 frames could be decoded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := clip(t, c.name)
			o := call(t, fast(t, path)...)
			if c.fault == "" {
				o.want(t, 0)
			} else {
				o.want(t, 1, "clip "+path+": "+c.fault)
			}
			if report := memoryReport.FindString(o.stderr); (report != "") != (c.frames >= reportFrames) {
				t.Errorf("after %d frames: %s", c.frames, report)
			} else if report != "" && !strings.Contains(report, "heap 0 (0 B)") {
				t.Errorf("something came from the heap: %s", report)
			}
			all := results(t, o.stdout)
			inOrder(t, all, c.frames, 1)
			people := 0
			for _, r := range all {
				people += min(len(r.Detections), 1)
				if c.width > 0 && (r.Width != c.width || r.Height != c.height) {
					t.Fatalf("frame %d is %dx%d, want %dx%d", r.Frame, r.Width, r.Height, c.width, c.height)
				}
			}
			if people < c.people {
				t.Errorf("people on %d frames, want %d", people, c.people)
			}
		})
	}
}

// inOrder checks the count, the numbers and the times of frames.
func inOrder(t *testing.T, all []result, count, every int) {
	t.Helper()
	if len(all) != count {
		t.Errorf("%d results, want %d", len(all), count)
	}
	before := -1.0
	for i, r := range all {
		if r.Frame != i*every || r.PTS == nil || *r.PTS <= before || r.Captured != "" {
			t.Fatalf("result %d: frame %d at %v after %v ms, captured %q", i, r.Frame, r.PTS, before, r.Captured)
		}
		before = *r.PTS
	}
}

func TestRawFrames(t *testing.T) {
	for _, format := range []string{"nv12", "yuyv"} {
		file := map[string]string{"nv12": "person-320x240-3f-nv12.raw", "yuyv": "person-320x240-3f-yuyv422.raw"}[format]
		o := call(t, fast(t, "raw:"+clip(t, file)+"?format="+format+"&size=320x240")...)
		o.want(t, 0)
		all := results(t, o.stdout)
		inOrder(t, all, 3, 1)
		for _, r := range all {
			if len(r.Detections) != 1 || r.Width != 320 || r.Height != 240 {
				t.Errorf("%s: frame %d: %v", format, r.Frame, r.Detections)
			}
		}
	}
}

// Which frames are taken, and at what pace.
func TestTimeFlags(t *testing.T) {
	testenv.FFmpeg(t)
	path := clip(t, "person.ts")
	for _, c := range []struct {
		name   string
		args   []string
		frames int
		every  int
	}{
		{"frames", []string{"--frames", "7", path}, 7, 1},
		{"every", []string{"--every", "20", path}, 3, 20},
		{"both", []string{"--every", "5", "--frames", "4", path}, 4, 5},
		{"raw every", []string{"--every", "2", "raw:" + clip(t, "person-320x240-3f-nv12.raw") + "?format=nv12&size=320x240"}, 2, 2},
		{"pattern", []string{"test:pattern?size=64x64&frames=5"}, 5, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := call(t, fast(t, c.args...)...)
			o.want(t, 0)
			inOrder(t, results(t, o.stdout), c.frames, c.every)
		})
	}
	t.Run("folder every", func(t *testing.T) {
		o := call(t, fast(t, "--every", "2", picture(t, "classic"))...)
		o.want(t, 0)
		if all := results(t, o.stdout); len(all) != 3 || all[2].Frame != 4 {
			t.Errorf("%s", o.stdout)
		}
	})
	t.Run("realtime", func(t *testing.T) { // live: captured by arrival, and what comes too fast is dropped
		o := call(t, fast(t, "--realtime", "--frames", "8", path)...)
		o.want(t, 0)
		all := results(t, o.stdout)
		if len(all) == 0 || len(all) > 8 {
			t.Errorf("%d results", len(all))
		}
		for _, r := range all {
			if r.Captured == "" || r.CapturedBy != "arrival" || r.Age == nil || *r.Age < 0 {
				t.Errorf("%+v", r)
			}
		}
	})
	t.Run("duration", func(t *testing.T) { // ends a source that never does
		o := call(t, fast(t, "--duration", "300ms", "test:pattern?size=64x64")...)
		o.want(t, 0)
		if all := results(t, o.stdout); len(all) == 0 || all[0].PTS != nil || all[0].Captured == "" {
			t.Errorf("%.300s", o.stdout)
		}
	})
}

// An annotated clip has every frame, at its time, also where the rate varies.
func TestSaveClips(t *testing.T) {
	testenv.FFmpeg(t)
	dir := t.TempDir()
	vfr := clip(t, "person-vfr.mp4")
	o := call(t, fast(t, "--save", dir, vfr, "side="+clip(t, "person-rotate90.mp4"), vfr)...)
	o.want(t, 0)
	for name, frames := range map[string]int{"person-vfr": 22, "side": 50, "person-vfr-2": 22} {
		if n, _ := probe(t, filepath.Join(dir, name+".mp4")); n != frames {
			t.Errorf("%s: %d frames, want %d", name, n, frames)
		}
	}
	_, want := probe(t, vfr)
	if _, got := probe(t, filepath.Join(dir, "person-vfr.mp4")); got < want-0.2 || got > want+0.2 {
		t.Errorf("the clip takes %.2f s, the original %.2f s", got, want)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 3 {
		t.Errorf("%d files are left: %v", len(entries), entries)
	}
}

// probe returns the number of frames that can be decoded, and the seconds from the first to the last.
func probe(t testing.TB, path string) (frames int, seconds float64) {
	t.Helper()
	program, err := exec.LookPath("ffprobe")
	testenv.Require(t, err == nil, "ffprobe is not installed")
	out, err := exec.Command(program, "-v", "error", "-select_streams", "v:0", "-show_entries", "frame=best_effort_timestamp_time",
		"-of", "csv=p=0", path).Output()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	times := strings.Fields(strings.ReplaceAll(string(out), ",", " "))
	if len(times) == 0 {
		t.Fatalf("%s has no frames", path)
	}
	first, err1 := strconv.ParseFloat(times[0], 64)
	last, err2 := strconv.ParseFloat(times[len(times)-1], 64)
	if err1 != nil || err2 != nil {
		t.Fatalf("times of %s: %s", path, out)
	}
	return len(times), last - first
}

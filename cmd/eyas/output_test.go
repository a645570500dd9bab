package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/internal/testenv"
)

// The example and the table of docs/results.md are what a run writes.
func TestResultLine(t *testing.T) {
	testenv.FFmpeg(t)
	o := call(t, fast(t, "bus="+picture(t, "classic/bus.jpg"), clip(t, "mmtracking-demo.mp4"), "--frames", "1")...)
	o.want(t, 0)
	lines := strings.Split(o.stdout, "\n")
	const head = `^\{"source":"[^"]+","model":"yolox_nano_person_192","frame":0,`
	const tail = `"width":\d+,"height":\d+,"detections":\[(\{"class":"person","class_id":0,"score":\d\.\d{4},"box":\[(\d+\.\d\d,?){4}\]\},?)*\],` +
		`"timing":\{"queue_ms":\d+\.\d{3},"pre_ms":\d+\.\d{3},"infer_ms":\d+\.\d{3},"post_ms":\d+\.\d{3},"batch":1,"lane":0\}\}$`
	for i, re := range []string{head + tail, head + `"pts_ms":0\.000,` + tail} {
		if !regexp.MustCompile(re).MatchString(lines[i]) {
			t.Errorf("line %d is %s", i, lines[i])
		}
	}
}

// Events stand where they happened; the summary counts and is last.
func TestEvents(t *testing.T) {
	o := call(t, fast(t, "--events", picture(t, "classic/bus.jpg"), picture(t, "hard/truncated.jpg"), "missing.jpg")...)
	o.want(t, 1, "source missing.jpg: no such file", "the file is truncated")
	var got []string
	for line := range strings.Lines(o.stdout) {
		var e struct {
			Event, Source, State, Time string
			Frames, Failed             int
			Detections                 json.RawMessage
			Took                       float64 `json:"took_ms"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Event != "" && !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`).MatchString(e.Time) {
			t.Errorf("time %q", e.Time)
		}
		got = append(got, fmt.Sprint(e.Event, " ", filepath.Base(e.Source), " ", e.State))
		if e.Event == "summary" && (e.Frames != 1 || string(e.Detections) != "4" || e.Failed != 2 || e.Took <= 0) {
			t.Errorf("summary: %s", line)
		}
	}
	want := []string{"ready . ", "source . failed", "source bus.jpg open", "source truncated.jpg open", " bus.jpg ", "source bus.jpg ended",
		"source truncated.jpg failed", "summary . "}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A results file that is full makes room for a new one, line by line.
func TestResultsFile(t *testing.T) {
	dir := t.TempDir()
	config, file := filepath.Join(dir, "eyas.yaml"), filepath.Join(dir, "out.jsonl")
	write(t, config, "output: {max_size: 1KiB}\n")
	o := call(t, fast(t, "-c", config, "-o", file, "test:pattern?size=64x64&frames=10")...)
	o.want(t, 0)
	if o.stdout != "" {
		t.Errorf("standard output: %s", o.stdout)
	}
	var frames []int
	for _, name := range []string{file + ".1", file} {
		text, err := os.ReadFile(name)
		if err != nil || len(text) > 1024 {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
		for _, r := range results(t, string(text)) {
			frames = append(frames, r.Frame)
		}
	}
	if len(frames) < 4 || frames[len(frames)-1] != 9 {
		t.Errorf("frames %v", frames)
	}
	o = call(t, fast(t, "-o", "-", picture(t, "classic/bus.jpg"))...) // the usual name of standard output
	o.want(t, 0)
	results(t, o.stdout)
	call(t, fast(t, "-o", filepath.Join(dir, "none", "out"), picture(t, "classic/bus.jpg"))...).want(t, 1, "write results: open "+dir)
}

// What an earlier run has written is not lost to a run that cannot be, and no source is written over.
func TestResultsFileIsNotLost(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "out.jsonl")
	write(t, file, "precious\n")
	call(t, "run", "-m", filepath.Join(dir, "none.onnx"), "-o", file, picture(t, "classic/bus.jpg")).want(t, 3, "none.onnx")
	if text, err := os.ReadFile(file); err != nil || string(text) != "precious\n" {
		t.Errorf("the results of the last run are now %q, %v", text, err)
	}
	photo := filepath.Join(dir, "photo.jpg")
	data, err := os.ReadFile(picture(t, "classic/bus.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, photo, string(data))
	call(t, fast(t, "-o", photo, photo)...).want(t, 2, "is a source of this run")
	if after, err := os.ReadFile(photo); err != nil || len(after) != len(data) {
		t.Errorf("the source has %d bytes of %d, %v", len(after), len(data), err)
	}
}

// A picture that two models looked at is one frame, with a line for each.
func TestSummaryCountsFrames(t *testing.T) {
	o := call(t, fast(t, "-m", modelFile(t, "yolox_nano_person_192"), "--events", "--classes", "0", picture(t, "classic/bus.jpg"))...)
	o.want(t, 0)
	if !strings.Contains(o.stdout, `"event":"summary"`) || !strings.Contains(o.stdout, `"frames":1,"detections":8`) {
		t.Errorf("no summary of one frame with eight detections in\n%s", o.stdout)
	}
}

// A password that a JSON line quotes is taken out before it is encoded.
func TestJSONLogStaysJSON(t *testing.T) {
	// Nobody listens there: the camera is lost, which is said, and tried again until the time is over.
	o := call(t, fast(t, "--duration", "500ms", "--log-format", "json", `http://u:secret@127.0.0.1:9/x?token=abc"def.jpg`)...)
	if o.code != 0 || !strings.Contains(o.stderr, "lost") || strings.Contains(o.stderr, "secret") || strings.Contains(o.stderr, "abc") {
		t.Errorf("exit code %d, %s", o.code, o.stderr)
	}
	for line := range strings.Lines(o.stderr) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}

// A full disk is said once, and detection goes on.
func TestFullDisk(t *testing.T) {
	full := "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	t.Run("file", func(t *testing.T) {
		o := call(t, fast(t, "-o", full, "--save", dir, picture(t, "classic"))...)
		o.want(t, 1, "write results: write /dev/full: no space left on device; the run goes on", "5 lines are lost")
		if saved, _ := os.ReadDir(dir); len(saved) != 5 {
			t.Errorf("%d pictures are saved", len(saved))
		}
	})
	t.Run("standard output", func(t *testing.T) {
		out, err := os.OpenFile(full, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		var stderr bytes.Buffer
		code := run(fast(t, picture(t, "classic")), strings.NewReader(""), out, &stderr)
		outcome{code, "", stderr.String()}.want(t, 1, "no space left on device; the run goes on", "5 lines are lost")
	})
	t.Run("file system", func(t *testing.T) {
		dir := t.TempDir()
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8k"); err != nil {
			t.Skipf("only root can make a small file system: %v", err)
		}
		defer unix.Unmount(dir, 0)
		file := filepath.Join(dir, "out.jsonl")
		call(t, fast(t, "-o", file, "test:pattern?size=64x64&frames=60")...).want(t, 1, "no space left on device", "lines are lost")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if all := results(t, string(text)); len(all) < 10 {
			t.Errorf("%d results", len(all))
		}
	})
}

// Saved pictures overwrite nothing that was there to be read.
func TestSavePictures(t *testing.T) {
	dir := t.TempDir()
	original, err := os.ReadFile(picture(t, "classic/bus.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.jpg", "a.webp"} { // which would both become a.jpg
		write(t, filepath.Join(dir, name), string(original))
	}
	call(t, fast(t, "--save", dir, dir)...).want(t, 0)
	for name, same := range map[string]bool{"a.jpg": true, "a.webp": true, "a-annotated.jpg": false, "a-annotated-2.jpg": false} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || bytes.Equal(text, original) != same {
			t.Errorf("%s: %v, unchanged %v, want %v", name, err, bytes.Equal(text, original), same)
		}
	}
	other := filepath.Join(t.TempDir(), "new", "folder")
	call(t, fast(t, "--save", other, filepath.Join(dir, "a.jpg"), "b="+filepath.Join(dir, "a.jpg"), picture(t, "hard/png_2x2.png"))...).want(t, 0)
	entries, _ := os.ReadDir(other)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "a.jpg b.jpg png_2x2.png" {
		t.Errorf("saved: %s", got)
	}
}

// A person at a terminal sees a line per picture, or a bar; in a file there is neither.
func TestTerminal(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"picture": {[]string{picture(t, "classic/bus.jpg")}, `bus\.jpg: 810x1080 4 person \(\d+\.\d ms\)`},
		"nothing": {[]string{picture(t, "hard/png_2x2.png")}, `png_2x2\.png: 2x2 nothing found \(`},
		"folder":  {[]string{picture(t, "hard")}, `(?s)truncated\.png: decode png: the file is truncated.*24 / 24`},
		"quiet":   {[]string{"-q", picture(t, "classic/bus.jpg")}, `^$`},
	} {
		t.Run(name, func(t *testing.T) {
			master, slave := pty(t)
			c2 := command(fast(t, c.args...)...)
			c2.Stderr = slave
			if err := c2.Start(); err != nil {
				t.Fatal(err)
			}
			slave.Close()
			var seen bytes.Buffer
			_, _ = seen.ReadFrom(master) // until the last one closes its end, which is an error
			ends(t, c2)
			if !regexp.MustCompile(c.want).MatchString(seen.String()) {
				t.Errorf("seen: %q, want %s", seen.String(), c.want)
			}
		})
	}
}

// pty returns the two ends of a terminal.
func pty(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skip(err)
	}
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 100}); err != nil {
		t.Skip(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Skip(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	return master, slave
}

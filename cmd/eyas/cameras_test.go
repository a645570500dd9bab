package main

import (
	"encoding/json"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/eyas-edge/eyas/internal/browsertest"
	"github.com/eyas-edge/eyas/internal/rtsptest"
	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/internal/testpic"
	"github.com/eyas-edge/eyas/runtime/annotate"
)

const sample = "docs/cameras.yaml"

// scene returns a JPEG without anything to detect.
func scene(t testing.TB, w, h int) []byte {
	t.Helper()
	jpg, err := testpic.JPEG(testpic.Scene(w, h), w, h, 1, 80)
	if err != nil {
		t.Fatal(err)
	}
	return jpg
}

// development returns a file that make deps fetches.
func development(t testing.TB, path ...string) string {
	t.Helper()
	file := filepath.Join(append([]string{testenv.Root(), ".deps"}, path...)...)
	_, err := os.Stat(file)
	testenv.Require(t, err == nil, "no "+filepath.Join(path...)+": run make deps")
	return file
}

// The sample of docs runs as it is: three cameras that are there, with a face before one of them, and one that is not.
func TestSampleOfFourCameras(t *testing.T) {
	if _, err := os.Stat("/dev/video0"); err == nil {
		t.Skip("this machine has a /dev/video0, which is the camera that has to be missing")
	}
	testenv.Library(t)
	development(t, "models", "face.onnx")
	const w, h = 960, 540 // shown as they are
	const secret, part = "ge/heim1", "heim1"
	door := rtsptest.Start(t, "--user", "viewer", "--password", secret, "--size", "960x540", "--fps", "10",
		"--picture", development(t, "photos", "sample1.jpg"))
	picture := scene(t, 320, 240)
	yard := motionJPEG(t, 100*time.Millisecond, func(int) []byte { return picture })
	t.Setenv("EYAS_HOME", t.TempDir())
	t.Setenv("DOOR", "127.0.0.1:"+door.Port)
	t.Setenv("DOOR_PASSWORD", secret)
	t.Setenv("YARD", yard.Listener.Addr().String())
	config := filepath.Join(testenv.Root(), sample)

	printed := call(t, "run", "-c", config, "--print-config")
	printed.want(t, 0)
	said := []string{printed.stdout}

	f := follow(t, "run", "-c", config, "--http", "127.0.0.1:0", "--events")
	url, _, _ := strings.Cut(strings.TrimPrefix(f.until(f.errs, "address", func(line string) bool { return strings.Contains(line, "shows the cameras") }), "eyas: "), " ")
	f.turns("desk", "lost", "there is no /dev/video0: plug the camera in")
	for _, name := range []string{"yard", "check"} {
		f.results(name, 2)
	}
	line := f.says(`{"source":"door"`, `"class":"face"`)
	face := results(t, line+"\n")[0].Detections[0]
	for _, pid := range f.children() {
		words, _ := os.ReadFile("/proc/" + pid + "/cmdline")
		said = append(said, string(words))
	}

	viewDoor(t, url, w, h, face)
	var pages []string
	for _, page := range []string{"", "healthz", "readyz", "metrics"} {
		pages = append(pages, body(t, url+page))
	}
	for i, wants := range [][]string{
		{"door", "yard", "desk", "check", "plug the camera in"}, {"ok"}, {"ready"},
		{`eyas_source_state{source="desk",state="lost"} 1`, `eyas_source_state{source="door",state="open"} 1`, `eyas_frames_delivered_total{source="yard"}`},
	} {
		for _, want := range wants {
			if !strings.Contains(pages[i], want) {
				t.Errorf("no %s in\n%s", want, pages[i])
			}
		}
	}
	said = append(append(said, pages...), ringsOf(t, w, h))

	if code := f.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, text := range append(said, f.out.String(), f.errs.String()) {
		if strings.Contains(text, part) {
			t.Errorf("the password is in %s", text)
		}
	}
	if n := strings.Count(f.errs.String(), "eyas: warning: source "); n != 1 {
		t.Errorf("%d warnings of sources, want that of the desk", n)
	}
	summary(t, f.out.String(), map[string]string{"door": "open", "yard": "open", "desk": "lost", "check": "open"})
}

// viewDoor looks at the page and at the box around a face.
func viewDoor(t *testing.T, url string, w, h int, face object) {
	t.Helper()
	tab := browsertest.Tab(t, w, h)
	if err := chromedp.Do(tab, chromedp.EmulateViewport(int64(w), int64(h)), chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	for browsertest.Evaluate[int](t, tab, `document.querySelectorAll("tbody tr").length`) != 4 {
	}
	browsertest.Screenshot(t, tab, "run-page")
	browsertest.Evaluate[struct{}](t, tab, `[...document.querySelectorAll("td a")].find(a => a.textContent.includes("door")).click(), {}`)
	for !framed(browsertest.Screenshot(t, tab, "run-door"), face) { // until the tab's minute is over
	}
}

// framed says whether the middle halves of an object's four sides are there, give or take what its box moves.
func framed(img image.Image, d object) bool {
	const slack = 4
	at := func(along func(i, off int) (x, y int), n int) bool {
		for i := n / 4; i < n*3/4; i++ {
			if !slices.ContainsFunc([]int{0, -1, 1, -2, 2, -3, 3, -slack, slack}, func(off int) bool {
				return browsertest.Like(img.At(along(i, off)), annotate.Colour(d.ClassID))
			}) {
				return false
			}
		}
		return true
	}
	x1, y1, x2, y2 := int(d.Box[0]), int(d.Box[1]), int(d.Box[2]), int(d.Box[3])
	return at(func(i, off int) (int, int) { return x1 + i, y2 + off }, x2-x1) &&
		at(func(i, off int) (int, int) { return x1 + off, y1 + i }, y2-y1) &&
		at(func(i, off int) (int, int) { return x2 + off, y1 + i }, y2-y1)
}

// ringsOf looks at the rings of the sample's run as another process, and returns what is said of them.
func ringsOf(t *testing.T, w, h int) string {
	t.Helper()
	ls := call(t, "ring", "ls", "--json")
	ls.want(t, 0)
	var doc struct{ Rings []ringLine }
	if err := json.Unmarshal([]byte(ls.stdout), &doc); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range doc.Rings {
		names = append(names, r.Name)
	}
	if want := []string{"check", "door", "yard"}; !slices.Equal(names, want) {
		t.Errorf("rings %v, want %v", names, want)
	}
	path := filepath.Join(t.TempDir(), "door.png")
	tap := call(t, "ring", "tap", "door", path)
	tap.want(t, 0)
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if size, err := png.DecodeConfig(file); err != nil || size.Width != w || size.Height != h {
		t.Errorf("the frame is %dx%d, %v", size.Width, size.Height, err)
	}
	return ls.stdout + tap.stdout + tap.stderr
}

// sourceSummary is a source in the summary.
type sourceSummary struct {
	Source, State, Error                  string
	Captured, Delivered, Missed, Connects uint64
	Dropped                               map[string]uint64
}

// summary reads the last line and checks the states of the sources.
func summary(t *testing.T, text string, states map[string]string) map[string]sourceSummary {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	var doc struct {
		Event   string
		Sources []sourceSummary
	}
	last := lines[len(lines)-1]
	if err := json.Unmarshal([]byte(last), &doc); err != nil || doc.Event != "summary" || len(doc.Sources) != len(states) {
		t.Fatalf("%v in the last line, %s", err, last)
	}
	all := map[string]sourceSummary{}
	for _, s := range doc.Sources {
		all[s.Source] = s
		want := states[s.Source]
		if stopped := want == "open" && s.State == "ended"; s.State != want && !stopped { // the run's end may be that of its sources
			t.Errorf("%s: %s, want %q", s.Source, s.State, want)
		}
		if lost := s.Captured - s.Delivered; s.Dropped["superseded"] > lost {
			t.Errorf("%s: more frames were superseded than lost: %+v", s.Source, s)
		}
	}
	return all
}

// A run with nothing but a camera that is missing waits for it until it is told to end.
func TestMissingCameraIsWaitedFor(t *testing.T) {
	f := follow(t, unhurried(t, "--events", "--http", "127.0.0.1:0", "gone=/dev/video63", "refuses=http://127.0.0.1:1/video")...)
	url, _, _ := strings.Cut(strings.TrimPrefix(f.until(f.errs, "address", func(line string) bool { return strings.Contains(line, "shows the cameras") }), "eyas: "), " ")
	f.turns("gone", "connecting")
	f.says(`"state":"lost"`)
	f.says(`"state":"lost"`)
	if page := body(t, url+"metrics"); !strings.Contains(page, `eyas_source_state{source="gone",state="lost"} 1`) {
		t.Errorf("no lost camera in %s", page)
	}
	if code := f.end(syscall.SIGINT); code != 0 {
		t.Errorf("exit code %d", code)
	}
	all := summary(t, f.out.String(), map[string]string{"gone": "lost", "refuses": "lost"})
	for name, want := range map[string]string{"gone": "there is no /dev/video63", "refuses": "refused"} {
		if s := all[name]; s.Captured != 0 || !strings.Contains(s.Error, want) {
			t.Errorf("%+v, want %s", s, want)
		}
		for _, line := range []string{"eyas: warning: source " + name + ": lost: ", "eyas: " + name + ": 0 frames captured, 0 delivered, 0 dropped; lost: "} {
			if strings.Count(f.errs.String(), line) != 1 {
				t.Errorf("standard error says %q not once", line)
			}
		}
	}
}

// Files are worked through beside cameras, by several models, up to the limits that are given.
func TestLiveAndFileSources(t *testing.T) {
	photo := picture(t, "classic/zidane.jpg")
	cameras := []string{"a=test:pattern?size=320x240", "b=test:pattern?size=160x120"}
	count := func(all []result, source, model string) (n int) {
		for _, r := range all {
			if r.Source == source && r.Model == model {
				n++
			}
		}
		return n
	}
	t.Run("frames", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "results.jsonl")
		clip := "clip=test:pattern?size=64x48&frames=1000"
		o := call(t, append([]string{"run", "--slo", "none", "--threads", "2", "-m", modelFile(t, "yolox_nano_person_192"), "-m", modelFile(t, "nanodet_m_416"), "--frames", "4",
			"-o", file, "pic=" + photo, clip}, cameras...)...)
		if o.code != 0 || o.stdout != "" {
			t.Fatalf("%+v", o)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all := results(t, string(text))
		for _, model := range []string{"yolox_nano_person_192", "nanodet_m_416"} {
			if n := count(all, "pic", model); n != 1 {
				t.Errorf("%s: %d results of the picture", model, n)
			}
			if n := count(all, "clip", model); n != 4 {
				t.Errorf("%s: %d results of the clip", model, n)
			}
			for _, name := range []string{"a", "b"} { // newer frames may have taken the place of others
				if n := count(all, name, model); n < 1 || n > 4 {
					t.Errorf("%s: %d results of %s", model, n, name)
				}
			}
		}
		for _, r := range all {
			if live := len(r.Source) == 1; live != (r.Age != nil) || live != (r.CapturedBy == "arrival") || live && *r.Age < 0 {
				t.Errorf("what a result says of its time: %+v", r)
			}
		}
	})
	t.Run("duration", func(t *testing.T) {
		o := call(t, unhurried(t, append(cameras, "--duration", "1s", "--events")...)...)
		if o.code != 0 {
			t.Fatalf("%+v", o)
		}
		for name, s := range summary(t, o.stdout, map[string]string{"a": "open", "b": "open"}) {
			if s.Captured == 0 {
				t.Errorf("%s: %+v", name, s)
			}
		}
	})
	t.Run("events", func(t *testing.T) {
		o := call(t, unhurried(t, append(cameras, "pic="+photo, "--frames", "3", "--events")...)...)
		if o.code != 0 {
			t.Fatalf("%+v", o)
		}
		for _, states := range [][]string{{"a", "connecting", "open", "ended"}, {"pic", "open", "ended"}} {
			for rest, i := o.stdout, 1; i < len(states); i++ {
				_, after, found := strings.Cut(rest, `"source":"`+states[0]+`","state":"`+states[i]+`"`)
				if rest = after; !found {
					t.Fatalf("%s does not turn %s in\n%s", states[0], states[i], o.stdout)
				}
			}
		}
		summary(t, o.stdout, map[string]string{"a": "ended", "b": "ended"})
	})
}

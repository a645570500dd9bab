package main

import (
	"bytes"
	"context"
	"image"
	"image/jpeg"
	"os"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/internal/machine"
	"github.com/eyas-edge/eyas/internal/places"
	"github.com/eyas-edge/eyas/internal/rtsptest"
	"github.com/eyas-edge/eyas/internal/testenv"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// While one camera hangs, drops its connection and loses its child, and another sends pictures that are damaged, a third one
// keeps its rate.
func TestTroubleStaysWithItsCamera(t *testing.T) {
	door := rtsptest.Start(t, "--fps", "15")
	good := scene(t, 320, 240)
	bad := good[:len(good)/2]
	yard := motionJPEG(t, 20*time.Millisecond, func(i int) []byte { return [][]byte{good, bad}[i%2] })
	t.Setenv(quick, "1")
	f := follow(t, unhurried(t, "--events", "door=rtsp://127.0.0.1:"+door.Port+"/cam#decoder=ffmpeg", "yard="+yard.URL, "check=test:pattern?size=320x240&fps=30")...)
	f.turns("door", "open")
	f.results("door", 3)
	for _, trouble := range []struct {
		name       string
		begin, end func()
		reason     string
	}{
		{"hangs", func() { door.Do("hang") }, func() { door.Do("go") }, "no picture for 2s"},
		{"drops", func() { door.Do("drop") }, func() {}, ""},
		{"loses its child", func() {
			for _, pid := range f.children() {
				if n, err := strconv.Atoi(pid); err == nil {
					_ = syscall.Kill(n, syscall.SIGKILL)
				}
			}
		}, func() {}, "kill"},
	} {
		trouble.begin()
		f.turns("door", "lost", trouble.reason)
		f.results("check", 10)
		f.results("yard", 10)
		trouble.end()
		f.turns("door", "open")
		f.results("door", 3)
	}
	if code := f.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	all := summary(t, f.out.String(), map[string]string{"door": "open", "yard": "open", "check": "open"})
	if s := all["door"]; s.Connects != 4 || s.Dropped["stalled"] != 1 {
		t.Errorf("%+v", s)
	}
	if s := all["yard"]; s.Connects != 1 || s.Dropped["corrupt"] == 0 || s.Dropped["stalled"] != 0 {
		t.Errorf("%+v", s)
	}
	if s := all["check"]; s.Dropped["corrupt"]+s.Dropped["stalled"]+s.Dropped["no slot"]+s.Dropped["late"] != 0 {
		t.Errorf("%+v", s)
	}
	// The pattern's frames come by the clock. One that waits for another camera would miss seconds of them; a busy machine does not
	// come near to the half.
	lines := regexp.MustCompile(`(?m)^\{"source":.*\n`).FindAllString(f.out.String(), -1)
	var first, last *result
	for _, line := range lines {
		if r := results(t, line)[0]; r.Source == "check" {
			if last = &r; first == nil {
				first = last
			}
		}
	}
	took := captured(t, last).Sub(captured(t, first))
	if fps := float64(last.Frame-first.Frame) / took.Seconds(); fps < 15 {
		t.Errorf("the pattern had %.1f frames a second over %v", fps, took)
	} else {
		t.Logf("the pattern had %.1f frames a second over %v, %d of %d captured delivered", fps, took, all["check"].Delivered, all["check"].Captured)
	}
}

func captured(t *testing.T, r *result) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, r.Captured)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// A group whose memory is too small for the cameras is refused with both numbers, before the start where their sizes are known,
// else when they are; nothing is killed.
func TestCamerasDoNotFitIntoTheGroup(t *testing.T) {
	const limit = 160 << 20
	procs := filepath.Join(testenv.MemoryGroup(t, limit), "cgroup.procs")
	var huge bytes.Buffer
	if err := jpeg.Encode(&huge, image.NewGray(image.Rect(0, 0, 8000, 6000)), nil); err != nil {
		t.Fatal(err)
	}
	yard := motionJPEG(t, 50*time.Millisecond, func(int) []byte { return huge.Bytes() })
	numbers := regexp.MustCompile(`\(\d+ bytes\) needed, this machine has .* \(\d+ bytes\): free memory or raise the control group's limit` +
		`|frames need .* MiB of memory, .* MiB can be had: .* or raise the memory limit`) // the plan says so, else the ring
	for _, c := range []struct {
		name    string
		sources []string
		check   bool // the pattern beside them is looked at
	}{
		{"known", []string{"a=test:pattern?size=3840x2160", "b=test:pattern?size=3840x2160", "c=test:pattern?size=3840x2160", "d=test:pattern?size=3840x2160"}, false},
		{"found out", []string{"yard=" + yard.URL, "check=test:pattern?size=320x240&fps=10"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("EYAS_HOME", t.TempDir())
			cmd := command(unhurried(t, append(c.sources, "--duration", "2s")...)...)
			cmd.Args = append([]string{"sh", "-c", "echo $$ >" + procs + `; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
			cmd.Path = "/bin/sh"
			f := followCommand(t, cmd)
			if code := ends(t, f.Cmd); code != exitMachine {
				t.Errorf("exit code %d", code)
			}
			if n := len(numbers.FindAllString(f.errs.String(), -1)); n != 1 {
				t.Errorf("%d lines with need and have", n)
			}
			if all := results(t, f.out.String()); (len(all) > 0) != c.check {
				t.Errorf("%d results", len(all))
			}
		})
	}
}

// use is what a process holds.
type use struct {
	descriptors, goroutines, children int
	rings                             []string
	rss                               uint64
}

func used(t *testing.T) (u use) {
	t.Helper()
	goruntime.GC()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	u.descriptors, u.goroutines = len(fds), goruntime.NumGoroutine()
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, file := range tasks {
		pids, _ := os.ReadFile(file)
		u.children += len(regexp.MustCompile(`\d+`).FindAll(pids, -1))
	}
	dir, err := places.Here().Rings()
	if err != nil {
		t.Fatal(err)
	}
	u.rings, _ = filepath.Glob(filepath.Join(dir, "*"))
	p := machine.ReadProcess("/")
	u.rss = p.RSSAnon + p.RSSShmem
	return u
}

// A camera that is lost after every second picture, and comes back in another size each time, leaves everything as it was.
func TestRestartsLeaveNothing(t *testing.T) {
	testenv.Library(t)
	t.Setenv("EYAS_HOME", t.TempDir())
	sizes := [][]byte{scene(t, 640, 480), scene(t, 320, 240)}
	connections := make(chan int, 1)
	connections <- 0
	yard := motionJPEG(t, time.Millisecond, func(i int) []byte {
		n := <-connections
		defer func() { connections <- n }()
		if i < 2 {
			return sizes[n%2]
		}
		n++
		return nil
	})
	cfg := eyas.Config{
		Models:        map[string]eyas.ModelConfig{"person": {Path: modelFile(t, "yolox_nano_person_192")}},
		Sources:       eyas.Sources{{Name: "yard", URL: yard.URL}},
		SLO:           eyas.NoSLO,
		SourceOptions: []camera.Option{camera.Times(camera.Timing{MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond})},
	}
	rt, err := eyas.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	sources, err := cfg.OpenSources()
	if err != nil {
		t.Fatal(err)
	}
	const warm, restarts = 40, 200 // before the first, buffers and pools grow
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	before := used(t)
	var from, to use
	for _, err := range rt.Stream(ctx, sources...) {
		if err != nil {
			t.Fatal(err)
		}
		switch n := rt.Status()[0].Connects; {
		case n >= warm && from.descriptors == 0:
			from = used(t)
		case n >= warm+restarts:
			to = used(t)
			cancel()
		}
		if to.descriptors > 0 {
			break
		}
	}
	if to.descriptors == 0 {
		t.Fatalf("it came to %d connections only", rt.Status()[0].Connects)
	}
	t.Logf("with the camera: %+v, then %+v", from, to)
	const slack = 4 // a connection that is there or not at this moment: descriptors of both ends, and their goroutines
	if abs(to.descriptors-from.descriptors) > slack || abs(to.goroutines-from.goroutines) > 2*slack || to.children != from.children ||
		len(to.rings) != 1 || !slices.Equal(to.rings, from.rings) || to.rss > from.rss+16<<20 {
		t.Errorf("%d restarts made of %+v %+v", restarts, from, to)
	}
	yard.CloseClientConnections()
	if after := used(t); len(after.rings) != 0 || after.children != before.children {
		t.Errorf("the end made of %+v %+v", before, after)
	}
}

func abs(n int) int { return max(n, -n) }

package main

import (
	"encoding/json"
	"fmt"
	"image/png"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/camera/ring"
	"github.com/eyas-edge/eyas/internal/places"
)

// serveRing serves a ring, as a run does, in a home of its own; red has one frame, all red.
func serveRing(t *testing.T, name string, red bool) *ring.Ring {
	t.Helper()
	dir, err := places.Here().Rings()
	if err != nil {
		t.Fatal(err)
	}
	r, err := ring.New(name, ring.Layout{Format: frame.RGB24, Width: 32, Height: 24, Slots: 2})
	if err != nil {
		t.Fatal(err)
	}
	s, err := ring.Serve(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	s.Set(r)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	if red {
		f := r.Begin()
		f.Captured, f.CapturedBy = time.Now(), frame.ByDriver
		for p := r.Packed(f); len(p) > 0; p = p[3:] {
			p[0], p[1], p[2] = 255, 0, 0
		}
		r.Publish(f)
		f.Release()
	}
	return r
}

func TestRingsAreListed(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	o := call(t, "ring", "ls")
	o.want(t, 0)
	if strings.Count(o.stdout, "\n") != 1 {
		t.Errorf("no ring: %q", o.stdout)
	}
	if o := call(t, "ring", "ls", "--json"); !strings.Contains(o.stdout, `"rings": []`) {
		t.Errorf("no ring: %q", o.stdout)
	}
	serveRing(t, "door", true)
	serveRing(t, "rtsp://10.0.0.7/a\x1b", false)
	o = call(t, "ring", "ls")
	o.want(t, 0)
	for _, want := range []string{"\ndoor ", "32x24  rgb24   2      1 ", `rtsp://10.0.0.7/a\x1b  32x24`} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("no %q in\n%s", want, o.stdout)
		}
	}
	o = call(t, "ring", "ls", "--json")
	o.want(t, 0)
	var doc struct{ Rings []ringLine }
	if err := json.Unmarshal([]byte(o.stdout), &doc); err != nil || len(doc.Rings) != 2 {
		t.Fatalf("%v in %s", err, o.stdout)
	}
	if d := doc.Rings[0]; d.Name != "door" || d.Frames != 1 || d.AgeMS == nil || d.PID != os.Getpid() || d.Bytes == 0 || d.Generation != 1 {
		t.Errorf("got %+v", d)
	}
	if d := doc.Rings[1]; d.AgeMS != nil || d.Frames != 0 {
		t.Errorf("got %+v", d)
	}
}

func TestARingIsTapped(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	path := filepath.Join(t.TempDir(), "door.png")
	call(t, "ring", "tap", "door", path).want(t, 1, "ring door: there is no such ring now; eyas ring ls lists them")
	r := serveRing(t, "door", true)
	call(t, "ring", "tap", "door", path).want(t, 0)
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	img, err := png.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	if red, green, blue, _ := img.At(31, 23).RGBA(); img.Bounds().Dx() != 32 || red != 0xffff || green != 0 || blue != 0 {
		t.Errorf("%v, %x %x %x", img.Bounds(), red, green, blue)
	}
	call(t, "ring", "tap", "door", filepath.Join(path, "no.png")).want(t, 1, "no.png")
	call(t, "ring", "tap", "door", "door.bmp").want(t, 2, "ring tap: door.bmp: name a .png or .jpg file")
	call(t, "ring", "tap", "door").want(t, 2, `expected "<file>"`)
	call(t, "ring").want(t, 2, `expected one of "ls", "tap"`)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	call(t, "ring", "tap", "door", path).want(t, 1, "there is no such ring now")
}

// What is no ring is said, and the others are listed.
func TestAForeignSocketIsSaid(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	serveRing(t, "door", true)
	dir, err := places.Here().Rings()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "odd.ring"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c, err := l.Accept(); err == nil {
			c.Close()
		}
	}()
	o := call(t, "ring", "ls")
	l.Close()
	<-done
	o.want(t, 1, "ring odd: it refused")
	if !strings.Contains(o.stdout, "door") || !strings.Contains(o.stdout, "\nodd   -  ") {
		t.Errorf("standard output: %s", o.stdout)
	}
}

// A ring whose process is stopped is said, and all rings are asked at the same time.
func TestAStoppedWriterIsSaid(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	serveRing(t, "door", true)
	dir, err := places.Here().Rings()
	if err != nil {
		t.Fatal(err)
	}
	listen := func(name string) net.Listener {
		l, err := net.Listen("unix", filepath.Join(dir, name+".ring"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	listen("still") // it takes the connection and says nothing
	pair := []net.Listener{listen("one"), listen("other")}
	both := make(chan struct{})
	go func() { // they answer once both are asked
		defer close(both)
		var asked []net.Conn
		for _, l := range pair {
			if c, err := l.Accept(); err == nil {
				asked = append(asked, c)
			}
		}
		for _, c := range asked {
			c.Close()
		}
	}()
	o := call(t, "ring", "ls", "--json")
	for _, l := range pair {
		l.Close()
	}
	<-both
	still := fmt.Sprintf("ring still: process %d does not answer: it is stopped or hangs", os.Getpid())
	o.want(t, exitFailed, "ring one: it refused", "ring other: it refused", still)
	var doc struct{ Rings []ringLine }
	if err := json.Unmarshal([]byte(o.stdout), &doc); err != nil || len(doc.Rings) != 4 {
		t.Fatalf("%v in %s", err, o.stdout)
	}
	if d := doc.Rings[0]; d.Name != "door" || d.Error != "" || d.Frames != 1 {
		t.Errorf("got %+v", d)
	}
	if d := doc.Rings[3]; d.Name != "still" || d.Error != still {
		t.Errorf("got %+v", d)
	}
}

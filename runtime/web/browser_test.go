package web

import (
	"image"
	"image/color"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/internal/browsertest"
	eyas "github.com/eyas-edge/eyas/runtime"
	"github.com/eyas-edge/eyas/runtime/annotate"
)

// A person sees the camera's moving picture with the box where the detection is.
func TestViewInABrowser(t *testing.T) {
	const w, h = 640, 360
	tab := browsertest.Tab(t, w, h)
	s := listenTest(t, Options{})
	const name = "yard & gate/2"
	rt := &fakeRuntime{}
	rt.set(openCamera(name))
	s.Ready(rt)
	box := eyas.Detection{Class: "person", ClassID: 3, Score: 0.87, Box: [4]float32{200, 100, 440, 300}}
	feed(t, "test:pattern?size=640x360&fps=30", name, &pattern{server: s, found: []eyas.Detection{box}})

	// A view never finishes loading, so that it is gone to as a person does, by the link on the page.
	if err := chromedp.Do(tab, chromedp.EmulateViewport(w, h), chromedp.Navigate("http://"+s.Addr())); err != nil {
		t.Fatal(err)
	}
	browsertest.Screenshot(t, tab, "page")
	browsertest.Evaluate[struct{}](t, tab, `document.querySelector("td a").click(), {}`)
	var first image.Image
	for { // until the stream has come so far, or the browser's minute is over
		first = browsertest.Screenshot(t, tab, "view-1")
		if browsertest.Like(first.At(280, 299), annotate.Colour(3)) {
			break
		}
	}
	for _, at := range []image.Point{{200, 200}, {438, 250}, {280, 299}} {
		if !browsertest.Like(first.At(at.X, at.Y), annotate.Colour(3)) {
			t.Errorf("at %v there is %v and no side of the box", at, first.At(at.X, at.Y))
		}
	}
	if inside := first.At(300, 130); !browsertest.Like(inside, color.RGBA{0, 255, 0, 255}) { // the fourth bar
		t.Errorf("inside the box there is %v, want the green bar", inside)
	}
	for { // the number of the frame, in binary, and the square have moved on
		second := browsertest.Screenshot(t, tab, "view-2")
		if strip(first) != strip(second) {
			break
		}
	}
	lost := openCamera(name)
	lost.State, lost.Error = "lost", "10.0.0.7 does not answer: check that it is on"
	rt.set(lost)
	for !browsertest.Like(browsertest.Screenshot(t, tab, "view-lost").At(638, 200), annotate.Colour(troubleColour)) {
	}
}

// strip returns the lower rows as bits: the test pattern's frame number.
func strip(img image.Image) string {
	var b strings.Builder
	for x := 10; x < 640; x += 20 {
		r, _, _, _ := img.At(x, 350).RGBA()
		b.WriteByte('0' + byte(r>>15))
	}
	return b.String()
}

// The page lists one camera as well as fifty, in its own colours under its own policy, and follows what happens.
func TestPageInABrowser(t *testing.T) {
	tab := browsertest.Tab(t, 1100, 800)
	s := listenTest(t, Options{})
	rt := &fakeRuntime{}
	if err := chromedp.Do(tab, chromedp.EmulateViewport(1100, 800), chromedp.Navigate("http://"+s.Addr())); err != nil {
		t.Fatal(err)
	}
	until := func(expression string) { // or the tab's minute is over
		t.Helper()
		for !browsertest.Evaluate[bool](t, tab, expression) {
		}
	}
	until(`document.querySelector("main").textContent.includes("being loaded")`)
	var cameras []eyas.SourceStatus
	for i := range 50 {
		c := openCamera("camera " + strconv.Itoa(i))
		c.Age = 42 * time.Millisecond
		cameras = append(cameras, c)
	}
	cameras[1].State, cameras[1].Error = "lost", "10.0.0.7 does not answer: check that it is on; trying again in 4s"
	cameras[2].State, cameras[2].FPSIn, cameras[2].FPSOut = "connecting", 0, 0
	cameras[3].State, cameras[3].Live, cameras[3].Age = "ended", false, 0
	cameras[1].Dropped[camera.Superseded] = 12
	rt.set(cameras...)
	s.Ready(rt)
	until(`document.querySelectorAll("tbody tr").length == 50`) // without loading it anew
	list := browsertest.Screenshot(t, tab, "page-50")
	if got := list.At(5, 5); !browsertest.Like(got, color.RGBA{0xf6, 0xf7, 0xf8, 255}) {
		t.Errorf("the background is %v: the page has no style", got)
	}
	rt.set(cameras[:1]...)
	until(`document.querySelectorAll("tbody tr").length == 1`)
	browsertest.Screenshot(t, tab, "page-1")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	until(`!document.getElementById("gone").hidden`)
	browsertest.Screenshot(t, tab, "page-gone")
}

package web

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/eyas-edge/eyas/internal/testenv"
	eyas "github.com/eyas-edge/eyas/runtime"
	"github.com/eyas-edge/eyas/runtime/annotate"
)

// browser returns a context of a headless Chromium with one tab of the given size, which ends with the test.
func browser(t *testing.T, w, h int) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium-headless-shell", "chromium", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	testenv.Require(t, path != "", "Chromium is not installed: apt install chromium-headless-shell")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(w, h),
		chromedp.UserDataDir(t.TempDir()))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, time.Minute) // a browser that hangs
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return ctx
}

// screenshot returns what the tab shows. With EYAS_SCREENSHOTS it is kept in that folder. While the tab goes from one page to
// another a screenshot may fail, or never come: it is tried again.
func screenshot(t *testing.T, tab context.Context, name string) image.Image {
	t.Helper()
	var data []byte
	for err := error(context.DeadlineExceeded); err != nil; {
		if tab.Err() != nil {
			t.Fatalf("screenshot %s: %v", name, err)
		}
		try, cancel := context.WithTimeout(tab, 2*time.Second)
		data, err = chromedp.Run(try, chromedp.CaptureScreenshot())
		cancel()
	}
	if dir := os.Getenv("EYAS_SCREENSHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), data, 0o600); err != nil {
			t.Error(err)
		}
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// like says whether a pixel has about this colour: JPEG mixes it with what is around.
func like(got color.Color, want color.RGBA) bool {
	r, g, b, _ := got.RGBA()
	near := func(v uint32, w uint8) bool { d := int(v>>8) - int(w); return d > -72 && d < 72 }
	return near(r, want.R) && near(g, want.G) && near(b, want.B)
}

// A person sees the camera's moving picture with the box where the detection is.
func TestViewInABrowser(t *testing.T) {
	const w, h = 640, 360
	tab := browser(t, w, h)
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
	screenshot(t, tab, "page")
	if _, err := chromedp.Run(tab, chromedp.Evaluate[struct{}](`document.querySelector("td a").click(), {}`)); err != nil {
		t.Fatal(err)
	}
	var first image.Image
	for { // until the stream has come so far, or the browser's minute is over
		first = screenshot(t, tab, "view-1")
		if like(first.At(280, 299), annotate.Colour(3)) {
			break
		}
	}
	for _, at := range []image.Point{{200, 200}, {438, 250}, {280, 299}} {
		if !like(first.At(at.X, at.Y), annotate.Colour(3)) {
			t.Errorf("at %v there is %v and no side of the box", at, first.At(at.X, at.Y))
		}
	}
	if inside := first.At(300, 130); !like(inside, color.RGBA{0, 255, 0, 255}) { // the fourth bar
		t.Errorf("inside the box there is %v, want the green bar", inside)
	}
	for n := 2; ; n++ { // the number of the frame, in binary, and the square have moved on
		second := screenshot(t, tab, "view-2")
		if strip(first) != strip(second) {
			break
		}
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

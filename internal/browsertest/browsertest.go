// Package browsertest lets tests look at pages as people do, in a headless Chromium.
package browsertest

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/eyas-edge/eyas/internal/testenv"
)

// Tab returns a context of a headless Chromium with one tab of the given size, which ends with the test.
func Tab(t *testing.T, w, h int) context.Context {
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

// Screenshot returns what the tab shows. With EYAS_SCREENSHOTS it is kept in that folder. While the tab goes from one page to
// another a screenshot may fail, or never come: it is tried again.
func Screenshot(t *testing.T, tab context.Context, name string) image.Image {
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

// Like says whether a pixel has about this colour: JPEG mixes it with what is around.
func Like(got color.Color, want color.RGBA) bool {
	r, g, b, _ := got.RGBA()
	near := func(v uint32, w uint8) bool { d := int(v>>8) - int(w); return d > -72 && d < 72 }
	return near(r, want.R) && near(g, want.G) && near(b, want.B)
}

// Evaluate returns what an expression is in the tab.
func Evaluate[T any](t *testing.T, tab context.Context, expression string) T {
	t.Helper()
	v, err := chromedp.Run(tab, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

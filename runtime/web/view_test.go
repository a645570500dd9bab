package web

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/browsertest"
	eyas "github.com/eyas-edge/eyas/runtime"
	"github.com/eyas-edge/eyas/runtime/annotate"
)

// plain returns a grey frame of one level.
func plain(t testing.TB, w, h int, level byte) *camera.Frame {
	t.Helper()
	planes, err := frame.Split(frame.Gray, w, h, bytes.Repeat([]byte{level}, w*h))
	if err != nil {
		t.Fatal(err)
	}
	f, err := camera.NewFrame(frame.Gray, w, h, planes, time.Time{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// result is what a model says of frame n; picture may be nil.
func result(model string, n uint64, picture *camera.Frame, found ...eyas.Detection) *eyas.Result {
	return &eyas.Result{Source: "door", Model: model, Frame: n, Captured: time.Now(), Picture: picture, Detections: found}
}

// watched returns a server without a network, of which somebody looks at the source door, and the status of that.
func watched(t *testing.T) (*Server, *view, *fakeRuntime) {
	t.Helper()
	s, rt := &Server{}, &fakeRuntime{}
	rt.set(openCamera("door"))
	s.views.start(s.status, 10)
	s.Ready(rt)
	v := s.views.join("door")
	t.Cleanup(func() { s.views.leave(v); s.views.wait() })
	synctest.Wait()
	return s, v, rt
}

// picture returns what viewers see.
func (v *view) picture(t *testing.T) image.Image {
	t.Helper()
	synctest.Wait()
	img, err := jpeg.Decode(bytes.NewReader(v.latest().jpeg))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func level(img image.Image, x, y int) int {
	return int(color.GrayModel.Convert(img.At(x, y)).(color.Gray).Y)
}

func TestNobodyLooks(t *testing.T) {
	s := &Server{}
	s.views.start(s.status, 1)
	if s.Wanted("door") {
		t.Error("a picture is wanted that nobody sees")
	}
	s.Add(result("a", 0, plain(t, 64, 64, 0)))
	if len(s.views.byName) != 0 {
		t.Error("a view begins without a viewer")
	}
}

// However fast a camera is there are at most ten pictures a second, and however long a result takes not much
// fewer.
func TestAtMostTenPicturesASecond(t *testing.T) {
	for _, c := range []struct {
		name  string
		fps   int
		late  int // frames from the question to the result
		least int // pictures in 3 s
		most  int
	}{
		{"30 fps", 30, 0, 22, 30},
		{"30 fps, results three frames later", 30, 3, 18, 30},
		{"200 fps", 200, 4, 27, 30},
		{"10 fps", 10, 0, 15, 30},
		{"slow", 4, 0, 11, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, v, _ := watched(t)
				var drawn []*part
				var under []*eyas.Result // way
				picture := plain(t, 64, 64, 100)
				for n := range uint64(3 * c.fps) {
					res := result("a", n, nil)
					if s.Wanted("door") {
						res.Picture = picture
					}
					if under = append(under, res); len(under) > c.late {
						s.Add(under[0])
						under = under[1:]
					}
					synctest.Wait()
					if p := v.latest(); v.shot.pixels != nil && (len(drawn) == 0 || p != drawn[len(drawn)-1]) {
						drawn = append(drawn, p)
					}
					time.Sleep(time.Second / time.Duration(c.fps))
				}
				if len(drawn) < c.least || len(drawn) > c.most {
					t.Errorf("%d pictures in 3 s, want %d to %d", len(drawn), c.least, c.most)
				}
			})
		})
	}
}

// Pictures that come unasked, for another part of the run, are taken at the same pace.
func TestPicturesThatComeAnyway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, v, _ := watched(t)
		var shown []*part
		for n := range uint64(100) {
			s.Add(result("a", n, plain(t, 64, 64, byte(n))))
			synctest.Wait()
			if p := v.latest(); len(shown) == 0 || p != shown[len(shown)-1] {
				shown = append(shown, p)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if len(shown) < 9 || len(shown) > 10 {
			t.Errorf("%d pictures in a second", len(shown))
		}
	})
}

// A picture is drawn when all models have spoken, with the boxes of each.
func TestBoxesOfAllModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, v, _ := watched(t)
		a := eyas.Detection{ClassID: 2, Box: [4]float32{20, 20, 100, 100}}
		b := eyas.Detection{ClassID: 7, Box: [4]float32{120, 20, 200, 100}}
		boxes := func() string {
			img, out := v.picture(t), ""
			for i, d := range []eyas.Detection{a, b} {
				if browsertest.Like(img.At(int(d.Box[0]), 60), annotate.Colour(d.ClassID)) {
					out += string(rune('a' + i))
				}
			}
			return out
		}
		step := func(n uint64, models ...string) {
			t.Helper()
			time.Sleep(pictureEvery)
			synctest.Wait()
			fr := plain(t, 256, 128, 0)
			for _, m := range models {
				found := map[string]eyas.Detection{"a": a, "b": b}[m]
				s.Add(result(m, n, fr, found))
				synctest.Wait()
			}
		}
		step(0, "a", "b") // that there are two shows only now
		step(1, "a")
		before := v.latest()
		s.Add(result("b", 1, nil, b))
		synctest.Wait()
		if v.latest() == before {
			t.Error("the picture is not drawn though both models have spoken")
		}
		if got := boxes(); got != "ab" {
			t.Errorf("boxes of %q, want those of both", got)
		}
		step(2, "a") // b fails
		before = v.latest()
		s.Add(result("a", 3, nil))
		synctest.Wait()
		if v.latest() == before {
			t.Error("the next frame does not have the picture drawn")
		}
		if got := boxes(); got != "ab" {
			t.Errorf("boxes of %q, want the last of each", got)
		}
		step(4, "a")
		if got := boxes(); got != "a" {
			t.Errorf("boxes of %q: those of b are old", got)
		}
		step(5, "b") // a fails, and there are no more frames
		time.Sleep(captionEvery)
		if got := boxes(); got != "ab" {
			t.Errorf("boxes of %q after a second", got)
		}
	})
}

// A frame that was to bring its picture and got lost does not stop the view.
func TestPromiseThatIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := watched(t)
		if !s.Wanted("door") || s.Wanted("door") {
			t.Fatal("want one picture")
		}
		time.Sleep(captionEvery + time.Millisecond)
		synctest.Wait()
		if !s.Wanted("door") {
			t.Error("no picture is wanted any more")
		}
	})
}

// A person sees that the picture is not live, and what the matter is.
func TestLostCameraIsNotPassedOffAsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, v, rt := watched(t)
		red := annotate.Colour(troubleColour)
		if !browsertest.Like(v.picture(t).At(300, 1), red) {
			t.Error("before the first picture nothing says that there is none")
		}
		s.Add(result("a", 0, plain(t, 256, 128, 128)))
		if img := v.picture(t); browsertest.Like(img.At(200, 1), red) || level(img, 100, 60) < 120 {
			t.Error("the picture does not come")
		}
		time.Sleep(time.Second)
		lost := openCamera("door")
		lost.State, lost.Error = "lost", "no answer"
		rt.set(lost)
		time.Sleep(2 * time.Second)
		if img := v.picture(t); !browsertest.Like(img.At(200, 1), red) || level(img, 200, 100) < 120 {
			t.Error("the last picture does not say that the camera is lost")
		}
		first := v.latest()
		time.Sleep(time.Second)
		synctest.Wait()
		if v.latest() == first {
			t.Error("its age does not go on")
		}
		rt.set(openCamera("door"))
		s.Add(result("a", 1, plain(t, 256, 128, 200)))
		if img := v.picture(t); browsertest.Like(img.At(200, 1), red) || level(img, 200, 100) < 190 {
			t.Error("the camera is back, and the view does not show it")
		}
	})
}

func TestCaptions(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name, state, err string
		file             bool
		age              time.Duration // below 0: no picture yet
		want             string
		calm             bool
	}{
		{"live", "open", "", false, time.Second, "", true},
		{"file", "open", "", true, time.Second, "x: not live: a file", true},
		{"silent", "open", "", false, 90 * time.Second, "x: no new picture for 1m30s", false},
		{"nothing yet", "open", "", false, -1, "x: no picture yet", false},
		{"connecting", "connecting", "", false, -1, "x: no picture yet: connecting", false},
		{"never came", "lost", "refused", false, -1, "x: no picture yet: lost: refused", false},
		{"lost", "lost", "refused", false, 12500 * time.Millisecond, "x: lost, last picture 12s ago: refused", false},
		{"ended", "ended", "", true, time.Minute, "x: ended", false},
		{"failed", "failed", "is cut off", true, time.Minute, "x: failed: is cut off", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var taken time.Time
			if c.age >= 0 {
				taken = now.Add(-c.age)
			}
			got := captionOf(eyas.SourceStatus{Name: "x", Live: !c.file, State: c.state, Error: c.err}, taken, now)
			if got != (caption{c.want, !c.calm}) {
				t.Errorf("got %+v, want %q", got, c.want)
			}
		})
	}
}

func TestCanvas(t *testing.T) {
	huge := fmt.Sprint(strings.Repeat("é very long reason ", 100))
	for _, c := range []struct {
		name         string
		w, h         int
		wantW, wantH int
	}{
		{"small", 64, 48, 64, 48},
		{"largest", 960, 960, 960, 960},
		{"full HD", 1920, 1080, 960, 540},
		{"upright", 1080, 1920, 540, 960},
		{"a line", 5000, 1, 960, 1},
		{"a pixel", 1, 1, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var cv canvas
			w, h := float32(c.w), float32(c.h)
			cv.draw(plain(t, c.w, c.h, 90), []eyas.Detection{{ClassID: 3, Box: [4]float32{0, 0, w / 2, h / 2}}})
			for _, note := range []caption{{}, {text: "x"}, {huge, true}} {
				img, err := jpeg.Decode(bytes.NewReader(cv.encode(note)))
				if err != nil {
					t.Fatal(err)
				}
				if got, want := img.Bounds().Size(), image.Pt(c.wantW, c.wantH); got != want {
					t.Errorf("size %v, want %v", got, want)
				}
				if c.wantH < 400 || note.trouble {
					continue
				}
				if at := image.Pt(c.wantW/2-2, c.wantH/4); !browsertest.Like(img.At(at.X, at.Y), annotate.Colour(3)) {
					t.Errorf("at %v there is %v and not the box", at, img.At(at.X, at.Y))
				}
			}
		})
	}
}

// Padded rows, and every format, arrive as they are.
func TestCopyOfAFrame(t *testing.T) {
	for _, format := range []frame.Format{frame.RGB24, frame.RGBA, frame.Gray, frame.NV12, frame.I420, frame.I422, frame.YUYV} {
		const w, h = 5, 3
		var planes []frame.Plane
		for i, g := range format.PlanesOf(w, h) {
			p := frame.Plane{Data: bytes.Repeat([]byte{0xee}, (g.RowBytes+7)*g.Rows-7), Stride: g.RowBytes + 7}
			for y := range g.Rows {
				for x := range g.RowBytes {
					p.Data[y*p.Stride+x] = byte(100*i + 20*y + x)
				}
			}
			planes = append(planes, p)
		}
		fr, err := camera.NewFrame(format, w, h, planes, time.Time{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		fr.Colour = frame.Colour{Matrix: frame.BT709, Full: true}
		var s shot
		if !s.copy(fr) || s.pixels.Colour != fr.Colour {
			t.Fatalf("%s is not copied", format)
		}
		for i, p := range s.pixels.Planes {
			for at, got := range p.Data {
				if y, x := at/p.Stride, at%p.Stride; got != byte(100*i+20*y+x) {
					t.Fatalf("%s: plane %d row %d column %d is %d", format, i, y, x, got)
				}
			}
		}
	}
}

func TestAddAllocatesNothing(t *testing.T) {
	s := &Server{}
	s.views.start(s.status, 1)
	v := newView("door", s.status) // nobody draws
	s.views.byName["door"] = v
	fr := plain(t, 64, 64, 1)
	found := make([]eyas.Detection, 20)
	one, other := result("a", 0, fr, found...), result("b", 0, nil, found...)
	if got := testing.AllocsPerRun(100, func() {
		v.want.CompareAndSwap(nothing, wanted)
		if !s.Wanted("door") {
			t.Fatal("no picture is wanted")
		}
		one.Frame++
		other.Frame++
		s.Add(one)
		s.Add(other)
	}); got != 0 {
		t.Errorf("%v allocations a picture", got)
	}
}

// What a 1080p picture costs the consumer, and what the viewers.
func BenchmarkAdd(b *testing.B) {
	v := newView("door", (&Server{}).status)
	fr := plain(b, 1920, 1620, 1) // as many bytes as NV12 has
	res := result("a", 0, fr, make([]eyas.Detection, 10)...)
	b.SetBytes(1920 * 1620)
	for b.Loop() {
		v.want.Store(wanted)
		res.Frame++
		v.add(res)
	}
}

func BenchmarkDraw(b *testing.B) {
	planes, err := frame.Split(frame.NV12, 1920, 1080, make([]byte, frame.NV12.Bytes(1920, 1080)))
	if err != nil {
		b.Fatal(err)
	}
	fr, err := camera.NewFrame(frame.NV12, 1920, 1080, planes, time.Time{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	for i := range planes[0].Data {
		planes[0].Data[i] = byte(i*i>>7 ^ i)
	}
	var cv canvas
	for b.Loop() {
		cv.draw(fr, make([]eyas.Detection, 10))
		cv.encode(caption{})
	}
}

package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/testenv"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// clipFile is what the example of a clip opens.
var clipFile string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "eyas-runtime")
	if err != nil {
		panic(err)
	}
	clipFile = filepath.Join(dir, "clip.mp4")
	os.Setenv("XDG_CACHE_HOME", dir) // not the developer's
	// Without ffmpeg the file is not there, and the example says so.
	exec.Command("ffmpeg", "-v", "error", "-nostdin", "-f", "lavfi", "-i", "color=gray:s=320x240:r=25", "-frames:v", "3", clipFile).Run()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// face is the model that the project fetches: these tests need no assets.
func face(t testing.TB) string {
	t.Helper()
	path := filepath.Join(testenv.Root(), ".deps", "models", "face.onnx")
	_, err := os.Stat(path)
	testenv.Require(t, err == nil, "no face model: run make fetch")
	return path
}

func openSource(t testing.TB, spec string, options ...camera.Option) camera.Source {
	t.Helper()
	s, err := camera.Open(spec, options...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// With several models each frame's results come together, in the order of the models' keys, and
// sources one after the other.
func TestStreamOrder(t *testing.T) {
	path := face(t)
	rt := open(t, eyas.Config{
		Models: map[string]eyas.ModelConfig{"a": {Path: path}, "b": {Path: path}},
		Sources: eyas.Sources{
			{Name: "both", URL: "test:pattern?size=320x240&frames=4"},
			{Name: "one", URL: "test:pattern?size=320x240&frames=3", Models: []string{"b"}},
		},
	})
	var got, want []string
	for res, err := range rt.Stream(bounded(t),
		openSource(t, "both=test:pattern?size=320x240&frames=4"), openSource(t, "one=test:pattern?size=320x240&frames=3")) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(res.Source, res.Frame, res.Model))
	}
	for i := range 4 {
		want = append(want, fmt.Sprint("both", i, "a"), fmt.Sprint("both", i, "b"))
	}
	for i := range 3 {
		want = append(want, fmt.Sprint("one", i, "b"))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// Leaving the loop, at any frame, ends the source and gives everything back: the runtime works on.
func TestStreamMayBeLeftAtAnyFrame(t *testing.T) {
	rt := open(t, eyas.Config{Models: map[string]eyas.ModelConfig{"face": {Path: face(t)}}, Pictures: true})
	for stop := range 5 {
		n := 0
		for res, err := range rt.Stream(bounded(t), openSource(t, "test:pattern?size=320x240&frames=40")) {
			if err != nil {
				t.Fatal(err)
			}
			if res.Picture == nil || res.Picture.Width != 320 {
				t.Fatalf("the result carries no picture: %+v", res.Picture)
			}
			if n == stop {
				break
			}
			n++
		}
	}
	n := 0
	for _, err := range rt.Stream(bounded(t), openSource(t, "test:pattern?size=320x240&frames=5")) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 5 {
		t.Errorf("%d results after streams were left, want 5", n)
	}
}

// Cancelling ends the stream without an error; what was in flight is whole.
func TestStreamEndsWithItsContext(t *testing.T) {
	rt := open(t, eyas.Config{Models: map[string]eyas.ModelConfig{"face": {Path: face(t)}}})
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	n := 0
	for res, err := range rt.Stream(ctx, openSource(t, "test:pattern?size=320x240&frames=100000")) {
		if err != nil {
			t.Fatal(err)
		}
		if res.Frame != uint64(n) {
			t.Fatalf("frame %d came as number %d", res.Frame, n)
		}
		if n++; n == 10 {
			cancel()
		}
	}
	if n < 10 || n > 20 {
		t.Errorf("%d results, want 10 and the few that were in flight", n)
	}
}

// One bad picture is one error; the others are processed, in order.
func TestBadPictureInAFolder(t *testing.T) {
	path := face(t)
	photo, err := os.ReadFile(filepath.Join(testenv.Root(), ".deps", "photos", "sample1.jpg"))
	testenv.Require(t, err == nil, "no photo: run make fetch")
	dir := t.TempDir()
	for name, data := range map[string][]byte{"1.jpg": photo, "2.jpg": photo[:len(photo)/2], "10.jpg": photo} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rt := open(t, eyas.Config{Models: map[string]eyas.ModelConfig{"face": {Path: path}}})
	var sources []string
	var failed []error
	for res, err := range rt.Stream(bounded(t), openSource(t, dir)) {
		if err != nil {
			failed = append(failed, err)
			continue
		}
		sources = append(sources, filepath.Base(res.Source))
		if len(res.Detections) == 0 {
			t.Errorf("%s: no face", res.Source)
		}
	}
	if fmt.Sprint(sources) != "[1.jpg 10.jpg]" {
		t.Errorf("processed %v, want 1.jpg and 10.jpg", sources)
	}
	if len(failed) != 1 || !strings.Contains(failed[0].Error(), "2.jpg") {
		t.Errorf("errors %v, want one about 2.jpg", failed)
	}
}

// A frame costs no Go memory, from the source to the result.
func TestNothingIsAllocatedPerFrame(t *testing.T) {
	rt := open(t, eyas.Config{Models: map[string]eyas.ModelConfig{"face": {Path: face(t)}}})
	const from, to = 50, 250
	var before, after goruntime.MemStats
	buf := make([]byte, 0, 1<<16)
	n := 0
	for res, err := range rt.Stream(bounded(t), openSource(t, "test:pattern?size=320x240&frames=300")) {
		if err != nil {
			t.Fatal(err)
		}
		buf = res.AppendJSON(buf[:0])
		switch n {
		case from:
			goruntime.ReadMemStats(&before)
		case to:
			goruntime.ReadMemStats(&after)
		}
		n++
	}
	// The runtime itself allocates now and then (timers, stacks); one in ten frames would be ours.
	if got := after.Mallocs - before.Mallocs; got > (to-from)/10 {
		t.Errorf("%d allocations in %d frames", got, to-from)
	}
}

// Detect from several goroutines while a stream runs: same answers, no race.
func TestDetectWhileStreaming(t *testing.T) {
	rt := open(t, eyas.Config{Models: map[string]eyas.ModelConfig{"face": {Path: face(t)}}})
	photo := filepath.Join(testenv.Root(), ".deps", "photos", "sample1.jpg")
	want := detect(t, rt, photo)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for range 5 {
				pic, err := camera.ReadFile(photo)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := rt.Detect(context.Background(), pic)
				pic.Release()
				if err != nil || fmt.Sprint(got.Detections) != fmt.Sprint(want.Detections) {
					t.Errorf("got %v, %v, want %v", got, err, want)
				}
			}
		})
	}
	for _, err := range rt.Stream(bounded(t), openSource(t, "test:pattern?size=320x240&frames=30")) {
		if err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
}

// In the loop over a stream one may look again, at a picture or at another source.
func TestDetectAndStreamInTheLoop(t *testing.T) {
	rt := open(t, eyas.Config{Models: map[string]eyas.ModelConfig{"face": {Path: face(t)}}, Pictures: true})
	ctx := bounded(t)
	outer, inner := 0, 0
	for res, err := range rt.Stream(ctx, openSource(t, "test:pattern?size=320x240&frames=6")) {
		if err != nil {
			t.Fatal(err)
		}
		outer++
		again, err := rt.Detect(ctx, res.Picture)
		if err != nil || fmt.Sprint(again.Detections) != fmt.Sprint(res.Detections) {
			t.Fatalf("looking again at frame %d gives %+v, %v", res.Frame, again, err)
		}
		for _, err := range rt.Stream(ctx, openSource(t, "test:pattern?size=64x64&frames=2")) {
			if err != nil {
				t.Fatal(err)
			}
			inner++
		}
	}
	if outer != 6 || inner != 12 {
		t.Errorf("%d and %d results, want 6 and 12", outer, inner)
	}
}

// Where a frame's time went adds up: what a run waits for the one before it is in the queue's share.
func TestTimingAddsUp(t *testing.T) {
	rt := open(t, eyas.Config{Models: map[string]eyas.ModelConfig{"face": {Path: face(t)}}, Threads: 1})
	var infer, queue time.Duration
	n := 0
	for res, err := range rt.Stream(bounded(t), openSource(t, "test:pattern?size=64x64&frames=40")) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n > 10 { // the pipeline is full
			infer += res.Timing.Infer
			queue += res.Timing.Queue
		}
	}
	// One frame runs while the next, filled in no time, waits for it.
	if queue < infer/2 {
		t.Errorf("30 frames waited %v in all while each waited for a run of the one before, %v in all", queue, infer)
	}
}

func TestClosedRuntime(t *testing.T) {
	rt := open(t, eyas.Config{Models: map[string]eyas.ModelConfig{"face": {Path: face(t)}}})
	rt.Close()
	rt.Close()
	if _, err := rt.Detect(context.Background(), nil); !errors.Is(err, eyas.ErrClosed) {
		t.Errorf("Detect after Close: %v", err)
	}
	for _, err := range rt.Stream(context.Background()) {
		if !errors.Is(err, eyas.ErrClosed) {
			t.Errorf("Stream after Close: %v", err)
		}
	}
}

func TestOpenErrorsHaveTheirKind(t *testing.T) {
	library := testenv.Library(t)
	good := map[string]eyas.ModelConfig{"face": {Path: face(t)}}
	for name, c := range map[string]struct {
		cfg  eyas.Config
		want error
		text string
	}{
		"no model":      {eyas.Config{}, eyas.ErrConfig, "no model"},
		"missing model": {eyas.Config{Models: map[string]eyas.ModelConfig{"x": {Path: "/nowhere/x.onnx"}}}, eyas.ErrModel, "/nowhere/x.onnx"},
		"unknown name":  {eyas.Config{Models: map[string]eyas.ModelConfig{"x": {Path: "yolo99"}}}, eyas.ErrModel, "eyas pull --list"},
		"not pulled":    {eyas.Config{Models: map[string]eyas.ModelConfig{"x": {Path: "yolox-s"}}}, eyas.ErrModel, "eyas pull yolox-s"},
		"unknown class": {eyas.Config{Models: map[string]eyas.ModelConfig{"x": {Path: face(t), Classes: []string{"cat"}}}}, eyas.ErrConfig, `no class "cat"`},
		"no library":    {eyas.Config{Models: good, ORT: "/nowhere"}, eyas.ErrLibrary, "/nowhere"},
		"no provider":   {eyas.Config{Models: good, ORT: library, EP: "tensorrt"}, eyas.ErrProvider, "tensorrt"},
		"no device":     {eyas.Config{Models: good, ORT: library, Device: "7"}, eyas.ErrProvider, "CUDA"},
		"not yet":       {eyas.Config{Models: good, Precision: "fp16"}, eyas.ErrNotYet, "precision"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("EYAS_HOME", t.TempDir())
			rt, err := eyas.Open(context.Background(), c.cfg)
			if err == nil {
				rt.Close()
				t.Fatal("opened")
			}
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, want one line of kind %v with %q", err, c.want, c.text)
			}
		})
	}
}

// A folder with the name of a pulled model is not in its way.
func TestFolderNamedAsAModel(t *testing.T) {
	model := face(t)
	home := t.TempDir()
	t.Setenv("EYAS_HOME", home)
	pulled := filepath.Join(home, "models", "face.onnx")
	data, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(pulled), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(pulled, data, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.Mkdir("face", 0o755); err != nil {
		t.Fatal(err)
	}
	m, err := eyas.Inspect(eyas.ModelConfig{Path: "face"})
	if err != nil || m.Path != pulled {
		t.Errorf("face is taken from %v, %v", m, err)
	}
}

// recycler hands out one frame, takes it back for its own use once it is released, and hands out another.
type recycler struct {
	result chan struct{} // the consumer has a result
	again  atomic.Int32  // releases of the first frame
}

func (r *recycler) Name() string { return "recycler" }
func (r *recycler) Live() bool   { return false }

func (r *recycler) Run(ctx context.Context, sink camera.Sink) error {
	released := make(chan struct{}, 8)
	grey := func(release func()) *camera.Frame {
		f, err := camera.NewFrame(frame.Gray, 1, 1, []frame.Plane{{Data: []byte{0}, Stride: 1}}, time.Time{}, release)
		if err != nil {
			panic(err)
		}
		return f
	}
	first := grey(func() { r.again.Add(1); released <- struct{}{} })
	if err := sink.Frame(ctx, first); err != nil {
		return err
	}
	<-released
	first.Recycle()
	if err := sink.Frame(ctx, grey(nil)); err != nil {
		return err
	}
	<-r.result
	<-r.result // the stream is through with the first
	return nil
}

// A frame that its source uses again is not released a second time.
func TestStreamReleasesOnce(t *testing.T) {
	rt, err := eyas.Open(bounded(t), eyas.Config{ORT: testenv.Library(t), Threads: 1, Models: map[string]eyas.ModelConfig{"face": {Path: face(t)}}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	r := &recycler{result: make(chan struct{}, 2)}
	for _, err := range rt.Stream(bounded(t), r) {
		if err != nil {
			t.Fatal(err)
		}
		r.result <- struct{}{}
	}
	if n := r.again.Load(); n != 1 {
		t.Errorf("the first frame was released %d times", n)
	}
}

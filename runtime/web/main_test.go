package web

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/eyas-edge/eyas/camera"
	eyas "github.com/eyas-edge/eyas/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeRuntime says what a test wants of its sources.
type fakeRuntime struct {
	mu      sync.Mutex
	sources []eyas.SourceStatus
}

func (f *fakeRuntime) Status() []eyas.SourceStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]eyas.SourceStatus(nil), f.sources...)
}

// set replaces the status of all sources.
func (f *fakeRuntime) set(sources ...eyas.SourceStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sources = sources
}

func openCamera(name string) eyas.SourceStatus {
	return eyas.SourceStatus{
		Name: name, Live: true, State: "open", Format: "rgb24", Width: 640, Height: 360,
		Captured: 120, Delivered: 118, Connects: 1, FPSIn: 30, FPSOut: 29.5,
	}
}

// listenTest serves until the test's end.
func listenTest(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Listen("127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// pattern feeds a server as a run does: each frame of a test pattern becomes a result with made-up detections,
// which carries its picture where that is wanted.
type pattern struct {
	server *Server
	found  []eyas.Detection
	noise  *rand.ChaCha8 // paints over the pattern; nil for none
}

func (p *pattern) Frame(_ context.Context, f *camera.Frame) error {
	defer f.Release()
	res := eyas.Result{
		Source: f.Source, Model: "made-up", Frame: f.Seq, Captured: f.Captured, CapturedBy: f.CapturedBy,
		Width: f.Width, Height: f.Height, Detections: p.found,
	}
	if p.server.Wanted(f.Source) {
		if res.Picture = f; p.noise != nil {
			_, _ = p.noise.Read(f.Planes[0].Data)
		}
	}
	p.server.Add(&res)
	return nil
}

func (p *pattern) Fault(error)               {}
func (p *pattern) Reclaim() bool             { return false }
func (p *pattern) State(camera.State, error) {}

// feed runs a test pattern of that name into p until the test's end.
func feed(t *testing.T, what, name string, p *pattern) {
	t.Helper()
	src, err := camera.Open(what, camera.Name(name))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = src.Run(ctx, p) // ends with the context
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

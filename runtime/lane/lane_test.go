package lane

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/models"
	"github.com/eyas-edge/eyas/models/decode"
	"github.com/eyas-edge/eyas/runtime/ort"
)

func openLane(t *testing.T, model string, o models.Options) *Lane {
	t.Helper()
	m, err := models.Load(filepath.Join(testenv.Assets(t), "models", model), o)
	if err != nil {
		t.Fatal(err)
	}
	library, err := ort.Load(testenv.Library(t))
	if err != nil {
		t.Fatal(err)
	}
	session, err := library.OpenFile(m.Path, ort.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(m, session, &sync.Mutex{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func picture(t *testing.T, w, h int) *frame.Frame {
	t.Helper()
	data := make([]byte, w*h*3)
	for i := range data {
		data[i] = byte(i * 7)
	}
	f, err := frame.New(frame.RGB24, w, h, []frame.Plane{{Data: data, Stride: w * 3}}, time.Time{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Pictures of any number of shapes run, each in the smallest rectangle that holds it, and the tensors
// kept for them stay bounded.
func TestDynamicSizesAreBounded(t *testing.T) {
	l := openLane(t, "yolov8n_int8_dynshape_op17.onnx", models.Options{ImgSize: models.Size{128, 128}})
	s, err := l.TakeSingle(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer l.PutSingle(s)
	shapes := map[[2]int]bool{}
	for round := range 2 {
		for side := 32; side <= 128; side += 32 {
			for _, size := range [][2]int{{128, side}, {side, 128}, {256, side}, {side, 512}} {
				if err := s.Fill(picture(t, size[0], size[1])); err != nil {
					t.Fatal(err)
				}
				if err := s.Run(); err != nil {
					t.Fatalf("%dx%d in round %d: %v", size[0], size[1], round, err)
				}
				if _, _, err := s.Decode(nil, decode.Options{Conf: 0.25, IoU: 0.7}); err != nil {
					t.Fatal(err)
				}
				shapes[[2]int{s.now.h, s.now.w}] = true
			}
		}
	}
	if len(shapes) < 5 {
		t.Errorf("only %d input sizes for pictures of many shapes", len(shapes))
	}
	if len(s.variants) > maxVariants {
		t.Errorf("%d sizes are kept, more than %d", len(s.variants), maxVariants)
	}
}

func TestTakeEndsWithItsContext(t *testing.T) {
	l := openLane(t, "yolox_nano_person_192.onnx", models.Options{})
	pair, err := l.Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Return(pair)
	var taken []*Set
	for range Sets {
		s, err := pair.Take(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, s)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := pair.Take(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("no set is free, and Take says %v", err)
	}
	for _, s := range taken {
		pair.Put(s)
	}
}

// Abort ends a run that is under way and every later one.
func TestAbort(t *testing.T) {
	l := openLane(t, "yolov8n_qdq_op11_640.onnx", models.Options{})
	s, err := l.TakeSingle(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer l.PutSingle(s)
	if err := s.Fill(picture(t, 640, 640)); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		for {
			if err := s.Run(); err != nil {
				ended <- err
				return
			}
		}
	}()
	l.Abort()
	select {
	case err := <-ended:
		if !errors.Is(err, ort.ErrTerminated) {
			t.Errorf("the run ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the run goes on after Abort")
	}
	pair, err := l.Pair()
	if err != nil {
		t.Fatal(err)
	}
	other, err := pair.Take(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Fill(picture(t, 640, 640)); err != nil {
		t.Fatal(err)
	}
	if err := other.Run(); !errors.Is(err, ort.ErrTerminated) {
		t.Errorf("a set that did not run when Abort came runs: %v", err)
	}
	pair.Put(other)
	l.Return(pair)
}

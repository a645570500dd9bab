package camera

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eyas-edge/eyas/camera/frame"
)

func TestReadFile(t *testing.T) {
	inDir(t, "a.gif")
	f, err := ReadFile("a.gif")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	if f.Source != "a.gif" || f.Width != 1 || f.Height != 1 {
		t.Errorf("%s %dx%d", f.Source, f.Width, f.Height)
	}
	if _, err := ReadFile("b.gif"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

func TestNewFrame(t *testing.T) {
	released := 0
	f, err := NewFrame(frame.Gray, 2, 1, []frame.Plane{{Data: []byte{1, 2}, Stride: 2}}, time.Time{}, func() { released++ })
	if err != nil {
		t.Fatal(err)
	}
	f.Release()
	f.Release()
	if released != 1 {
		t.Errorf("released %d times", released)
	}
}

func TestFolder(t *testing.T) {
	inDir(t, "d/2.gif", "d/10.gif", "d/1.gif", "d/3.gif", "d/clip.mp4")
	if err := os.WriteFile("d/2.gif", []byte("no picture"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		spec   string
		opts   []Option
		want   string
		faults int
		total  int
	}{
		{"all", "d", nil, "d/1.gif 0, d/3.gif 2, d/10.gif 3", 1, 4},
		{"named", "n=d", nil, "n 0, n 2, n 3", 1, 4},
		{"every", "d", []Option{Every(2)}, "d/1.gif 0, d/3.gif 2", 0, 2},
		{"every without fault", "d", []Option{Every(3)}, "d/1.gif 0, d/10.gif 3", 0, 2},
		{"max", "d", []Option{MaxFrames(2)}, "d/1.gif 0, d/3.gif 2", 1, 2},
		{"glob", "d/1*", nil, "d/1.gif 0, d/10.gif 1", 0, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var notes bytes.Buffer
			s := mustOpen(t, tt.spec, append(tt.opts, Logger(slog.New(slog.NewTextHandler(&notes, nil))))...)
			var got collector
			if err := s.Run(t.Context(), &got); err != nil {
				t.Fatal(err)
			}
			var list []string
			for _, f := range got.frames {
				list = append(list, fmt.Sprintf("%s %d", f.Source, f.Seq))
			}
			if d := cmp.Diff(tt.want, strings.Join(list, ", ")); d != "" {
				t.Error(d)
			}
			if len(got.faults) != tt.faults || s.(Counter).Total() != tt.total {
				t.Errorf("faults %v, total %d", got.faults, s.(Counter).Total())
			}
			for _, err := range got.faults {
				if !strings.Contains(err.Error(), "d/2.gif") {
					t.Errorf("fault %v", err)
				}
			}
			if strings.HasSuffix(tt.spec, "d") && !strings.Contains(notes.String(), "clip d/clip.mp4 is skipped") {
				t.Errorf("no note about the clip: %s", &notes)
			}
		})
	}
}

func TestOnePicture(t *testing.T) {
	inDir(t, "good.gif", "bad.jpg")
	var got collector
	if err := mustOpen(t, "n=good.gif").Run(t.Context(), &got); err != nil || len(got.frames) != 1 || got.frames[0].Source != "n" {
		t.Errorf("%v, %v", got.frames, err)
	}
	if err := os.WriteFile("bad.jpg", []byte("\xff\xd8\xff"), 0o600); err != nil {
		t.Fatal(err)
	}
	got = collector{}
	err := mustOpen(t, "bad.jpg").Run(t.Context(), &got)
	if err == nil || !strings.Contains(err.Error(), "bad.jpg") || len(got.faults) != 0 {
		t.Errorf("bad picture: %v, faults %v", err, got.faults)
	}
}

func TestFolderStops(t *testing.T) {
	names := make([]string, 50)
	for i := range names {
		names[i] = fmt.Sprintf("d/%d.gif", i)
	}
	inDir(t, names...)
	s := mustOpen(t, "d")
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		got := collector{see: func(*Frame) error { cancel(); return nil }}
		if err := s.Run(ctx, &got); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("sink fails", func(t *testing.T) {
		full := errors.New("full")
		got := collector{see: func(*Frame) error { return full }}
		if err := s.Run(t.Context(), &got); err != full || len(got.frames) != 1 {
			t.Errorf("%d frames, %v", len(got.frames), err)
		}
	})
}

func TestRaw(t *testing.T) {
	tests := []struct {
		file, query string
		format      frame.Format
	}{
		{"person-320x240-3f-nv12.raw", "?format=nv12&size=320x240&fps=25", frame.NV12},
		{"person-320x240-3f-yuyv422.raw", "?format=yuyv&size=320x240", frame.YUYV},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			path := asset(t, "videos", tt.file)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s := mustOpen(t, "raw:"+path+tt.query)
			n := tt.format.Bytes(320, 240)
			got := collector{see: func(f *Frame) error {
				first := f.Planes[0].Data
				if !bytes.Equal(first, data[int(f.Seq)*n:][:len(first)]) {
					t.Errorf("frame %d differs", f.Seq)
				}
				return nil
			}}
			if err := s.Run(t.Context(), &got); err != nil {
				t.Fatal(err)
			}
			if len(got.frames) != 3 || s.(Counter).Total() != 3 {
				t.Errorf("%d frames, total %d", len(got.frames), s.(Counter).Total())
			}
			f := got.frames[2]
			if f.Format != tt.format || f.Width != 320 || f.Height != 240 || !f.HasPTS || f.Colour != (frame.Colour{}) {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestRawShort(t *testing.T) {
	inDir(t, "f.raw")
	if err := os.WriteFile("f.raw", make([]byte, 3*8+5), 0o600); err != nil {
		t.Fatal(err)
	}
	var got collector
	err := mustOpen(t, "raw:f.raw?format=gray&size=4x2&fps=1000").Run(t.Context(), &got)
	want := "raw f.raw: the file ends within frame 3: 5 of 8 bytes; is it really gray of 4x2?"
	if fmt.Sprint(err) != want || len(got.frames) != 3 {
		t.Errorf("%d frames, %v", len(got.frames), err)
	}
	if at := got.frames[2].PTS; at != 2*time.Millisecond {
		t.Errorf("frame 2 at %v", at)
	}
}

func TestRawAllocations(t *testing.T) {
	inDir(t, "f.raw")
	if err := os.WriteFile("f.raw", make([]byte, 1000*8), 0o600); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, "raw:f.raw?format=gray&size=4x2", Buffers(1))
	n := testing.AllocsPerRun(3, func() {
		if err := s.Run(t.Context(), drain{}); err != nil {
			t.Fatal(err)
		}
	})
	if n > 100 {
		t.Errorf("%.0f allocations for 1000 frames", n)
	}
}

// drain releases everything.
type drain struct{}

func (drain) Frame(_ context.Context, f *Frame) error { f.Release(); return nil }
func (drain) Reclaim() bool                           { return false }

func (drain) State(State, error) {}

func (drain) Fault(error) {}

func TestPoolBlocks(t *testing.T) {
	var held []*Frame
	ctx, cancel := context.WithCancel(t.Context())
	s := mustOpen(t, "test:pattern?size=8x8&frames=100", Buffers(3))
	sink := sinkFunc(func(f *Frame) error {
		if held = append(held, f); len(held) == 3 {
			cancel() // nothing is released: the source has to wait
		}
		return nil
	})
	if err := s.Run(ctx, sink); !errors.Is(err, context.Canceled) || len(held) != 3 {
		t.Errorf("%d frames, %v", len(held), err)
	}
}

type sinkFunc func(*Frame) error

func (s sinkFunc) Frame(_ context.Context, f *Frame) error { return s(f) }
func (sinkFunc) Reclaim() bool                             { return false }

func (sinkFunc) State(State, error) {}

func (sinkFunc) Fault(error) {}

func TestPattern(t *testing.T) {
	const w, h = 64, 32
	pixel := func(f *Frame, x, y int) [3]byte { return [3]byte(f.Planes[0].Data[y*w*3+x*3:]) }
	got := collector{see: func(f *Frame) error {
		if n := readCounter(f); n != f.Seq {
			t.Errorf("frame %d counts %d", f.Seq, n)
		}
		for i := range bars {
			if p := pixel(f, i*8+4, 2); p != bars[i] {
				t.Errorf("bar %d: %v", i, p)
			}
		}
		left := int(f.Seq) * 4 % (w - 4 + 1)
		if pixel(f, left, 16) != orange || pixel(f, left+3, 17) != orange || left > 0 && pixel(f, left-1, 16) == orange {
			t.Errorf("frame %d: no block at %d", f.Seq, left)
		}
		return nil
	}}
	s := mustOpen(t, "test:pattern?size=64x32&fps=25&frames=40")
	if err := s.Run(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.frames) != 40 || s.Live() || s.(Counter).Total() != 40 {
		t.Fatalf("%d frames, live %v", len(got.frames), s.Live())
	}
	if f := got.frames[39]; f.PTS != 1560*time.Millisecond || !f.HasPTS || !f.Captured.IsZero() || f.Format != frame.RGB24 {
		t.Errorf("%+v", f)
	}
	for _, size := range []string{"1x1", "2x300", "300x2"} { // sizes at which parts of the picture vanish
		if err := mustOpen(t, "test:pattern?frames=50&size="+size).Run(t.Context(), drain{}); err != nil {
			t.Error(err)
		}
	}
}

// readCounter reads the number that the pattern shows.
func readCounter(f *Frame) (n uint64) {
	last := f.Planes[0].Data[(f.Height-1)*f.Planes[0].Stride:]
	for i := range 32 {
		n = n<<1 | uint64(last[(i*f.Width+31)/32*3]&1)
	}
	return n
}

// TestLive runs on a false clock: a live source keeps its rate, and says when frames came.
func TestLive(t *testing.T) {
	inDir(t, "f.raw")
	if err := os.WriteFile("f.raw", make([]byte, 20*8), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, spec string
		opts       []Option
	}{
		{"pattern without end", "test:pattern?size=8x8&fps=10", []Option{MaxFrames(5)}},
		{"pattern in real time", "test:pattern?size=8x8&fps=10&frames=5", []Option{Realtime()}},
		{"raw in real time", "raw:f.raw?format=gray&size=4x2&fps=10", []Option{Realtime(), MaxFrames(5)}},
		{"thinned out", "test:pattern?size=8x8&fps=40", []Option{MaxFrames(5), Every(4)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := mustOpen(t, tt.spec, tt.opts...)
				var got collector
				start := time.Now()
				if err := s.Run(t.Context(), &got); err != nil {
					t.Fatal(err)
				}
				if !s.Live() || len(got.frames) != 5 {
					t.Fatalf("%d frames, live %v", len(got.frames), s.Live())
				}
				for i, f := range got.frames {
					if at := f.Captured.Sub(start); at != time.Duration(i)*100*time.Millisecond || f.CapturedBy != frame.ByArrival {
						t.Errorf("frame %d at %v, %v", i, at, f.CapturedBy)
					}
				}
			})
		})
	}
}

func TestLiveCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var got collector
		err := mustOpen(t, "test:pattern?size=8x8&fps=0.5").Run(ctx, &got)
		if !errors.Is(err, context.DeadlineExceeded) || len(got.frames) < 29 || len(got.frames) > 31 {
			t.Errorf("%d frames, %v", len(got.frames), err)
		}
	})
}

// A step beyond the end of a file gives its first frame, and one of years does not keep a live source from ending.
func TestEveryBeyondTheEnd(t *testing.T) {
	inDir(t, "d/1.gif", "d/2.gif", "f.raw")
	if err := os.WriteFile("f.raw", make([]byte, 3*8), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{"d", "raw:f.raw?format=gray&size=4x2", "test:pattern?size=8x8"} {
		t.Run(spec, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				s := mustOpen(t, spec, Every(math.MaxInt))
				var got collector
				err := s.Run(ctx, &got)
				if s.Live() != errors.Is(err, context.DeadlineExceeded) || !s.Live() && err != nil {
					t.Error(err)
				}
				total := 1
				if s.Live() {
					total = 0
				}
				if len(got.frames) != 1 || s.(Counter).Total() != total {
					t.Errorf("%d frames, total %d", len(got.frames), s.(Counter).Total())
				}
			})
		})
	}
}

func TestTimeOf(t *testing.T) {
	if got := timeOf(1<<63, 0.001); got <= 0 {
		t.Errorf("overflow: %v", got)
	}
	if got := timeOf(30, 30000.0/1001); got != 1001*time.Millisecond {
		t.Errorf("NTSC: %v", got)
	}
}

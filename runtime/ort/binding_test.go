package ort

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// bound binds noise as input and outputs of our own, for a model with fixed shapes.
func bound(t testing.TB, s *Session) *Binding {
	t.Helper()
	in := inputs(t, s, 1, 640)
	for _, x := range in {
		noise(x)
	}
	var out []*tensor.Tensor
	for _, info := range s.Outputs() {
		out = append(out, newTensor(t, info.Name, info.Type, info.Shape...))
	}
	return bind(t, s, in, out...)
}

func TestRunAllocatesNothing(t *testing.T) {
	for _, c := range []struct {
		name, model string
		bind        func(testing.TB, *Session) *Binding
	}{
		{"fixed outputs", "yolox_nano_person_192", bound},
		{"the library's outputs", "yolox_nano_end2end", func(t testing.TB, s *Session) *Binding {
			return bind(t, s, inputs(t, s, 1, 640))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := c.bind(t, open(t, c.model, Options{Threads: 1}))
			run(t, b)
			if n := testing.AllocsPerRun(20, func() {
				if err := b.Run(); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%v allocations a run", n)
			}
		})
	}
}

// Outputs that are bound get the same values as those that the library allocates,
// also in float16, and also over Go memory.
func TestBoundOutputs(t *testing.T) {
	for _, name := range []string{"yolox_nano_person_192", "yolov5n_fp16_io_640", "nanodet_m_416", "yolox_nano_u8_nhwc"} {
		t.Run(name, func(t *testing.T) {
			s := open(t, name, Options{Threads: 1})
			b := bound(t, s)
			want := digest(run(t, b))
			if got := digest(run(t, bind(t, s, b.in))); got != want {
				t.Error("outputs allocated by the library differ")
			}
			var in, out []*tensor.Tensor
			for _, x := range b.in {
				y, err := tensor.New(x.Name, x.Type, x.Shape...)
				if err != nil {
					t.Fatal(err)
				}
				copy(y.Data, x.Data)
				in = append(in, y)
			}
			for _, x := range b.Outputs() {
				y, err := tensor.New(x.Name, x.Type, x.Shape...)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, y)
			}
			if got := digest(run(t, bind(t, s, in, out...))); got != want {
				t.Error("outputs in Go memory differ")
			}
		})
	}
}

// In-graph NMS gives a tensor with no elements on a blank picture.
func TestNoDetections(t *testing.T) {
	s := open(t, "yolox_nano_end2end", Options{Threads: 1})
	b := bind(t, s, inputs(t, s, 1, 640))
	for range 2 {
		out := run(t, b)[0]
		if !slices.Equal(out.Shape, []int{0, 6}) || len(out.Data) != 0 {
			t.Errorf("output %v with %d bytes", out.Shape, len(out.Data))
		}
	}
}

// Each sample of a batch gets what it gets alone.
func TestBatches(t *testing.T) {
	s := open(t, "yolox_nano_dynbatch", Options{Threads: 2})
	if s.Inputs()[0].Shape[0] != -1 {
		t.Fatalf("input %v", s.Inputs()[0])
	}
	one := inputs(t, s, 1, 416)
	noise(one[0])
	want := slices.Clone(run(t, bind(t, s, one))[0].Data)
	for n := 1; n <= 4; n++ {
		in := inputs(t, s, n, 416)
		for i := range n {
			copy(in[0].Data[i*len(one[0].Data):], one[0].Data)
		}
		out := newTensor(t, "output", tensor.Float32, n, 3549, 85)
		run(t, bind(t, s, in, out))
		for i := range n {
			if got := out.Data[i*len(want) : (i+1)*len(want)]; !slices.Equal(got, want) {
				t.Errorf("batch %d: sample %d differs", n, i)
			}
		}
	}
}

// Two bindings of one session run at the same time.
func TestConcurrentRuns(t *testing.T) {
	s := open(t, "yolox_nano_person_192", Options{Threads: 1})
	want := digest(run(t, bound(t, s)))
	var wg sync.WaitGroup
	for range 2 {
		b := bound(t, s)
		wg.Go(func() {
			for range 50 {
				if err := b.Run(); err != nil {
					t.Error(err)
					return
				}
				if digest(b.Outputs()) != want {
					t.Error("outputs differ")
					return
				}
			}
		})
	}
	wg.Wait()
}

// A session shared by bindings of different batches, at the same time.
func TestConcurrentBatches(t *testing.T) {
	s := open(t, "yolox_nano_dynbatch", Options{Threads: 1})
	var wg sync.WaitGroup
	for n := 1; n <= 2; n++ {
		in := inputs(t, s, n, 416)
		noise(in[0])
		b := bind(t, s, in)
		want := digest(run(t, b))
		wg.Go(func() {
			for range 5 {
				if err := b.Run(); err != nil || digest(b.Outputs()) != want {
					t.Errorf("batch %d: %v or other values", n, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestTerminate(t *testing.T) {
	s := open(t, "yolox_nano_416", Options{Threads: 1})
	b := bound(t, s)
	run(t, b)
	started, ended := make(chan struct{}), make(chan error)
	go func() {
		close(started)
		for {
			if err := b.Run(); err != nil {
				ended <- err
				return
			}
		}
	}()
	<-started
	b.Terminate()
	err := <-ended
	if !errors.Is(err, ErrTerminated) || !errors.Is(err, ErrRun) {
		t.Errorf("the run ended with %v", err)
	}
	if err := b.Run(); !errors.Is(err, ErrTerminated) {
		t.Errorf("the next run: %v", err)
	}
	run(t, bound(t, s)) // others go on
}

func TestLifeCycle(t *testing.T) {
	l := library(t)
	s, err := l.OpenFile(model(t, "yolox_nano_person_192"), Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	first, second := bound(t, s), bound(t, s)
	for range 2 {
		if err := first.Close(); err != nil {
			t.Error(err)
		}
	}
	first.Terminate()
	if err := first.Run(); !errors.Is(err, ErrRun) {
		t.Errorf("run after close: %v", err)
	}
	run(t, second)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := second.Run(); !errors.Is(err, ErrRun) {
		t.Errorf("run after the session's close: %v", err)
	}
	if _, err := s.Bind(second.in, nil); !errors.Is(err, ErrRun) {
		t.Errorf("bind after close: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// Close waits for a run under way in another goroutine.
func TestCloseDuringRun(t *testing.T) {
	s := open(t, "yolox_nano_person_192", Options{Threads: 1})
	b := bound(t, s)
	started, ended := make(chan struct{}), make(chan error)
	go func() {
		close(started)
		for {
			if err := b.Run(); err != nil {
				ended <- err
				return
			}
		}
	}()
	<-started
	s.Close()
	if err := <-ended; !errors.Is(err, ErrRun) {
		t.Error(err)
	}
}

func TestBindRefuses(t *testing.T) {
	s := open(t, "yolox_nano_person_192", Options{Threads: 1})
	in := inputs(t, s, 1, 640)
	f32 := func(shape ...int) *tensor.Tensor { return newTensor(t, "x", tensor.Float32, shape...) }
	small := &tensor.Tensor{Name: "x", Type: tensor.Float32, Shape: in[0].Shape, Data: make([]byte, 8)}
	for _, c := range []struct {
		name    string
		in, out []*tensor.Tensor
		want    string
	}{
		{"no input", nil, nil, "bind 0 inputs and 0 outputs: the model has 1 and 1"},
		{"nil input", []*tensor.Tensor{nil}, nil, "input images is missing"},
		{"too many outputs", in, []*tensor.Tensor{nil, nil}, "the model has 1 and 1"},
		{"input shape", []*tensor.Tensor{f32(1, 3, 96, 192)}, nil, "bind float32[1 3 96 192]: the model wants images float32[1 3 192 192]"},
		{"input rank", []*tensor.Tensor{f32(3, 192, 192)}, nil, "the model wants"},
		{"input type", []*tensor.Tensor{newTensor(t, "x", tensor.Uint8, 1, 3, 192, 192)}, nil, "bind uint8[1 3 192 192]"},
		{"input too small", []*tensor.Tensor{small}, nil, "does not fit its 8 bytes"},
		{"output shape", in, []*tensor.Tensor{f32(1, 756, 7)}, "the model wants output float32[1 756 6]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := s.Bind(c.in, c.out)
			if b != nil || !errors.Is(err, ErrRun) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// A model that says it is dynamic where it is not fails in Run, with one line.
func TestRunFails(t *testing.T) {
	s := open(t, "yolov5n_fp16_false_dynamic", Options{Threads: 1})
	b := bind(t, s, inputs(t, s, 1, 320))
	err := b.Run()
	if !errors.Is(err, ErrRun) || strings.Contains(err.Error(), "\n") || len(err.Error()) > maxMessage+100 {
		t.Errorf("got %v", err)
	}
	if out := b.Outputs()[0]; out.Data != nil || len(out.Shape) != 0 {
		t.Errorf("a failed run left %v", out.Shape)
	}
	if err := b.Run(); !errors.Is(err, ErrRun) {
		t.Errorf("the second run: %v", err)
	}
}

// Models open from bytes too; external data cannot be found then, not even in the
// working directory.
func TestOpenBytes(t *testing.T) {
	l := library(t)
	read := func(name string) []byte {
		data, err := os.ReadFile(model(t, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	s, err := l.Open("person", read("yolox_nano_person_192"), Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	run(t, bound(t, s))

	external := read("yolox_nano_external")
	t.Chdir(filepath.Dir(model(t, "yolox_nano_external")))
	if s, err := l.Open("external", external, Options{}); !errors.Is(err, ErrModel) {
		if s != nil {
			s.Close()
		}
		t.Errorf("external data without a folder: %v", err)
	} else {
		t.Log(err)
	}
}

// residentKiB returns the resident memory of this process.
func residentKiB(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc/self/statm")
	}
	var size, resident int
	if _, err := fmt.Sscan(string(data), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * os.Getpagesize() >> 10
}

func TestMemoryIsFlat(t *testing.T) {
	b := bound(t, open(t, "yolox_nano_person_192", Options{Threads: 2}))
	for range 20 {
		run(t, b)
	}
	before := residentKiB(t)
	for range 200 {
		run(t, b)
	}
	// One page a run would be 800 KiB; the collector's own moves are smaller.
	if grown := residentKiB(t) - before; grown > 700 {
		t.Errorf("resident memory grew by %d KiB in 200 runs", grown)
	}
}

func TestNewTensor(t *testing.T) {
	for _, c := range []struct {
		name  string
		typ   tensor.Type
		shape []int
		bytes int // -1: refused
	}{
		{"picture", tensor.Float32, []int{1, 3, 4, 4}, 192},
		{"scalar", tensor.Int64, nil, 8},
		{"empty", tensor.Float32, []int{0, 6}, 0},
		{"int4", tensor.Int4, []int{3}, 2},
		{"negative", tensor.Float32, []int{-1}, -1},
		{"strings", tensor.String, []int{1}, -1},
		{"overflow", tensor.Float32, []int{1 << 40, 1 << 40}, -1},
		{"more than there is", tensor.Uint8, []int{1 << 55}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, err := NewTensor("x", c.typ, c.shape...)
			if c.bytes < 0 {
				if err == nil {
					t.Error("was made")
				}
				return
			}
			if err != nil || len(x.Data) != c.bytes || x.Check() != nil {
				t.Fatalf("%v, %v", x, err)
			}
			for range 2 {
				if err := FreeTensor(x); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// The floor that the pipeline's throughput is compared with: one session on a
// prepared tensor, nothing else.
func BenchmarkRun(b *testing.B) {
	for _, name := range []string{"yolox_nano_416", "yolox_nano_person_192"} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", name, threads), func(b *testing.B) {
				c := bound(b, open(b, name, Options{Threads: threads}))
				run(b, c)
				b.ReportAllocs()
				for b.Loop() {
					if err := c.Run(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	l, path := library(b), model(b, "yolox_nano_416")
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			for b.Loop() {
				s, err := l.OpenFile(path, Options{Threads: threads})
				if err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
		})
	}
}

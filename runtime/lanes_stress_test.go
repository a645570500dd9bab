package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/internal/testenv"
	eyas "github.com/eyas-edge/eyas/runtime"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// twoModels are a fixed-shape model, and one whose requests depend on the picture.
func twoModels(t *testing.T, check bool) eyas.Config {
	t.Helper()
	dir := filepath.Join(testenv.Assets(t), "models")
	return eyas.Config{ORT: testenv.Library(t), Threads: 1, CheckArena: check, Models: map[string]eyas.ModelConfig{
		"fixed":    {Path: filepath.Join(dir, "yolox_nano_person_192.onnx"), Labels: personLabels(t)},
		"changing": {Path: filepath.Join(dir, "yolox_nano_end2end.onnx")},
	}}
}

func personLabels(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "person.txt")
	if err := os.WriteFile(path, []byte("person\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// found is what a model finds in a picture, as text. Score and box are exact.
func found(model *eyas.Model, f *camera.Frame) (string, error) {
	res, err := model.Detect(context.Background(), f)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(res.Detections), nil
}

// Two goroutines that look at pictures with both models while a stream runs with both: everyone gets what it gets
// alone.
func TestTwoModelsAtOnce(t *testing.T) {
	for _, check := range []bool{false, true} {
		t.Run(fmt.Sprintf("check %v", check), func(t *testing.T) {
			rt := open(t, twoModels(t, check))
			pictures := append(crowded(t, 4), grey(t, 0))
			want := map[string]string{}
			for _, m := range rt.Models() {
				for i, f := range pictures {
					text, err := found(m, f)
					if err != nil {
						t.Fatal(err)
					}
					want[fmt.Sprint(m.Key(), i)] = text
				}
			}
			streamed := func() string {
				var all strings.Builder
				for res, err := range rt.Stream(bounded(t), folder(t)) {
					if err != nil {
						t.Error(err)
						continue
					}
					fmt.Fprintln(&all, res.Source, res.Model, res.Detections)
				}
				return all.String()
			}
			alone := streamed()
			var wg sync.WaitGroup
			for worker := range 2 {
				wg.Go(func() {
					for n := range 24 {
						m, i := rt.Models()[(n+worker)%2], (n/2+worker)%len(pictures)
						got, err := found(m, pictures[i])
						if key := fmt.Sprint(m.Key(), i); err != nil || got != want[key] {
							t.Errorf("%s beside others: %s, %v, alone %s", key, got, err, want[key])
						}
					}
				})
			}
			wg.Go(func() {
				for range 8 {
					if u := rt.Memory(); len(u.Regions) == 0 || u.Arena.Count == 0 {
						t.Errorf("memory while it is used: %+v", u)
					}
				}
			})
			if got := streamed(); got != alone {
				t.Errorf("a stream beside others gives\n%s\nand alone\n%s", got, alone)
			}
			wg.Wait()
		})
	}
}

// folder is a source of photos.
func folder(t *testing.T) camera.Source {
	t.Helper()
	return openSource(t, filepath.Join(testenv.Assets(t), "images", "coco", "*1.jpg"))
}

// work looks at pictures, in two goroutines and a stream, until each meets an error; started is closed when all are at it.
func work(t *testing.T, rt *eyas.Runtime) (started <-chan struct{}, ended func() []error) {
	var begun, done sync.WaitGroup
	begun.Add(3)
	errs := make([]error, 3)
	for i, m := range rt.Models() {
		f := grey(t, 200)
		done.Go(func() {
			for n := 0; errs[i] == nil; n++ {
				if _, errs[i] = found(m, f); n == 0 {
					begun.Done()
				}
			}
		})
	}
	source := openSource(t, "test:pattern?size=320x240&frames=1000000")
	done.Go(func() {
		first := true
		for _, err := range rt.Stream(context.Background(), source) {
			if first {
				begun.Done()
				first = false
			}
			if err != nil {
				errs[2] = err
				return
			}
		}
	})
	all := make(chan struct{})
	go func() {
		begun.Wait()
		close(all)
	}()
	return all, func() []error {
		done.Wait()
		return errs
	}
}

// Abort ends everything that is under way with an error that says so, and what comes after it; the runtime can be
// closed, also twice.
func TestAbortDuringWork(t *testing.T) {
	held := hold(t)
	rt := open(t, twoModels(t, false))
	started, ended := work(t, rt)
	<-started
	rt.Abort()
	for i, err := range ended() {
		if !errors.Is(err, ort.ErrTerminated) {
			t.Errorf("worker %d ended with %v", i, err)
		}
	}
	if _, err := found(rt.Model("fixed"), grey(t, 0)); !errors.Is(err, ort.ErrTerminated) {
		t.Errorf("after Abort: %v", err)
	}
	rt.Close()
	rt.Close()
	rt.Abort()
	if u := rt.Memory(); len(u.Regions) > 0 {
		t.Errorf("memory after Close: %+v", u)
	}
	held.same(t)
}

// Close waits for calls under way, whoever calls it and how often; those that come later are refused.
func TestCloseDuringWork(t *testing.T) {
	held := hold(t)
	rt := open(t, twoModels(t, false))
	f := grey(t, 200)
	var begun, done sync.WaitGroup
	begun.Add(2)
	for _, m := range rt.Models() {
		done.Go(func() {
			for n := 0; ; n++ {
				_, err := found(m, f)
				if n == 0 {
					begun.Done()
				}
				if errors.Is(err, eyas.ErrClosed) {
					return
				}
				if err != nil {
					t.Errorf("%s, picture %d: %v", m.Key(), n, err)
					return
				}
			}
		})
	}
	begun.Wait()
	for range 2 {
		done.Go(func() { rt.Close() })
	}
	rt.Close()
	done.Wait()
	held.same(t)
}

// cancels is done once it was looked at so many times: a moment that does not depend on time.
type cancels struct {
	context.Context
	left atomic.Int64
	once sync.Once
	done chan struct{}
}

func cancelAfter(looks int64) *cancels {
	c := &cancels{Context: context.Background(), done: make(chan struct{})}
	c.left.Store(looks)
	return c
}

func (c *cancels) look() bool {
	if c.left.Add(-1) >= 0 {
		return false
	}
	c.once.Do(func() { close(c.done) })
	return true
}

// Done implements context.Context.
func (c *cancels) Done() <-chan struct{} {
	c.look()
	return c.done
}

// Err implements context.Context.
func (c *cancels) Err() error {
	if c.look() {
		return context.Canceled
	}
	return nil
}

// An Open that is called off, wherever it is, says so and leaves nothing behind.
func TestOpenIsCalledOff(t *testing.T) {
	for _, c := range []struct {
		name  string
		fresh bool // nothing is in the cache
	}{{"first start", true}, {"warm", false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("EYAS_HOME", t.TempDir())
			cfg := twoModels(t, false)
			open(t, cfg).Close()
			held := hold(t)
			off := 0
			for looks := int64(0); ; looks++ {
				if c.fresh {
					t.Setenv("EYAS_HOME", t.TempDir())
				}
				rt, err := eyas.Open(cancelAfter(looks), cfg)
				if err == nil {
					rt.Close()
					break
				}
				if off++; !errors.Is(err, context.Canceled) {
					t.Errorf("called off at look %d: %v", looks, err)
				}
				held.same(t)
			}
			held.same(t)
			t.Logf("called off at %d moments", off)
			if off < 5 {
				t.Errorf("called off at %d moments only", off)
			}
		})
	}
}

// holdings are what a process has that a runtime takes, and gives back with Close.
type holdings struct {
	locked string // memory
	shared int    // areas of shared memory without a name
	files  int    // open ones
	own    int64  // bytes of our allocator
}

// hold returns what the process has now.
func hold(t *testing.T) holdings {
	t.Helper()
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	_, locked, _ := strings.Cut(read("/proc/self/status"), "VmLck:")
	locked, _, _ = strings.Cut(locked, "\n")
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return holdings{strings.TrimSpace(locked), strings.Count(read("/proc/self/maps"), "/dev/zero (deleted)"), len(files), ort.Totals().HeapLive}
}

// same checks that the process has what it had, and no goroutine more.
func (h holdings) same(t *testing.T) {
	t.Helper()
	if now := hold(t); now != h {
		t.Errorf("the process has %+v, it had %+v", now, h)
	}
	if err := goleak.Find(); err != nil {
		t.Error(err)
	}
}

package ort

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/internal/machine"
	"github.com/eyas-edge/eyas/internal/tensor"
)

// Sessions that come and go, a hot reload, leave a process no larger than the first few
// did. Each model has a process of its own, so that nothing else moves its memory: this test's
// binary, which then does no more than TestCyclesChild.
func TestCyclesDoNotGrow(t *testing.T) {
	if testing.Short() {
		t.Skip("many sessions")
	}
	for _, c := range []struct {
		model  string
		cycles int
	}{
		{"yolox_nano_person_192", 200},
		{"yolov8n_qdq_op11_640", 40},
	} {
		t.Run(c.model, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model.ort")
			if err := library(t).SaveORT(path, model(t, c.model), own); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCyclesChild$", "-test.v")
			cmd.Env = append(os.Environ(), cyclesEnv+"="+strconv.Itoa(c.cycles)+" "+path)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var tenth, last, done int64
			_, figures, _ := strings.Cut(string(out), cyclesEnv)
			if _, err := fmt.Sscan(figures, &tenth, &last, &done); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			t.Logf("%d KiB after 10 cycles, %d after %d", tenth>>10, last>>10, done)
			if last > tenth*6/5 {
				t.Errorf("memory grew from %d to %d bytes", tenth, last)
			}
		})
	}
}

// cyclesEnv holds, for the child, how many cycles of which file; it also marks its answer.
const cyclesEnv = "EYAS_TEST_CYCLES"

func TestCyclesChild(t *testing.T) {
	count, path, ok := strings.Cut(os.Getenv(cyclesEnv), " ")
	if !ok {
		t.Skip("for TestCyclesDoNotGrow")
	}
	cycles, err := strconv.Atoi(count)
	if err != nil {
		t.Fatal(err)
	}
	resident := func() uint64 {
		debug.FreeOSMemory() // Go's heap first grows to 4 MiB, whatever one does
		p := machine.ReadProcess("/")
		return p.RSSAnon + p.RSSFile + p.RSSShmem
	}
	var tenth uint64
	done := 0
	// A slow machine makes fewer cycles: what it does is compared with itself.
	for start := time.Now(); done < cycles && (done < 20 || time.Since(start) < 30*time.Second); done++ {
		cycle(t, path)
		if done == 9 {
			tenth = resident()
		}
	}
	if n := Totals().HeapLive; n != 0 {
		t.Errorf("%d bytes of our allocator are left", n)
	}
	fmt.Println(cyclesEnv, tenth, resident(), done)
}

// cycle is a session from its beginning to its end, as a hot reload has it.
func cycle(t testing.TB, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	w, err := ReadWeights(f, st.Size(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := library(t).OpenORT(path, w.Bytes(), Options{Threads: 2, OwnAllocator: true})
	if err != nil {
		t.Fatal(err)
	}
	in, err := NewTensor(s.Inputs()[0].Name, s.Inputs()[0].Type, s.Inputs()[0].Shape...)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Bind([]*tensor.Tensor{in}, nil)
	if err != nil {
		t.Fatal(err)
	}
	run(t, b) // from the heap
	sch := schedule(t, false, record(t, b))
	offsets, height := greedy(sch.Problem())
	a, err := NewArena(height, 2*sch.Spill(), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Replay(a, sch, offsets); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		run(t, b)
	}
	if err := errors.Join(b.Close(), s.Close(), a.Close(), w.Close(), FreeTensor(in)); err != nil {
		t.Fatal(err)
	}
}

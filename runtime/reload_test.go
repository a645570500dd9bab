package runtime_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/internal/machine"
	"github.com/eyas-edge/eyas/internal/testenv"
	eyas "github.com/eyas-edge/eyas/runtime"
	"github.com/eyas-edge/eyas/runtime/ort"
)

const (
	// reloadEnv, for the child, holds how many reloads of which models; it also marks its answer.
	reloadEnv = "EYAS_TEST_RELOADS"
	// reloadAllEnv takes all reloads, however slow the machine is.
	reloadAllEnv = "EYAS_TEST_ALL_RELOADS"

	reloads     = 200
	leastReload = 30
	reloadTime  = 15 * time.Second
)

// A runtime that is opened, used and closed again and again, as a hot reload does, leaves a process that is at most a
// fifth larger than after the tenth time. Each case has a process of its own, so that nothing else moves its memory.
// On a slow machine there are fewer than 200 reloads, unless EYAS_TEST_ALL_RELOADS=1 insists.
func TestReloadsDoNotGrow(t *testing.T) {
	if testing.Short() {
		t.Skip("many runtimes")
	}
	for _, c := range []struct {
		name   string
		models []string
	}{
		{"one model", []string{"yolox_nano_416"}},
		{"two models", []string{"yolox_nano_person_192", "yolox_nano_end2end"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			library := testenv.Library(t)
			testenv.Assets(t)
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestReloadsChild$", "-test.v")
			cmd.Env = append(os.Environ(), "EYAS_HOME="+t.TempDir(), "EYAS_ORT_LIB="+library,
				reloadEnv+"="+strings.Join(c.models, " "))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var tenth, last, done int64
			_, figures, _ := strings.Cut(string(out), reloadEnv)
			if _, err := fmt.Sscan(figures, &tenth, &last, &done); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			t.Logf("%d KiB after 10 reloads, %d (%.3f) after %d", tenth>>10, last>>10, float64(last)/float64(tenth), done)
			if last > tenth*6/5 {
				t.Errorf("memory grew from %d to %d bytes in %d reloads", tenth, last, done)
			}
		})
	}
}

func TestReloadsChild(t *testing.T) {
	names := strings.Fields(os.Getenv(reloadEnv))
	if len(names) == 0 {
		t.Skip("for TestReloadsDoNotGrow")
	}
	all, _ := strconv.ParseBool(os.Getenv(reloadAllEnv))
	var tenth uint64
	done := 0
	for start := time.Now(); done < reloads && (all || done < leastReload || time.Since(start) < reloadTime); done++ {
		reload(t, names)
		if done == 9 {
			tenth = resident()
		}
	}
	if n := ort.Totals().HeapLive; n != 0 {
		t.Errorf("%d bytes of our allocator are left", n)
	}
	fmt.Println(reloadEnv, tenth, resident(), done)
}

// resident returns the process's memory in bytes, without what Go's heap has free: FreeOSMemory leaves 3 MB of it every now
// and then.
func resident() uint64 {
	debug.FreeOSMemory()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	p := machine.ReadProcess("/")
	return p.RSSAnon + p.RSSShmem - (m.HeapIdle - m.HeapReleased)
}

// reload is the life of a runtime: each of its models looks at two pictures and runs on its input.
func reload(t *testing.T, names []string) {
	t.Helper()
	cfg := eyas.Config{ORT: testenv.Library(t), Models: map[string]eyas.ModelConfig{}}
	for _, name := range names {
		cfg.Models[name] = eyas.ModelConfig{Path: filepath.Join(testenv.Assets(t), "models", name+".onnx")}
	}
	rt, err := eyas.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	for _, m := range rt.Models() {
		for _, level := range []byte{0, 200} {
			if _, err := m.Detect(context.Background(), grey(t, level)); err != nil {
				t.Fatal(err)
			}
		}
		r, err := m.Runner(context.Background(), 1)
		if err != nil {
			t.Fatal(err)
		}
		err = r.Run()
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
}

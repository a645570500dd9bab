package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is far above what anything here takes: it only keeps the tests from hanging.
const patience = 90 * time.Second

// unhurried returns the arguments of a run with the smallest model that drops no frame for being late, and so measures nothing
// before it starts.
func unhurried(t testing.TB, args ...string) []string {
	return fast(t, append([]string{"--slo", "none"}, args...)...)
}

// tail keeps what a process writes, as lines that a test waits for.
type tail struct {
	more chan struct{} // holds a token when there is something new

	mu   sync.Mutex
	text strings.Builder
	next int // the byte that until goes on at
}

func newTail() *tail { return &tail{more: make(chan struct{}, 1)} }

func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// line returns the next whole line, false if there is none yet.
func (l *tail) line() (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line, _, ok := strings.Cut(l.text.String()[l.next:], "\n")
	if ok {
		l.next += len(line) + 1
	}
	return line, ok
}

// followed is eyas in a process of its own, whose words a test waits for while it runs.
type followed struct {
	*exec.Cmd
	t         *testing.T
	out, errs *tail
}

// follow starts eyas, which ends with the test at the latest.
func follow(t *testing.T, args ...string) *followed {
	t.Helper()
	return followCommand(t, command(args...))
}

func followCommand(t *testing.T, c *exec.Cmd) *followed {
	t.Helper()
	f := &followed{Cmd: c, t: t, out: newTail(), errs: newTail()}
	if f.Stdout = f.out; f.Stderr == nil {
		f.Stderr = f.errs
	}
	if err := f.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if f.ProcessState == nil {
			_ = f.Process.Kill()
			_ = f.Wait()
		}
		if t.Failed() {
			t.Logf("standard error: %s", f.errs)
		}
	})
	return f
}

// until waits for a line on out or errs for which ok says true, and returns it. Each line is looked at once.
func (f *followed) until(on *tail, what string, ok func(line string) bool) string {
	f.t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		for line, more := on.line(); more; line, more = on.line() {
			if ok(line) {
				return line
			}
		}
		select {
		case <-on.more:
		case <-late.C:
			text := on.String()
			f.t.Fatalf("no %s within %v; the last words are %q", what, patience, text[max(0, len(text)-2000):])
		}
	}
}

// says waits for a line of the results or events that has all texts in it.
func (f *followed) says(texts ...string) string {
	f.t.Helper()
	return f.until(f.out, strings.Join(texts, " "), func(line string) bool {
		for _, text := range texts {
			if !strings.Contains(line, text) {
				return false
			}
		}
		return true
	})
}

// results waits for n results of a source.
func (f *followed) results(source string, n int) {
	f.t.Helper()
	for range n {
		f.says(`{"source":"` + source + `"`)
	}
}

// turns waits until a source says what it does now.
func (f *followed) turns(source, state string, texts ...string) string {
	f.t.Helper()
	return f.says(append([]string{`{"event":"source"`, `"source":"` + source + `","state":"` + state + `"`}, texts...)...)
}

// children returns the processes that it has started and that still run.
func (f *followed) children() (pids []string) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", f.Process.Pid))
	for _, file := range tasks {
		some, _ := os.ReadFile(file)
		pids = append(pids, strings.Fields(string(some))...)
	}
	return pids
}

// end tells it to end, and returns the exit code once it has. No child may be left.
func (f *followed) end(s syscall.Signal) int {
	f.t.Helper()
	children := f.children()
	if err := f.Process.Signal(s); err != nil {
		f.t.Fatal(err)
	}
	code := ends(f.t, f.Cmd)
	for _, pid := range children {
		if _, err := os.Stat("/proc/" + pid); err == nil {
			f.t.Errorf("the child %s is left", pid)
		}
	}
	return code
}

// motionJPEG serves a camera over HTTP: picture returns each connection's picture i, nil for the connection's end.
func motionJPEG(t *testing.T, every time.Duration, picture func(i int) []byte) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary=eyas")
		pace := time.NewTicker(every)
		defer pace.Stop()
		for i := 0; ; i++ {
			jpg := picture(i)
			if jpg == nil {
				return
			}
			fmt.Fprintf(w, "--eyas\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n%s\r\n", len(jpg), jpg)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-pace.C:
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

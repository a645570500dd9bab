package child

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// asParent, when set, makes the test binary start a child, print its process id and wait:
// the parent that TestParentDies kills.
const asParent = "EYAS_TEST_CHILD_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(asParent) != "" {
		c, err := Start(context.Background(), Spec{Program: "sleep", Args: []string{"1000"}})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(c.Pid())
		_ = c.Wait()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func start(t *testing.T, s Spec) *Child {
	t.Helper()
	c, err := Start(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop() })
	return c
}

func sh(script string) Spec { return Spec{Program: "sh", Args: []string{"-c", script}, Stdout: true} }

// readLine waits until the child says that it is ready.
func readLine(t *testing.T, r io.Reader) string {
	t.Helper()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// waitGone waits for the end of a process that need not be our child.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000)
		if n == 1 {
			return
		}
		if err != nil && err != unix.EINTR {
			t.Fatal(err)
		}
	}
	t.Fatalf("process %d lives on", pid)
}

func TestPipesAndExit(t *testing.T) {
	tests := []struct {
		name, script, in, out, err string
	}{
		{"echo", "cat", "hello", "hello", ""},
		{"silent", "true", "", "", ""},
		{"status", "exit 3", "", "", "sh: exit status 3"},
		{"quoted", "echo one >&2; echo two >&2; exit 1", "", "", "sh: exit status 1: one; two"},
		{"signal", "kill -9 $$", "", "", "sh: signal: killed"},
		{"escape", `printf 'a\033[31mb\001\n' >&2; exit 1`, "", "", `sh: exit status 1: a\x1b[31mb\x01`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := sh(tt.script)
			s.Stdin = true
			c := start(t, s)
			_, _ = io.WriteString(c.Stdin(), tt.in) // a child that does not read may be gone
			c.Stdin().Close()
			out, err := io.ReadAll(c.Stdout())
			if err != nil || string(out) != tt.out {
				t.Errorf("stdout %q, %v, want %q", out, err, tt.out)
			}
			if got := fmt.Sprint(c.Wait()); got != tt.err && !(tt.err == "" && got == "<nil>") {
				t.Errorf("Wait: %s, want %s", got, tt.err)
			}
			if err := c.Stop(); err != nil {
				t.Errorf("Stop after the end: %v", err)
			}
		})
	}
}

func TestOutputOutlivesChild(t *testing.T) {
	c := start(t, sh("echo late"))
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := readLine(t, c.Stdout()); got != "late" {
		t.Errorf("got %q", got)
	}
}

func TestStartFails(t *testing.T) {
	if _, err := Start(context.Background(), Spec{Program: "eyas-no-such-program"}); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("missing program: %v", err)
	}
	s := sh("true")
	s.Dir, s.Stdin = "/no/such/directory", true
	if _, err := Start(context.Background(), s); err == nil || !strings.HasPrefix(err.Error(), "start sh: ") {
		t.Errorf("bad directory: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Start(ctx, sh("true")); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
}

func TestStop(t *testing.T) {
	tests := []struct{ name, script string }{
		{"obedient", "echo ready; exec sleep 1000"},
		{"ignores SIGTERM", "trap '' TERM; echo ready; while :; do sleep 1000; done"},
		{"blocked on a full pipe", "echo ready; exec yes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := sh(tt.script)
			s.Grace = 50 * time.Millisecond
			c := start(t, s)
			readLine(t, c.Stdout())
			var stops sync.WaitGroup
			for range 3 {
				stops.Go(func() {
					if err := c.Stop(); err != nil {
						t.Error(err)
					}
				})
			}
			stops.Wait()
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
			if err := c.Wait(); !errors.Is(err, ErrStopped) {
				t.Errorf("Wait: %v, want ErrStopped", err)
			}
			waitGone(t, c.Pid())
		})
	}
}

// TestStopSignal has a child that closes what it has on another signal.
func TestStopSignal(t *testing.T) {
	s := sh("trap 'echo closed >&2; exit' INT; echo ready; while :; do sleep 0.01; done")
	s.Signal, s.Grace = syscall.SIGINT, time.Minute
	c := start(t, s)
	readLine(t, c.Stdout())
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	if lines := c.LastErrors(); !slices.Contains(lines, "closed") {
		t.Errorf("the child said %q", lines)
	}
}

func TestContextStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	c, err := Start(ctx, sh("echo ready; exec sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	readLine(t, c.Stdout())
	cancel()
	if err := c.Wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait: %v", err)
	}
	if _, err := c.Stdout().Read(make([]byte, 1)); err == nil {
		t.Error("stdout is still open")
	}
}

func TestGrandchildren(t *testing.T) {
	t.Run("stopped with the child", func(t *testing.T) {
		c := start(t, sh("sleep 1000 & echo $!; wait"))
		pid, _ := strconv.Atoi(readLine(t, c.Stdout()))
		c.Stop()
		waitGone(t, pid)
	})
	t.Run("killed after the child's own end", func(t *testing.T) {
		c := start(t, sh("sleep 1000 & echo $!"))
		pid, _ := strconv.Atoi(readLine(t, c.Stdout()))
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
		waitGone(t, pid)
	})
	t.Run("that left the group and holds the pipes", func(t *testing.T) {
		if _, err := Look("setsid"); err != nil {
			t.Skip("setsid is not installed")
		}
		c := start(t, sh("setsid sh -c 'echo $$; exec sleep 1000' & sleep 1000"))
		pid, _ := strconv.Atoi(readLine(t, c.Stdout()))
		defer syscall.Kill(pid, syscall.SIGKILL)
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestStderrFlood(t *testing.T) {
	s := sh("i=0; while [ $i -lt 5000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1")
	seen := 0
	s.Stderr = func(line string) string {
		seen++
		return strings.ReplaceAll(line, "line", "LINE")
	}
	c := start(t, s)
	err := c.Wait()
	last := c.LastErrors()
	if seen != 5000 || len(last) != maxLines || last[maxLines-1] != "LINE 4999" {
		t.Errorf("%d lines seen, kept %q", seen, last)
	}
	if err == nil || !strings.HasSuffix(err.Error(), "LINE 4999") {
		t.Errorf("Wait: %v", err)
	}
}

// endless is stderr of a child that never stops writing.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestFloodIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		r := &throttled{Reader: endless{}, ended: ended}
		read := func(bytes int) time.Duration {
			start := time.Now()
			if _, err := io.CopyN(io.Discard, r, int64(bytes)); err != nil {
				t.Fatal(err)
			}
			return time.Since(start)
		}
		if took := read(floodBytes); took != 0 {
			t.Errorf("what a child may write takes %v", took)
		}
		if took := read(8 * floodBytes); took < 7*floodPeriod || took > 9*floodPeriod {
			t.Errorf("eight times that takes %v", took)
		}
		time.Sleep(time.Minute)
		if took := read(floodBytes); took > floodPeriod {
			t.Errorf("after a rest it takes %v", took)
		}
		close(ended)
		if took := read(64 * floodBytes); took != 0 {
			t.Errorf("the rest of a dead child takes %v", took)
		}
	})
}

func TestReadLines(t *testing.T) {
	long := strings.Repeat("x", 3*maxLine)
	in := "a\r\nb\rc\n\n" + long + "\nmid\xffdle\ttab  \nend"
	var got []string
	readLines(strings.NewReader(in), func(s string) { got = append(got, s) })
	want := []string{"a", "b", "c", long[:maxLine], `mid\xffdle tab`, "end"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q", got)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("EYAS_TEST_SECRET", "hunter2")
	t.Setenv("LANG", "de_DE.UTF-8")
	s := Spec{Program: "env", Stdout: true, Env: []string{"EXTRA=1", "HOME=/nowhere"}}
	c := start(t, s)
	out, _ := io.ReadAll(c.Stdout())
	for _, want := range []string{"LANG=C\n", "LC_ALL=C\n", "EXTRA=1\n", "HOME=/nowhere\n", "PATH=" + os.Getenv("PATH") + "\n"} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if bytes.Contains(out, []byte("hunter2")) {
		t.Error("the environment leaks into the child")
	}
}

func TestDescriptors(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := sh("echo three >&3; ls /proc/$$/fd")
	s.ExtraFiles = []*os.File{w}
	c := start(t, s)
	w.Close()
	if got := readLine(t, r); got != "three" {
		t.Errorf("descriptor 3 carried %q", got)
	}
	out, _ := io.ReadAll(c.Stdout())
	for _, fd := range strings.Fields(string(out)) {
		if n, err := strconv.Atoi(fd); err == nil && n > 3 && n != 10 && n != 255 { // 10, 255: the shell's own
			t.Errorf("descriptor %d is open in the child: %q", n, out)
		}
	}
}

func TestSizeStdout(t *testing.T) {
	c := start(t, sh("echo ok"))
	c.SizeStdout(1 << 18)
	n, err := unix.FcntlInt(c.stdout.Fd(), unix.F_GETPIPE_SZ, 0)
	if err != nil || n < 1<<16 {
		t.Errorf("pipe of %d bytes, %v", n, err)
	}
	if got := readLine(t, c.Stdout()); got != "ok" {
		t.Errorf("got %q", got)
	}
}

// TestParentDies kills a parent that has no chance to clean up: its child must go, too.
func TestParentDies(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), asParent+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(readLine(t, out))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("child %d: %v", pid, err)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	waitGone(t, pid)
}

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/models/onnx"
)

// long makes a clip of some 7600 frames, which no run here reaches the end of.
func long(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "long.mp4")
	out, err := exec.Command(testenv.FFmpeg(t), "-v", "error", "-nostdin", "-stream_loop", "199", "-i", clip(t, "udacity-vehicles.mp4"),
		"-c", "copy", "-an", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// started is eyas in a process of its own, which has written some results.
type started struct {
	*exec.Cmd
	stdout   *bufio.Reader
	pipe     io.Closer
	sofar    bytes.Buffer
	stderr   bytes.Buffer
	children []string // process ids
}

// start starts eyas and waits for n results.
func start(t *testing.T, n int, args ...string) *started {
	t.Helper()
	s := &started{Cmd: command(args...)}
	s.Stderr = &s.stderr
	pipe, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.pipe, s.stdout = pipe, bufio.NewReader(pipe)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	for range n {
		line, err := s.stdout.ReadString('\n')
		if err != nil {
			ends(t, s.Cmd)
			t.Fatalf("%v after %q: %s", err, s.sofar.String(), s.stderr.String())
		}
		s.sofar.WriteString(line)
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.Process.Pid))
	for _, file := range tasks {
		pids, _ := os.ReadFile(file)
		s.children = append(s.children, strings.Fields(string(pids))...)
	}
	return s
}

// end reads the rest and returns the exit code. No child may be left.
func (s *started) end(t *testing.T) int {
	t.Helper()
	told := time.Now()
	_, _ = s.stdout.WriteTo(&s.sofar)
	code := ends(t, s.Cmd)
	t.Logf("ended after %v", time.Since(told).Round(time.Millisecond))
	for _, pid := range s.children {
		if _, err := os.Stat("/proc/" + pid); err == nil {
			t.Errorf("the child %s is left", pid)
		}
	}
	if s.stderr.Len() > 0 {
		t.Errorf("standard error: %s", s.stderr.String())
	}
	return code
}

// A signal ends a run soon, with whole lines, playable clips and no child left.
func TestSignals(t *testing.T) {
	folder := t.TempDir()
	for i := range 400 {
		link(t, picture(t, "classic/zidane.jpg"), filepath.Join(folder, fmt.Sprintf("%d.jpg", i)))
	}
	film := long(t)
	for _, c := range []struct {
		name     string
		signal   syscall.Signal
		source   string
		children int
		want     int
	}{
		{"interrupted clip", syscall.SIGINT, film, 1, 130},
		{"terminated clip", syscall.SIGTERM, film, 1, 143},
		{"interrupted folder", syscall.SIGINT, folder, 0, 130},
		{"terminated folder", syscall.SIGTERM, folder, 0, 143},
		{"frames of a pattern", syscall.SIGINT, "test:pattern?size=64x64&frames=1000000", 0, 130},
		{"hung up", syscall.SIGHUP, "test:pattern?size=64x64&frames=1000000", 0, 129},
		{"live", syscall.SIGINT, "test:pattern?size=64x64", 0, 0},
		{"live, hung up", syscall.SIGHUP, "test:pattern?size=64x64", 0, 0},
		{"live, terminated", syscall.SIGTERM, "test:pattern?size=64x64", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.signal == syscall.SIGHUP && signal.Ignored(c.signal) {
				t.Skip("hang-ups are ignored here, and by children: nohup")
			}
			s := start(t, 5, fast(t, c.source)...)
			if len(s.children) != c.children {
				t.Errorf("%d children, want %d", len(s.children), c.children)
			}
			if err := s.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			if code := s.end(t); code != c.want {
				t.Errorf("exit code %d, want %d", code, c.want)
			}
			if all := results(t, s.sofar.String()); len(all) < 5 {
				t.Errorf("%d results", len(all))
			}
		})
	}
	t.Run("recording", func(t *testing.T) { // of small pictures, which any machine encodes in time
		dir := t.TempDir()
		s := start(t, 12, fast(t, "--save", dir, "long=test:pattern?size=64x64&frames=1000000")...)
		if err := s.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := s.end(t); code != 143 {
			t.Errorf("exit code %d", code)
		}
		frames, _ := probe(t, filepath.Join(dir, "long.mp4"))
		if n := len(results(t, s.sofar.String())); frames != n {
			t.Errorf("%d frames saved, %d results", frames, n)
		}
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			t.Errorf("left behind: %v", left)
		}
	})
	t.Run("with events", func(t *testing.T) { // the summary is still the last line
		s := start(t, 5, fast(t, "--events", film)...)
		if err := s.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if code := s.end(t); code != 130 {
			t.Errorf("exit code %d", code)
		}
		lines := strings.Split(strings.TrimSpace(s.sofar.String()), "\n")
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, `{"event":"summary"`) {
			t.Errorf("the last line is %s", last)
		}
	})
}

// A second signal ends a process that does not get to its end.
func TestSecondSignal(t *testing.T) {
	c := command()
	c.Env = append(c.Env, actAs+"=deaf")
	pipe, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(pipe)
	for _, said := range []string{"ready", "told 2"} {
		if !lines.Scan() || lines.Text() != said {
			t.Errorf("it says %q, want %q", lines.Text(), said)
		}
		if err := c.Process.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
	}
	if code := ends(t, c); code != 130 {
		t.Errorf("exit code %d", code)
	}
}

// When the reader goes the run ends, without a word, and its recording is whole.
func TestClosedStandardOutput(t *testing.T) {
	film := long(t)
	for _, args := range [][]string{{film}, {"--events", film}, {"test:pattern?size=64x64"}, {"--save", t.TempDir(), "long=test:pattern?size=64x64"}} {
		s := start(t, 3, fast(t, args...)...)
		s.pipe.Close()
		if code := s.end(t); code != exitPipe {
			t.Errorf("%v: exit code %d, want %d", args, code, exitPipe)
		}
		if args[0] == "--save" {
			probe(t, filepath.Join(args[1], "long.mp4"))
		}
	}
	s := &started{Cmd: command("inspect", modelFile(t, "yolox_nano_416"))}
	read, wrote, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	s.Stdout, s.stdout, s.Stderr = wrote, bufio.NewReader(strings.NewReader("")), &s.stderr
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	wrote.Close()
	if code := s.end(t); code != exitPipe {
		t.Errorf("inspect: exit code %d", code)
	}
}

// slowModel writes a model of the YOLOv8 form whose run takes many seconds on any machine.
func slowModel(t *testing.T) string {
	t.Helper()
	const channels, side, layers = 128, 256, 60
	b := onnx.NewBuilder("slow", 13)
	b.Meta("task", "detect")
	b.Meta("names", "{0: 'a', 1: 'b'}")
	x := b.Input("images", tensor.Float32, 1, 3, side, side)
	pads := onnx.Ints("pads", 1, 1, 1, 1)
	v := b.Node("Conv", []string{x, b.Float32("first", []int{channels, 3, 3, 3}, make([]float32, channels*3*9))}, pads)
	w := b.Float32("w", []int{channels, channels, 3, 3}, make([]float32, channels*channels*9))
	for range layers {
		v = b.Node("Conv", []string{v, w}, pads)
	}
	last := b.Float32("last", []int{6, channels, 8, 8}, make([]float32, 6*channels*64))
	v = b.Node("Conv", []string{v, last}, onnx.Ints("strides", 8, 8))
	const cells = 32*32 + 16*16 + 8*8
	v = b.Node("Reshape", []string{v, b.Int64("flat", 1, 6, 32*32)})
	v = b.Node("Concat", []string{v, b.Float32("rest", []int{1, 6, cells - 32*32}, make([]float32, 6*(cells-32*32)))}, onnx.Int("axis", 2))
	b.Output(v, tensor.Float32, 1, 6, cells)
	data, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "slow.onnx")
	write(t, path, string(data))
	return path
}

// A model that is being warmed cannot be waited for: the process ends all the same.
func TestSignalWhileAModelIsWarmed(t *testing.T) {
	model := slowModel(t)
	for _, args := range [][]string{{"run", "-m", model, picture(t, "classic/bus.jpg")}, {"plan", model}} {
		t.Run(args[0], func(t *testing.T) { endsWhileWarming(t, args) })
	}
}

func endsWhileWarming(t *testing.T, args []string) {
	c := command(args...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	untilItRuns(t, c.Process.Pid)
	told := time.Now()
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := ends(t, c); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
	t.Logf("ended %v after the signal", time.Since(told))
}

// untilItRuns waits until a process runs its model: once it has used this much of the processor. Loading takes less.
func untilItRuns(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); cpuTime(t, pid) < time.Second; {
		if time.Now().After(deadline) {
			t.Fatal("the model is not run")
		}
		runtime.Gosched()
	}
}

// cpuTime returns what a process has used of the processors so far.
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var ticks int
	for _, f := range fields[11:13] { // user and system time, in hundredths of a second
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

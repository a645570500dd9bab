package ring

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/testenv"
)

// framesKey sets how many frames TestNoTornFrameIsTakenForWhole checks.
const framesKey = "EYAS_RING_FRAMES"

// stamped is a ring of 64 KiB frames with the least slots a camera has, so that readers are overtaken often.
var stamped = Layout{Format: frame.Gray, Width: 256, Height: 256, Slots: 2}

// stampOf returns what each word of a frame is, as in camera/ring/readers: a word of two frames differs in nearly
// every byte.
func stampOf(seq uint64) uint64 { return seq * 0x9E3779B97F4A7C15 }

func stamp(p []byte, seq uint64) {
	binary.LittleEndian.PutUint64(p, stampOf(seq))
	for n := 8; n < len(p); n *= 2 {
		copy(p[n:], p[:n])
	}
}

// isStamped says whether every word of a frame is its stamp: the first is, and each is as the one before it.
func isStamped(p []byte, seq uint64) bool {
	return binary.LittleEndian.Uint64(p) == stampOf(seq) && bytes.Equal(p[8:], p[:len(p)-8])
}

func init() { children["verify"] = verifyChild }

// verifyChild reads the ring in args[0] until it is over, args[1] as pause between frames, and says for every 64
// frames that they are checked: what eyasring.c does, with this package.
func verifyChild(args []string) int {
	pause, err := time.ParseDuration(args[1])
	if err != nil {
		return 2
	}
	r, err := Connect(args[0], "cam")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var s Snapshot
	retried, last := 0, uint64(0)
	for checked := 1; ; checked++ {
		err := r.Wait(context.Background(), last)
		if errors.Is(err, ErrClosed) {
			return 0
		}
		if err == nil {
			err = r.Newest(&s)
		}
		if errors.Is(err, ErrBusy) {
			retried++
			checked--
			continue
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if s.Count <= last || !isStamped(s.pix, s.Seq) {
			fmt.Fprintf(os.Stderr, "TORN: frame %d, publication %d after %d\n", s.Seq, s.Count, last)
			return 3
		}
		last = s.Count
		if checked%64 == 0 {
			fmt.Println(64, retried)
			retried = 0
		}
		time.Sleep(pause)
	}
}

// readerKind is one way to read, started again and again.
type readerKind struct {
	name             string
	command          func(ctx context.Context) *exec.Cmd
	checked, retried atomic.Int64
	kills            int
}

// The acceptance of the ring: a writer stamps every byte, readers in other processes, faster and slower than it, are killed
// at random and come back, and none ever takes a torn frame for whole. The writer never lacks a slot.
func TestNoTornFrameIsTakenForWhole(t *testing.T) {
	want := int64(20_000)
	if text := os.Getenv(framesKey); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		want = n
	}
	dir := t.TempDir()
	r := newRing(t, stamped)
	serve(t, dir, "cam", r)
	writing, stopWriting := context.WithCancel(t.Context())
	reading, stopReading := context.WithCancel(t.Context())
	defer stopReading()
	kinds := readerKinds(t, dir)
	ended := make(chan error, len(kinds))
	for i, k := range kinds {
		go func() { ended <- k.keepReading(reading, rand.New(rand.NewPCG(1, uint64(i)))) }()
	}
	progress := make(chan struct{}, 1)
	wrote := make(chan writerTally, 1)
	go func() { wrote <- writeStamped(writing, r, progress) }()

	checked := func() (n int64) {
		for _, k := range kinds {
			n += k.checked.Load()
		}
		return n
	}
	for range progress {
		if checked() >= want || len(ended) > 0 {
			break
		}
	}
	n := checked()
	stopWriting()
	tally := <-wrote
	stopReading()
	for range kinds {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if tally.stuck {
		t.Error("the writer lacked a slot")
	}
	if n < want {
		t.Errorf("%d frames were checked, want %d", n, want)
	}
	t.Logf("%d frames written, the longest took %v; %d checked", tally.frames, tally.longest, n)
	for _, k := range kinds {
		t.Logf("%-12s %7d checked, %7d copies thrown away, killed %d times", k.name, k.checked.Load(), k.retried.Load(), k.kills)
	}
}

// readerKinds returns the readers that this machine can run.
func readerKinds(t *testing.T, dir string) []*readerKind {
	self := func(pause string) func(context.Context) *exec.Cmd {
		return func(ctx context.Context) *exec.Cmd {
			cmd := exec.CommandContext(ctx, os.Args[0], dir, pause)
			cmd.Env = append(os.Environ(), childKey+"=verify")
			return cmd
		}
	}
	program := func(args ...string) func(context.Context) *exec.Cmd {
		return func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, args[0], args[1:]...) }
	}
	kinds := []*readerKind{{name: "Go", command: self("0")}, {name: "Go, slow", command: self("2ms")}}
	socket := filepath.Join(dir, "cam"+socketSuffix)
	if c := cReader(t); c != "" {
		kinds = append(kinds, &readerKind{name: "C", command: program(c, socket, "verify")},
			&readerKind{name: "C, slow", command: program(c, socket, "verify", "slow")})
	}
	if py := pythonReader(); py != nil {
		kinds = append(kinds, &readerKind{name: "Python", command: program(append(py, socket, "verify")...)})
	}
	return kinds
}

// cReader builds the reader in C and returns its path, "" where there is no compiler.
func cReader(t *testing.T) string {
	cc, err := exec.LookPath("cc")
	if err != nil {
		return ""
	}
	path := filepath.Join(t.TempDir(), "eyasring")
	source := filepath.Join(testenv.Root(), "camera", "ring", "readers", "eyasring.c")
	if out, err := exec.Command(cc, "-O2", "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", path, source).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v: %s", err, out)
	}
	return path
}

// pythonReader returns the command of the reader in Python, nil where there is none.
func pythonReader() []string {
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil
	}
	return []string{python, filepath.Join(testenv.Root(), "camera", "ring", "readers", "eyasring.py")}
}

// keepReading starts the reader, kills it after a random number of reports, and starts it again, until ctx ends.
func (k *readerKind) keepReading(ctx context.Context, rnd *rand.Rand) error {
	for ctx.Err() == nil {
		if err := k.readOnce(ctx, 1+rnd.IntN(8), time.Duration(20+rnd.IntN(400))*time.Millisecond); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
	}
	return nil
}

// readOnce runs the reader once, and kills it after so many reports and so much time.
func (k *readerKind) readOnce(ctx context.Context, reports int, life time.Duration) error {
	cmd := k.command(ctx)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	stderr := new(tail)
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	killed := false
	begun := time.Now()
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n') // a line cut short by the kill is an error
		if err != nil {
			break
		}
		var checked, retried int64
		if _, err := fmt.Sscan(line, &checked, &retried); err != nil {
			return fmt.Errorf("it said %q", line)
		}
		k.checked.Add(checked)
		k.retried.Add(retried)
		if reports--; reports <= 0 && time.Since(begun) > life && !killed {
			killed = true
			k.kills++
			_ = cmd.Process.Kill()
		}
	}
	if err := cmd.Wait(); !killed && ctx.Err() == nil {
		return fmt.Errorf("it ended by itself: %v: %s", err, stderr.text)
	}
	return nil
}

// tail keeps the first bytes of what is written to it.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p[:min(len(p), 4096-len(t.text))]...)
	return len(p), nil
}

var _ io.Writer = (*tail)(nil)

// writerTally is what a writer has done.
type writerTally struct {
	frames  uint64
	longest time.Duration // of one frame, from Begin to after Publish, with what the scheduler took
	stuck   bool
}

// writeStamped writes frames at full speed for a while, then a few with pauses, so that readers are slower and faster
// than it, until ctx ends. It tells of progress every 256 frames.
func writeStamped(ctx context.Context, r *Ring, progress chan<- struct{}) (tally writerTally) {
	defer close(progress)
	for ; ctx.Err() == nil; tally.frames++ {
		begun := time.Now()
		f := r.Begin()
		if f == nil {
			tally.stuck = true
			return tally
		}
		f.Seq, f.Captured, f.CapturedBy = tally.frames, begun, frame.ByDriver
		stamp(r.Packed(f), f.Seq)
		r.Publish(f)
		f.Release()
		tally.longest = max(tally.longest, time.Since(begun))
		if tally.frames%256 == 0 {
			select {
			case progress <- struct{}{}:
			default:
			}
		}
		if tally.frames%2048 >= 2000 {
			time.Sleep(100 * time.Microsecond) // the pace of a writer that readers keep up with
		}
	}
	return tally
}

// Both readers say and save what the newest frame is.
func TestOtherLanguagesReadTheNewestFrame(t *testing.T) {
	dir := t.TempDir()
	r := newRing(t, small)
	serve(t, dir, "cam", r)
	f := r.Begin()
	f.Seq, f.Captured = 41, time.Unix(1_700_000_000, 123)
	for i, p := 0, r.Packed(f); i < len(p); i++ {
		p[i] = byte(i * 7)
	}
	r.Publish(f)
	defer f.Release()
	socket := filepath.Join(dir, "cam"+socketSuffix)
	const want = "nv12 33x17, 2 planes, 3 slots, frame 41, publication 1, captured 1700000000000000123\n"
	for name, command := range map[string][]string{"C": {cReader(t)}, "Python": pythonReader()} {
		t.Run(name, func(t *testing.T) {
			testenv.Require(t, len(command) > 0 && command[0] != "", "no cc or no python3 is installed")
			run := func(args ...string) string {
				args = append(append([]string{}, command[1:]...), args...)
				out, err := exec.Command(command[0], args...).CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				return string(out)
			}
			if got := run(socket); got != want {
				t.Errorf("it says %q, want %q", got, want)
			}
			path := filepath.Join(t.TempDir(), "frame")
			run(socket, "save", path)
			got, err := os.ReadFile(path)
			if err != nil || string(got) != string(r.Packed(f)) {
				t.Errorf("it saved %d bytes that differ, %v", len(got), err)
			}
		})
	}
}

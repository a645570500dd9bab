package ring

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/testenv"
)

func init() {
	children["fill"] = fillChild
	children["limits"] = limitsChild
}

// big is a ring of 1080p frames, about 6 MiB.
var big = Layout{Format: frame.NV12, Width: 1920, Height: 1080, Slots: 2}

// fillChild waits for a line and then makes rings until there is no more space, then shows that it lives.
func fillChild([]string) int {
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return 2
	}
	huge := big
	huge.Slots = 200
	if _, err := New("huge", huge); !isSpace(err) {
		fmt.Println("huge:", err)
		return 1
	}
	for n := range 1000 {
		r, err := New("cam", big)
		if isSpace(err) {
			alive := make([]byte, 2<<20)
			for i := range alive {
				alive[i] = 1
			}
			fmt.Println(n, "rings, then:", err)
			return 0
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
		defer r.Close()
	}
	fmt.Println("the limit does not count")
	return 1
}

func isSpace(err error) bool {
	var space *SpaceError
	return errors.As(err, &space) && (space.Have < space.Need || space.Err != nil)
}

// limitsChild tries rings under limits of the process.
func limitsChild([]string) int {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 2
	}
	var pagesUsed uint64
	if _, err := fmt.Sscan(string(statm), &pagesUsed); err != nil {
		return 2
	}
	large := big
	large.Slots = 80 // 240 MiB, beyond what the runtime may want meanwhile
	for _, c := range []struct {
		name  string
		what  int
		limit uint64
	}{
		{"files", unix.RLIMIT_FSIZE, 2 << 20},
		{"addresses", unix.RLIMIT_AS, pagesUsed*uint64(os.Getpagesize()) + 100<<20},
	} {
		if err := unix.Setrlimit(c.what, &unix.Rlimit{Cur: c.limit, Max: unix.RLIM_INFINITY}); err != nil {
			fmt.Println(c.name, err)
			return 2
		}
		_, err := New("cam", large)
		if back := unix.Setrlimit(c.what, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}); back != nil || !isSpace(err) {
			fmt.Println(c.name, err, back)
			return 1
		}
		fmt.Println(err)
	}
	return 0
}

// childProcess is this test binary as one of the children.
func childProcess(kind string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childKey+"="+kind)
	return cmd
}

func TestARingThatDoesNotFit(t *testing.T) {
	_, err := New("door", Layout{Format: frame.RGBA, Width: MaxSide, Height: MaxSide, Slots: maxSlots})
	var space *SpaceError
	if !errors.As(err, &space) || space.Name != "door" || space.Need < 1<<37 || space.Have >= space.Need || space.Err != nil {
		t.Fatalf("got %v", err)
	}
	if text := err.Error(); !strings.Contains(text, "ring door") || !strings.Contains(text, " MiB") {
		t.Errorf("it says %q", text)
	}
}

func TestLimitsOfTheProcess(t *testing.T) {
	var hard unix.Rlimit
	for _, what := range []int{unix.RLIMIT_FSIZE, unix.RLIMIT_AS} {
		if err := unix.Getrlimit(what, &hard); err != nil || hard.Max != unix.RLIM_INFINITY {
			t.Skip("this process is limited already")
		}
	}
	out, err := childProcess("limits").CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	t.Logf("%s", out)
}

// A group's memory limit is seen before it kills.
func TestALimitOfTheControlGroup(t *testing.T) {
	const limit = 64 << 20
	group := testenv.MemoryGroup(t, limit)
	cmd := childProcess("fill")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0); err != nil {
		in.Close()
		_ = cmd.Wait()
		t.Skipf("no process can be put into a control group here: %v", err)
	}
	_, werr := io.WriteString(in, "\n")
	if err := errors.Join(werr, in.Close(), cmd.Wait()); err != nil {
		t.Errorf("%v: %s", err, out.String())
	}
	t.Logf("with %d MiB: %s", limit>>20, out.String())
}

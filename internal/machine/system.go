package machine

import (
	"context"
	"io"
	"os/exec"
	goruntime "runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// System names the operating system.
type System struct {
	OS, Arch     string // as Go names them
	Kernel       string // its release, empty if unknown
	Distribution string // for example "Debian GNU/Linux 12 (bookworm)", empty if unknown
	Board        string // the device tree's model, empty if there is none
	Container    bool   // whether this looks like a container
}

// ReadSystem reads the system's facts below root.
func ReadSystem(root string) System {
	fs := files{root}
	s := System{OS: goruntime.GOOS, Arch: goruntime.GOARCH, Kernel: fs.line("proc/sys/kernel/osrelease")}
	if s.Kernel == "" {
		var u unix.Utsname
		if unix.Uname(&u) == nil {
			s.Kernel = unix.ByteSliceToString(u.Release[:])
		}
	}
	for line := range strings.Lines(fs.text("etc/os-release")) {
		if v, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			s.Distribution = strings.Trim(printable(v), `"'`)
		}
	}
	s.Board = strings.TrimRight(fs.line("proc/device-tree/model"), "\x00")
	s.Container = fs.exists(".dockerenv") || fs.exists("run/.containerenv")
	return s
}

// Tool is a program that Eyas may start.
type Tool struct {
	Name    string
	Path    string // empty if it is not installed
	Version string // the first line of its own answer, empty if it gave none
}

// toolTimeout bounds the question for a version.
const toolTimeout = 3 * time.Second

// Tools looks for the programs that Eyas uses and asks for their versions.
func Tools(ctx context.Context) []Tool {
	return []Tool{
		findTool(ctx, "ffmpeg", "-version"),
		findTool(ctx, "ffprobe", "-version"),
		findTool(ctx, "gst-launch-1.0", "--version"),
	}
}

func findTool(ctx context.Context, name, flag string) Tool {
	t := Tool{Name: name}
	p, err := exec.LookPath(name)
	if err != nil {
		return t
	}
	t.Path = p
	ctx, cancel := context.WithTimeout(ctx, toolTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, p, flag)
	cmd.WaitDelay = time.Second // for a child that keeps the pipe open
	var out head
	cmd.Stdout = &out
	if cmd.Run() == nil {
		first, _, _ := strings.Cut(string(out), "\n")
		t.Version = printable(first)
	}
	return t
}

// head keeps the first bytes written to it.
type head []byte

var _ io.Writer = (*head)(nil)

func (h *head) Write(p []byte) (int, error) {
	*h = append(*h, p[:min(len(p), 4096-len(*h))]...)
	return len(p), nil
}

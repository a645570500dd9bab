// Package child starts all child processes of Eyas, and ends them.
//
// A child gets an argument vector (there is no shell), an absolute program path, its own
// process group, no descriptor but those it was given, and a small environment. It dies
// with its parent: the kernel's death signal is bound to the thread that started the child,
// and that thread waits for it. Stopping is bounded: SIGTERM to the group, SIGKILL after a
// grace period, and the process is always reaped. When the leader of the group ends, the
// rest of the group is killed.
//
// Limits: Linux only. A process that leaves the group (setsid) is not followed, and the
// death signal reaches the child, not its children.
package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	defaultGrace = time.Second
	// killWait bounds the wait after SIGKILL: only a process that hangs inside the kernel
	// (a dead network mount, a broken driver) outlasts it.
	killWait = 5 * time.Second
	// drainWait bounds the wait for the end of stderr once the child is dead: it only matters
	// when a process that left the group holds the pipe.
	drainWait = time.Second
)

// ErrStopped is what Wait reports of a child that Stop ended.
var ErrStopped = errors.New("stopped")

// Spec says what to start.
type Spec struct {
	// Program is an absolute path, or a name that is looked up in PATH.
	Program string
	// Args are the arguments after the program's name.
	Args []string
	// Stdin and Stdout ask for a pipe; without them the child gets /dev/null.
	Stdin, Stdout bool
	// Stderr, if not nil, sees each line of the child's stderr, at most 4 KiB of it, in order
	// and from one goroutine, and must not block. What it returns is kept for LastErrors
	// and error messages; "" keeps nothing. Without it every line is kept.
	Stderr func(line string) string
	// ExtraFiles become the child's descriptors 3, 4, ... The caller keeps and closes its own.
	ExtraFiles []*os.File
	// Env holds further NAME=VALUE pairs beside those that Environ passes on.
	Env []string
	// Dir is the working directory. It defaults to the parent's.
	Dir string
	// Signal asks the child to end. It defaults to SIGTERM.
	Signal syscall.Signal
	// Grace is the time between this signal and SIGKILL. It defaults to 1 second.
	Grace time.Duration
}

// Child is a started process. Its methods may be called from any goroutine.
type Child struct {
	name   string
	pid    int
	signal syscall.Signal // asks it to end
	grace  time.Duration
	stdin  *os.File
	stdout *os.File
	last   ring

	done chan struct{} // closed once the child is reaped and its stderr read

	mu      sync.Mutex // guards what follows, and that no signal is sent after the reaping
	reaped  bool
	stopped error // why it was stopped; nil if it ended by itself
	err     error // how it ended
}

// Look returns the absolute path of a program. The error says which is missing.
func Look(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("find program: %w", err)
	}
	return filepath.Abs(path)
}

// Start starts a child. When ctx ends the child is stopped. The caller reads Stdout to its
// end and calls Wait, or calls Stop.
func Start(ctx context.Context, s Spec) (*Child, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path, err := Look(s.Program)
	if err != nil {
		return nil, err
	}
	c := &Child{name: filepath.Base(path), signal: s.Signal, grace: s.Grace, done: make(chan struct{})}
	if c.signal == 0 {
		c.signal = syscall.SIGTERM
	}
	if c.grace <= 0 {
		c.grace = defaultGrace
	}
	cmd := &exec.Cmd{
		Path: path, Args: append([]string{s.Program}, s.Args...), Env: Environ(s.Env), Dir: s.Dir,
		ExtraFiles:  s.ExtraFiles,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}
	stderr, theirs, err := c.pipes(cmd, s)
	if err == nil {
		started := make(chan error)
		go c.run(cmd, started, stderr, s.Stderr)
		err = <-started
	}
	closeAll(theirs)
	if err != nil {
		closeAll([]*os.File{c.stdin, c.stdout, stderr})
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	unwatch := context.AfterFunc(ctx, func() { c.stop(ctx.Err()) })
	go func() {
		<-c.done
		unwatch()
	}()
	return c, nil
}

// pipes makes the pipes that the spec asks for. It returns our end of stderr and the ends
// that are the child's, to be closed here once it has them, also after an error.
func (c *Child) pipes(cmd *exec.Cmd, s Spec) (stderr *os.File, theirs []*os.File, err error) {
	// os.Pipe, and not cmd.StdoutPipe: that one is closed by Wait, with data still in it.
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	if s.Stdin {
		r, w := pipe()
		c.stdin, theirs = w, append(theirs, r)
		cmd.Stdin = r
	}
	if s.Stdout {
		r, w := pipe()
		c.stdout, theirs = r, append(theirs, w)
		cmd.Stdout = w
	}
	stderr, w := pipe()
	cmd.Stderr = w
	return stderr, append(theirs, w), err
}

// run starts the child and waits for it, on one OS thread: the death signal fires when the
// thread that started the child ends, so this one stays until the child is gone.
func (c *Child) run(cmd *exec.Cmd, started chan<- error, stderr *os.File, see func(string) string) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	closeOnExec()
	if err := cmd.Start(); err != nil {
		started <- err
		return
	}
	c.pid = cmd.Process.Pid
	read, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(read)
		readLines(&throttled{Reader: stderr, ended: ended}, func(line string) {
			if see != nil {
				line = see(line)
			}
			c.last.add(line)
		})
	}()
	started <- nil

	// Wait without reaping: as long as the zombie is there its process id, which is the
	// group's, cannot be given to another, so that the signal to the group hits nobody else.
	for unix.Waitid(unix.P_PID, c.pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	c.mu.Lock()
	_ = syscall.Kill(-c.pid, syscall.SIGKILL)
	err := cmd.Wait()
	c.reaped = true
	c.mu.Unlock()

	close(ended)
	_ = stderr.SetReadDeadline(time.Now().Add(drainWait))
	<-read
	stderr.Close()
	c.mu.Lock()
	c.err = c.outcome(err)
	c.mu.Unlock()
	close(c.done)
}

// outcome makes the error that Wait returns out of the process's exit status.
func (c *Child) outcome(exit error) error {
	switch {
	case c.stopped != nil:
		return fmt.Errorf("%s: %w", c.name, c.stopped)
	case exit == nil:
		return nil
	}
	if lines := c.last.lines(); len(lines) > 0 {
		return fmt.Errorf("%s: %w: %s", c.name, exit, strings.Join(lines, "; "))
	}
	return fmt.Errorf("%s: %w", c.name, exit)
}

// Stdout returns the reading end of the child's stdout, nil if the spec did not ask for it.
// It stays readable to its end after the child has ended; Stop closes it.
func (c *Child) Stdout() io.ReadCloser {
	if c.stdout == nil {
		return nil
	}
	return c.stdout
}

// Stdin returns the writing end of the child's stdin, nil if the spec did not ask for it.
// Closing it is the child's end of file.
func (c *Child) Stdin() io.WriteCloser {
	if c.stdin == nil {
		return nil
	}
	return c.stdin
}

// SizeStdout asks for a larger stdout pipe: see SizePipe.
func (c *Child) SizeStdout(n int) {
	if c.stdout != nil {
		SizePipe(c.stdout, n)
	}
}

// SizePipe asks the kernel for n bytes of room in a pipe, so that a child need not wait for every
// 64 KiB to be read. It is only a wish: a limit of the system may refuse it.
func SizePipe(pipe *os.File, n int) {
	if raw, err := pipe.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, n) })
	}
}

// Pid returns the process id, which is the group's too. It may be stale once Done is closed.
func (c *Child) Pid() int { return c.pid }

// Done is closed once the child has ended, is reaped and its stderr is read.
func (c *Child) Done() <-chan struct{} { return c.done }

// Wait waits for the end of the child. It returns nil for exit status 0; an error that wraps
// ErrStopped after Stop, or the context's error after its end; else an error with the exit
// status and the child's last lines on stderr. It leaves unread data in Stdout.
func (c *Child) Wait() error {
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// LastErrors returns the lines of stderr that were kept, the oldest first, at most 8.
func (c *Child) LastErrors() []string { return c.last.lines() }

// Stop ends the child: SIGTERM, or the spec's Signal, to its group, SIGKILL after the grace period. It closes
// Stdin and Stdout and returns when the child is reaped, so that nothing is left of it.
// Further calls, also concurrent ones and those after the child's own end, only wait. The
// error is not nil when the child did not even die of SIGKILL.
func (c *Child) Stop() error { return c.stop(ErrStopped) }

func (c *Child) stop(why error) error {
	c.send(c.signal, why)
	closeAll([]*os.File{c.stdin, c.stdout})
	if c.endsWithin(c.grace) {
		return nil
	}
	c.send(syscall.SIGKILL, why)
	if c.endsWithin(killWait) {
		return nil
	}
	return fmt.Errorf("stop %s: process %d does not end on SIGKILL: it hangs in the kernel", c.name, c.pid)
}

// send sends sig to the group if the child is not reaped yet.
func (c *Child) send(sig syscall.Signal, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return
	}
	if c.stopped == nil {
		c.stopped = why
	}
	_ = syscall.Kill(-c.pid, sig)
}

func (c *Child) endsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.done:
		return true
	case <-timer.C:
		return false
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

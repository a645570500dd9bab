package ring

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func serve(t testing.TB, dir, name string, r *Ring) *Server {
	t.Helper()
	s, err := Serve(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	if r != nil {
		s.Set(r)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestReadersConnectByName(t *testing.T) {
	for _, name := range []string{
		"door", "door 2", "rtsp://10.0.0.7/stream?a=b", ".hidden", "Straße/ä", "50%", "a\x00b\x1b[31m", "bad\xffutf8", strings.Repeat("long", 60),
	} {
		t.Run(fileName(name)[:min(12, len(fileName(name)))], func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), strings.Repeat("deep", 30), "rings") // beyond what a socket's address holds
			r := newRing(t, small)
			publish(t, r, 5)
			serve(t, dir, name, r)
			if names, err := List(dir); err != nil || !slices.Equal(names, []string{name}) {
				t.Errorf("listed %q, %v", names, err)
			}
			rd, err := Connect(dir, name)
			if err != nil {
				t.Fatal(err)
			}
			defer rd.Close()
			var s Snapshot
			if err := rd.Newest(&s); err != nil || s.Seq != 5 {
				t.Errorf("newest: %v", err)
			}
			if rd.PID() != os.Getpid() || rd.Generation() != 1 || rd.Layout() != small {
				t.Errorf("process %d, generation %d, %+v", rd.PID(), rd.Generation(), rd.Layout())
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 1 {
				t.Fatalf("the folder holds %v, %v", entries, err)
			}
			if info, err := entries[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the socket's mode is %v, %v", info.Mode(), err)
			}
		})
	}
}

func TestNamesThatCannotBe(t *testing.T) {
	for _, name := range []string{"", strings.Repeat("x", 251), strings.Repeat("/", 90)} {
		if _, err := Serve(t.TempDir(), name); err == nil {
			t.Errorf("a ring with a name of %d bytes is served", len(name))
		}
		if _, err := Connect(t.TempDir(), name); err == nil || errors.Is(err, ErrNoRing) {
			t.Errorf("a name of %d bytes: %v", len(name), err)
		}
	}
}

func TestARingIsMadeAnew(t *testing.T) {
	dir := t.TempDir()
	old := newRing(t, small)
	s := serve(t, dir, "cam", nil)
	if _, err := Connect(dir, "cam"); !errors.Is(err, ErrNoRing) {
		t.Errorf("a camera that has not come yet: %v", err)
	}
	s.Set(old)
	first, err := Connect(dir, "cam")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	larger := small
	larger.Width = 64
	s.Set(newRing(t, larger))
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(t.Context(), 0); !errors.Is(err, ErrClosed) {
		t.Errorf("the old ring's reader is told %v", err)
	}
	second, err := Connect(dir, "cam")
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if second.Layout() != larger || second.Generation() <= first.Generation() {
		t.Errorf("generation %d has %+v", second.Generation(), second.Layout())
	}
}

func TestAClosedRingIsNotHandedOut(t *testing.T) {
	dir := t.TempDir()
	r := newRing(t, small)
	serve(t, dir, "cam", r)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Connect(dir, "cam"); !errors.Is(err, ErrNoRing) {
		t.Errorf("got %v", err)
	}
}

func TestSocketsAreReplacedOnlyWhenStale(t *testing.T) {
	dir := t.TempDir()
	leave(t, filepath.Join(dir, "cam"+socketSuffix))
	if _, err := Connect(dir, "cam"); !errors.Is(err, ErrNoRing) {
		t.Errorf("a socket that nobody serves: %v", err)
	}
	first := serve(t, dir, "cam", nil)
	if _, err := Serve(dir, "cam"); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a ring is served twice: %v", err)
	}
	// The first server's socket is taken away and another has come: it is not the first's to remove.
	if err := os.Remove(filepath.Join(dir, "cam"+socketSuffix)); err != nil {
		t.Fatal(err)
	}
	serve(t, dir, "cam", nil)
	for range 2 {
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if names, _ := List(dir); len(names) != 1 {
		t.Error("a server removed another's socket")
	}
}

// A folder that another process keeps locked, a name that cannot be taken and a process that does not answer are told, each
// within the time that a process has to end.
func TestObstacles(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "cam"+socketSuffix), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Serve(dir, "cam"); err == nil || !strings.Contains(err.Error(), "cannot take the place of "+dir+"/cam.ring: ") {
		t.Errorf("a folder with the socket's name: %v", err)
	}
	_, unlock, err := lockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := Serve(dir, "other"); err == nil || !strings.Contains(err.Error(), dir+" is locked by another process") {
		t.Errorf("a locked folder: %v", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "mute"+socketSuffix), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want := fmt.Sprintf("ring mute: process %d does not answer", os.Getpid())
	if _, err := Connect(dir, "mute"); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("a server that says nothing: %v", err)
	}
}

// leave binds a socket and leaves it, as a process does that is killed.
func leave(t testing.TB, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAFolderThatOthersWriteToIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Serve(dir, "cam"); err == nil {
		t.Error("it is taken")
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Serve(file, "cam"); err == nil {
		t.Error("a file is taken for a folder")
	}
}

func TestListPassesOverWhatIsNoRing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"+socketSuffix), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"other.sock", "%zz.ring", "%41.ring", ".ring"} {
		leave(t, filepath.Join(dir, name))
	}
	if names, err := List(dir); err != nil || len(names) != 0 {
		t.Errorf("listed %q, %v", names, err)
	}
	if names, err := List(filepath.Join(dir, "none")); err != nil || names != nil {
		t.Errorf("no folder: %q, %v", names, err)
	}
}

// A socket whose mode was widened still serves nobody else.
func TestOtherUsersGetNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	dir, err := os.MkdirTemp("", "eyas-ring") // others cannot go through the folders of TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	serve(t, dir, "cam", newRing(t, small))
	path := filepath.Join(dir, "cam"+socketSuffix)
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		goruntime.LockOSThread() // never unlocked: the thread, which is somebody else from now on, ends with the goroutine
		got <- askAs(65534, path)
	}()
	if err := <-got; err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("another user is told %v", err)
	}
}

// askAs makes this thread another user's and asks for the ring.
func askAs(uid int, path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	socket := os.NewFile(uintptr(fd), "socket")
	defer socket.Close()
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
		return errno
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return err
	}
	conn, err := net.FileConn(socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, given, err := receive(conn.(*net.UnixConn))
	if err == nil {
		given.Close()
	}
	return err
}

// What answers on a socket may be anything.
func TestHostileServers(t *testing.T) {
	memory := func(seals int, b []byte) int {
		fd, err := unix.MemfdCreate("hostile", unix.MFD_ALLOW_SEALING|unix.MFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := unix.Write(fd, b); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		return fd
	}
	good, err := newHeader(small)
	if err != nil {
		t.Fatal(err)
	}
	whole := make([]byte, good.memory)
	good.put(whole)
	pipe := make([]int, 2)
	if err := unix.Pipe2(pipe, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	for name, c := range map[string]struct {
		greeting []byte
		fds      []int
		want     string // "" for none
	}{
		"whole":             {greeting(1), []int{memory(unix.F_SEAL_SHRINK, whole)}, ""},
		"nothing":           {nil, nil, "refused"},
		"short greeting":    {greeting(1)[:9], nil, "refused"},
		"other magic":       {[]byte("GET / HTTP/1.1\r\n"), nil, "refused"},
		"other version":     {append([]byte(magic), 9, 0, 0, 0, 1, 0, 0, 0), nil, "version 9"},
		"no descriptor":     {greeting(1), nil, "no descriptor"},
		"two descriptors":   {greeting(1), []int{memory(unix.F_SEAL_SHRINK, whole), pipe[0]}, ""},
		"a pipe":            {greeting(1), []int{pipe[0]}, "not sealed"},
		"not sealed":        {greeting(1), []int{memory(0, whole)}, "not sealed"},
		"empty":             {greeting(1), []int{memory(unix.F_SEAL_SHRINK, nil)}, "too short"},
		"shorter than told": {greeting(1), []int{memory(unix.F_SEAL_SHRINK, whole[:len(whole)-1])}, "do not lie within"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "cam"+socketSuffix), Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				conn, err := l.AcceptUnix()
				if err != nil {
					return
				}
				defer conn.Close()
				if len(c.greeting) > 0 {
					_, _, _ = conn.WriteMsgUnix(c.greeting, unix.UnixRights(c.fds...), nil)
				}
			}()
			defer func() { l.Close(); <-done }()
			rd, err := Connect(dir, "cam")
			if err == nil {
				defer rd.Close()
			}
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

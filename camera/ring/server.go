package ring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/internal/fserr"
)

// greetingBytes is what a reader gets on its connection: the magic, the version and the generation, 0 where
// there is no ring now. With a generation comes the descriptor.
const greetingBytes = 16

// Times that bound a connection.
const (
	greetTimeout   = time.Second            // a fresh connection has room for the greeting
	acceptPause    = 100 * time.Millisecond // after a fault such as too many open files
	lockTimeout    = time.Second            // others hold it for some system calls; a process that was told to end waits for it
	connectTimeout = 2 * time.Second
)

// Server gives the rings of one camera, one after the other, to processes of the same user and of root, over a
// Unix socket with mode 0600.
type Server struct {
	dir, file string // the socket's folder and name
	socket    os.FileInfo
	listener  *net.UnixListener
	stop      chan struct{}
	done      chan struct{}
	closing   sync.Once
	closed    error

	now atomic.Pointer[served]
}

// served is the ring that readers get now.
type served struct {
	ring       *Ring
	generation uint32 // from 1
}

// Serve makes the socket of the ring called name in dir, which is made with mode 0700 where it is missing. The name,
// which must hold no credentials, is seen by whoever may read dir. A socket that a dead process left is replaced; one
// that is served is an error. Until Set, readers are told that there is no ring yet.
func Serve(dir, name string) (*Server, error) {
	file, err := socketName(name)
	if err != nil {
		return nil, err
	}
	if err := ownFolder(dir); err != nil {
		return nil, fmt.Errorf("ring %s: %w", name, err)
	}
	s := &Server{dir: dir, file: file, stop: make(chan struct{}), done: make(chan struct{})}
	if err := s.listen(); err != nil {
		return nil, fmt.Errorf("ring %s: %w", name, err)
	}
	s.now.Store(&served{})
	go s.accept()
	return s, nil
}

// Set makes r, or none if it is nil, the ring that readers get from now on. A ring that is closed is not
// handed out any more; a reader that connects before the next is set is told that there is none now.
func (s *Server) Set(r *Ring) {
	s.now.Store(&served{ring: r, generation: s.now.Load().generation + 1})
}

// Close ends the socket and removes it. It leaves the rings as they are, and waits.
func (s *Server) Close() error {
	s.closing.Do(func() {
		close(s.stop)
		s.closed = errors.Join(s.remove(), s.listener.Close())
		<-s.done
	})
	return s.closed
}

// ownFolder makes dir and checks that nobody else can put a socket into it.
func ownFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("%w: set XDG_RUNTIME_DIR or EYAS_HOME to a folder of this user", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if me := os.Geteuid(); !ok || !info.IsDir() || me != 0 && int(stat.Uid) != me || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("folder %s: others can write to it: give it to this user with mode 0700", dir)
	}
	return nil
}

// listen binds the socket under a name of its own and then renames it, so that a socket that is seen has its mode
// and is served. Paths go through the folder's descriptor: a socket's address has room for 107 bytes only.
func (s *Server) listen() error {
	dir, unlock, err := lockFolder(s.dir)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.replaceable(); err != nil {
		return err
	}
	short := descriptorPath(dir) + "/.new" // one at a time: the folder is locked
	if err := os.Remove(short); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("remove %s: %w", filepath.Join(s.dir, ".new"), fserr.Bare(err))
	}
	s.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return err
	}
	s.listener.SetUnlinkOnClose(false) // it would look for the first name
	if err := s.show(short, descriptorPath(dir)+"/"+s.file); err != nil {
		return errors.Join(err, os.Remove(short), s.listener.Close())
	}
	return nil
}

// show gives the bound socket its mode and its name.
func (s *Server) show(bound, name string) (err error) {
	if err := os.Chmod(bound, 0o600); err != nil {
		return err
	}
	if s.socket, err = os.Lstat(bound); err != nil {
		return err
	}
	var link *os.LinkError
	if err = os.Rename(bound, name); errors.As(err, &link) {
		return fmt.Errorf("cannot take the place of %s: %w: remove what is there", filepath.Join(s.dir, s.file), link.Err)
	}
	return err
}

// replaceable fails if something lives under the socket's name.
func (s *Server) replaceable() error {
	conn, err := dial(filepath.Join(s.dir, s.file), time.Now().Add(connectTimeout))
	if err == nil {
		defer conn.Close()
		who := ""
		if cred, err := peer(conn); err == nil {
			who = fmt.Sprintf(" by process %d", cred.Pid)
		}
		return fmt.Errorf("it is served%s already: give the source another name (NAME=...)", who)
	}
	if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// remove removes the socket unless another process has put its own in its place.
func (s *Server) remove() error {
	dir, unlock, err := lockFolder(s.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	path := descriptorPath(dir) + "/" + s.file
	if info, err := os.Lstat(path); err != nil || !os.SameFile(info, s.socket) {
		return nil
	}
	return os.Remove(path)
}

// lockFolder opens a folder and locks it against other processes that bind or remove sockets in it.
func lockFolder(path string) (dir *os.File, unlock func(), err error) {
	dir, err = os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	for end := time.Now().Add(lockTimeout); ; time.Sleep(5 * time.Millisecond) {
		err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return dir, func() { _ = dir.Close() }, nil // which unlocks it
		}
		if (!errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR)) || time.Now().After(end) {
			_ = dir.Close()
			return nil, nil, fmt.Errorf("folder %s is locked by another process: %w", path, err)
		}
	}
}

// descriptorPath names an open file by its descriptor.
func descriptorPath(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// dial connects to a socket of any length of path, until a deadline.
func dial(path string, deadline time.Time) (*net.UnixConn, error) {
	socket, err := os.OpenFile(path, unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	conn, err := (&net.Dialer{Deadline: deadline}).Dial("unix", descriptorPath(socket))
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

// peer returns who is at the other end.
func peer(conn *net.UnixConn) (cred *unix.Ucred, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	failed := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return cred, errors.Join(failed, err)
}

// accept greets readers until the server is closed.
func (s *Server) accept() {
	defer close(s.done)
	for {
		conn, err := s.listener.AcceptUnix()
		if err == nil {
			s.greet(conn)
			_ = conn.Close()
			continue
		}
		pause := time.NewTimer(acceptPause)
		select {
		case <-s.stop:
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

// greet sends one reader the greeting and the ring's descriptor. A reader that goes away meanwhile is no fault of ours.
func (s *Server) greet(conn *net.UnixConn) {
	if cred, err := peer(conn); err != nil || cred.Uid != 0 && int(cred.Uid) != os.Geteuid() {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(greetTimeout))
	now := s.now.Load()
	if now.ring != nil {
		sent := errors.New("the ring is closed")
		if raw, err := now.ring.file.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { // which keeps the descriptor open meanwhile
				_, _, sent = conn.WriteMsgUnix(greeting(now.generation), unix.UnixRights(int(fd)), nil)
			})
		}
		if sent == nil {
			return
		}
	}
	_, _ = conn.Write(greeting(0))
}

func greeting(generation uint32) []byte {
	b := make([]byte, 0, greetingBytes)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	return binary.LittleEndian.AppendUint32(b, generation)
}

// Package claims lets processes of one user on one machine see what memory the others have planned, so that two do not
// plan the same. Each process has a file in a common folder, and a lock on it for as long as it lives: the kernel takes the
// lock back however the process ends, and a file that nobody has locked is left over and removed.
//
// What else lies in the folder is ignored, and a folder that cannot be used is an error that callers may pass over: claims
// keep processes from refusing each other's memory too late, they are no barrier.
package claims

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/internal/machine"
)

// Claim is the memory that a process has planned. Sizes are in bytes.
type Claim struct {
	PID     int    // in its own container
	Name    string // what the memory is for, printable
	Planned int64
	Pending int64    // what is planned and not resident yet: what is resident, the machine shows already
	Groups  []string // the IDs of the control groups that the process is in, see machine.MemoryGroup
}

// lockTimeout bounds the wait for others that read or write the folder, which takes them a moment.
const lockTimeout = time.Second

// Set is one plan of this process among those of others. Its methods may be called from several goroutines.
type Set struct {
	dir, name string
	note      func(string)

	mu      sync.Mutex
	file    *os.File // ours, locked; nil before the first claim
	planned int64
	noted   bool
	closed  bool
}

// New returns a set without a claim; nothing is read or made yet. dir is the folder, which is made with mode 0700 where it
// is missing, name says what the memory is for, and note is told once if something in the folder is ignored; it may be nil.
func New(dir, name string, note func(string)) *Set {
	return &Set{dir: dir, name: printable(name), note: note}
}

// Others returns the claims of all others that live.
func (s *Set) Others() (others []Claim, err error) {
	err = s.locked(func() error {
		others = s.read()
		return nil
	})
	return others, err
}

// Claim calls decide with the claims of the others, while none of them can change, and makes known the bytes that it
// returns in place of those of an earlier call. Where it fails the earlier claim stays. Of two processes that claim at the
// same time exactly one sees the other. decide, which must not use the set, is not called where the folder cannot be used.
func (s *Set) Claim(decide func(others []Claim) (int64, error)) error {
	return s.locked(func() error {
		planned, err := decide(s.read())
		if err != nil {
			return err
		}
		return s.write(planned)
	})
}

// Update makes known what this process holds by now of what it has claimed. Those who see its status know it anyway,
// those in other containers do not.
func (s *Set) Update() error {
	return s.locked(func() error {
		if s.file == nil {
			return nil
		}
		return s.write(s.planned)
	})
}

// Close withdraws the claim. It may be called twice.
func (s *Set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.withdraw()
}

// withdraw removes our file. Others that see it before it is gone find it unlocked, and do the same.
func (s *Set) withdraw() error {
	if s.file == nil {
		return nil
	}
	err := os.Remove(s.file.Name())
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	err = errors.Join(err, s.file.Close())
	s.file = nil
	return err
}

// locked calls do while no other process reads or writes the folder.
func (s *Set) locked(do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("claims: closed")
	}
	if err := ownFolder(s.dir); err != nil {
		return fmt.Errorf("claims: %w", err)
	}
	dir, err := lockFolder(s.dir)
	if err != nil {
		return fmt.Errorf("claims: %w", err)
	}
	defer dir.Close() // which unlocks it
	return do()
}

// ownFolder makes dir and checks that nobody else can put a claim into it.
func ownFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || !owned(info) || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("folder %s: others can write to it: give it to this user with mode 0700", dir)
	}
	return nil
}

// owned says whether a file is ours or root's.
func owned(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Geteuid())
}

func lockFolder(path string) (*os.File, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(lockTimeout); ; time.Sleep(2 * time.Millisecond) { // a wait in the kernel could not be ended
		err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return dir, nil
		}
		if (!errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR)) || time.Now().After(end) {
			dir.Close()
			return nil, fmt.Errorf("lock folder %s: %w", path, err)
		}
	}
}

const (
	suffix   = ".claim"
	maxFiles = 1024 // that are looked at
	maxBytes = 4096 // of a file
)

// read returns the claims of the others and removes those that are left over.
func (s *Set) read() []Claim {
	dir, err := os.Open(s.dir)
	if err != nil {
		s.ignore(s.dir, err)
		return nil
	}
	defer dir.Close()
	entries, err := dir.ReadDir(maxFiles + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		s.ignore(s.dir, err)
	}
	if len(entries) > maxFiles {
		s.ignore(s.dir, fmt.Errorf("it has more than %d files", maxFiles))
		entries = entries[:maxFiles]
	}
	var list []document
	for _, e := range entries {
		path := filepath.Join(s.dir, e.Name())
		if s.file != nil && path == s.file.Name() {
			continue
		}
		if !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), suffix) {
			s.ignore(path, errors.New("it is not a claim"))
			continue
		}
		d, err := readFile(path)
		if err != nil {
			s.ignore(path, err)
		} else if d != nil {
			list = append(list, *d)
		}
	}
	return pending(list)
}

func (s *Set) ignore(path string, err error) {
	if s.note != nil && !s.noted {
		s.note(fmt.Sprintf("claims: %s is ignored: %v", path, err))
	}
	s.noted = true
}

// readFile returns the claim in a file, nil for one that was left over, which it removes.
func readFile(path string) (*document, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // withdrawn meanwhile
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || !owned(info) {
		return nil, errors.New("it is not a file of this user")
	}
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); {
	case err == nil:
		return nil, os.Remove(path)
	case !errors.Is(err, unix.EWOULDBLOCK):
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, err
	}
	return parse(data)
}

// write makes our claim known, in a file that is made and locked before the others can see it without a lock.
func (s *Set) write(planned int64) error {
	data, err := json.Marshal(ours(s.name, planned))
	if err != nil {
		return err
	}
	if s.file != nil && s.gone() {
		s.file.Close() // whoever cleans the folder up has taken it away
		s.file = nil
	}
	if s.file == nil {
		if err := s.create(); err != nil {
			return fmt.Errorf("claims: %w", err)
		}
	}
	err = s.file.Truncate(0)
	if err == nil {
		_, err = s.file.WriteAt(data, 0)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("claims: %w", err), s.withdraw())
	}
	s.planned = planned
	return nil
}

func (s *Set) create() error {
	path := filepath.Join(s.dir, fmt.Sprintf("%d-%016x%s", os.Getpid(), rand.Uint64(), suffix))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("lock %s: %w", path, err), os.Remove(path), f.Close())
	}
	s.file = f
	return nil
}

// gone says whether our file is not in the folder any more.
func (s *Set) gone() bool {
	ours, err := s.file.Stat()
	if err != nil {
		return true
	}
	there, err := os.Lstat(s.file.Name())
	return err != nil || !os.SameFile(ours, there)
}

// groups returns the IDs of the control groups of this process.
func groups() (ids []string) {
	for _, g := range machine.MemoryGroups("/") {
		if id := g.ID(); id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

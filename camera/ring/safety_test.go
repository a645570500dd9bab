package ring

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// received returns the descriptor that a reader is given.
func received(t *testing.T, dir string) *os.File {
	t.Helper()
	conn, err := dial(filepath.Join(dir, "cam"+socketSuffix), time.Now().Add(connectTimeout))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, file, err := receive(conn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// A reader has a descriptor of the memory: it tries what it can to change it.
func TestAReaderCannotWriteOrTruncate(t *testing.T) {
	dir := t.TempDir()
	r := newRing(t, small)
	publish(t, r, 3)
	serve(t, dir, "cam", r)
	given := received(t, dir)
	attempts := func(t *testing.T, fd int) {
		size := int(r.head.memory)
		for name, try := range map[string]func() error{
			"truncate": func() error { return unix.Ftruncate(fd, 0) },
			"grow":     func() error { return unix.Ftruncate(fd, int64(2*size)) },
			"write":    func() error { _, err := unix.Pwrite(fd, []byte{1}, 0); return err },
			"punch": func() error {
				return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, int64(size))
			},
			"seal": func() error {
				_, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE)
				return err
			},
			"map": func() error {
				_, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
				return err
			},
			"map and protect": func() error {
				m, err := unix.Mmap(fd, 0, size, unix.PROT_READ, unix.MAP_SHARED)
				if err != nil {
					t.Fatal(err)
				}
				defer unix.Munmap(m)
				return unix.Mprotect(m, unix.PROT_READ|unix.PROT_WRITE)
			},
		} {
			if err := try(); err == nil {
				t.Errorf("%s: it is allowed", name)
			}
		}
	}
	t.Run("as given", func(t *testing.T) { attempts(t, int(given.Fd())) })
	for name, flags := range map[string]int{"opened to write": os.O_RDWR, "opened to truncate": os.O_RDWR | os.O_TRUNC} {
		t.Run(name, func(t *testing.T) {
			again, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(given.Fd())), flags, 0)
			if err != nil {
				return // as it should be, for all but root
			}
			defer again.Close()
			attempts(t, int(again.Fd()))
		})
	}
	var s Snapshot
	if err := reader(t, r).Newest(&s); err != nil || s.Seq != 3 || s.pix[100] != 3 {
		t.Errorf("the frame has changed: %d, %v", s.Seq, err)
	}
}

// A foreign writer may change the header's words while we read.
func TestADamagedRingIsAnError(t *testing.T) {
	r := newRing(t, small)
	rd := reader(t, r)
	publish(t, r, 1)
	var s Snapshot
	*word64(r.mem, atNewest) = 1<<8 | 200
	if err := rd.Newest(&s); err == nil || errors.Is(err, ErrBusy) {
		t.Errorf("a slot that is not there is read: %v", err)
	}
	*word64(r.mem, atNewest) = 1 << 63
	*word64(r.mem, atInterval) = 1 << 63
	*word64(slotHead(r.mem, 0), atPublished) = 1 << 63
	*word64(slotHead(r.mem, 0), atMono) = 1 << 63
	if err := rd.Newest(&s); err != nil {
		t.Error(err)
	}
	rd.Status()
}

// state is what a process holds, as far as rings can leave something.
func state(t *testing.T, dir string) string {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	shared := ""
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "RssShmem:") {
			shared = strings.TrimSpace(line)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d descriptors, %d mappings of rings, %s, %d files", len(fds), strings.Count(string(maps), "memfd:eyas-ring"), shared, len(files))
}

func TestTwoHundredRingsLeaveNothing(t *testing.T) {
	dir := t.TempDir()
	round := func(i int) {
		l := small
		l.Width += i
		r, err := New("cam", l)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Serve(dir, "cam")
		if err != nil {
			t.Fatal(err)
		}
		s.Set(r)
		publish(t, r, 1)
		held := r.Begin()
		rd, err := Connect(dir, "cam")
		if err != nil {
			t.Fatal(err)
		}
		if err := rd.Newest(new(Snapshot)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(r.Close(), s.Close(), rd.Close()); err != nil {
			t.Fatal(err)
		}
		held.Release()
	}
	round(0) // what the runtime opens once
	before := state(t, dir)
	for i := range 200 {
		round(i)
	}
	if after := state(t, dir); after != before {
		t.Errorf("before: %s\nafter: %s", before, after)
	}
	if _, err := New("cam", Layout{}); err == nil {
		t.Error("a ring of nothing is made")
	}
}

package ring

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/internal/machine"
)

// SpaceError says that the memory of a ring cannot be had: the machine, a control group or a limit of
// the process leaves too little.
type SpaceError struct {
	Name string // of the ring
	Need int64  // bytes
	Have int64  // bytes that a ring may take, a reserve left to the process
	Err  error  // what the kernel said where it refused all the same; else nil
}

func (e *SpaceError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("ring %s: frames need %s of memory: %v: use a smaller picture or fewer cameras, or raise the process's limits",
			e.Name, mebibytes(e.Need), e.Err)
	}
	return fmt.Sprintf("ring %s: frames need %s of memory, %s can be had: use a smaller picture or fewer cameras, or raise the memory limit",
		e.Name, mebibytes(e.Need), mebibytes(e.Have))
}

func (e *SpaceError) Unwrap() error { return e.Err }

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// The part of the free memory that no ring takes: the kernel's tables of the pages themselves, about
// 1/200 of it, and room for the process, which would be killed if its group were filled to the brim.
const (
	reserveBytes = 8 << 20
	reserveShare = 64
)

// taking lets one ring at a time look at the free memory and take of it: cameras start together.
var taking sync.Mutex

// takeMemory makes the sealed memory of a ring: mapped writable here, with a descriptor that can only read.
func takeMemory(name string, h *header) (mem []byte, readOnly *os.File, err error) {
	taking.Lock()
	defer taking.Unlock()
	if err := checkSpace(name, h.memory); err != nil {
		return nil, nil, err
	}
	fd, err := memfd(name)
	if err != nil {
		return nil, nil, fmt.Errorf("ring %s: make shared memory: %w", name, err)
	}
	defer unix.Close(fd)
	mem, readOnly, err = fill(fd, h)
	switch {
	case errors.Is(err, unix.ENOMEM), errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EFBIG):
		// The kernel counts by other rules: strict overcommitment, a limit on the address space.
		return nil, nil, &SpaceError{Name: name, Need: h.memory, Have: max(0, free()), Err: err}
	case err != nil:
		return nil, nil, fmt.Errorf("ring %s: %w", name, err)
	}
	return mem, readOnly, nil
}

// checkSpace fails if need bytes would leave too little.
func checkSpace(name string, need int64) error {
	if have := free(); have < need {
		return &SpaceError{Name: name, Need: need, Have: max(0, have)}
	}
	return nil
}

// free returns the bytes that rings may take, below zero if the reserve itself is not there. What
// cannot be found out does not limit.
func free() int64 {
	have := int64(math.MaxInt64)
	if m := machine.ReadMemory("/"); m.Available > 0 || m.Limit > 0 {
		have = int64(min(m.Usable(), math.MaxInt64))
		have -= reserveBytes + have/reserveShare
	}
	var files unix.Rlimit // a memfd is a file: beyond the limit the kernel sends SIGXFSZ
	if unix.Getrlimit(unix.RLIMIT_FSIZE, &files) == nil {
		have = min(have, int64(min(files.Cur, math.MaxInt64)))
	}
	return have
}

// memfd returns the descriptor of a new anonymous file that can be sealed.
func memfd(name string) (int, error) {
	const longest = 249 // bytes, the kernel's limit
	label := "eyas-ring-" + fileName(name)
	label = label[:min(len(label), longest)]
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(label, flags|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate(label, flags)
	}
	return fd, err
}

// fill maps the memory, reserves and populates it, writes the header and seals it.
func fill(fd int, h *header) (mem []byte, readOnly *os.File, err error) {
	if err := unix.Ftruncate(fd, h.memory); err != nil {
		return nil, nil, fmt.Errorf("size its memory: %w", err)
	}
	mem, err = unix.Mmap(fd, 0, int(h.memory), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("map its memory: %w", err)
	}
	if readOnly, err = fillMapped(fd, mem, h); err != nil {
		return nil, nil, errors.Join(err, unix.Munmap(mem))
	}
	return mem, readOnly, nil
}

func fillMapped(fd int, mem []byte, h *header) (readOnly *os.File, err error) {
	if err := retryInterrupted(func() error { return unix.Fallocate(fd, 0, 0, h.memory) }); err != nil {
		return nil, fmt.Errorf("reserve its memory: %w", err)
	}
	if err := populate(mem); err != nil {
		return nil, fmt.Errorf("populate its memory: %w", err)
	}
	h.put(mem)
	if err := seal(fd); err != nil {
		return nil, fmt.Errorf("seal its memory: %w", err)
	}
	readOnly, err = os.Open("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return nil, fmt.Errorf("open its memory for reading: %w", err)
	}
	return readOnly, nil
}

// populate makes the page tables, so that no frame pays for a page fault.
func populate(mem []byte) error {
	err := retryInterrupted(func() error { return unix.Madvise(mem, unix.MADV_POPULATE_WRITE) })
	if errors.Is(err, unix.EINVAL) { // before Linux 5.14
		for i := 0; i < len(mem); i += os.Getpagesize() {
			mem[i] = 0
		}
		return nil
	}
	return err
}

// seal fixes the size, and lets nobody write but through the mapping that is there already. Before
// Linux 5.1 there is no such seal: then only the descriptor's mode and the file's own, which its owner can change,
// keep readers from writing.
func seal(fd int) error {
	if err := unix.Fchmod(fd, 0o400); err != nil {
		return err
	}
	const size = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	_, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, size|unix.F_SEAL_FUTURE_WRITE)
	if errors.Is(err, unix.EINVAL) {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, size)
	}
	return err
}

// retryInterrupted repeats a call that a signal ended. The runtime's own signals come every 10 ms at most, each
// call goes on where the one before ended or ends at once.
func retryInterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

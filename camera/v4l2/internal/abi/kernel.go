package abi

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Kernel is the System of this machine.
type Kernel struct{}

// Open implements System.
func (Kernel) Open(path string) (int, error) {
	return unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
}

// Close implements System.
func (Kernel) Close(fd int) error { return unix.Close(fd) }

// Ioctl implements System.
func (Kernel) Ioctl(fd int, request uint, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}

// Map implements System.
func (Kernel) Map(fd int, offset int64, length int) ([]byte, error) {
	return unix.Mmap(fd, offset, length, unix.PROT_READ, unix.MAP_SHARED)
}

// Unmap implements System.
func (Kernel) Unmap(mem []byte) error { return unix.Munmap(mem) }

package ort

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// NewTensor returns a zeroed tensor in anonymous memory outside the Go heap,
// aligned to a page. FreeTensor gives the memory back; until then it does not move
// and the collector does not know of it.
func NewTensor(name string, t tensor.Type, shape ...int) (*tensor.Tensor, error) {
	return mapTensor(name, t, shape, unix.MAP_PRIVATE)
}

// NewSharedTensor is NewTensor in shared memory, the process's RssShmem instead of its
// RssAnon. LockTensor fills in its pages; arenas and weights come first where locked memory is scarce.
func NewSharedTensor(name string, t tensor.Type, shape ...int) (*tensor.Tensor, error) {
	return mapTensor(name, t, shape, unix.MAP_SHARED)
}

func mapTensor(name string, t tensor.Type, shape []int, kind int) (*tensor.Tensor, error) {
	n := tensor.Elements(shape)
	if n < 0 || t.Bits() == 0 || n > math.MaxInt/16 {
		return nil, fmt.Errorf("tensor %s: cannot make %s of shape %v", name, t, shape)
	}
	size := t.Bytes(n)
	// A mapping is never empty, also where the tensor is.
	data, err := unix.Mmap(-1, 0, max(size, 1), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|kind)
	if err != nil {
		return nil, fmt.Errorf("tensor %s: allocate %d bytes: %w", name, size, err)
	}
	return &tensor.Tensor{Name: name, Type: t, Shape: append([]int(nil), shape...), Data: data[:size]}, nil
}

// LockTensor fills in all pages of a tensor made by NewTensor or NewSharedTensor and keeps them from being swapped
// out. The error says why the one or the other was not possible: mostly the limit on locked memory, and the pages
// are there all the same.
func LockTensor(t *tensor.Tensor) error {
	if len(t.Data) == 0 {
		return nil
	}
	if err := populate(t.Data); err != nil {
		return fmt.Errorf("tensor %s: fill %d bytes: %w", t.Name, len(t.Data), err)
	}
	return unix.Mlock(t.Data)
}

// populate makes every page of a mapping present, so that no run has to wait for one.
func populate(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	err := unix.Madvise(data, unix.MADV_POPULATE_WRITE)
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	touch(data) // a kernel before 5.14
	return nil
}

// touch writes to every page of a mapping and leaves what is in it.
func touch(data []byte) {
	for i := 0; i < len(data); i += os.Getpagesize() {
		atomic.AddUint32((*uint32)(unsafe.Pointer(&data[i])), 0)
	}
}

// FreeTensor unmaps a tensor made by NewTensor or NewSharedTensor, which no binding may use any more.
// Freeing it twice does nothing.
func FreeTensor(t *tensor.Tensor) error {
	if t == nil || t.Data == nil {
		return nil
	}
	data := t.Data
	t.Data = nil
	return unix.Munmap(data[:max(len(data), 1)])
}

package ort

import (
	"errors"
	"fmt"
	"math"
	"os"

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
// RssAnon, with all pages filled in. It is not locked: arenas and weights come first where locked
// memory is scarce. LockTensor does that.
func NewSharedTensor(name string, t tensor.Type, shape ...int) (*tensor.Tensor, error) {
	x, err := mapTensor(name, t, shape, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	if err := populate(x.Data); err != nil {
		return nil, errors.Join(fmt.Errorf("tensor %s: fill %d bytes: %w", name, len(x.Data), err), FreeTensor(x))
	}
	return x, nil
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

// LockTensor keeps a tensor made by NewTensor or NewSharedTensor from being swapped out. The
// error says why that is not allowed: mostly the limit on locked memory.
func LockTensor(t *tensor.Tensor) error {
	if len(t.Data) == 0 {
		return nil
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
	for i := 0; i < len(data); i += os.Getpagesize() { // a kernel before 5.14
		data[i] = 0
	}
	return nil
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

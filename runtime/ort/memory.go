package ort

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// NewTensor returns a zeroed tensor in anonymous memory outside the Go heap,
// aligned to a page. FreeTensor gives the memory back; until then it does not move
// and the collector does not know of it.
func NewTensor(name string, t tensor.Type, shape ...int) (*tensor.Tensor, error) {
	n := tensor.Elements(shape)
	if n < 0 || t.Bits() == 0 || n > math.MaxInt/16 {
		return nil, fmt.Errorf("tensor %s: cannot make %s of shape %v", name, t, shape)
	}
	size := t.Bytes(n)
	// A mapping is never empty, also where the tensor is.
	data, err := unix.Mmap(-1, 0, max(size, 1), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("tensor %s: allocate %d bytes: %w", name, size, err)
	}
	return &tensor.Tensor{Name: name, Type: t, Shape: append([]int(nil), shape...), Data: data[:size]}, nil
}

// FreeTensor unmaps a tensor made by NewTensor, which no binding may use any more.
// Freeing it twice does nothing.
func FreeTensor(t *tensor.Tensor) error {
	if t == nil || t.Data == nil {
		return nil
	}
	data := t.Data
	t.Data = nil
	return unix.Munmap(data[:max(len(data), 1)])
}

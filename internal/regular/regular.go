// Package regular opens files that come from outside. What only looks like a file (a pipe, a device, a folder) is
// refused instead of waited for.
package regular

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Open opens a regular file for reading. Opening a pipe does not wait for its writer: it is refused, as folders and
// devices are, with an *fs.PathError.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("is %s, not a file", kind(info.Mode()))}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// Package fserr words errors of the file system for messages that name the file themselves.
package fserr

import (
	"errors"
	"io/fs"
)

// Bare takes the path and the operation off an error of package os: "no such file or directory".
func Bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

package fserr

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestBare(t *testing.T) {
	_, err := os.Open(filepath.Join(t.TempDir(), "none"))
	if got := Bare(fmt.Errorf("read: %w", err)); got.Error() != "no such file or directory" {
		t.Errorf("got %q", got)
	}
	for _, err := range []error{nil, io.EOF, fs.ErrNotExist} {
		if got := Bare(err); got != err {
			t.Errorf("got %v, want %v", got, err)
		}
	}
}

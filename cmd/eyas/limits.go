package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// minFiles is how many files a process has to be able to have open: a run with one camera has some twenty, and each further
// camera four.
const minFiles = 64

const moreFiles = "raise the limit (ulimit -n, for a service LimitNOFILE=)"

// enoughFiles fails where so few files may be open that loading fails somewhere, with messages that do not tell why. Go
// has set the limit to the highest that it may be.
func enoughFiles() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err == nil && limit.Cur < minFiles {
		return fmt.Errorf("at most %d files may be open at the same time, and %d are needed: %s", limit.Cur, minFiles, moreFiles)
	}
	return nil
}

// withLimit adds what to do about an error that means too many open files.
func withLimit(err error) string {
	if errors.Is(err, unix.EMFILE) {
		return err.Error() + ": " + moreFiles
	}
	return err.Error()
}

package main

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A limit on open files that is too low is said before anything is loaded, with the cure.
func TestTooFewFiles(t *testing.T) {
	for limit, said := range map[int]string{
		16: "eyas: at most 16 files may be open at the same time, and 64 are needed: raise the limit (ulimit -n, for a service LimitNOFILE=)\n",
		64: "",
	} {
		cmd := command(fast(t, picture(t, "classic/bus.jpg"))...)
		cmd.Args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, limit), cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
		f := followCommand(t, cmd)
		want := exitMachine
		if said == "" {
			want = 0
		}
		if code := ends(t, f.Cmd); code != want || f.errs.String() != said {
			t.Errorf("limit %d: exit code %d, %s", limit, code, f.errs)
		}
	}
	err := &os.PathError{Op: "open", Path: "x", Err: unix.EMFILE}
	if got, want := withLimit(err), "open x: too many open files: "+moreFiles; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

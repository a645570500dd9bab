package main

import (
	"strings"
	"testing"
)

// A limit on the size of files, which a camera's memory is to the kernel, ends the camera with need and have, and the run with 4.
func TestRingBeyondFileLimit(t *testing.T) {
	for _, sources := range [][]string{
		{"a=test:pattern?size=1280x720"},
		{"a=test:pattern?size=1280x720", "b=test:pattern?size=64x48"},
	} {
		cmd := command(fast(t, append(sources, "--slo", "none", "--no-cache", "--duration", "1s")...)...)
		cmd.Args = append([]string{"sh", "-c", `ulimit -f 200; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
		f := followCommand(t, cmd)
		if code := ends(t, f.Cmd); code != exitMachine {
			t.Errorf("%d sources: exit code %d", len(sources), code)
		}
		if said := f.errs.String(); !strings.Contains(said, "ring a: frames need 5.3 MiB of memory, 0.") {
			t.Errorf("%d sources: %s", len(sources), said)
		}
	}
}

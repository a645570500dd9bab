package child

import (
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// passed are the variables that a child gets from our environment: what programs need to
// find files, libraries and plugins. Secrets in other variables stay here.
var passed = []string{
	"PATH", "HOME", "USER", "TMPDIR", "LD_LIBRARY_PATH",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
	"GST_PLUGIN_PATH", "GST_PLUGIN_SYSTEM_PATH", "GST_REGISTRY",
}

// Environ returns a child's environment: the few variables that are passed on, LANG=C and
// LC_ALL=C so that messages and numbers can be read, and extra (NAME=VALUE), which wins.
func Environ(extra []string) []string {
	env := []string{"LANG=C", "LC_ALL=C"}
	for _, kv := range os.Environ() {
		if name, _, ok := strings.Cut(kv, "="); ok && slices.Contains(passed, name) {
			env = append(env, kv)
		}
	}
	return append(env, extra...) // os/exec takes the last of equal names
}

// closeOnExec marks every descriptor from 3 on as not to be inherited. Go does so for its
// own; this catches those that we were started with and those of C libraries.
func closeOnExec() {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	// Before Linux 5.11 there is no such flag.
	fds, _ := os.ReadDir("/proc/self/fd")
	for _, e := range fds {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

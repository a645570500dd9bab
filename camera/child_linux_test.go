package camera

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// children returns the process ids of this process's children.
func children(t *testing.T) (pids []int) {
	t.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, th := range threads {
		list, _ := os.ReadFile("/proc/self/task/" + th.Name() + "/children")
		for _, f := range strings.Fields(string(list)) {
			if pid, err := strconv.Atoi(f); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

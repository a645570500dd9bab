package machine

import (
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// A thread that may use one CPU only, as under taskset.
func TestOneCPUByAffinity(t *testing.T) {
	got := make(chan CPU)
	go func() {
		goruntime.LockOSThread() // for good: a thread with another affinity is of no use to others
		var all, one unix.CPUSet
		if err := unix.SchedGetaffinity(0, &all); err != nil {
			t.Error(err)
		}
		for i := range 1024 {
			if all.IsSet(i) {
				one.Set(i)
				break
			}
		}
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			t.Error(err)
		}
		got <- ReadCPU("/")
	}()
	if c := <-got; c.Affinity != 1 || c.Allowed != 1 || c.Why != "affinity" {
		t.Errorf("got %+v", c)
	}
}

// The kernel's own files of a control group with half a CPU.
func TestHalfACPUByQuota(t *testing.T) {
	group := fmt.Sprintf("/eyas-machine-test-%d", os.Getpid())
	dir := "/sys/fs/cgroup/cpu" + group
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("no control group of version 1 can be made here: %v", err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	for file, n := range map[string]int{"cpu.cfs_period_us": 100_000, "cpu.cfs_quota_us": 50_000} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(strconv.Itoa(n)), 0); err != nil {
			t.Skip(err)
		}
	}
	root := tree(t, map[string]string{"proc/self/cgroup": "4:cpu:" + group + "\n"})
	if err := os.Symlink("/sys", filepath.Join(root, "sys")); err != nil {
		t.Fatal(err)
	}
	if c := ReadCPU(root); c.Quota != 0.5 || c.Allowed != 1 {
		t.Errorf("got %+v", c)
	}
}

// What others have reserved is not there, of the machine and of each group that they are in.
func TestMemoryBeside(t *testing.T) {
	root := tree(t, map[string]string{
		"proc/meminfo": "MemTotal: 8000 kB\nMemAvailable: 4000 kB\n", "proc/self/cgroup": "0::/a/b",
		"sys/fs/cgroup/a/b/memory.max": "800", "sys/fs/cgroup/a/b/memory.current": "0",
		"sys/fs/cgroup/a/memory.max": "1000", "sys/fs/cgroup/a/memory.current": "0",
		"sys/fs/cgroup/memory.stat": "",
	})
	groups := MemoryGroups(root)
	if len(groups) != 2 || groups[0].Dir != filepath.Join(root, "sys/fs/cgroup/a/b") || !groups[0].V2 || groups[0].ID() == "" || groups[0].ID() == groups[1].ID() {
		t.Fatalf("groups %+v", groups)
	}
	for _, c := range []struct {
		name                 string
		machine, slice, leaf uint64
		want                 uint64
	}{
		{"nothing", 0, 0, 0, 800},
		{"in the same group", 300, 300, 300, 500},
		{"in the group above", 700, 700, 0, 300},
		{"more than there is in a group", 5000, 5000, 5000, 1},
		{"elsewhere", 3999*1024 + 1000, 0, 0, 24},
		{"more than there is", 1 << 40, 0, 0, 1},
	} {
		reserved := map[string]uint64{"": c.machine, groups[0].ID(): c.leaf, groups[1].ID(): c.slice}
		if got := ReadMemoryBeside(root, func(id string) uint64 { return reserved[id] }).Usable(); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if id := (MemoryGroup{Dir: filepath.Join(root, "none")}).ID(); id != "" {
		t.Errorf("a group that is not there: %q", id)
	}
	if got := ReadMemoryBeside(t.TempDir(), func(string) uint64 { return 1 }).Usable(); got != 0 {
		t.Errorf("an unknown machine: %d", got)
	}
}

func TestProcessOf(t *testing.T) {
	if p := ReadProcessOf("/", os.Getppid()); p.RSSAnon+p.RSSFile == 0 {
		t.Errorf("the parent has %+v", p)
	}
	if p := ReadProcessOf("/", 1<<30); p != (Process{}) {
		t.Errorf("nobody has %+v", p)
	}
}

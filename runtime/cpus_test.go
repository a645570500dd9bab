package runtime_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/testenv"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// childVar tells this test's program that it is the child, and says which group to join first.
const childVar = "EYAS_TEST_CPUS"

// A process that may use one CPU, or half of one, runs one lane of one thread, whoever limits it.
func TestThreadsFollowLimits(t *testing.T) {
	if group, child := os.LookupEnv(childVar); child {
		sayChoice(t, group)
		return
	}
	for _, c := range []struct {
		name string
		args func(t *testing.T) (before []string, group string)
	}{
		{"affinity", func(t *testing.T) ([]string, string) {
			path, err := exec.LookPath("taskset")
			testenv.Require(t, err == nil, "taskset is not installed")
			return []string{path, "-c", strconv.Itoa(someCPU(t))}, ""
		}},
		{"quota of half a CPU", func(t *testing.T) ([]string, string) { return nil, quotaGroup(t, 50_000, 100_000) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, group := c.args(t)
			args := append(before, os.Args[0], "-test.run=^TestThreadsFollowLimits$", "-test.v")
			cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
			cmd.Env = append(os.Environ(), childVar+"="+group, "EYAS_HOME="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "chosen: 1 lane of 1 thread") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// sayChoice is the child.
func sayChoice(t *testing.T, group string) {
	if group != "" {
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rt, err := eyas.Open(context.Background(), eyas.Config{ORT: testenv.Library(t), SLO: 1 << 40, Models: map[string]eyas.ModelConfig{"m": {Path: tinyYOLO(t, 1)}}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	fmt.Println("chosen:", rt.Choice().Setting)
}

// someCPU returns a CPU that this process may use.
func someCPU(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(status), "Cpus_allowed_list:")
	digits := strings.FieldsFunc(list, func(r rune) bool { return r < '0' || r > '9' })
	n, err := strconv.Atoi(digits[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// quotaGroup makes a control group of version 1 with a quota, both in microseconds, for the time of the test.
func quotaGroup(t *testing.T, quota, period int) string {
	t.Helper()
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	own := ""
	for line := range strings.Lines(string(groups)) {
		if parts := strings.SplitN(strings.TrimSpace(line), ":", 3); len(parts) == 3 && (parts[1] == "cpu" || parts[1] == "cpu,cpuacct") {
			own = parts[2]
		}
	}
	dir := filepath.Join("/sys/fs/cgroup/cpu", own, fmt.Sprint("eyas-test-", os.Getpid()))
	if own == "" || os.Mkdir(dir, 0o755) != nil {
		t.Skip("no control group of version 1 for CPUs that this user may make")
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	for file, n := range map[string]int{"cpu.cfs_period_us": period, "cpu.cfs_quota_us": quota} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(strconv.Itoa(n)), 0o600); err != nil {
			t.Skip("the control group takes no quota: " + err.Error())
		}
	}
	return dir
}

package main

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/memplan"
)

// within makes a command one that begins in a control group.
func within(procs string, c *exec.Cmd) *exec.Cmd {
	in := exec.Command("/bin/sh", append([]string{"-c", `echo $$ > "$0" && exec "$@"`, procs}, c.Args...)...)
	in.Env = c.Env
	return in
}

// Of two processes in a control group that holds one, the second is refused with both plans' numbers; once the first is
// gone, however it ended, it starts.
func TestTwoProcesses(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	// Lanes that take much more than a program does before it has a plan.
	args := func(more ...string) []string {
		return append([]string{"run", "--lanes", "8", "--threads", "1", "-m", modelFile(t, "yolox_nano_416")}, more...)
	}
	source := "test:pattern?size=320x240"
	planned := plannedBytes(t, args(source+"&frames=20", "--events"))
	procs := filepath.Join(testenv.MemoryGroup(t, int(planned*3/2)), "cgroup.procs")
	again := func() (code int, stderr string) {
		c := within(procs, command(args(source+"&frames=3")...))
		var errs strings.Builder
		c.Stderr = &errs
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return ends(t, c), errs.String()
	}

	first := within(procs, command(args(source+"&frames=1000000")...))
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	_, err = bufio.NewReader(out).ReadString('\n') // it has all its memory
	code, stderr := again()
	killed := first.Process.Kill()
	if ended := ends(t, first); err != nil || killed != nil || ended != 128+9 {
		t.Fatalf("the first: %v, %v, exit code %d", err, killed, ended)
	}
	want := regexp.MustCompile(`^eyas: plan: \S+ MiB \(\d+ bytes\) needed, this machine has .*; process ` + strconv.Itoa(first.Process.Pid) +
		` \(yolox_nano_416\) has planned \S+ MiB of which \S+ [KM]?i?B are still to be taken\n$`)
	if code != 4 || !want.MatchString(stderr) {
		t.Errorf("the second ended with %d: %s", code, stderr)
	}
	t.Logf("the second: %s", stderr)
	if code, stderr := again(); code != 0 {
		t.Errorf("after the first was killed: %d: %s", code, stderr)
	}
}

// plannedBytes returns what a run plans.
func plannedBytes(t *testing.T, args []string) (sum int64) {
	t.Helper()
	o := call(t, args...)
	o.want(t, 0)
	last := o.stdout[strings.LastIndex(strings.TrimSpace(o.stdout), "\n")+1:]
	var summary struct{ Memory memplan.Usage }
	if err := json.Unmarshal([]byte(last), &summary); err != nil {
		t.Fatalf("%v in %s", err, last)
	}
	for _, r := range summary.Memory.Regions {
		sum += r.Planned
	}
	return sum
}

package pressure

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// fillKey makes the test binary a process that fills its control group, whose folder it names.
const fillKey = "EYAS_TEST_FILL"

func TestMain(m *testing.M) {
	if group := os.Getenv(fillKey); group != "" {
		if err := fill(group); err != nil {
			fmt.Println(err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// write writes files below root.
func write(t testing.TB, root string, contents map[string]string) {
	t.Helper()
	for name, text := range contents {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const (
	info   = "MemTotal:        8000 kB\nMemFree:            1 kB\nMemAvailable:    4000 kB\n"
	stalls = "some avg10=1.00 avg60=0.50 avg300=0.00 total=12345\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=99\n"
)

func TestSampler(t *testing.T) {
	const machine = 4000 << 10
	for _, c := range []struct {
		name  string
		files map[string]string
		want  Sample
	}{
		{"nothing", nil, Sample{}},
		{"machine", map[string]string{"proc/meminfo": info, "proc/pressure/memory": stalls}, Sample{Stalled: 12345 * time.Microsecond, Left: machine, Of: 2 * machine}},
		{"v2", map[string]string{"proc/meminfo": info, "proc/pressure/memory": stalls, "proc/self/cgroup": "0::/a\n",
			"sys/fs/cgroup/a/memory.current": "900\n", "sys/fs/cgroup/a/memory.max": "1000\n", "sys/fs/cgroup/a/memory.high": "max\n",
			"sys/fs/cgroup/a/memory.stat":     "anon 300\nactive_file 100\ninactive_file 50\n",
			"sys/fs/cgroup/a/memory.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n",
			"sys/fs/cgroup/a/memory.events":   "low 1\nhigh 20\nmax 300\noom 4\noom_kill 50\noom_group_kill 600\n"},
			Sample{Stalled: 7 * time.Microsecond, Left: 250, Of: 1000, Limited: 321, Killed: 54}},
		{"v2, throttled before its limit", map[string]string{"proc/self/cgroup": "0::/a\n",
			"sys/fs/cgroup/a/memory.current": "900\n", "sys/fs/cgroup/a/memory.max": "2000\n", "sys/fs/cgroup/a/memory.high": "950\n"}, Sample{Left: 50, Of: 950}},
		{"v2, the group above is nearly full", map[string]string{"proc/meminfo": info, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.current": "100", "sys/fs/cgroup/a/b/memory.max": "1000", "sys/fs/cgroup/a/memory.current": "1990", "sys/fs/cgroup/a/memory.max": "2000",
			"sys/fs/cgroup/a/b/memory.events": "max 1\n", "sys/fs/cgroup/a/memory.events": "max 100\n"}, Sample{Left: 10, Of: 2000, Limited: 1}},
		{"v2, no limit", map[string]string{"proc/meminfo": info, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.current": "900", "sys/fs/cgroup/a/memory.max": "max"},
			Sample{Left: machine, Of: 2 * machine}},
		{"v2, over its limit", map[string]string{"proc/meminfo": info, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.current": "1100", "sys/fs/cgroup/a/memory.max": "1000"}, Sample{Of: 1000}},
		{"stalls are not counted for groups", map[string]string{"proc/pressure/memory": stalls, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.current": "1",
			"sys/fs/cgroup/a/memory.pressure": ""}, Sample{Stalled: 12345 * time.Microsecond}},
		{"v1", map[string]string{"proc/meminfo": info, "proc/pressure/memory": stalls, "proc/self/cgroup": "4:memory:/a\n0::/\n",
			"sys/fs/cgroup/memory/a/memory.usage_in_bytes": "900\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1000\n",
			"sys/fs/cgroup/memory/a/memory.stat":        "active_file 1\ntotal_inactive_file 100\ntotal_active_file 50\n",
			"sys/fs/cgroup/memory/a/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"},
			Sample{Stalled: 12345 * time.Microsecond, Left: 250, Of: 1000, Killed: 3}},
		{"v1, no limit", map[string]string{"proc/meminfo": info, "proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "900\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, Sample{Left: machine, Of: 2 * machine}},
		{"nonsense", map[string]string{"proc/meminfo": "MemTotal: 99999999999999999999 kB\nMemAvailable: -1 kB\n", "proc/pressure/memory": "some total=18446744073709551615\n"}, Sample{}},
		{"more available than there is", map[string]string{"proc/meminfo": "MemTotal: 1 kB\nMemAvailable: 1844674407370955161 kB\n"}, Sample{Left: 1024, Of: 1024}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			write(t, root, c.files)
			s := newSampler(root)
			defer s.close()
			for range 2 {
				if got := s.read(0); got != c.want {
					t.Errorf("got %+v, want %+v", got, c.want)
				}
			}
		})
	}
}

// A sample of this machine costs no memory, and has what its kernel tells.
func TestSamplesAreFree(t *testing.T) {
	s := newSampler("/")
	defer s.close()
	var m Meter
	var at time.Duration
	if v := s.read(0); v.Of == 0 || v.Left > v.Of {
		t.Errorf("got %+v", v)
	}
	if n := testing.AllocsPerRun(100, func() {
		at += time.Hour // so long that nothing counts as pressure
		m.Observe(s.read(at))
	}); n > 0 {
		t.Errorf("%v allocations a sample", n)
	}
}

// fill fills a group on one line of input, frees all on the next, and answers each.
func fill(group string) error {
	const block = 1 << 20
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		return err
	}
	s := &sampler{}
	limit, usage := openFile(filepath.Join(group, "memory.limit_in_bytes")), openFile(filepath.Join(group, "memory.usage_in_bytes"))
	most, _ := number(s.text(limit))
	var blocks [][]byte
	for {
		used, ok := number(s.text(usage))
		if !ok || used >= most-most/24 { // more than some pressure, and room for the program itself
			break
		}
		mem, err := unix.Mmap(-1, 0, block, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
		if err != nil {
			return err
		}
		blocks = append(blocks, mem)
	}
	fmt.Println("full")
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	for _, mem := range blocks {
		if err := unix.Munmap(mem); err != nil {
			return err
		}
	}
	fmt.Println("free")
	_, err := in.ReadString('\n')
	if err == io.EOF {
		err = nil
	}
	return err
}

// A real control group that is filled and emptied.
func TestAControlGroup(t *testing.T) {
	const limit = 128 << 20
	group := fmt.Sprintf("/eyas-pressure-test-%d", os.Getpid())
	dir := "/sys/fs/cgroup/memory" + group
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("no control group of version 1 can be made here: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	if err := os.WriteFile(filepath.Join(dir, "memory.limit_in_bytes"), []byte(strconv.Itoa(limit)), 0); err != nil {
		t.Skip(err)
	}
	// The kernel's files, as a process in the group sees them.
	root := t.TempDir()
	write(t, root, map[string]string{"proc/self/cgroup": "4:memory:" + group + "\n"})
	for link, to := range map[string]string{"sys": "/sys", "proc/meminfo": "/proc/meminfo", "proc/pressure": "/proc/pressure"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	s := newSampler(root)
	defer s.close()
	var m Meter
	var at time.Duration
	observe := func() (Level, string) {
		at += time.Minute // what others do on this machine meanwhile is nothing in that time
		return m.Observe(s.read(at))
	}

	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fillKey+"="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(pipe)
	tell := func(want string) {
		t.Helper()
		_, werr := io.WriteString(in, "\n")
		if line, err := out.ReadString('\n'); werr != nil || err != nil || strings.TrimSpace(line) != want {
			t.Errorf("%q, %v, %v, want %q", line, werr, err, want)
		}
	}
	if level, why := observe(); level != None {
		t.Errorf("at first: %v: %s", level, why)
	}
	tell("full")
	level, why := observe()
	t.Logf("full: %v: %s", level, why)
	if level == None || !strings.HasSuffix(why, " of 128.0 MiB are left") {
		t.Errorf("full: %v: %s", level, why)
	}
	tell("free")
	for range 2 { // a step each
		level, why = observe()
	}
	if level != None {
		t.Errorf("free: %v: %s, %+v", level, why, s.read(at))
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// FuzzParse: none of the parsers panics or goes beyond what a text says.
func FuzzParse(f *testing.F) {
	f.Add([]byte(info), "MemTotal:")
	f.Add([]byte(stalls), "some")
	f.Add([]byte("low 0\nhigh 18446744073709551615\noom_kill 3\n"), "high")
	f.Add([]byte("max\n"), "")
	f.Fuzz(func(t *testing.T, text []byte, key string) {
		if d := stalled(text); d < 0 {
			t.Errorf("stalled for %v", d)
		}
		if n, ok := number(text); ok && n == 0 && !strings.ContainsRune(string(text), '0') || !ok && n > 0 && n < math.MaxUint64/10-1 {
			t.Errorf("%q gives %d, %v", text, n, ok)
		}
		if _, ok := value(text, key); ok && !strings.Contains(string(text), key+" ") {
			t.Errorf("%q is not in %q", key, text)
		}
	})
}

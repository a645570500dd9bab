package machine

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree writes files below a temporary root.
func tree(t testing.TB, contents map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range contents {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestQuota(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  float64
	}{
		{"nothing", nil, 0},
		{"v2, the group", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "150000 100000\n"}, 1.5},
		{"v2, a parent is tighter", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "400000 100000\n", "sys/fs/cgroup/a/cpu.max": "100000 100000\n"}, 1},
		{"v2, no limit", map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/cpu.max": "max 100000\n"}, 0},
		{"v2, namespaced", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}, 0.5},
		{"v2, no /proc", map[string]string{"sys/fs/cgroup/cpu.max": "50000 100000\n"}, 0},
		{"v1", map[string]string{"proc/self/cgroup": "4:cpu,cpuacct:/x\n1:name=systemd:/\n", "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "300000\n", "sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000\n"}, 3},
		{"v1, a container sees its root", map[string]string{"proc/self/cgroup": "4:cpuacct,cpu:/docker/0123\n", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "200000\n", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n"}, 2},
		{"v1, no limit", map[string]string{"proc/self/cgroup": "4:cpu:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 0},
		{"both", map[string]string{"proc/self/cgroup": "4:cpu:/\n0::/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n", "sys/fs/cgroup/unified/cpu.max": "150000 100000"}, 1.5},
		{"a group outside", map[string]string{"proc/self/cgroup": "0::/../../x\n", "sys/fs/cgroup/x/cpu.max": "50000 100000\n"}, 0.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := quota(files{tree(t, c.files)}); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestAllowed(t *testing.T) {
	for _, c := range []struct {
		affinity int
		quota    float64
		want     int
		why      string
	}{
		{8, 0, 8, "affinity"}, {8, 1.5, 2, "control group"}, {8, 0.1, 1, "control group"}, {8, 3, 3, "control group"},
		{2, 3, 2, "affinity"}, {2, 1.5, 2, "affinity"}, {1, 0.5, 1, "affinity"}, {4, 1e300, 4, "affinity"},
	} {
		if got, why := allowed(c.affinity, c.quota); got != c.want || why != c.why {
			t.Errorf("affinity %d, quota %v: %d by %s, want %d by %s", c.affinity, c.quota, got, why, c.want, c.why)
		}
	}
	if got, _ := allowed(0, 0); got < 1 {
		t.Errorf("unknown affinity gives %d", got)
	}
}

func TestMemory(t *testing.T) {
	const info = "MemTotal:        8000000 kB\nMemFree:  1 kB\nMemAvailable:    4000000 kB\n"
	const kB = 1024
	for _, c := range []struct {
		name  string
		files map[string]string
		want  Memory
		use   uint64
	}{
		{"unknown", nil, Memory{}, 0},
		{"machine", map[string]string{"proc/meminfo": info}, Memory{Total: 8000000 * kB, Available: 4000000 * kB}, 4000000 * kB},
		{"v2", map[string]string{"proc/meminfo": info, "proc/self/cgroup": "0::/a", "sys/fs/cgroup/a/memory.max": "1000000", "sys/fs/cgroup/a/memory.current": "400000"},
			Memory{8000000 * kB, 4000000 * kB, 1000000, 400000}, 600000},
		{"v2, over its limit", map[string]string{"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": "10", "sys/fs/cgroup/memory.current": "12"}, Memory{Limit: 10, Used: 12}, 1},
		{"v2, max", map[string]string{"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": "max"}, Memory{}, 0},
		{"v2, the group above is nearly full", map[string]string{"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/b/memory.max": "1000", "sys/fs/cgroup/a/b/memory.current": "100",
			"sys/fs/cgroup/a/memory.max": "2000", "sys/fs/cgroup/a/memory.current": "1900"}, Memory{Limit: 2000, Used: 1900}, 100},
		{"v1", map[string]string{"proc/self/cgroup": "9:memory:/d", "sys/fs/cgroup/memory/d/memory.limit_in_bytes": "2097152", "sys/fs/cgroup/memory/d/memory.usage_in_bytes": "1048576"}, Memory{Limit: 2097152, Used: 1048576}, 1048576},
		{"v2, files are cached", map[string]string{"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": "1000", "sys/fs/cgroup/memory.current": "900",
			"sys/fs/cgroup/memory.stat": "anon 300\nfile 600\ninactive_anon 50\nactive_file 200\ninactive_file 400\nbroken\n"}, Memory{Limit: 1000, Used: 300}, 700},
		{"v2, more is cached than used", map[string]string{"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": "1000", "sys/fs/cgroup/memory.current": "900",
			"sys/fs/cgroup/memory.stat": "active_file 18446744073709551615\ninactive_file -1\n"}, Memory{Limit: 1000}, 1000},
		{"v1, files are cached", map[string]string{"proc/self/cgroup": "9:memory:/", "sys/fs/cgroup/memory/memory.limit_in_bytes": "1000", "sys/fs/cgroup/memory/memory.usage_in_bytes": "900",
			"sys/fs/cgroup/memory/memory.stat": "inactive_file 1\nactive_file 2\ntotal_inactive_file 400\ntotal_active_file 200\n"}, Memory{Limit: 1000, Used: 300}, 700},
		{"v1, none", map[string]string{"proc/meminfo": info, "proc/self/cgroup": "9:memory:/", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"}, Memory{Total: 8000000 * kB, Available: 4000000 * kB}, 4000000 * kB},
		{"v1, none, total unknown", map[string]string{"proc/self/cgroup": "9:memory:/", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"}, Memory{}, 0},
		{"nonsense", map[string]string{"proc/meminfo": "MemTotal: 99999999999999999999 kB\nMemAvailable: -1 kB\n"}, Memory{}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ReadMemory(tree(t, c.files))
			if got != c.want || got.Usable() != c.use {
				t.Errorf("got %+v usable %d, want %+v usable %d", got, got.Usable(), c.want, c.use)
			}
		})
	}
}

func TestNVIDIA(t *testing.T) {
	const orin = "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64, DATE: Wed Jan  8 01:49:37 UTC 2025"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  GPU
	}{
		{"none", nil, GPU{}},
		{"desktop", map[string]string{
			"proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: \t\t NVIDIA GeForce RTX 3060\nIRQ:   	 88\n",
			"proc/driver/nvidia/version":                       "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  Wed Jan 22 12:00:00 UTC 2025\nGCC version:\n",
			"dev/nvidia0":                                      "",
		}, GPU{Present: true, Names: []string{"NVIDIA GeForce RTX 3060"}, Driver: "570.86.10"}},
		{"container", map[string]string{"dev/nvidia0": ""}, GPU{Present: true}},
		{"driver without a card", map[string]string{"dev/nvidiactl": "", "proc/driver/nvidia/version": "NVRM version: x  550.1  y"}, GPU{Driver: "550.1"}},
		{"Jetson", map[string]string{"etc/nv_tegra_release": orin + "\n", "dev/nvhost-gpu": ""}, GPU{Present: true, Tegra: true, Release: orin}},
		{"Jetson, container without devices", map[string]string{"etc/nv_tegra_release": orin}, GPU{Tegra: true, Release: orin}},
		{"odd", map[string]string{"proc/driver/nvidia/gpus/x/information": "\x1b[31mModel\n", "proc/driver/nvidia/version": "\x00\xff"}, GPU{Present: true, Names: []string{"unknown"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := NVIDIA(tree(t, c.files))
			if got.Present != c.want.Present || got.Tegra != c.want.Tegra || got.Driver != c.want.Driver || got.Release != c.want.Release || !slices.Equal(got.Names, c.want.Names) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestSystem(t *testing.T) {
	root := tree(t, map[string]string{
		"proc/sys/kernel/osrelease": "5.15.148-tegra\n",
		"etc/os-release":            "NAME=Ubuntu\nPRETTY_NAME=\"Ubuntu 22.04.5 LTS\"\n",
		"proc/device-tree/model":    "NVIDIA Jetson Orin Nano Developer Kit\x00",
		".dockerenv":                "",
		"proc/cpuinfo":              "processor : 0\nCPU implementer : 0x41\nCPU part\t: 0xd42\n",
	})
	s := ReadSystem(root)
	if s.Kernel != "5.15.148-tegra" || s.Distribution != "Ubuntu 22.04.5 LTS" || s.Board != "NVIDIA Jetson Orin Nano Developer Kit" || !s.Container || s.OS == "" || s.Arch == "" {
		t.Errorf("got %+v", s)
	}
	if got := ReadCPU(root).Model; got != "ARM implementer 0x41 part 0xd42" {
		t.Errorf("model %q", got)
	}
	if s := ReadSystem(t.TempDir()); s.Kernel == "" || s.Distribution != "" || s.Container {
		t.Errorf("an empty root gives %+v", s)
	}
}

// What this machine says is plausible.
func TestHere(t *testing.T) {
	c := ReadCPU("/")
	if c.Allowed < 1 || c.Affinity < c.Allowed || c.Why == "" || CPUs() != c.Allowed {
		t.Errorf("cpu %+v", c)
	}
	if m := ReadMemory("/"); m.Total == 0 || m.Available > m.Total || m.Usable() > m.Total {
		t.Errorf("memory %+v", m)
	}
	if l := ReadLocked(); !l.Known || (!l.Unlimited && l.Soft > l.Hard) {
		t.Errorf("locked %+v", l)
	}
}

func TestTools(t *testing.T) {
	dir := t.TempDir()
	script := func(name, body string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	script("ffmpeg", "echo ffmpeg version 7.1; head -c 100000 /dev/zero")
	script("gst-launch-1.0", "exit 3")
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	got := map[string]Tool{}
	for _, tool := range Tools(context.Background()) {
		got[tool.Name] = tool
	}
	if f := got["ffmpeg"]; f.Path != filepath.Join(dir, "ffmpeg") || f.Version != "ffmpeg version 7.1" {
		t.Errorf("%+v", f)
	}
	if g := got["gst-launch-1.0"]; g.Path == "" || g.Version != "" {
		t.Errorf("%+v", g)
	}
	t.Setenv("PATH", t.TempDir())
	if f := Tools(context.Background())[0]; f != (Tool{Name: "ffmpeg"}) {
		t.Errorf("%+v", f)
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{" a\x1b[0m\x00b\n": "a[0mb", "": "", strings.Repeat("é", 150): strings.Repeat("é", 100)} {
		if got := printable(in); got != want {
			t.Errorf("%q gives %q", in, got)
		}
	}
}

// FuzzParse feeds every parser of this package; none may panic, and what they print
// stays on a line.
func FuzzParse(f *testing.F) {
	f.Add("4:cpu,cpuacct:/x\n0::/a/b\n", "cpu")
	f.Add("150000 100000", "max")
	f.Add("MemTotal: 8 kB", "MemTotal")
	f.Add("NVRM version: x  550.1  y", "")
	f.Fuzz(func(t *testing.T, text, key string) {
		v1, v2 := parseCgroup(text, key)
		for _, p := range []string{v1, v2} {
			if p != "" && (!strings.HasPrefix(p, "/") || strings.Contains(p+"/", "/../")) {
				t.Errorf("group %q", p)
			}
		}
		if q := parseCPUMax(text); q < 0 || q != q {
			t.Errorf("quota %v", q)
		}
		if n, _ := allowed(4, parseCPUMax(text)); n < 1 || n > 4 {
			t.Errorf("%d CPUs", n)
		}
		kilobytes(text)
		for _, s := range []string{field(text, key), printable(text), driverVersion(printable(text))} {
			if len(s) > 200 || strings.ContainsAny(s, "\n\r\x1b\x00") {
				t.Errorf("%q", s)
			}
		}
	})
}

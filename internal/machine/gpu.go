package machine

import (
	"path/filepath"
	"strings"
)

// GPU says whether the machine has an NVIDIA GPU, from what the kernel shows: no
// NVIDIA library is needed or loaded.
type GPU struct {
	Present bool
	Tegra   bool     // an integrated one, on a Jetson
	Names   []string // of discrete GPUs, by PCI address
	Driver  string   // the kernel driver's version, empty if unknown
	Release string   // the first line of /etc/nv_tegra_release, empty if there is none
}

// NVIDIA reads the GPU's facts below root.
func NVIDIA(root string) GPU {
	fs := files{root}
	g := GPU{Release: fs.line("etc/nv_tegra_release")}
	for _, p := range fs.glob("proc/driver/nvidia/gpus/*/information") {
		rel, err := filepath.Rel(root, p)
		if err != nil {
			continue
		}
		name := field(fs.text(rel), "Model")
		if name == "" {
			name = "unknown"
		}
		g.Names = append(g.Names, name)
	}
	g.Driver = driverVersion(fs.line("proc/driver/nvidia/version"))
	g.Tegra = g.Release != "" || len(fs.glob("dev/nvhost*")) > 0
	// A container may have the devices without /proc/driver, or the reverse; the release
	// file of a Jetson alone is a container on a board, whose devices may be missing.
	g.Present = len(g.Names) > 0 || fs.exists("dev/nvidia0") || len(fs.glob("dev/nvhost*")) > 0
	return g
}

// driverVersion finds the version in a line such as
// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  Wed ...".
func driverVersion(line string) string {
	for _, f := range strings.Fields(line) {
		if f[0] >= '0' && f[0] <= '9' && strings.Count(f, ".") >= 1 && strings.Trim(f, "0123456789.") == "" {
			return f
		}
	}
	return ""
}

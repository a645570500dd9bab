package machine

import (
	"path"
	"strings"
)

// maxLevels bounds the control-group directories looked at: a process is in one
// group per hierarchy, and each is nested a few levels deep.
const maxLevels = 32

// groupFiles calls read for the control group of this process and each of its
// parents, whose limits hold as well: with the directory of a version 2 hierarchy
// and "" as controller, or that of a version 1 hierarchy and its controller.
func groupFiles(fs files, controller string, read func(dir string, v2 bool)) {
	v1, v2 := parseCgroup(fs.text("proc/self/cgroup"), controller)
	walk := func(base, group string, isV2 bool) {
		for range maxLevels {
			read(path.Join(base, group), isV2)
			if group == "/" || group == "." || group == "" {
				return
			}
			group = path.Dir(group)
		}
	}
	if v1 != "" {
		walk("sys/fs/cgroup/"+controller, v1, false)
		// Distributions mount cpu and cpuacct as one hierarchy, with either name as link.
		if controller == "cpu" {
			walk("sys/fs/cgroup/cpu,cpuacct", v1, false)
		}
	}
	if v2 != "" {
		walk("sys/fs/cgroup", v2, true)
		walk("sys/fs/cgroup/unified", v2, true)
	}
}

// parseCgroup returns the group of a version 1 controller and of version 2 from the
// text of /proc/self/cgroup, whose lines are ID:CONTROLLERS:PATH; empty if it is in
// none. In a container the path may be that of the host: then only the parents that
// exist here are read, up to the container's root, which is the group itself.
func parseCgroup(text, controller string) (v1, v2 string) {
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || !strings.HasPrefix(parts[2], "/") {
			continue
		}
		group := path.Clean(parts[2]) // rooted, so that it cannot leave the hierarchy
		if parts[0] == "0" && parts[1] == "" {
			v2 = group
			continue
		}
		for c := range strings.SplitSeq(parts[1], ",") {
			if c == controller {
				v1 = group
			}
		}
	}
	return v1, v2
}

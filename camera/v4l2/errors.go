package v4l2

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// explain words what the system says about a device for its user; what to do stands behind the last colon.
func (h Host) explain(path string, err error) error {
	switch {
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("no right to open %s, which belongs to the group %s: run `sudo usermod -aG %[2]s %[3]s`, then log in again", path, h.group(path), me())
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("opening %s is not allowed here: in a container, give it the device (docker run --device %[1]s)", path)
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("there is no %s: plug the camera in; %s", path, h.others())
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return errGone
	case errors.Is(err, unix.ENOTTY):
		return Unusable{fmt.Errorf("%s is not a camera", path)}
	case errors.Is(err, unix.EBUSY):
		if who := h.holder(path); who != "" {
			return fmt.Errorf("%s is in use by %s: stop that first", path, who)
		}
		return fmt.Errorf("%s is in use by another program", path)
	}
	return err
}

var errGone = errors.New("the camera was unplugged")

// group names the group that may open a device.
func (h Host) group(path string) string {
	const usual = "video"
	info, err := os.Stat(h.file(path))
	if err != nil {
		return usual
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Gid == 0 {
		return usual
	}
	g, err := user.LookupGroupId(strconv.FormatUint(uint64(st.Gid), 10))
	if err != nil {
		return usual
	}
	return g.Name
}

func me() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "USER"
}

// others says which cameras there are.
func (h Host) others() string {
	nodes := h.nodes()
	if len(nodes) == 0 {
		return "this machine has no camera"
	}
	return "there are " + strings.Join(nodes, ", ")
}

// maxLinks bounds how many descriptors of other processes are looked at.
const maxLinks = 1 << 14

// holder names who else has the device open, as far as one may look; "" if nobody is found. This process has it
// open once while it asks.
func (h Host) holder(path string) string {
	processes, _ := filepath.Glob(h.file("/proc/[0-9]*")) // the pattern is good
	seen, ours := 0, 0
	for _, p := range processes {
		links, _ := os.ReadDir(filepath.Join(p, "fd"))
		for _, l := range links {
			if seen++; seen > maxLinks {
				return ""
			}
			to, err := os.Readlink(filepath.Join(p, "fd", l.Name()))
			if err != nil || to != path {
				continue
			}
			if pid := filepath.Base(p); pid != strconv.Itoa(os.Getpid()) {
				name, _ := os.ReadFile(filepath.Join(p, "comm"))
				return fmt.Sprintf("%s (process %s)", text(name[:min(len(name), 64)]), pid)
			}
			if ours++; ours > 1 {
				return "another source of this run"
			}
		}
	}
	return ""
}

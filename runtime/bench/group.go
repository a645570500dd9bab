package bench

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// group is a control group for the memory of some children, made for one measurement.
type group struct {
	dir string
	v2  bool
}

// groupRoots are where control groups are mounted.
var groupRoots = []struct {
	dir string
	v2  bool
}{{"/sys/fs/cgroup", true}, {"/sys/fs/cgroup/unified", true}, {"/sys/fs/cgroup/memory", false}}

// maxGroups bounds the groups that are tried: this process's own, and those above it.
const maxGroups = 32

// newGroup makes a group for so many bytes in the first place where that is allowed: below the group of this process, or one
// above it. The error says in a line why there is none.
func newGroup(procCgroup string, limit int64) (*group, error) {
	var reason error
	for _, root := range groupRoots {
		own := ownGroup(procCgroup, root.v2)
		for range maxGroups {
			if own == "" {
				break
			}
			g := &group{filepath.Join(root.dir, own, fmt.Sprintf("eyas-bench-%d", os.Getpid())), root.v2}
			err := g.make(limit)
			if err == nil {
				return g, nil
			}
			reason = err
			if own == "/" {
				break
			}
			own = path.Dir(own)
		}
	}
	if reason == nil {
		reason = errors.New("this system has none for memory")
	}
	return nil, fmt.Errorf("no control group can be made: %w: co-runners go without", reason)
}

// ownGroup returns the group of this process in a hierarchy, from the text of /proc/self/cgroup, "" if it is in none.
func ownGroup(text string, v2 bool) string {
	for line := range strings.Lines(text) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, dir, ok := strings.Cut(rest, ":")
		if !ok || !strings.HasPrefix(dir, "/") {
			continue
		}
		if v2 && id == "0" && controllers == "" || !v2 && slices.Contains(strings.Split(controllers, ","), "memory") {
			return path.Clean(dir)
		}
	}
	return ""
}

// make makes the group, or leaves nothing behind.
func (g *group) make(limit int64) error {
	if g.v2 {
		parent := filepath.Join(filepath.Dir(g.dir), "cgroup.subtree_control")
		text, err := os.ReadFile(parent)
		if err != nil {
			return err
		}
		if !slices.Contains(strings.Fields(string(text)), "memory") {
			return fmt.Errorf("%s does not hand on the memory controller", parent)
		}
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return err
	}
	name := "memory.limit_in_bytes"
	if g.v2 {
		name = "memory.max"
	}
	if err := os.WriteFile(filepath.Join(g.dir, name), []byte(strconv.FormatInt(limit, 10)), 0); err != nil {
		return errors.Join(err, os.Remove(g.dir))
	}
	return nil
}

// joinGroup moves this process into the group of a folder, if one is named.
func joinGroup(dir string) error {
	if dir == "" {
		return nil
	}
	err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
	if err != nil {
		return fmt.Errorf("join the control group: %w", err)
	}
	return nil
}

// full returns how often the group has met its limit, so that the kernel had to reclaim memory.
func (g *group) full() uint64 {
	if !g.v2 {
		text, _ := os.ReadFile(filepath.Join(g.dir, "memory.failcnt")) // a figure that is not there counts as 0
		n, _ := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
		return n
	}
	text, _ := os.ReadFile(filepath.Join(g.dir, "memory.events"))
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key == "max" {
			n, _ := strconv.ParseUint(value, 10, 64)
			return n
		}
	}
	return 0
}

// close removes the group, whose processes have ended: the kernel may need a moment to see that.
func (g *group) close() error {
	var err error
	for wait := time.Millisecond; wait < time.Second; wait *= 2 {
		if err = os.Remove(g.dir); err == nil {
			return nil
		}
		time.Sleep(wait)
	}
	return err
}

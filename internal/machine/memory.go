package machine

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Memory holds sizes in bytes; 0 is unknown, or without limit for Limit.
type Memory struct {
	Total     uint64 // of the machine
	Available uint64 // that can be had without swapping, of the machine
	Limit     uint64 // of the control group that leaves the least, 0 if none has a limit
	Used      uint64 // of that group, without the cache of files, which the kernel drops when it is short
}

// Usable returns the bytes that this process may hope for: what is available on the
// machine, or what its control group leaves if that is less; 0 if unknown, at least 1 if not.
func (m Memory) Usable() uint64 {
	if m.Limit == 0 {
		return m.Available
	}
	if m.Available == 0 {
		return max(m.left(), 1)
	}
	return max(min(m.left(), m.Available), 1)
}

// left is what the control group leaves.
func (m Memory) left() uint64 { return m.Limit - min(m.Used, m.Limit) }

// ReadMemory reads the memory's facts below root.
func ReadMemory(root string) Memory {
	return ReadMemoryBeside(root, func(string) uint64 { return 0 })
}

// ReadMemoryBeside reads the memory's facts below root as they are once others have taken what is reserved for them: so
// many bytes of the machine's for "", and of a control group's for its ID.
func ReadMemoryBeside(root string, reserved func(group string) uint64) Memory {
	fs := files{root}
	info := fs.text("proc/meminfo")
	m := Memory{Total: kilobytes(field(info, "MemTotal")), Available: kilobytes(field(info, "MemAvailable"))}
	if m.Available > 0 { // 0 is unknown
		m.Available -= min(reserved(""), m.Available-1)
	}
	groupFiles(fs, "memory", func(dir string, v2 bool) {
		limit, used := "/memory.limit_in_bytes", "/memory.usage_in_bytes"
		if v2 {
			limit, used = "/memory.max", "/memory.current"
		}
		n, ok := number(fs.line(dir + limit))
		// Version 1 writes a huge number for "none".
		if !ok || (m.Total > 0 && n >= m.Total) || n > math.MaxInt64/2 {
			return
		}
		group := Memory{Limit: n}
		group.Used, _ = number(fs.line(dir + used))
		group.Used -= min(group.Used, fileCache(fs.text(dir+"/memory.stat"), v2))
		group.Used += min(reserved(MemoryGroup{Dir: fs.path(dir)}.ID()), math.MaxInt64)
		if m.Limit == 0 || group.left() < m.left() { // a group above this one may have more, and be full of others
			m.Limit, m.Used = group.Limit, group.Used
		}
	})
	return m
}

// MemoryGroup is a control group that this process is in, itself or in one below, and that accounts for memory.
type MemoryGroup struct {
	Dir string // with its files
	V2  bool   // of version 2
}

// MemoryGroups returns the groups below root, that of this process first.
func MemoryGroups(root string) (list []MemoryGroup) {
	fs := files{root}
	groupFiles(fs, "memory", func(dir string, v2 bool) {
		usage := "/memory.usage_in_bytes"
		if v2 {
			usage = "/memory.current"
		}
		if fs.exists(dir + usage) {
			list = append(list, MemoryGroup{fs.path(dir), v2})
		}
	})
	return list
}

// ID names the group in all containers of the machine, whatever they call it; empty if unknown.
func (g MemoryGroup) ID() string {
	var s unix.Stat_t
	if unix.Stat(g.Dir, &s) != nil {
		return ""
	}
	return fmt.Sprintf("%x:%x", s.Dev, s.Ino)
}

// fileCache returns the bytes of files that a control group's memory.stat says are cached. They count as used, and a
// group that has read a clip or written results is full of them.
func fileCache(stat string, v2 bool) uint64 {
	keys := []string{"total_active_file", "total_inactive_file"} // with the groups below, as usage is
	if v2 {
		keys = []string{"active_file", "inactive_file"}
	}
	var sum uint64
	for line := range strings.Lines(stat) {
		if key, value, ok := strings.Cut(line, " "); ok && slices.Contains(keys, key) {
			n, _ := number(strings.TrimSpace(value))
			sum += min(n, math.MaxUint64/4)
		}
	}
	return sum
}

// kilobytes parses "123 kB" into bytes, 0 if it is something else.
func kilobytes(s string) uint64 {
	n, ok := number(strings.TrimSuffix(s, " kB"))
	if !ok || n > math.MaxUint64/1024 {
		return 0
	}
	return n * 1024
}

// Locked is the limit on locked memory, RLIMIT_MEMLOCK.
type Locked struct {
	Known      bool
	Soft, Hard uint64 // bytes
	Unlimited  bool   // the soft limit is none, or does not count for this process (CAP_IPC_LOCK)
}

// ReadLocked returns this process's limit on locked memory.
func ReadLocked() Locked {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r) != nil {
		return Locked{}
	}
	return Locked{Known: true, Soft: r.Cur, Hard: r.Max, Unlimited: r.Cur == unix.RLIM_INFINITY || mayIgnoreIt()}
}

// mayIgnoreIt says whether this process has CAP_IPC_LOCK, for which the limit does not count.
func mayIgnoreIt() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	return unix.Capget(&header, &sets[0]) == nil && sets[0].Effective&(1<<unix.CAP_IPC_LOCK) != 0
}

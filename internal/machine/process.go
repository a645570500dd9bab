package machine

import (
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Process holds facts about this process since its start; 0 is unknown.
type Process struct {
	// Memory that is resident, in bytes: anonymous, of files, and shared (memfd, /dev/shm).
	RSSAnon, RSSFile, RSSShmem uint64
	// Page faults: those that the kernel answered from memory, and those for which it had to read a disk.
	MinorFaults, MajorFaults uint64
}

// ReadProcess reads the facts of this process, its memory from /proc below root.
func ReadProcess(root string) Process {
	p := readStatus(root, "self")
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) == nil {
		p.MinorFaults, p.MajorFaults = uint64(max(u.Minflt, 0)), uint64(max(u.Majflt, 0))
	}
	return p
}

// ReadProcessOf reads the memory of another process of this user, without its page faults.
func ReadProcessOf(root string, pid int) Process { return readStatus(root, strconv.Itoa(pid)) }

func readStatus(root, process string) Process {
	status := files{root}.text("proc/" + process + "/status")
	return Process{
		RSSAnon:  kilobytes(field(status, "RssAnon")),
		RSSFile:  kilobytes(field(status, "RssFile")),
		RSSShmem: kilobytes(field(status, "RssShmem")),
	}
}

// Present returns how many bytes of a mapping lie in pages that are in memory. mem begins at a page; its
// last page counts as far as mem reaches.
func Present(mem []byte) (int64, error) {
	if len(mem) == 0 {
		return 0, nil
	}
	page := os.Getpagesize()
	if uintptr(unsafe.Pointer(&mem[0]))%uintptr(page) != 0 {
		return 0, fmt.Errorf("count present pages: memory does not begin at a page of %d bytes", page)
	}
	var pages [1 << 14]byte // 64 MiB of small pages a call
	var present int64
	for len(mem) > 0 {
		part := mem[:min(len(mem), len(pages)*page)]
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&part[0])), uintptr(len(part)), uintptr(unsafe.Pointer(&pages[0])))
		if errno != 0 {
			return 0, fmt.Errorf("count present pages of %d bytes: %w", len(part), errno)
		}
		for at := 0; at < len(part); at += page {
			if pages[at/page]&1 != 0 {
				present += int64(min(page, len(part)-at))
			}
		}
		mem = mem[len(part):]
	}
	return present, nil
}

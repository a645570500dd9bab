package ort

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"unsafe"
)

// hugeBytes returns how many bytes of a mapping lie in huge pages, 0 where the system does
// not say.
func hugeBytes(data []byte) int64 {
	f, err := os.Open("/proc/self/smaps")
	if err != nil || len(data) == 0 {
		return 0
	}
	defer f.Close()
	from := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(data))))
	return parseHuge(f, from, from+uint64(len(data)))
}

// parseHuge sums up the huge pages of the areas within [from, to), in bytes. The kernel
// joins areas that touch and are alike: of one that reaches further, at most what lies in the range counts.
func parseHuge(smaps io.Reader, from, to uint64) int64 {
	var sum, common uint64
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), " ")
		if begin, end, ok := parseRange(key); ok {
			common = 0
			if from < end && begin < to {
				common = min(end, to) - max(begin, from)
			}
			continue
		}
		if key != "AnonHugePages:" && key != "ShmemPmdMapped:" {
			continue
		}
		if kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 44); err == nil {
			sum += min(kib<<10, common)
		}
	}
	return int64(min(sum, to-from))
}

// parseRange reads "7f00-7f10", an area's addresses.
func parseRange(text string) (begin, end uint64, ok bool) {
	a, b, _ := strings.Cut(text, "-")
	begin, err1 := strconv.ParseUint(a, 16, 64)
	end, err2 := strconv.ParseUint(b, 16, 64)
	return begin, end, err1 == nil && err2 == nil && begin < end
}

package pressure

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/eyas-edge/eyas/internal/machine"
)

// maxFile bounds what is read of a file, in bytes: memory.stat is the longest, with some 3 KiB.
const maxFile = 16 << 10

// sampler keeps files open that are read again and again, so that a sample costs no memory.
type sampler struct {
	info   file // of the machine
	stalls file // of the control group if it tells, else of the machine
	events file // of the control group
	groups []group
	buf    [maxFile]byte
}

// group is a control group that may be limited.
type group struct {
	limits      [2]file // hard and soft, as far as there are
	usage, stat file
	v2          bool
}

// file is one of the kernel's, nil if it is not there.
type file struct{ *os.File }

func openFile(path string) file {
	f, err := os.Open(path)
	if err != nil {
		return file{}
	}
	return file{f}
}

func (f file) close() {
	if f.File != nil {
		f.Close()
	}
}

// newSampler opens what there is below root. The caller closes it.
func newSampler(root string) *sampler {
	s := &sampler{info: openFile(filepath.Join(root, "proc/meminfo"))}
	for i, g := range machine.MemoryGroups(root) {
		in := func(name string) file { return openFile(filepath.Join(g.Dir, name)) }
		own := group{usage: in("memory.usage_in_bytes"), stat: in("memory.stat"), v2: g.V2}
		own.limits[0] = in("memory.limit_in_bytes") // the soft limit of version 1 slows nobody down
		if g.V2 {
			own.usage = in("memory.current")
			own.limits = [2]file{in("memory.max"), in("memory.high")}
		}
		s.groups = append(s.groups, own)
		if i > 0 {
			continue
		}
		s.events = in("memory.oom_control")
		if g.V2 {
			s.events, s.stalls = in("memory.events"), in("memory.pressure")
		}
	}
	if len(s.text(s.stalls)) == 0 { // the kernel may count stalls, but not for each group
		s.stalls.close()
		s.stalls = openFile(filepath.Join(root, "proc/pressure/memory"))
	}
	return s
}

func (s *sampler) close() {
	all := []file{s.info, s.stalls, s.events}
	for _, g := range s.groups {
		all = append(all, g.limits[0], g.limits[1], g.usage, g.stat)
	}
	for _, f := range all {
		f.close()
	}
}

// text returns the beginning of a file, valid until the next is read.
func (s *sampler) text(f file) []byte {
	if f.File == nil {
		return nil
	}
	n, _ := f.ReadAt(s.buf[:], 0) // at its end, or it cannot be read
	return s.buf[:n]
}

// read takes a sample.
func (s *sampler) read(at time.Duration) Sample {
	v := Sample{At: at}
	info := s.text(s.info)
	if total, ok := value(info, "MemTotal:"); ok && total < math.MaxUint64/1024 {
		if left, ok := value(info, "MemAvailable:"); ok {
			v.Of = total * 1024
			v.Left = min(left, total) * 1024
		}
	}
	for i := range s.groups {
		var g Sample
		if g.Left, g.Of = s.left(&s.groups[i]); g.Of > 0 && (v.Of == 0 || g.share() < v.share()) {
			v.Left, v.Of = g.Left, g.Of
		}
	}
	v.Stalled = stalled(s.text(s.stalls))
	events := s.text(s.events)
	for _, key := range [...]string{"low", "high", "max"} {
		n, _ := value(events, key)
		v.Limited += n
	}
	for _, key := range [...]string{"oom", "oom_kill"} {
		n, _ := value(events, key)
		v.Killed += n
	}
	return v
}

// left returns what a group has left of its limit, without the files that the kernel drops when it is short; of is 0 without a limit.
func (s *sampler) left(g *group) (left, of uint64) {
	for _, f := range g.limits {
		// Version 1 writes a huge number for none, version 2 a word.
		if n, ok := number(s.text(f)); ok && n <= math.MaxInt64/2 && (of == 0 || n < of) {
			of = n
		}
	}
	used, ok := number(s.text(g.usage))
	if of == 0 || !ok {
		return 0, 0
	}
	active, inactive := "active_file", "inactive_file"
	if !g.v2 {
		active, inactive = "total_active_file", "total_inactive_file" // with the groups below, as usage is
	}
	stat := s.text(g.stat)
	for _, key := range [...]string{active, inactive} {
		n, _ := value(stat, key)
		used -= min(n, used)
	}
	return of - min(used, of), of
}

// value returns the number behind a key at the beginning of a line.
func value(text []byte, key string) (uint64, bool) {
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte{'\n'})
		if len(line) > len(key) && string(line[:len(key)]) == key && line[len(key)] == ' ' {
			return number(line[len(key):])
		}
		text = rest
	}
	return 0, false
}

// stalled returns the total of the line "some avg10=0.00 avg60=0.00 avg300=0.00 total=N", N in microseconds.
func stalled(text []byte) time.Duration {
	line, _, _ := bytes.Cut(text, []byte{'\n'})
	if !bytes.HasPrefix(line, []byte("some ")) {
		return 0
	}
	_, total, _ := bytes.Cut(line, []byte(" total="))
	n, ok := number(total)
	if !ok || n > math.MaxInt64/1000 {
		return 0
	}
	return time.Duration(n) * time.Microsecond
}

// number parses the decimal number that a text begins with, after spaces.
func number(text []byte) (n uint64, ok bool) {
	for _, c := range bytes.TrimLeft(text, " \t") {
		if c < '0' || c > '9' {
			break
		}
		if n > (math.MaxUint64-9)/10 {
			return 0, false
		}
		n, ok = n*10+uint64(c-'0'), true
	}
	return n, ok
}

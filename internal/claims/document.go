package claims

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"

	"github.com/eyas-edge/eyas/internal/machine"
)

// version is that of the files' content. Files of another are ignored.
const version = 1

// document is the content of a file.
type document struct {
	Version  int      `json:"eyas_claim"`
	PID      int      `json:"pid"`
	Space    string   `json:"pid_namespace"` // in which PID is the process
	Name     string   `json:"name"`
	Planned  int64    `json:"planned_bytes"`
	Resident int64    `json:"resident_bytes"` // when it was written
	Groups   []string `json:"groups"`
}

const (
	maxPlanned = 1 << 50 // bytes; so that sums stay far from overflowing
	maxName    = 200     // bytes
	maxGroups  = 64
	maxID      = 64 // bytes
)

// ours returns what this process makes known.
func ours(name string, planned int64) *document {
	return &document{
		Version: version, PID: os.Getpid(), Space: pidSpace(), Name: name, Planned: min(max(planned, 0), maxPlanned),
		Resident: resident(os.Getpid()), Groups: groups(),
	}
}

// pidSpace names the container in which this process's ID is its own.
func pidSpace() string {
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "unknown"
	}
	return space
}

// resident returns what a process holds of memory that plans count: anonymous and shared.
func resident(pid int) int64 {
	p := machine.ReadProcessOf("/", pid)
	return int64(min(p.RSSAnon+p.RSSShmem, maxPlanned))
}

// parse checks the content of a file.
func parse(data []byte) (*document, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("it has more than %d bytes", maxBytes)
	}
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("it is no claim: %w", err)
	}
	switch {
	case d.Version != version:
		return nil, fmt.Errorf("its version is %d, this is %d", d.Version, version)
	case d.PID < 1, d.Planned < 0 || d.Planned > maxPlanned, d.Resident < 0 || d.Resident > maxPlanned, len(d.Groups) > maxGroups:
		return nil, errors.New("its figures are out of range")
	}
	for _, id := range d.Groups {
		if id == "" || len(id) > maxID {
			return nil, errors.New("its control groups have no names")
		}
	}
	d.Name = printable(d.Name)
	return &d, nil
}

// printable makes a name fit for one line of a terminal.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, s)
	if len(s) > maxName {
		s = strings.ToValidUTF8(s[:maxName], "")
	}
	return s
}

// process is whose memory is resident.
type process struct {
	space string
	pid   int
}

// pending returns claims with what of them is not resident yet. Of a process with several the first is resident first.
// Nothing of this process's own is: it knows what it holds, and counts that in itself.
func pending(list []document) []Claim {
	self := process{pidSpace(), os.Getpid()}
	held := map[process]int64{}
	claims := make([]Claim, 0, len(list))
	for _, d := range list {
		p := process{d.Space, d.PID}
		left, known := held[p]
		switch {
		case known:
		case p == self:
		case p.space == self.space:
			left = resident(d.PID)
		default: // the ID may be another's here
			left = d.Resident
		}
		taken := min(left, d.Planned)
		held[p] = left - taken
		claims = append(claims, Claim{PID: d.PID, Name: d.Name, Planned: d.Planned, Pending: d.Planned - taken, Groups: d.Groups})
	}
	return claims
}

// Pending returns the bytes that claims are still to take, of all for "", else of those in a control group.
func Pending(all []Claim, group string) (bytes int64) {
	for _, c := range all {
		in := group == ""
		for _, id := range c.Groups {
			in = in || id == group
		}
		if in {
			bytes += c.Pending
		}
	}
	return bytes
}

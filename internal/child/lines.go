package child

import (
	"bufio"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eyas-edge/eyas/internal/shown"
)

const (
	maxLine  = 4096 // bytes of a line that are kept, the rest of it is dropped
	maxLines = 8    // lines that the ring keeps
)

// ring keeps the last lines that a child wrote.
type ring struct {
	mu   sync.Mutex
	kept []string
}

func (r *ring) add(line string) {
	if line == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) == maxLines {
		copy(r.kept, r.kept[1:])
		r.kept = r.kept[:maxLines-1]
	}
	r.kept = append(r.kept, line)
}

func (r *ring) lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.kept)
}

// A child may write so many bytes in each period before it has to wait, as it does on any full pipe: one that writes without end
// shall not take a processor of ours.
const (
	floodBytes  = 1 << 18
	floodPeriod = time.Second / 4
)

// throttled is a reader that keeps to that until ended is closed.
type throttled struct {
	io.Reader
	ended <-chan struct{}
	read  int
	since time.Time
}

func (t *throttled) Read(p []byte) (int, error) {
	if t.read >= floodBytes {
		timer := time.NewTimer(time.Until(t.since.Add(floodPeriod)))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-t.ended:
		}
		t.read = 0
	}
	if t.read == 0 {
		t.since = time.Now()
	}
	n, err := t.Reader.Read(p)
	t.read += n
	return n, err
}

// readLines calls each with every line of r that is not blank, until r ends. Lines end
// with a newline or, as progress displays have it, a carriage return.
func readLines(r io.Reader, each func(string)) {
	in := bufio.NewReaderSize(r, maxLine)
	line := make([]byte, 0, maxLine)
	emit := func() {
		// What a child quotes can come from a hostile file.
		if s := shown.Text(strings.TrimRight(string(line), " \t")); s != "" {
			each(s)
		}
		line = line[:0]
	}
	for {
		b, err := in.ReadByte()
		switch {
		case err != nil:
			emit()
			return
		case b == '\n' || b == '\r':
			emit()
		case len(line) < maxLine:
			line = append(line, b)
		}
	}
}

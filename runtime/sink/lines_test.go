package sink

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	eyas "github.com/eyas-edge/eyas/runtime"
)

var errFull = errors.New("full")

// disk takes bytes until it is full.
type disk struct {
	bytes.Buffer
	room int
}

func (d *disk) Write(p []byte) (int, error) {
	n := min(len(p), d.room)
	d.room -= n
	d.Buffer.Write(p[:n])
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

// A stream that takes only part of a line gets the next one on a line of its own; the fault is said once per row
// of faults.
func TestTornLine(t *testing.T) {
	d := &disk{room: 1 << 20}
	l := NewLines(d)
	write := func(room int) error {
		d.room = room
		return l.Result(&eyas.Result{Source: "s", Model: "m", Width: 1, Height: 1})
	}
	var said []bool
	for _, room := range []int{1 << 20, 10, 0, 1 << 20, 0, 1 << 20} {
		err := write(room)
		if err != nil && !errors.Is(err, errFull) {
			t.Fatal(err)
		}
		said = append(said, err != nil)
	}
	for i, want := range []bool{false, true, false, false, true, false} {
		if said[i] != want {
			t.Errorf("write %d: said %v, want %v", i, said[i], want)
		}
	}
	if l.Lost() != 3 {
		t.Errorf("%d lines lost, want 3", l.Lost())
	}
	whole := 0
	for line := range strings.Lines(d.String()) {
		if strings.HasPrefix(line, `{"source":"s"`) && strings.HasSuffix(line, "}\n") {
			whole++
		}
	}
	if whole != 3 {
		t.Errorf("%d whole lines, want 3, in %q", whole, d.String())
	}
}

// A line that is longer than the limit still gets its own file; older files are replaced.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	l, err := OpenLines(path, 10)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := l.Result(&eyas.Result{Source: "s", Model: "m", Frame: uint64(i), Width: 1, Height: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for name, frame := range map[string]string{path + ".1": `"frame":1,`, path: `"frame":2,`} {
		text, err := os.ReadFile(name)
		if err != nil || strings.Count(string(text), "\n") != 1 || !strings.Contains(string(text), frame) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

// What an earlier run has written is kept, also when it was killed in the middle of a line.
func TestResultsAreAppended(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	if err := os.WriteFile(path, []byte("{\"a\":1}\n{\"b\":"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l, err := OpenLines(path, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Event(&eyas.Event{Kind: "ready"}); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	if len(lines) != 5 || lines[0] != `{"a":1}` || lines[1] != `{"b":` || !strings.HasPrefix(lines[2], `{"event":"ready"`) || lines[2] != lines[3] || lines[4] != "" {
		t.Errorf("the file holds %q", lines)
	}
}

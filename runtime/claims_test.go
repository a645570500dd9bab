package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eyas-edge/eyas/internal/machine"
	"github.com/eyas-edge/eyas/memplan"
)

// met returns neighbours that plan for a model, and what they log.
func met(t *testing.T, model string) (*neighbours, *bytes.Buffer) {
	t.Helper()
	var notes bytes.Buffer
	n := &neighbours{}
	n.meet(slog.New(slog.NewTextHandler(&notes, &slog.HandlerOptions{Level: slog.LevelDebug})), []*Model{{key: model}, {key: "b"}})
	t.Cleanup(n.close)
	return n, &notes
}

// fitting returns a fit of so many bytes into what a machine of have bytes leaves beside the others.
func fitting(n *neighbours, need, have int64) func() (*memplan.Plan, error) {
	return func() (*memplan.Plan, error) {
		var p memplan.Plan
		p.Add(memplan.Weights, "m", need)
		left := have - int64(machine.ReadMemory("/").Available-n.memory().Available)
		return &p, p.Place(memplan.Capacity{Machine: left, Dedicated: memplan.Unlimited}, "")
	}
}

// What one has planned is not there for the other, until it is closed.
func TestNeighbours(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	const gib = 1 << 30 // far more than MemAvailable moves between two looks
	first, notes := met(t, "ppe")
	second, _ := met(t, "faces")
	if _, err := first.claim(fitting(first, 4*gib, 6*gib)); err != nil {
		t.Fatal(err)
	}
	first.settled()
	for range 2 {
		p, err := second.claim(fitting(second, 4*gib, 6*gib))
		var short *memplan.Shortage
		if !errors.As(err, &short) || p == nil {
			t.Fatalf("the second: %v", err)
		}
		text := second.explain(as(ErrBudget, err)).Error()
		want := fmt.Sprintf("; process %d (ppe, b) has planned 4.0 GiB of which 4.0 GiB are still to be taken", os.Getpid())
		if !strings.HasPrefix(text, "plan: 4.0 GiB (4294967296 bytes) needed, this machine has ") || !strings.HasSuffix(text, want) || strings.Contains(text, "\n") {
			t.Errorf("it says %q", text)
		}
	}
	if _, err := first.claim(fitting(first, 5*gib, 6*gib)); err != nil {
		t.Errorf("the first sees the refused one: %v", err)
	}
	first.close()
	if _, err := second.claim(fitting(second, 4*gib, 6*gib)); err != nil {
		t.Errorf("after the first is closed: %v", err)
	}
	if notes.Len() > 0 {
		t.Errorf("notes: %s", notes)
	}
}

// Other errors, and those of a budget, have nothing to do with the others.
func TestNeighboursExplainOnlyTheMachine(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	others := make([]*neighbours, 5)
	for i := range others {
		others[i], _ = met(t, fmt.Sprint("m", i))
		if _, err := others[i].claim(fitting(others[i], 1, 1<<40)); err != nil {
			t.Fatal(err)
		}
	}
	n := others[0]
	n.memory()
	for _, err := range []error{nil, errors.New("x"), &memplan.Shortage{Of: "the budget"}} {
		if got := n.explain(err); got != err {
			t.Errorf("%v becomes %v", err, got)
		}
	}
	text := n.explain(&memplan.Shortage{Of: "this machine"}).Error()
	if strings.Count(text, "process ") != mostNamed || !strings.HasSuffix(text, ", and 1 more") {
		t.Errorf("it says %q", text)
	}
}

// Without a folder of ours there are no neighbours, which is noted once.
func TestNeighboursWithoutAFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("EYAS_HOME", file)
	for name, first := range map[string]func(*neighbours){
		"memory": func(n *neighbours) { n.memory() },
		"claim":  func(n *neighbours) {},
	} {
		n, notes := met(t, "m")
		first(n)
		for range 2 {
			if _, err := n.claim(fitting(n, 1, 1<<40)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			n.settled()
			if m := n.memory(); m.Total == 0 {
				t.Errorf("%s: no memory", name)
			}
		}
		if got := strings.Count(notes.String(), "\n"); got != 1 {
			t.Errorf("%s: %d notes: %s", name, got, notes)
		}
	}
}

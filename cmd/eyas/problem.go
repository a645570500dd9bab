package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/eyas-edge/eyas/internal/regular"
	"github.com/eyas-edge/eyas/memplan"
)

// solve plans the buffers of a file.
func (c *planCmd) solve(e *env) error {
	if c.Nodes < 0 {
		return exitError{exitUsage, fmt.Sprintf("plan: --nodes %d is negative", c.Nodes)}
	}
	var opts []memplan.Option
	if c.Nodes > 0 {
		opts = append(opts, memplan.MaxNodes(c.Nodes))
	}
	p, err := readProblem(c.Problem)
	if err != nil {
		return exitError{exitUsage, "plan: " + err.Error()}
	}
	s, err := memplan.Solve(e.ctx, p, opts...)
	if err != nil {
		return exitError{exitUsage, fmt.Sprintf("plan %s: %v", c.Problem, err)}
	}
	if c.SVG != "" {
		if err := draw(c.SVG, filepath.Base(c.Problem), p, s); err != nil {
			return err
		}
	}
	write := writePlan
	if c.JSON {
		write = func(w io.Writer, s memplan.Solution) error { return json.NewEncoder(w).Encode(s) }
	}
	if err := write(e.stdout, s); err != nil {
		return err
	}
	if sig := e.signals.received(); sig != 0 {
		return exitError{128 + int(sig), "plan " + c.Problem + ": ended early, this is the lowest plan found so far"}
	}
	return nil
}

func readProblem(path string) (memplan.Problem, error) {
	f, err := regular.Open(path)
	if err != nil {
		return memplan.Problem{}, err
	}
	defer f.Close()
	p, err := memplan.ReadCSV(f)
	if err != nil {
		return memplan.Problem{}, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

func writePlan(w io.Writer, s memplan.Solution) error {
	proven := "no: the search ended at its limit, a lower plan may exist"
	if s.Proven {
		proven = "yes: no plan is lower"
	}
	above := ""
	if s.LowerBound > 0 {
		above = fmt.Sprintf(" (%.2f %% above the lower bound)", 100*(float64(s.Height)/float64(s.LowerBound)-1))
	}
	_, err := fmt.Fprintf(w, "height       %d bytes%s\nlower bound  %d bytes\nproven       %s\nnodes        %d\ntime         %v\n",
		s.Height, above, s.LowerBound, proven, s.Nodes, time.Duration(s.Seconds*float64(time.Second)).Round(time.Millisecond))
	return err
}

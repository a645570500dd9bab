package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/eyas-edge/eyas/internal/regular"
)

// maxReport bounds the size of a report that is read.
const maxReport = 16 << 20

// ReadReport reads a document that JSON wrote.
func ReadReport(path string) (*Report, error) {
	data, err := regular.Read(path, maxReport)
	if err != nil {
		return nil, err
	}
	r, err := parseReport(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func parseReport(data []byte) (*Report, error) {
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("not a report of eyas bench --json: %w", err)
	}
	if r.Version != ReportVersion {
		return nil, fmt.Errorf("report version %d is not known: this build reads version %d", r.Version, ReportVersion)
	}
	return &r, nil
}

// Comparison is the figures that two reports share.
type Comparison struct {
	Version     int   `json:"version"`
	SameMachine bool  `json:"same_machine"` // else the times say nothing
	Figures     []Row `json:"figures"`
}

// Row is one figure of both.
type Row struct {
	Figure string  `json:"figure"`
	A      float64 `json:"a"`
	B      float64 `json:"b"`
	Ratio  float64 `json:"ratio,omitempty"` // b / a
}

// Compare returns the figures that both reports have, in a's order.
func Compare(a, b *Report) Comparison {
	c := Comparison{
		Version: ReportVersion, Figures: []Row{},
		SameMachine: a.Machine.CPU == b.Machine.CPU && a.Machine.CPUs == b.Machine.CPUs && a.Machine.Board == b.Machine.Board,
	}
	other := map[string]float64{}
	b.figures(func(name string, v float64) { other[name] = v })
	a.figures(func(name string, v float64) {
		if w, ok := other[name]; ok {
			c.Figures = append(c.Figures, Row{name, v, w, ratio(w, v)})
		}
	})
	return c
}

// figures names every figure that is worth a comparison.
func (r *Report) figures(each func(name string, v float64)) {
	if m := r.Resident; m != nil {
		each("resident default, bytes above idle", float64(m.Default.Above))
		each("resident planned, bytes above idle", float64(m.Planned.Above))
		each("resident planned / default", m.Ratio)
	}
	for _, t := range r.Time {
		name := fmt.Sprintf("time %s batch %d ", t.Model, t.Batch)
		each(name+"default p50, ms", t.Default.P50)
		each(name+"default p99, ms", t.Default.P99)
		each(name+"planned p50, ms", t.Planned.P50)
		each(name+"planned p99, ms", t.Planned.P99)
		each(name+"shared p50, ms", t.Shared.P50)
	}
	steady := func(what string, all []Steady) {
		for _, s := range all {
			name := fmt.Sprintf("%s %s %s ", what, s.Model, s.Candidate)
			if s.Requests != nil {
				each(name+"heap requests a run", float64(s.Requests.Heap)/float64(max(s.Runs, 1)))
			}
			if s.Libc != nil {
				each(name+"libc allocations a run", float64(s.Libc.Median))
			}
			each(name+"page faults a run", s.FaultsPerRun)
			each(name+"resident, bytes", float64(s.Resident))
			if s.Drift != nil {
				each(name+"p99 last / first quarter", s.Drift.Ratio)
			}
		}
	}
	steady("steady", r.Steady)
	for _, s := range r.Start {
		each("start "+s.Model+" default session, ms", s.Default)
		coldWarm := func(what string, c ColdWarm) {
			each("start "+s.Model+" "+what+" cold, ms", c.Cold)
			if c.Warm > 0 {
				each("start "+s.Model+" "+what+" warm, ms", c.Warm)
			}
		}
		if s.Session != nil {
			coldWarm("session", *s.Session)
		}
		coldWarm("plan", s.Plan)
		coldWarm("runtime", s.Open)
	}
	steady("soak", r.Soak)
	for _, more := range []func(func(string, float64)){
		r.firstFigures, r.latencyFigures, r.captureFigures, r.policiesFigures, r.touchFigures, r.contentionFigures, r.placementFigures,
	} {
		more(each)
	}
}

// JSON writes the comparison as one document.
func (c Comparison) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(c)
}

// Text writes the comparison for people.
func (c Comparison) Text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "figure\tA\tB\tB / A\n")
	for _, row := range c.Figures {
		share := "-"
		if row.Ratio != 0 {
			share = fmt.Sprintf("%.3f", row.Ratio)
		}
		fmt.Fprintf(t, "%s\t%.6g\t%.6g\t%s\n", row.Figure, row.A, row.B, share)
	}
	if !c.SameMachine {
		fmt.Fprintf(t, "the reports are of different machines: their times do not compare\n")
	}
	return t.Flush()
}

package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// JSON writes the report as one document.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Text writes the report for people.
func (r *Report) Text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "machine\t%s, %d CPUs, %s; %s %s\n", r.Machine.CPU, r.Machine.CPUs, mega(int64(r.Machine.Memory)), r.Machine.OS, r.Machine.Arch)
	fmt.Fprintf(t, "engine\tONNX Runtime %s, %s, %d threads\n", r.Engine.ONNXRuntime, r.Engine.EP, r.Engine.Threads)
	for _, m := range r.Models {
		fmt.Fprintf(t, "model\t%s, batch %s\n", m.Key, strings.Trim(fmt.Sprint(m.Batches), "[]"))
	}
	r.residentText(t)
	r.timeText(t)
	r.steadyText(t, "steady state", r.Steady)
	r.startText(t)
	r.steadyText(t, "soak", r.Soak)
	return t.Flush()
}

func mega(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

func (r *Report) residentText(w io.Writer) {
	if r.Resident == nil {
		return
	}
	fmt.Fprintf(w, "\nresident memory\tidle\tafter\tabove idle\tanon\tfile\tshmem\tlocked\n")
	for _, c := range []struct {
		name string
		u    Usage
	}{{standard, r.Resident.Default}, {planned, r.Resident.Planned}} {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.name, mega(c.u.Idle.Resident), mega(c.u.After.Resident), mega(c.u.Above),
			mega(c.u.After.Anon), mega(c.u.After.File), mega(c.u.After.Shmem), mega(c.u.After.Locked))
	}
	fmt.Fprintf(w, "planned / default\t\t\t%.3f\n", r.Resident.Ratio)
}

func (r *Report) timeText(w io.Writer) {
	if len(r.Time) == 0 {
		return
	}
	fmt.Fprintf(w, "\nrun time\tbatch\tdefault p50\tp99\tplanned p50\tp99\tratio p50\tp99\tbatches in turns: default\tplanned\truns\n")
	for _, m := range r.Time {
		turns := func(v float64) string {
			if v == 0 {
				return "-"
			}
			return fmt.Sprintf("%.3f", v)
		}
		fmt.Fprintf(w, "%s\t%d\t%.2f ms\t%.2f\t%.2f\t%.2f\t%.3f\t%.3f\t%s\t%s\t%dx%d\n", m.Model, m.Batch, m.Default.P50, m.Default.P99,
			m.Planned.P50, m.Planned.P99, m.RatioP50, m.RatioP99, turns(m.Default.Alternating), turns(m.Planned.Alternating), m.Rounds, m.Runs)
	}
	fmt.Fprintf(w, "outputs of both are bit-identical\n")
}

func (r *Report) steadyText(w io.Writer, title string, all []Steady) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\tbatch\truns\tarena\tspill\theap\tGo allocations\tlibc a run\tfaults a run\tlocked\tpresent before, after\tRSS slope / 1000\n", title)
	for _, s := range all {
		arena, spill, heap, pinned, present := "-", "-", "-", "-", "-"
		if n := s.Requests; n != nil {
			arena, spill, heap = fmt.Sprint(n.Arena), fmt.Sprint(n.Spill), fmt.Sprint(n.Heap)
		}
		if p := s.Regions; p != nil {
			pinned = mega(p.Bytes)
			present = fmt.Sprintf("%.0f %%, %.0f %%", 100*ratio(float64(p.Before), float64(p.Bytes)), 100*ratio(float64(p.After), float64(p.Bytes)))
		}
		fmt.Fprintf(w, "%s %s\t%d\t%d\t%s\t%s\t%s\t%d\t%s\t%.3f\t%s\t%s\t%.1f KiB\n", s.Model, s.Candidate, s.Batch, s.Runs,
			arena, spill, heap, s.GoAllocations, s.Libc, s.FaultsPerRun, pinned, present, s.SlopeKiB)
	}
	fmt.Fprintf(w, "allocations of the C library: %s\n", r.Libc)
}

// String says how many there are in a run.
func (c *LibcCount) String() string {
	switch {
	case c == nil:
		return "-"
	case c.Constant:
		return fmt.Sprintf("%d, constant", c.Least)
	}
	return fmt.Sprintf("%.0f (%d to %d)", c.Median, c.Least, c.Most)
}

func (r *Report) startText(w io.Writer) {
	if len(r.Start) == 0 {
		return
	}
	fmt.Fprintf(w, "\nready to run\tdefault\tplanned, cold\twarm\twarm / cold\n")
	for _, s := range r.Start {
		warm, share := "-", "-"
		if s.Warm > 0 {
			warm, share = fmt.Sprintf("%.1f", s.Warm), fmt.Sprintf("%.3f", s.Ratio)
		}
		fmt.Fprintf(w, "%s\t%.1f ms\t%.1f\t%s\t%s\n", s.Model, s.Default, s.Cold, warm, share)
	}
}

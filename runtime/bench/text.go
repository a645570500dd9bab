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
	fmt.Fprintf(t, "limits\t%s\n", r.Machine.limits())
	fmt.Fprintf(t, "engine\tONNX Runtime %s, %s, %d threads\n", r.Engine.ONNXRuntime, r.Engine.EP, r.Engine.Threads)
	for _, m := range r.Models {
		fmt.Fprintf(t, "model\t%s, batch %s\n", m.Key, list(m.Batches))
	}
	r.latencyText(t)
	r.captureText(t)
	r.startText(t)
	r.firstText(t)
	r.policiesText(t)
	r.residentText(t)
	r.timeText(t)
	r.steadyText(t, "steady state", r.Steady)
	r.touchText(t)
	r.contentionText(t)
	r.placementText(t)
	r.steadyText(t, "soak", r.Soak)
	if r.Stopped {
		fmt.Fprintf(t, "\nstopped before the end: what is missing was not measured\n")
	}
	return t.Flush()
}

// limits writes the machine's limits and clocks as far as they are known.
func (m *Machine) limits() string {
	memory, locked, clocks := "none", "none", "not told"
	if m.MemoryLimit > 0 {
		memory = mega(int64(m.MemoryLimit))
	}
	if m.LockedLimit > 0 {
		locked = mega(int64(m.LockedLimit))
	}
	if m.Clocks != "" {
		clocks = m.Clocks
	}
	return fmt.Sprintf("of memory %s, of locked memory %s; clocks %s; load %.1f at the start", memory, locked, clocks, m.Load)
}

// list writes batch sizes: "1 2 4".
func list(batches []int) string { return strings.Trim(fmt.Sprint(batches), "[]") }

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// causes writes drops: "3 late, 1 superseded".
func causes(dropped map[string]uint64) string {
	var parts []string
	for _, cause := range sortedKeys(dropped) {
		parts = append(parts, fmt.Sprintf("%d %s", dropped[cause], cause))
	}
	if len(parts) == 0 {
		return "0"
	}
	return strings.Join(parts, ", ")
}

func mega(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

func (r *Report) residentText(w io.Writer) {
	if r.Resident == nil {
		return
	}
	fmt.Fprintf(w, "\nresident memory\tidle\tafter\tabove idle\tof these anon\tfile\tshmem\tGo's\n")
	for _, c := range []struct {
		name string
		u    Usage
	}{{standard, r.Resident.Default}, {planned, r.Resident.Planned}} {
		idle, after := c.u.Idle, c.u.After
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.name, mega(idle.Resident), mega(after.Resident), mega(c.u.Above),
			mega(after.Anon-idle.Anon), mega(after.File-idle.File), mega(after.Shmem-idle.Shmem), mega(after.Go-idle.Go))
	}
	fmt.Fprintf(w, "planned / default\t\t\t%.3f\n", r.Resident.Ratio)
	if r.Resident.Memory == nil {
		return
	}
	fmt.Fprintf(w, "\nregion\tplanned\tmeasured\n")
	for _, region := range r.Resident.Memory.Regions {
		fmt.Fprintf(w, "%s\t%s\t%s\n", region.Kind, mega(region.Planned), mega(region.Measured))
	}
	fmt.Fprintf(w, "fragmentation of the arena %.1f %%, at least %.1f %% as ONNX Runtime's default would have it\n",
		100*r.Resident.Memory.Fragmentation, 100*r.Resident.Memory.BestFit)
}

func (r *Report) timeText(w io.Writer) {
	if len(r.Time) == 0 {
		return
	}
	fmt.Fprintf(w, "\nrun time\tbatch\tdefault p50\tp99\tplanned p50\tp99\tratio p50\tp99\tshared / planned\tin turns: default\tplanned\truns\n")
	for _, m := range r.Time {
		turns := func(v float64) string {
			if v == 0 {
				return "-"
			}
			return fmt.Sprintf("%.3f", v)
		}
		fmt.Fprintf(w, "%s\t%d\t%.2f ms\t%.2f\t%.2f\t%.2f\t%.3f\t%.3f\t%.3f\t%s\t%s\t%dx%d\n", m.Model, m.Batch, m.Default.P50, m.Default.P99,
			m.Planned.P50, m.Planned.P99, m.RatioP50, m.RatioP99, m.RatioShared, turns(m.Default.Alternating), turns(m.Planned.Alternating), m.Rounds, m.Runs)
	}
	fmt.Fprintf(w, "in turns: the batches of a ladder one after the other, p50 against that of each alone. Outputs of all are bit-identical.\nshared: weights and arena in shared memory, p50 against planned.\n")
}

func (r *Report) steadyText(w io.Writer, title string, all []Steady) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\tbatch\truns\tfrom arena, spill, heap\tGo\tlibc a run\tfaults a run\tregions\tpresent\tRSS / 1000 runs\tp99 of the first quarter, of the last\n", title)
	for _, s := range all {
		requests, size, present, incline, drifted := "-", "-", "-", "-", "-"
		if n := s.Requests; n != nil {
			requests = fmt.Sprintf("%d, %d, %d", n.Arena, n.Spill, n.Heap)
		}
		if p := s.Regions; p != nil {
			share := func(n int64) float64 { return 100 * ratio(float64(n), float64(p.Bytes)) }
			size, present = mega(p.Bytes), fmt.Sprintf("%.0f, %.0f %%", share(p.Before), share(p.After))
		}
		if s.SlopeKiB != nil {
			incline = fmt.Sprintf("%+.2f KiB", *s.SlopeKiB)
		}
		if d := s.Drift; d != nil {
			drifted = fmt.Sprintf("%.2f, %.2f ms: %.3f", d.First, d.Last, d.Ratio)
		}
		fmt.Fprintf(w, "%s %s\t%d\t%d\t%s\t%d\t%s\t%.3f\t%s\t%s\t%s\t%s\n", s.Model, s.Candidate, s.Batch, s.Runs,
			requests, s.GoAllocations, s.Libc, s.FaultsPerRun, size, present, incline, drifted)
	}
	fmt.Fprintf(w, "Go: its allocations over all runs; present: of the regions, before and after. Allocations of the C library: %s\n", r.Libc)
}

// String says how many there are in a run.
func (c *LibcCount) String() string {
	switch {
	case c == nil:
		return "-"
	case c.Constant:
		return fmt.Sprintf("%d in each", c.Least)
	}
	return fmt.Sprintf("%d, %d to %d in %d runs", c.Median, c.Least, c.Most, c.Others)
}

func (r *Report) startText(w io.Writer) {
	if len(r.Start) == 0 {
		return
	}
	fmt.Fprintf(w, "\nready\tlibrary\tmodel read\tdefault session\tsession: cold\tcached\t/ cold\tplan: cold\tcached\t/ cold\truntime: cold\tcached\t/ cold\n")
	for _, s := range r.Start {
		if s.Session == nil {
			s.Session = &ColdWarm{}
		}
		fmt.Fprintf(w, "%s\t%.1f ms\t%.1f ms\t%.1f ms\t%s\t%s\t%s\n", s.Model, s.Library, s.Read, s.Default, s.Session.text(), s.Plan.text(), s.Open.text())
	}
	fmt.Fprintf(w, "plan: the session, and its runs recorded and placed; runtime: all that, and every batch size run until it is steady. Library: once a process\n")
}

func (c ColdWarm) text() string {
	figure := func(format string, v float64) string {
		if v == 0 {
			return "-"
		}
		return fmt.Sprintf(format, v)
	}
	return figure("%.1f", c.Cold) + "\t" + figure("%.1f", c.Warm) + "\t" + figure("%.3f", c.Ratio)
}

package memplan

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
)

// Usage is what a run took against what was planned. Nothing here measures: who runs fills it in.
type Usage struct {
	Regions []RegionUsage `json:"regions"` // in the order in which they are printed
	Frames  int64         `json:"frames"`

	// Fragmentation of the arenas as planned, and of what ONNX Runtime's default would reserve for the same requests
	// (BestFit; it takes more, since scratch memory of its kernels comes beside that): 1 - most bytes alive at once /
	// bytes reserved for them.
	Fragmentation float64 `json:"fragmentation"`
	BestFit       float64 `json:"fragmentation_best_fit"`

	// What the requests for tensors were served from.
	Arena Served `json:"arena"`
	Spill Served `json:"spill"`
	Heap  Served `json:"heap"`

	Mismatches int64 `json:"mismatches"` // runs that left their schedule
	Recordings int64 `json:"recordings"` // runs that were recorded, those before the first frame included

	// Means over the frames after warm-up.
	GoAllocs    float64 `json:"go_allocs_per_frame"`
	MinorFaults float64 `json:"minor_faults_per_frame"`
	MajorFaults float64 `json:"major_faults_per_frame"`
}

// RegionUsage is one kind of region, in bytes.
type RegionUsage struct {
	Kind     Kind  `json:"kind"`
	Planned  int64 `json:"planned"`
	Measured int64 `json:"measured"` // below 0: it could not be measured
}

// Served counts requests.
type Served struct {
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"` // of all of them together
}

func (s Served) String() string { return fmt.Sprintf("%d (%s)", s.Count, FormatBytes(s.Bytes)) }

// PerFrame returns a mean, 0 if there was no frame.
func PerFrame(n, frames int64) float64 { return float64(n) / float64(cmp.Or(max(frames, 0), 1)) }

// WriteText writes the report in a few lines for people.
func (u *Usage) WriteText(w io.Writer) error {
	var b bytes.Buffer
	u.writeTotals(&b)
	if len(u.Regions) > 0 {
		u.grid().write(&b)
	}
	fmt.Fprintf(&b, "fragmentation %.1f %% (at least %.1f %% as ONNX Runtime's default would have it), runs recorded %d, mismatches %d\n",
		100*u.Fragmentation, 100*u.BestFit, u.Recordings, u.Mismatches)
	fmt.Fprintf(&b, "tensors served by the arena %v, spill block %v, heap %v\n", u.Arena, u.Spill, u.Heap)
	fmt.Fprintf(&b, "per frame %s Go allocations, %s minor and %s major page faults\n", mean(u.GoAllocs), mean(u.MinorFaults), mean(u.MajorFaults))
	_, err := w.Write(b.Bytes())
	return err
}

// writeTotals writes the first line. Headroom that nobody used is no error of the plan: it is left out of the comparison.
func (u *Usage) writeTotals(b *bytes.Buffer) {
	var planned, measured, unused int64
	complete := true
	for _, r := range u.Regions {
		planned += r.Planned
		measured += max(r.Measured, 0)
		complete = complete && r.Measured >= 0
		if r.Kind == Headroom {
			unused += max(r.Planned-r.Measured, 0)
		}
	}
	fmt.Fprintf(b, "memory over %d frames: %s planned", u.Frames, FormatBytes(planned))
	switch expected := planned - unused; {
	case !complete:
		b.WriteString("; not all of it could be measured\n")
	case expected <= 0:
		fmt.Fprintf(b, ", %s measured\n", FormatBytes(measured))
	default:
		note := ""
		if unused > 0 {
			note = " without unused headroom"
		}
		fmt.Fprintf(b, ", %s measured (%+.1f %%%s)\n", FormatBytes(measured), 100*float64(measured-expected)/float64(expected), note)
	}
}

func (u *Usage) grid() grid {
	g := grid{align: "l", rows: [][]string{{""}, {"planned"}, {"measured"}}}
	for _, r := range u.Regions {
		measured := "-"
		if r.Measured >= 0 {
			measured = FormatBytes(r.Measured)
		}
		for i, cell := range []string{string(r.Kind), FormatBytes(r.Planned), measured} {
			g.rows[i] = append(g.rows[i], cell)
		}
	}
	return g
}

// mean writes a mean so that what is not zero does not look like it.
func mean(v float64) string {
	if v == 0 {
		return "0"
	}
	return fmt.Sprintf("%.3g", v)
}

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/vbauerster/mpb/v8/decor"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/internal/shown"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// status is what a person at a terminal sees: a line per picture, a bar for folders and clips, or a line per
// camera. Away from a terminal it is silent but for errors.
type status struct {
	e       *env
	summary bool         // a line per picture
	bar     *bar         // nil for none
	cameras *cameraLines // nil for none
	sources []camera.Source
	done    int64
}

// newStatus takes where the results go, nil for a file, and what says how the sources do.
func newStatus(e *env, results io.Writer, sources []camera.Source, ask func() []eyas.SourceStatus, quiet bool) *status {
	s := &status{e: e, sources: sources}
	if quiet || !terminal(e.stderr) {
		return s
	}
	live := 0
	for _, source := range sources {
		if source.Live() {
			live++
		}
	}
	if live > 0 {
		if !terminal(results) { // lines that are redrawn would wipe lines of results away
			s.cameras = newCameraLines(e, live, ask)
		}
		return s
	}
	several := len(sources) > 1
	for _, source := range sources {
		if c, ok := source.(camera.Counter); ok && c.Total() != 1 {
			several = true
		}
	}
	if !several {
		s.summary = true
		return s
	}
	if terminal(results) { // a bar that is redrawn would wipe lines of results away
		return s
	}
	s.bar = newBar(e, []decor.Decorator{decor.CountersNoUnit("%d / %d")},
		[]decor.Decorator{decor.AverageSpeed(0, "%.1f/s"), decor.Name("  "), decor.AverageETA(decor.ET_STYLE_GO)})
	return s
}

// total is the number of pictures expected, as far as it is known now.
func (s *status) total() int64 {
	var n int
	for _, source := range s.sources {
		if c, ok := source.(camera.Counter); ok {
			n += c.Total()
		} else {
			n++
		}
	}
	return int64(n)
}

// result takes a result; first says that it is the first of its picture.
func (s *status) result(r *eyas.Result, first bool) {
	if first {
		s.done++
	}
	if s.bar != nil {
		s.bar.set(s.done, s.total())
	}
	if s.summary {
		line := fmt.Sprintf("%s: %dx%d %s (%.1f ms)", r.Source, r.Width, r.Height, count(r.Detections),
			(r.Timing.Pre+r.Timing.Infer+r.Timing.Post).Seconds()*1000)
		fmt.Fprintln(s.e.lines, shown.Text(line))
	}
}

func (s *status) close() {
	if s.bar != nil {
		s.bar.close()
	}
	if s.cameras != nil {
		s.cameras.close()
	}
}

// count says "2 person, 1 bus", the most frequent class first.
func count(detections []eyas.Detection) string {
	type entry struct {
		class string
		n     int
	}
	var entries []entry
	for _, d := range detections {
		i := slices.IndexFunc(entries, func(e entry) bool { return e.class == d.Class })
		if i < 0 {
			entries = append(entries, entry{class: d.Class})
			i = len(entries) - 1
		}
		entries[i].n++
	}
	if len(entries) == 0 {
		return "nothing found"
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return b.n - a.n })
	var parts []string
	for _, e := range entries {
		parts = append(parts, fmt.Sprintf("%d %s", e.n, e.class))
	}
	return strings.Join(parts, ", ")
}

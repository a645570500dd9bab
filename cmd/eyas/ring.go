package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/eyas-edge/eyas/camera/ring"
	"github.com/eyas-edge/eyas/internal/places"
	"github.com/eyas-edge/eyas/internal/shown"
	"github.com/eyas-edge/eyas/runtime/annotate"
)

// tapTimeout is how long tap waits for a frame: a camera that lives gives one well before.
const tapTimeout = 5 * time.Second

type ringCmd struct {
	Ls  ringLsCmd  `cmd:"" help:"List the rings of the cameras that run now."`
	Tap ringTapCmd `cmd:"" help:"Write the newest frame of a ring as a picture."`
}

type ringLsCmd struct {
	JSON bool `name:"json" help:"One JSON document."`
}

// ringLine is what ls says of one ring.
type ringLine struct {
	Name       string   `json:"name"`
	Width      int      `json:"width"`
	Height     int      `json:"height"`
	Format     string   `json:"format"`
	Slots      int      `json:"slots"`
	Bytes      int64    `json:"bytes"`
	Generation uint32   `json:"generation"`
	Frames     uint64   `json:"frames"`
	FPS        float64  `json:"fps"`
	AgeMS      *float64 `json:"age_ms"` // null before the first frame
	PID        int      `json:"pid"`
	Error      string   `json:"error,omitempty"` // why nothing else is known
}

func (c *ringLsCmd) Run(e *env) error {
	dir, err := places.Here().Rings()
	if err != nil {
		return err
	}
	names, err := ring.List(dir)
	if err != nil {
		return err
	}
	lines, bad := lookAtAll(dir, names)
	for _, err := range bad {
		e.say(err)
	}
	if c.JSON {
		enc := json.NewEncoder(e.stdout)
		enc.SetIndent("", "  ")
		err = enc.Encode(struct {
			Rings []ringLine `json:"rings"`
		}{lines})
	} else {
		err = writeRings(e.stdout, lines)
	}
	if err == nil && len(bad) > 0 {
		return exitError{code: exitFailed} // it was said why
	}
	return err
}

// lookAtAll reads the state of all rings at the same time: one whose process does not answer holds up for seconds. It leaves out those
// of a camera that has not come yet, or whose process is gone.
func lookAtAll(dir string, names []string) (lines []ringLine, bad []error) {
	all := make([]ringLine, len(names))
	errs := make([]error, len(names))
	var looks sync.WaitGroup
	for i, name := range names {
		looks.Go(func() { all[i], errs[i] = lookAt(dir, name) })
	}
	looks.Wait()
	lines = make([]ringLine, 0, len(names)) // not null in the document
	for i, err := range errs {
		switch {
		case errors.Is(err, ring.ErrNoRing):
			continue
		case err != nil:
			bad = append(bad, err)
			all[i] = ringLine{Name: names[i], Error: err.Error()}
		}
		lines = append(lines, all[i])
	}
	return lines, bad
}

// lookAt reads one ring's state.
func lookAt(dir, name string) (ringLine, error) {
	r, err := ring.Connect(dir, name)
	if err != nil {
		return ringLine{}, err
	}
	defer r.Close()
	l, s := r.Layout(), r.Status()
	line := ringLine{
		Name: name, Width: l.Width, Height: l.Height, Format: l.Format.String(), Slots: l.Slots, Bytes: l.Bytes(),
		Generation: r.Generation(), Frames: s.Frames, FPS: s.Rate, PID: r.PID(),
	}
	if s.Age >= 0 {
		ms := float64(s.Age.Microseconds()) / 1e3
		line.AgeMS = &ms
	}
	return line, nil
}

func writeRings(w io.Writer, lines []ringLine) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RING\tSIZE\tFORMAT\tSLOTS\tFRAMES\tFPS\tAGE\tPROCESS")
	for _, l := range lines {
		name, age := shown.Text(l.Name), "-"
		if l.Error != "" { // which was said
			fmt.Fprintf(t, "%s\t-\t-\t-\t-\t-\t-\t-\n", name)
			continue
		}
		if l.AgeMS != nil {
			age = time.Duration(*l.AgeMS * float64(time.Millisecond)).Round(time.Millisecond).String()
		}
		fmt.Fprintf(t, "%s\t%dx%d\t%s\t%d\t%d\t%.1f\t%s\t%d\n", name, l.Width, l.Height, l.Format, l.Slots, l.Frames, l.FPS, age, l.PID)
	}
	return t.Flush()
}

type ringTapCmd struct {
	Ring string `arg:"" help:"A ring's name, as ls gives it."`
	File string `arg:"" help:"The picture to write: .png or .jpg."`
}

func (c *ringTapCmd) Run(e *env) error {
	switch strings.ToLower(filepath.Ext(c.File)) {
	case ".png", ".jpg", ".jpeg":
	default:
		return exitError{exitUsage, fmt.Sprintf("ring tap: %s: name a .png or .jpg file", c.File)}
	}
	dir, err := places.Here().Rings()
	if err != nil {
		return err
	}
	r, err := ring.Connect(dir, c.Ring)
	if errors.Is(err, ring.ErrNoRing) {
		return fmt.Errorf("%w; eyas ring ls lists them", err)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	var s ring.Snapshot
	if err := c.newest(e, r, &s); err != nil {
		return err
	}
	img, err := annotate.Picture(nil, s.Frame)
	if err != nil {
		return fmt.Errorf("ring %s: %w", c.Ring, err)
	}
	return annotate.Save(c.File, img)
}

// newest takes the newest frame, waiting for one if there is none yet or the writer is faster.
func (c *ringTapCmd) newest(e *env, r *ring.Reader, s *ring.Snapshot) error {
	ctx, cancel := context.WithTimeout(e.ctx, tapTimeout)
	defer cancel()
	for {
		seen := r.Status().Frames
		err := r.Newest(s)
		if errors.Is(err, ring.ErrNoFrame) || errors.Is(err, ring.ErrBusy) {
			if err = r.Wait(ctx, seen); err == nil {
				continue
			}
		}
		sig := e.signals.received()
		switch {
		case err == nil:
			return nil
		case sig != 0:
			return exitError{128 + int(sig), fmt.Sprintf("ring %s: stopped by a signal", c.Ring)}
		case errors.Is(err, context.DeadlineExceeded):
			return fmt.Errorf("ring %s: no frame came within %s: see its camera's process", c.Ring, tapTimeout)
		}
		return fmt.Errorf("ring %s: %w", c.Ring, err)
	}
}

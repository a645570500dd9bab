package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	eyas "github.com/eyas-edge/eyas/runtime"
)

// Contention is how one set-up serves one camera beside one co-runner.
type Contention struct {
	Model     string `json:"model"`
	Candidate string `json:"candidate"` // planned or default
	Beside    string `json:"beside"`    // alone, bursts or streams

	Rounds   []Served `json:"rounds,omitempty"` // the runs that finished
	Refused  int      `json:"refused"`          // runs for which there was no memory
	Killed   int      `json:"killed"`           // runs that the kernel ended
	Corun    []Corun  `json:"corun,omitempty"`  // what the co-runners have done
	CoKilled int      `json:"corunners_killed"`

	Group   string `json:"group"`     // in words: the control group of all of them, or why there is none
	Reclaim uint64 `json:"reclaimed"` // how often the group met its limit
}

const (
	contentionRounds = 3
	burstBytes       = 64 << 20
	contentionFile   = "corun"
)

// contentions measures every set-up beside every co-runner, in turns.
func (b *bench) contentions(ctx context.Context) error {
	for _, m := range b.report.Models {
		c, err := b.choice(ctx, m.Key)
		if err != nil {
			return err
		}
		set := rivalsOf(c)
		limit, err := b.roomFor(ctx, m.Key, set)
		if err != nil {
			return err
		}
		if err := b.contend(ctx, m.Key, set, limit); err != nil {
			return err
		}
	}
	return nil
}

// rival is one of the set-ups.
type rival struct {
	candidate string
	change    func(*eyas.Config)
}

// rivalsOf are Eyas as the SLO picks it, and a plain session that runs one picture at a time.
func rivalsOf(c *chosen) []rival {
	return []rival{
		{planned, fixed(c.Choice.Setting, c.Choice.Models[0].Ladder)},
		{standard, func(cfg *eyas.Config) { cfg.Batch = []int{1} }},
	}
}

// roomFor returns the limit of the control group: the larger of both set-ups, and two bursts. The file that is read is
// larger than that.
func (b *bench) roomFor(ctx context.Context, model string, rivals []rival) (limit int64, err error) {
	for _, r := range rivals {
		b.say("contention on", model+": memory of", r.candidate)
		s, err := b.alone(ctx, model, r, "")
		if err != nil {
			return 0, err
		}
		limit = max(limit, s.Resident)
	}
	return limit + 2*burstBytes, nil
}

// alone lets one set-up serve one camera.
func (b *bench) alone(ctx context.Context, model string, r rival, group string) (*Served, error) {
	rep, err := b.ask(ctx, request{
		Job: jobServe, Model: model, Candidate: r.candidate, Policy: ownPolicy, Cameras: 1, FPS: b.FPS, Group: group,
		Duration: b.timed(defaultDuration), Runs: b.Runs,
	}, b.under, r.change)
	return rep.Served, err
}

func (b *bench) contend(ctx context.Context, model string, rivals []rival, limit int64) (err error) {
	text, _ := os.ReadFile("/proc/self/cgroup") // without it there is no group
	g, none := newGroup(string(text), limit)
	dir, words := "", ""
	if none == nil {
		defer func() { err = errors.Join(err, g.close()) }()
		dir, words = g.dir, fmt.Sprintf("limit %s", mega(limit))
	} else {
		words = none.Error()
	}
	file := filepath.Join(b.dir, contentionFile)
	if err := sparse(file, limit+burstBytes); err != nil {
		return err
	}
	at := len(b.report.Contention)
	for _, r := range rivals {
		for _, beside := range []string{alone, bursts, streams} {
			b.report.Contention = append(b.report.Contention, Contention{Model: model, Candidate: r.candidate, Beside: beside, Group: words})
		}
	}
	cells := b.report.Contention[at:]
	for range contentionRounds {
		for i := range cells {
			c := &cells[i]
			b.say(fmt.Sprintf("contention on %s: %s, %s", model, c.Candidate, c.Beside))
			if err := b.cell(ctx, c, rivals[i*len(rivals)/len(cells)], g, request{Job: jobCorun, Candidate: c.Beside, Group: dir, File: file, Bytes: burstBytes}); err != nil {
				return err
			}
		}
	}
	return nil
}

// cell measures one set-up beside one co-runner, once.
func (b *bench) cell(ctx context.Context, c *Contention, r rival, g *group, q request) error {
	var before uint64
	if g != nil {
		before = g.full()
	}
	if c.Beside != alone {
		co, err := b.startCorunner(ctx, q)
		if err != nil {
			return err
		}
		defer func() {
			if done := co.stop(); done != nil {
				c.Corun = append(c.Corun, *done)
			} else {
				c.CoKilled++
			}
		}()
	}
	served, err := b.alone(ctx, c.Model, r, q.Group)
	if g != nil {
		c.Reclaim += g.full() - before
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, eyas.ErrBudget):
		c.Refused++
	case killed(err):
		c.Killed++
	case err != nil:
		return err
	default:
		c.Rounds = append(c.Rounds, *served)
	}
	return nil
}

// killed says whether a child was ended by SIGKILL, as the kernel does where memory has run out.
func killed(err error) bool {
	var exit interface{ Sys() any }
	if !errors.As(err, &exit) {
		return false
	}
	st, ok := exit.Sys().(syscall.WaitStatus)
	return ok && st.Signaled() && st.Signal() == syscall.SIGKILL
}

// sparse makes a file of so many bytes that takes no room on the disk, but in the page cache once it is read.
func sparse(path string, bytes int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(bytes), f.Close())
}

func (r *Report) contentionText(w io.Writer) {
	if len(r.Contention) == 0 {
		return
	}
	fmt.Fprintf(w, "\ncontention\t\tp50\tp99\tof alone\tstd\tof alone\tin time\tfinished, refused, killed\tlimit met\tco-runner\n")
	var p99, std float64
	for _, c := range r.Contention {
		deviation := medianOf(c.Rounds, func(s Served) float64 { return s.Capture.Std })
		tail := medianOf(c.Rounds, captureP99)
		if c.Beside == alone {
			p99, std = tail, deviation
		}
		fmt.Fprintf(w, "%s %s\t%s\t%.2f ms\t%.2f\t%.2f\t%.2f\t%.2f\t%s\t%d, %d, %d\t%d\t%s\n", c.Model, c.Candidate, c.Beside,
			medianOf(c.Rounds, func(s Served) float64 { return s.Capture.P50 }), tail, ratio(tail, p99), deviation, ratio(deviation, std),
			percent(medianOf(c.Rounds, func(s Served) float64 { return ratio(float64(s.InTime), float64(s.Offered)) })),
			len(c.Rounds), c.Refused, c.Killed, c.Reclaim, c.done())
	}
	fmt.Fprintf(w, "one camera, capture to result; medians of rounds in turns. Control group: %s\n", r.Contention[0].Group)
}

// done says what the co-runners have done.
func (c *Contention) done() string {
	if c.Beside == alone {
		return "-"
	}
	var bytes int64
	for _, k := range c.Corun {
		bytes += k.Bytes
	}
	return fmt.Sprintf("%s, %d killed", mega(bytes), c.CoKilled)
}

func (r *Report) contentionFigures(each func(string, float64)) {
	for _, c := range r.Contention {
		name := fmt.Sprintf("contention %s %s %s ", c.Model, c.Candidate, c.Beside)
		each(name+"p50, ms", medianOf(c.Rounds, func(s Served) float64 { return s.Capture.P50 }))
		each(name+"p99, ms", medianOf(c.Rounds, captureP99))
		each(name+"std, ms", medianOf(c.Rounds, func(s Served) float64 { return s.Capture.Std }))
	}
}

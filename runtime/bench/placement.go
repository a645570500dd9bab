package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/eyas-edge/eyas/internal/child"
	"github.com/eyas-edge/eyas/internal/machine"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// Placement is one way to lay out the memory of a model; medians of fresh processes in turns.
type Placement struct {
	Model   string `json:"model"`
	Layout  string `json:"layout"`
	Missing string `json:"missing,omitempty"` // why it cannot be had here

	Load          float64 `json:"load_ms"`  // until it is ready, from a full cache where there is one
	First         float64 `json:"first_ms"` // its first run
	FPS           float64 `json:"fps"`
	P50           float64 `json:"p50_ms"`
	P99           float64 `json:"p99_ms"`
	Std           float64 `json:"std_ms"`
	Above         int64   `json:"above_bytes"` // resident, above the process with nothing but the library
	Fragmentation float64 `json:"fragmentation"`
	Largest       int     `json:"largest_batch,omitempty"` // of 1, 2, 4 to 64, that the plan holds; absent where there is no plan
}

// placed is what one process measures.
type placed struct {
	Load          float64      `json:"load_ms"`
	First         float64      `json:"first_ms"`
	Run           Distribution `json:"run"`
	FPS           float64      `json:"fps"`
	Above         int64        `json:"above_bytes"`
	Fragmentation float64      `json:"fragmentation"`
	Largest       int          `json:"largest_batch"`
}

// layout is the plan with one thing changed.
type layout struct {
	name      string
	candidate string
	change    func(*eyas.Config)
	noLocks   bool
}

var layouts = []layout{
	{name: "as planned", candidate: planned, change: func(*eyas.Config) {}},
	{name: "dedicated", candidate: planned, change: func(c *eyas.Config) { c.Placement = "dedicated" }},
	{name: "shared", candidate: planned, change: func(c *eyas.Config) { c.Placement = "shared" }},
	{name: "shared, pageable", candidate: planned, noLocks: true, change: func(c *eyas.Config) { c.Placement = "shared" }},
	{name: "without locks", candidate: planned, noLocks: true, change: func(*eyas.Config) {}},
	{name: "without cache", candidate: planned, change: func(c *eyas.Config) { c.NoCache = true }},
	{name: "without plan (default session)", candidate: standard, change: func(*eyas.Config) {}},
}

// placeRounds is how often every layout takes a turn.
const placeRounds = 3

// widestPlan is what the largest batch is looked for in.
var widestPlan = []int{1, 2, 4, 8, 16, 32, 64}

func (b *bench) placements(ctx context.Context) error {
	for _, m := range b.report.Models {
		rounds := make([][]placed, len(layouts))
		missing := make([]string, len(layouts))
		for range placeRounds {
			for i, l := range layouts {
				if missing[i] != "" {
					continue
				}
				b.say("placement of", m.Key+":", l.name)
				p, err := b.place(ctx, m.Key, l)
				if errors.Is(err, eyas.ErrBudget) || errors.Is(err, errMissing) {
					missing[i] = err.Error()
				} else if err != nil {
					return err
				} else {
					rounds[i] = append(rounds[i], *p)
				}
			}
		}
		for i, l := range layouts {
			b.report.Placement = append(b.report.Placement, summary(m.Key, l.name, missing[i], rounds[i]))
		}
	}
	return nil
}

// errMissing says that something is not to be had on this machine.
var errMissing = errors.New("not here")

func (b *bench) place(ctx context.Context, model string, l layout) (*placed, error) {
	if l.noLocks && machine.ReadLocked().Unlimited {
		if _, err := child.Look(capabilityTool); err != nil {
			return nil, fmt.Errorf("%w: this process may lock without limit, and there is no %s to take that away", errMissing, capabilityTool)
		}
	}
	rep, err := b.ask(ctx, request{
		Job: jobPlace, Model: model, Candidate: l.candidate, NoLocks: l.noLocks, Runs: b.Runs, Duration: b.timed(defaultDuration) / placeRounds,
	}, l.change)
	return rep.Placed, err
}

// capabilityTool starts a program with less capabilities.
const capabilityTool = "setpriv"

// program returns what starts a child: one that is to do without locks loses the capability to ignore their limit.
func (b *bench) program(q request) []string {
	if q.NoLocks && machine.ReadLocked().Unlimited {
		return append([]string{capabilityTool, "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"}, b.Self...)
	}
	return b.Self
}

func summary(model, name, missing string, rounds []placed) Placement {
	of := func(figure func(placed) float64) float64 { return medianOf(rounds, figure) }
	p := Placement{
		Model: model, Layout: name, Missing: missing,
		Load: of(func(p placed) float64 { return p.Load }), First: of(func(p placed) float64 { return p.First }),
		FPS: of(func(p placed) float64 { return p.FPS }), P50: of(func(p placed) float64 { return p.Run.P50 }),
		P99: of(func(p placed) float64 { return p.Run.P99 }), Std: of(func(p placed) float64 { return p.Run.Std }),
		Above:         int64(of(func(p placed) float64 { return float64(p.Above) })),
		Fragmentation: of(func(p placed) float64 { return p.Fragmentation }),
	}
	for _, r := range rounds {
		p.Largest = max(p.Largest, r.Largest)
	}
	return p
}

// place opens one layout, runs its smallest batch for a while, and asks what batch it could hold.
func (q request) place(ctx context.Context, s *setup) (reply, error) {
	idle, err := status()
	if err != nil {
		return reply{}, err
	}
	start := time.Now()
	c, err := s.open(ctx, q.Candidate, false)
	if err != nil {
		return reply{}, err
	}
	p := placed{Load: milliseconds(time.Since(start))}
	err = q.runPlaced(ctx, s, c, &p)
	if err == nil {
		var now Status
		now, err = status()
		p.Above = now.Resident - idle.Resident
	}
	if u := c.usage(); u != nil {
		p.Fragmentation = u.Fragmentation
	}
	if err = errors.Join(err, c.Close()); err != nil || q.Candidate == standard {
		return reply{Placed: &p}, err
	}
	p.Largest, err = s.largest(ctx)
	return reply{Placed: &p}, err
}

func (q request) runPlaced(ctx context.Context, s *setup, c candidate, p *placed) (err error) {
	batch := s.ladder(q.Model)[0]
	data, err := picture(s.models[q.Model], batch)
	if err != nil {
		return err
	}
	r, err := c.runner(q.Model, batch)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var runs []float64
	start := time.Now()
	for began := start; len(runs) <= leastRuns || len(runs) < mostRuns && time.Since(began) < q.Duration; {
		at := time.Now()
		if err := errors.Join(ctx.Err(), r.Fill(ctx, data), r.Run()); err != nil {
			return err
		}
		if p.First == 0 {
			p.First, start = milliseconds(time.Since(at)), time.Now()
			continue
		}
		runs = append(runs, milliseconds(time.Since(at)))
		if len(runs) == q.Runs {
			break
		}
	}
	p.FPS = ratio(float64(batch*len(runs)), time.Since(start).Seconds())
	p.Run = distribution(runs)
	return nil
}

// largest returns the largest batch whose plan fits, from the models' graphs alone: the runs of a batch of 64 would take
// minutes on a small board.
func (s *setup) largest(ctx context.Context) (int, error) {
	cfg := s.cfg
	cfg.Batch = nil
	if m := s.models[sortedKeys(s.models)[0]]; m.Input.Batch <= 0 {
		cfg.Batch = widestPlan
	}
	doc, err := eyas.Plan(ctx, cfg, eyas.PlanOptions{Estimate: true})
	if errors.Is(err, eyas.ErrBudget) && doc != nil {
		err = nil
	}
	if err != nil {
		return 0, err
	}
	return doc.LargestBatch, nil
}

func (r *Report) placementText(w io.Writer) {
	if len(r.Placement) == 0 {
		return
	}
	fmt.Fprintf(w, "\nplacement\t\tload\tfirst\tfps\tp50\tp99\tstd\tabove idle\tfragmentation\tlargest batch\n")
	for _, p := range r.Placement {
		if p.Missing != "" {
			fmt.Fprintf(w, "%s\t%s\t%s\n", p.Layout, p.Model, p.Missing)
			continue
		}
		largest := "-"
		if p.Largest > 0 {
			largest = fmt.Sprint(p.Largest)
		}
		fmt.Fprintf(w, "%s\t%s\t%.1f ms\t%.2f ms\t%.1f\t%.2f ms\t%.2f\t%.2f\t%s\t%s\t%s\n", p.Layout, p.Model, p.Load, p.First, p.FPS,
			p.P50, p.P99, p.Std, mega(p.Above), percent(p.Fragmentation), largest)
	}
	fmt.Fprintf(w, "medians of %d processes in turns\n", placeRounds)
}

func (r *Report) placementFigures(each func(string, float64)) {
	for _, p := range r.Placement {
		if p.Missing != "" {
			continue
		}
		name := "placement " + p.Model + " " + p.Layout + " "
		each(name+"load, ms", p.Load)
		each(name+"first, ms", p.First)
		each(name+"fps", p.FPS)
		each(name+"p50, ms", p.P50)
		each(name+"p99, ms", p.P99)
		each(name+"resident, bytes above idle", float64(p.Above))
	}
}

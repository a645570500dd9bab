// Package bench measures Eyas against a default session of ONNX Runtime: the suites of `eyas bench`.
//
// Every measurement is made by a fresh child process of the same program, so that nobody measures what another has
// left behind; what alternates in one process says so. A child is told on its standard input what to do, and answers
// with one JSON document: Child. A timing is only reported; outputs that are not bit-identical are an error.
package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	eyas "github.com/eyas-edge/eyas/runtime"
	"github.com/eyas-edge/eyas/runtime/lane"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// The suites that this version has, and those of the contract that it does not.
const (
	Memory = "memory" // planned memory against the default: resident memory, time, counters, results, start
	Soak   = "soak"   // planned memory over many runs
)

var laterSuites = []string{"latency", "start", "policies", "contention", "placement"}

const (
	// defaultDuration is about how long each timed part takes for one model; a soak takes soakDuration.
	defaultDuration = 4 * time.Second
	soakDuration    = time.Minute
)

// Options say what is measured.
type Options struct {
	// Config names the models and how they run. Sources, times and outputs in it are not used.
	Config eyas.Config
	// Suites are of Memory and Soak. They default to Memory.
	Suites []string
	// Runs of each model and candidate in the steady state. They default to what fits into Duration.
	Runs int
	// Duration is about how long each timed part takes for one model; with Runs it ends the steady state early. It
	// defaults to 4 s, to a minute for a soak, and with Runs to no limit on the steady state.
	Duration time.Duration
	// Self starts a child: the program and the arguments that lead to Child.
	Self []string
	// Progress, if set, is told in a few words what is measured next.
	Progress func(string)
}

// Run measures, and stops its child when ctx ends. Errors wrap those of the package runtime.
func Run(ctx context.Context, o Options) (*Report, error) {
	b, err := prepare(o)
	if err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("", "eyas-bench-"); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer os.RemoveAll(b.dir)
	if err := b.run(ctx); err != nil {
		return nil, err
	}
	return b.report, nil
}

// bench is one call of Run.
type bench struct {
	Options
	report *Report
	dir    string // of the children's cache and counts, removed at the end
	lib    string // the preloaded counter; "" for none
}

// prepare checks what can be known without a child.
func prepare(o Options) (*bench, error) {
	if len(o.Suites) == 0 {
		o.Suites = []string{Memory}
	}
	for _, s := range o.Suites {
		switch {
		case slices.Contains(laterSuites, s):
			return nil, kind{fmt.Errorf("bench: suite %s: not yet in this version: use %s or %s", s, Memory, Soak), eyas.ErrNotYet}
		case s != Memory && s != Soak:
			return nil, kind{fmt.Errorf("bench: suite %q is not known: use %s or %s", s, Memory, Soak), eyas.ErrConfig}
		}
	}
	if o.Runs < 0 || o.Duration < 0 {
		return nil, kind{errors.New("bench: frames and duration cannot be below zero"), eyas.ErrConfig}
	}
	o.Config = measured(o.Config)
	if err := o.Config.Validate(); err != nil {
		return nil, err
	}
	if len(o.Config.Models) == 0 {
		return nil, kind{errors.New("bench: no model: name one"), eyas.ErrConfig}
	}
	b := &bench{Options: o, report: &Report{Version: ReportVersion, Suites: o.Suites}}
	return b, b.resolve()
}

// measured returns what of a configuration is measured.
func measured(c eyas.Config) eyas.Config {
	return eyas.Config{
		Models: c.Models, EP: c.EP, Device: c.Device, Precision: c.Precision, ORT: c.ORT, Lanes: c.Lanes, Threads: c.Threads,
		Batch: c.Batch, Budget: c.Budget, Headroom: c.Headroom, Placement: c.Placement, NoCache: c.NoCache, CheckArena: c.CheckArena,
	}
}

// resolve replaces names by files, as the children have a home of their own, and finds the batch sizes that each
// model can run.
func (b *bench) resolve() error {
	found, err := ort.Find(b.Config.ORT)
	if err != nil {
		return kind{err, eyas.ErrLibrary}
	}
	if b.Config.ORT, err = filepath.Abs(found.Path); err != nil {
		return err
	}
	models := map[string]eyas.ModelConfig{}
	for _, key := range sortedKeys(b.Config.Models) {
		cfg := b.Config.Models[key]
		m, err := eyas.Inspect(cfg)
		if err != nil {
			return err
		}
		cfg.Path = m.Path
		models[key] = cfg
		b.report.Models = append(b.report.Models, ModelInfo{Key: key, Path: m.Path, Batches: lane.Batches(m, b.Config.Batch)})
	}
	b.Config.Models = models
	return nil
}

func (b *bench) run(ctx context.Context) error {
	if err := b.facts(ctx); err != nil {
		return err
	}
	if err := b.counter(ctx); err != nil {
		return err
	}
	steps := []func(context.Context) error{}
	if slices.Contains(b.Suites, Memory) {
		steps = append(steps, b.residents, b.times, b.steadies, b.starts)
	}
	if slices.Contains(b.Suites, Soak) {
		steps = append(steps, b.soaks)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) say(parts ...string) {
	if b.Progress != nil {
		b.Progress(strings.Join(parts, " "))
	}
}

// starts measures how soon sessions are ready.
func (b *bench) starts(ctx context.Context) error {
	for _, m := range b.report.Models {
		b.say("start of", m.Key)
		rep, err := b.ask(ctx, request{Job: jobStart, Model: m.Key})
		if err != nil {
			return err
		}
		b.report.Start = append(b.report.Start, *rep.Start)
	}
	return nil
}

func (b *bench) residents(ctx context.Context) error {
	// What is compared is a start that finds its cache and plan, as every start but the first: this one fills them.
	b.say("resident memory, first start")
	if _, err := b.ask(ctx, request{Job: jobResident, Candidate: planned}); err != nil {
		return err
	}
	r := Resident{}
	for _, c := range []struct {
		candidate string
		to        *Usage
	}{{standard, &r.Default}, {planned, &r.Planned}} {
		b.say("resident memory,", c.candidate)
		rep, err := b.ask(ctx, request{Job: jobResident, Candidate: c.candidate})
		if err != nil {
			return err
		}
		*c.to = *rep.Usage
		if rep.Memory != nil {
			r.Memory = rep.Memory
		}
	}
	r.Ratio = ratio(float64(r.Planned.Above), float64(r.Default.Above))
	b.report.Resident = &r
	return nil
}

func (b *bench) times(ctx context.Context) error {
	for _, m := range b.report.Models {
		b.say("time of", m.Key)
		rep, err := b.ask(ctx, request{Job: jobTime, Model: m.Key, Duration: b.timed(defaultDuration)})
		if err != nil {
			return err
		}
		b.report.Time = append(b.report.Time, rep.Time...)
	}
	return nil
}

// timed returns the duration of a timed part.
func (b *bench) timed(otherwise time.Duration) time.Duration {
	if b.Duration > 0 {
		return b.Duration
	}
	return otherwise
}

func (b *bench) steadies(ctx context.Context) error {
	for _, m := range b.report.Models {
		for _, candidate := range []string{standard, planned} {
			b.say("steady state of", m.Key+",", candidate)
			s, err := b.steady(ctx, m.Key, candidate, defaultDuration)
			if err != nil {
				return err
			}
			b.report.Steady = append(b.report.Steady, s)
		}
	}
	return nil
}

func (b *bench) soaks(ctx context.Context) error {
	for _, m := range b.report.Models {
		b.say("soak of", m.Key)
		s, err := b.steady(ctx, m.Key, planned, soakDuration)
		if err != nil {
			return err
		}
		b.report.Soak = append(b.report.Soak, s)
	}
	return nil
}

// steady lets a child run one model for so many runs, or for a duration.
func (b *bench) steady(ctx context.Context, model, candidate string, otherwise time.Duration) (Steady, error) {
	d := b.Duration
	if d == 0 && b.Runs == 0 {
		d = otherwise
	}
	rep, err := b.ask(ctx, request{Job: jobSteady, Model: model, Candidate: candidate, Runs: b.Runs, Duration: d})
	if err != nil {
		return Steady{}, err
	}
	return *rep.Steady, nil
}

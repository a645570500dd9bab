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

// The suites.
const (
	SuiteMemory     = "memory"     // planned memory against the default: resident memory, time, counters, results, first touch
	SuiteStart      = "start"      // how soon a model is ready, and how fast its first frame is
	SuiteLatency    = "latency"    // throughput and latency of lanes and batches, from capture to result
	SuitePolicies   = "policies"   // ways to make batches, against each other on the same cameras
	SuitePlacement  = "placement"  // kinds of memory, and the plan without one of its parts
	SuiteContention = "contention" // beside others that want the memory
	SuiteSoak       = "soak"       // planned memory over many runs
)

// suites are all of them, in the order in which they are measured, with their parts.
var suites = []suite{
	{SuiteLatency, []part{(*bench).frontiers, (*bench).captures}},
	{SuiteStart, []part{(*bench).starts, (*bench).firstFrames}},
	{SuitePolicies, []part{(*bench).policies}},
	{SuiteMemory, []part{(*bench).residents, (*bench).times, (*bench).steadies, (*bench).touches}},
	{SuiteContention, []part{(*bench).contentions}},
	{SuitePlacement, []part{(*bench).placements}},
	{SuiteSoak, []part{(*bench).soaks}},
}

type part func(*bench, context.Context) error

type suite struct {
	name  string
	parts []part
}

// suiteNames lists them for people.
func suiteNames() string {
	var names []string
	for _, s := range suites {
		names = append(names, s.name)
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

const (
	// defaultDuration is about how long each timed part takes for one model; a soak takes soakDuration.
	defaultDuration = 4 * time.Second
	soakDuration    = time.Minute

	defaultCameras = 4
	defaultFPS     = 30
	defaultIdle    = 10 * time.Second
)

// Bounds on what can be asked for.
const (
	maxCameras  = 1024
	maxFPS      = 1000
	maxDuration = 24 * time.Hour
)

// Options say what is measured.
type Options struct {
	// Config names the models and how they run. Sources, times but the SLO, and outputs in it are not used. The SLO is
	// that of latency, policies and contention; it defaults to eyas.DefaultSLO.
	Config eyas.Config
	// Suites to run. They default to SuiteMemory.
	Suites []string
	// Runs of each model and candidate in the steady state, and frames of each camera. They default to what fits into
	// Duration.
	Runs int
	// Duration is about how long each timed part takes for one model; with Runs it ends the steady state early. It
	// defaults to 4 s, to a minute for a soak, and with Runs to no limit on the steady state.
	Duration time.Duration
	// Cameras and FPS, frames a second of each, are what latency, policies and contention (one camera) serve. They
	// default to 4 and 30.
	Cameras int
	FPS     float64
	// Idle is how long the suite start leaves a model alone before it measures another first frame. It defaults to 10 s.
	Idle time.Duration
	// Self starts a child: the program and the arguments that lead to Child.
	Self []string
	// Progress, if set, is told in a few words what is measured next.
	Progress func(string)
}

// Run measures, and stops its child when ctx ends: what was measured so far is returned then with the error, marked
// as stopped. Other errors wrap those of the package runtime, and come without a report.
func Run(ctx context.Context, o Options) (*Report, error) {
	b, err := prepare(o)
	if err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("", "eyas-bench-"); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer os.RemoveAll(b.dir)
	err = b.run(ctx)
	if ctx.Err() != nil {
		b.report.Stopped = true
		return b.report, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return b.report, nil
}

// bench is one call of Run.
type bench struct {
	Options
	slo     time.Duration
	report  *Report
	choices map[string]*chosen // per model, once it is known
	dir     string             // of the children's cache and counts, removed at the end
	lib     string             // the preloaded counter; "" for none
}

// prepare checks what can be known without a child.
func prepare(o Options) (*bench, error) {
	if len(o.Suites) == 0 {
		o.Suites = []string{SuiteMemory}
	}
	for _, s := range o.Suites {
		if !slices.ContainsFunc(suites, func(known suite) bool { return known.name == s }) {
			return nil, kind{fmt.Errorf("bench: suite %q is not known: use %s", s, suiteNames()), eyas.ErrConfig}
		}
	}
	if err := o.bounds(); err != nil {
		return nil, kind{fmt.Errorf("bench: %w", err), eyas.ErrConfig}
	}
	slo := o.Config.SLO
	if slo == 0 {
		slo = eyas.DefaultSLO
	}
	o.Config = measured(o.Config)
	if err := o.Config.Validate(); err != nil {
		return nil, err
	}
	if len(o.Config.Models) == 0 {
		return nil, kind{errors.New("bench: no model: name one"), eyas.ErrConfig}
	}
	b := &bench{Options: o, slo: slo, report: &Report{Version: ReportVersion, Suites: o.Suites}, choices: map[string]*chosen{}}
	return b, b.resolve()
}

// bounds says what cannot be measured, and fills in what was left out.
func (o *Options) bounds() error {
	if o.Cameras == 0 {
		o.Cameras = defaultCameras
	}
	if o.FPS == 0 {
		o.FPS = defaultFPS
	}
	if o.Idle == 0 {
		o.Idle = defaultIdle
	}
	served := []string{SuiteLatency, SuitePolicies, SuiteContention}
	switch {
	case o.Runs < 0 || o.Duration < 0 || o.Idle < 0:
		return errors.New("frames, duration and idle time cannot be below zero")
	case o.Duration > maxDuration || o.Idle > maxDuration:
		return fmt.Errorf("duration and idle time are at most %v", maxDuration)
	case o.Cameras < 1 || o.Cameras > maxCameras:
		return fmt.Errorf("%d cameras: use 1 to %d", o.Cameras, maxCameras)
	case !(o.FPS >= 0.1 && o.FPS <= maxFPS):
		return fmt.Errorf("%v frames a second: use 0.1 to %d", o.FPS, maxFPS)
	case o.Config.SLO < 0 && slices.ContainsFunc(o.Suites, func(s string) bool { return slices.Contains(served, s) }):
		return fmt.Errorf("slo none: the suites %s measure against a limit: name one, or leave it out for %v", strings.Join(served, ", "), eyas.DefaultSLO)
	}
	return nil
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
	for _, s := range suites {
		if !slices.Contains(b.Suites, s.name) {
			continue
		}
		for _, measure := range s.parts {
			if err := measure(b, ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) say(parts ...string) {
	if b.Progress != nil {
		b.Progress(strings.Join(parts, " "))
	}
}

// timed returns the duration of a timed part.
func (b *bench) timed(otherwise time.Duration) time.Duration {
	if b.Duration > 0 {
		return b.Duration
	}
	return otherwise
}

// Package runtime runs detectors on pictures, clips and cameras.
//
// Open loads the models of a Config and returns when everything is ready; Detect looks at one
// picture, Stream at sources until they end. The package shares its name with the standard library's:
// import it as eyas, or that one as goruntime.
//
// It does no drawing and writes no files: see runtime/annotate and runtime/sink.
package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eyas-edge/eyas/internal/machine"
	"github.com/eyas-edge/eyas/memplan"
	"github.com/eyas-edge/eyas/runtime/cache"
	"github.com/eyas-edge/eyas/runtime/lane"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// Runtime holds the models, ready to run. Its methods may be called from several goroutines.
type Runtime struct {
	cfg     Config
	log     *slog.Logger
	library *ort.Library
	models  []*Model // in the order of their keys
	byKey   map[string]*Model
	ep      string       // the provider in effect
	options ort.Options  // of sessions
	lanes   []*lane.Lane // models take turns on each
	setting Setting      // of the lanes that are there
	choice  Choice
	longest time.Duration // of a first run in the ladder, 0 for no limit
	next    atomic.Uint64 // the lane that is asked first

	cache      *cache.Cache
	cacheTold  bool             // one warning about it is enough
	cold       bool             // a model was optimised at this start
	planning   bool             // for the document: also of what does not fit
	prechecked bool             // the models are known not to be too large by far
	others     []memplan.Region // what the library and Go take
	rings      []memplan.Region // the frames of live sources
	neighbours neighbours       // plans of others on this machine
	squeeze    *squeeze         // takes large batches out while memory is short
	laid       *memplan.Plan
	meter      meter
	tracks     []*track // the sources of the last Stream

	mu      sync.Mutex
	closed  bool
	closing sync.Once
	users   sync.WaitGroup // Detect and Stream calls under way
	events  sync.Mutex     // one OnEvent call at a time
}

// Open loads the library and the models, decides how they run (see Choice), and runs each batch size of each on every
// lane until its time is steady: what returns is ready. Errors wrap ErrConfig, ErrNotYet, ErrModel, ErrLibrary,
// ErrProvider, ErrBudget or ErrSLO.
func Open(ctx context.Context, cfg Config) (*Runtime, error) {
	start := time.Now()
	rt, err := newRuntime(cfg)
	if err != nil {
		return nil, err
	}
	if err = rt.open(ctx); err == nil {
		err = rt.prepare(ctx)
	}
	if err == nil {
		err = rt.replan()
	}
	rt.neighbours.settled()
	if err == nil {
		err = ctx.Err() // which may have reached the lane after its last run: it is of no use then
	}
	if err != nil {
		err = rt.neighbours.explain(err)
		rt.Close()
		return nil, err
	}
	for _, m := range rt.models {
		m.before = m.counts()
	}
	rt.squeeze = rt.newSqueeze()
	if rt.choice.Why != "" {
		rt.log.Info(rt.choice.Why)
	}
	rt.event(Event{Kind: "ready", Took: time.Since(start), Text: rt.choice.Why})
	return rt, nil
}

// newRuntime checks the configuration; nothing is read.
func newRuntime(cfg Config) (*Runtime, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if len(cfg.Models) == 0 {
		return nil, as(ErrConfig, errors.New("no model: name one"))
	}
	rt := &Runtime{cfg: cfg, log: cfg.Logger, byKey: map[string]*Model{}}
	rt.setting = settingsFor(machine.CPUs(), cfg.Lanes, cfg.Threads, false)[0]
	if rt.log == nil {
		rt.log = slog.New(slog.DiscardHandler)
	}
	return rt, nil
}

// open reads the models and loads the library.
func (rt *Runtime) open(ctx context.Context) error {
	// The library takes a while to load: meanwhile the models are read.
	loaded := make(chan error, 1)
	go func() { loaded <- rt.load() }()
	err := rt.readAll()
	if failed := <-loaded; err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	options := ort.Options{
		EP: rt.cfg.EP, Device: rt.cfg.Device,
		// An idle pool that spins slows the model whose turn it is by half.
		ForceSpinningStop: len(rt.models) > 1,
		OwnAllocator:      true,
		Warn:              func(text string) { rt.warn("", "", text) },
	}
	if rt.ep, err = rt.library.EPFor(options); err != nil {
		return as(ErrProvider, err)
	}
	if options.OwnAllocator = rt.ep == ort.EPCPU; options.OwnAllocator {
		options.EP = ort.EPCPU // auto has said already why it is not the GPU
	}
	rt.options = options
	if !rt.planning { // what is only looked at takes nothing
		rt.neighbours.meet(rt.log, rt.models)
	}
	rt.openCache()
	rt.expectRings(1)
	for _, m := range rt.models {
		m.identify(ctx)
	}
	return ctx.Err()
}

// warnOf passes on what a lane has to say of a model.
func (rt *Runtime) warnOf(p *lane.Program, text string) {
	for _, m := range rt.models {
		if p.Model() == m.info {
			rt.warn(m.key, "", text)
		}
	}
}

// load finds and loads ONNX Runtime.
func (rt *Runtime) load() error {
	found, err := ort.Find(rt.cfg.ORT)
	if err == nil {
		rt.library, err = ort.Load(found.Path)
	}
	return as(ErrLibrary, err)
}

// readAll finds out what the models are, in the order of their keys.
func (rt *Runtime) readAll() error {
	for _, key := range slices.Sorted(maps.Keys(rt.cfg.Models)) {
		m, err := rt.read(key, rt.cfg.Models[key])
		if err != nil {
			return err
		}
		rt.models = append(rt.models, m)
		rt.byKey[key] = m
	}
	return nil
}

// BatchLimits returns how often the largest batches were taken out because memory was short.
func (rt *Runtime) BatchLimits() uint64 { return rt.squeeze.limits.Load() }

// Models returns the models in the order of their keys.
func (rt *Runtime) Models() []*Model { return slices.Clone(rt.models) }

// Model returns the model of a key, nil if there is none.
func (rt *Runtime) Model(key string) *Model { return rt.byKey[key] }

// EP returns the execution provider that the models really run on.
func (rt *Runtime) EP() string { return rt.ep }

// Library returns the path and version of the ONNX Runtime library in use.
func (rt *Runtime) Library() (path, version string) {
	return rt.library.Path(), rt.library.Version()
}

// Abort makes the runs that are under way fail soon, for an end that cannot wait for a slow model.
// The runtime can only be closed after that.
func (rt *Runtime) Abort() {
	for _, l := range rt.lanes {
		l.Abort()
	}
}

// Close waits for calls under way and frees everything. It may be called twice.
func (rt *Runtime) Close() error {
	rt.mu.Lock()
	rt.closed = true
	rt.mu.Unlock()
	rt.closing.Do(func() {
		rt.users.Wait()
		for _, m := range rt.models {
			m.checkScores(true)
		}
		if rt.laid != nil {
			rt.save()
			if rt.meter.frames.Load() >= warmFrames {
				rt.saveUse()
			}
		}
		for _, l := range slices.Backward(rt.lanes) {
			l.Close()
		}
		for _, m := range rt.models {
			m.close()
		}
		if rt.cache != nil {
			rt.cache.Close()
		}
		rt.neighbours.close()
	})
	return nil
}

// use counts a call in; the caller calls rt.users.Done unless it fails.
func (rt *Runtime) use() error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.closed {
		return ErrClosed
	}
	rt.users.Add(1)
	return nil
}

func (rt *Runtime) event(e Event) {
	if rt.cfg.OnEvent == nil {
		return
	}
	e.Time = time.Now()
	rt.events.Lock()
	defer rt.events.Unlock()
	rt.cfg.OnEvent(e)
}

func (rt *Runtime) warn(model, source, text string) {
	if model != "" {
		text = fmt.Sprintf("model %s: %s", model, text)
	}
	rt.log.Warn(text)
	rt.event(Event{Kind: "warning", Model: model, Source: source, Text: text})
}

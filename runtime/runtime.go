// Package runtime runs detectors on pictures, clips and cameras.
//
// Open loads the models of a Config and returns when everything is ready; Detect looks at one
// picture, Stream at sources until they end. The package shares its name with the standard library's:
// import it as eyas, or that one as goruntime.
//
// It does no drawing and writes no files: see runtime/annotate and runtime/sink.
package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"time"

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
	ep      string     // the provider in effect
	lane    *lane.Lane // models take turns

	cache     *cache.Cache
	cacheTold bool             // one warning about it is enough
	cold      bool             // a model was optimised at this start
	planning  bool             // for the document: also of what does not fit
	others    []memplan.Region // what the library and Go take
	rings     []memplan.Region // the frames of live sources
	laid      *memplan.Plan
	meter     meter
	tracks    []*track // the sources of the last Stream

	mu      sync.Mutex
	closed  bool
	closing sync.Once
	users   sync.WaitGroup // Detect and Stream calls under way
	events  sync.Mutex     // one OnEvent call at a time
}

// Open loads the library and the models, binds their tensors and runs each once: what returns is
// ready. Errors wrap ErrConfig, ErrNotYet, ErrModel, ErrLibrary or ErrProvider.
func Open(ctx context.Context, cfg Config) (*Runtime, error) {
	start := time.Now()
	rt, err := newRuntime(cfg)
	if err != nil {
		return nil, err
	}
	if err = rt.open(ctx); err == nil {
		err = rt.settle(ctx)
	}
	if err == nil {
		err = ctx.Err() // which may have reached the lane after its last run: it is of no use then
	}
	if err != nil {
		rt.Close()
		return nil, err
	}
	rt.event(Event{Kind: "ready", Took: time.Since(start)})
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
	if rt.log == nil {
		rt.log = slog.New(slog.DiscardHandler)
	}
	return rt, nil
}

// open reads and loads everything, and finds out what runs take.
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
		EP: rt.cfg.EP, Device: rt.cfg.Device, Threads: rt.cfg.Threads,
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
	rt.openCache()
	rt.expectRings()
	return rt.learn(ctx, options)
}

// learn loads the models and finds out what each run of them takes.
func (rt *Runtime) learn(ctx context.Context, o ort.Options) error {
	rt.lane = lane.New(lane.Options{Check: rt.cfg.CheckArena, Warn: rt.warnOf})
	for _, m := range rt.models {
		if err := m.load(ctx, o); err != nil {
			return err
		}
	}
	if err := rt.precheck(ctx); err != nil {
		return err
	}
	if err := rt.lane.Record(ctx); err != nil {
		return cmp.Or(ctx.Err(), asRun(err))
	}
	for _, m := range rt.models {
		m.probe()
		m.info.ONNX.DropWeights() // the session has its own
	}
	debug.FreeOSMemory() // the files that were read, at once: the plan is made of what stays
	return nil
}

// settle plans the memory, checks that it is there, takes it, and runs everything once.
func (rt *Runtime) settle(ctx context.Context) error {
	rt.foresee()
	if err := rt.place(); err != nil {
		return err
	}
	for _, m := range rt.models {
		m.limit()
	}
	planned := rt.lane.Need(math.MaxInt)
	if err := rt.lane.Place(ctx, rt.laid.In(memplan.Arena) == memplan.Shared); err != nil {
		return cmp.Or(ctx.Err(), asRun(err))
	}
	if planned != rt.lane.Need(math.MaxInt) { // a saved plan did not hold
		if err := rt.place(); err != nil {
			return err
		}
	}
	if err := rt.checkLocks(); err != nil {
		return err
	}
	for _, m := range rt.models {
		m.before = m.program.Counts()
	}
	rt.save()
	return nil
}

// warnOf passes on what a lane has to say of a model.
func (rt *Runtime) warnOf(p *lane.Program, text string) {
	for _, m := range rt.models {
		if m.program == p {
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
	rt.lane.Abort()
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
		if rt.lane != nil {
			rt.lane.Close()
		}
		for _, m := range rt.models {
			m.close()
		}
		if rt.cache != nil {
			rt.cache.Close()
		}
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

package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/internal/fserr"
	"github.com/eyas-edge/eyas/models"
	"github.com/eyas-edge/eyas/models/catalog"
	"github.com/eyas-edge/eyas/models/decode"
	"github.com/eyas-edge/eyas/runtime/cache"
	"github.com/eyas-edge/eyas/runtime/lane"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// The thresholds where neither the configuration nor the model says otherwise.
const (
	DefaultConf   = 0.25
	DefaultMaxDet = 300
)

// Model is one model of a Runtime.
type Model struct {
	rt      *Runtime
	key     string
	cfg     ModelConfig
	info    *models.Model
	hash    cache.Digest   // of its files; zero without a place in the cache
	fixed   map[string]int // dimensions of its inputs that are the same in every run
	weights *ort.Weights   // nil where the library has them
	built   bool           // at this start, and not found in the cache
	plain   bool           // the library loads it as it is
	quota   *ort.Quota     // nil without the arena
	before  ort.Counts     // of warm-up
	saved   *savedModel    // what an earlier run has found out; nil for nothing
	kept    int64          // recordings that the cache has
	asked   []int          // batch sizes to choose from; what runs is for the programs to say
	ladder  []int          // of asked, those that the lanes were built for

	program  *lane.Program       // on the first lane; nil before it is loaded
	programs []*lane.Program     // on each lane
	known    map[int]*lane.Saved // what this start has found out before, by the threads of the session
	probed   bool
	options  decode.Options

	mu     sync.Mutex
	scores scoreCheck
}

// Key returns the model's key in the configuration, which results carry.
func (m *Model) Key() string { return m.key }

// Info returns what the model is, its graph without the bytes of the weights. It must not be changed.
func (m *Model) Info() *models.Model { return m.info }

// Options returns the thresholds in force.
func (m *Model) Options() decode.Options { return m.options }

// read opens the model's file and finds out what it is; nothing is run.
func (rt *Runtime) read(key string, cfg ModelConfig) (*Model, error) {
	m := &Model{rt: rt, key: key, cfg: cfg, known: map[int]*lane.Saved{}}
	var err error
	if m.info, err = Inspect(cfg); err != nil {
		return nil, err
	}
	if m.options, err = m.thresholds(); err != nil {
		return nil, err
	}
	for _, w := range m.info.Warnings {
		rt.warn(key, "", w)
	}
	return m, nil
}

// resolve returns the file of a MODEL: a path, or the name of a pulled model.
func resolve(model string) (string, error) {
	path := strings.HasSuffix(model, ".onnx") || strings.ContainsRune(model, '/')
	info, err := os.Stat(model)
	if err == nil && (path || info.Mode().IsRegular()) { // a folder called face is not what -m face means
		return model, nil
	}
	if path {
		err = fserr.Bare(err) // the path stands before it already
		return "", as(ErrModel, fmt.Errorf("model %s: %w: name an .onnx file, or one of eyas pull --list", model, err))
	}
	if path, ok := catalog.Find(model); ok {
		return path, nil
	}
	for _, e := range catalog.List() {
		if e.Name == model {
			return "", as(ErrModel, fmt.Errorf("model %s is not here yet: eyas pull %s", model, model))
		}
	}
	return "", as(ErrModel, fmt.Errorf("model %s is neither a file nor a known model: name an .onnx file, or one of eyas pull --list", model))
}

func (m *Model) thresholds() (decode.Options, error) {
	pick := func(values ...float64) float32 {
		for _, v := range values {
			if v != 0 {
				return float32(v)
			}
		}
		return 0
	}
	o := decode.Options{
		Conf:     pick(m.cfg.Conf, float64(m.info.Conf), DefaultConf),
		IoU:      pick(m.cfg.IoU, float64(m.info.IoU)),
		MaxDet:   m.cfg.MaxDet,
		Agnostic: m.cfg.Agnostic, MultiLabel: m.cfg.MultiLabel,
	}
	if o.MaxDet == 0 {
		o.MaxDet = DefaultMaxDet
	}
	for _, name := range m.cfg.Classes {
		id, err := m.classID(strings.TrimSpace(name))
		if err != nil {
			return o, err
		}
		o.Classes = append(o.Classes, id)
	}
	return o, nil
}

func (m *Model) classID(name string) (int, error) {
	if i := slices.Index(m.info.Labels, name); i >= 0 {
		return i, nil
	}
	classes := max(m.info.NumClasses, 1)
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < classes {
		return i, nil
	}
	const most = 12
	known := strings.Join(m.info.Labels[:min(len(m.info.Labels), most)], ", ")
	if len(m.info.Labels) > most {
		known += ", ..."
	}
	if known == "" {
		known = fmt.Sprintf("the ids 0 to %d", classes-1)
	}
	return 0, as(ErrConfig, fmt.Errorf("model %s has no class %q: it knows %s", m.key, name, known))
}

// identify settles what names the model in the cache, whether it is rewritten, and the batch sizes that there are to choose
// from.
func (m *Model) identify(ctx context.Context) {
	if m.rt.ep == ort.EPCPU {
		m.hash, _ = cache.HashModel(m.info.ONNX) // who opens the model meets the same error, and says it
	}
	m.unfix(ctx)
	m.asked = m.rt.cfg.Batch
	if m.rt.free() && !m.info.MixesBatch && m.info.Input.Batch <= 0 {
		m.asked = autoLadder
	}
	m.ladder = m.asked
}

// load opens the session and puts the model on the first lane.
func (m *Model) load(ctx context.Context, first *lane.Lane) error {
	o := m.rt.options
	o.Threads = m.rt.setting.pool()
	session, err := m.open(ctx, o)
	switch {
	case ctx.Err() != nil:
		if err == nil {
			session.Close() // no lane has it yet
		}
		return ctx.Err()
	case errors.Is(err, ort.ErrProvider):
		return as(ErrProvider, err)
	case err != nil:
		return as(ErrModel, err)
	}
	saved := m.known[o.Threads]
	if saved == nil {
		saved = m.recall()
	}
	m.program, err = first.Add(m.info, session, m.ladder, saved)
	m.programs = []*lane.Program{m.program}
	return as(ErrModel, err)
}

// remember keeps what is known of the model's runs for other lanes. Where the library optimises the model each time it
// is loaded that would be of no use.
func (m *Model) remember() {
	if m.program == nil || m.weights == nil || m.rt.cfg.CheckArena {
		return
	}
	if saved, err := m.program.Saved(context.Background()); err == nil {
		m.known[m.rt.setting.pool()] = saved
	}
}

// counts says where the memory of the model's runs came from, on all lanes.
func (m *Model) counts() (sum ort.Counts) {
	for _, p := range m.programs {
		sum = sum.Plus(p.Counts())
	}
	return sum
}

// recordings returns how many runs were recorded on all lanes.
func (m *Model) recordings() (sum int64) {
	for _, p := range m.programs {
		sum += p.Recordings()
	}
	return sum
}

// probe finds out whether a model that declares height and width dynamic really is: some exports
// run at one size only. Such a model is fed that size.
func (m *Model) probe() {
	if !m.info.DynamicSize || m.probed {
		return
	}
	m.probed = true
	h, w := m.info.H, m.info.W
	other := w - m.info.Stride
	if other < m.info.Stride {
		return // there is no smaller one
	}
	runs := m.saved != nil && m.saved.Sizes
	if m.saved == nil {
		runs = m.program.Probe(h, other) == nil
	}
	if !runs {
		m.info.DynamicSize = false
		m.rt.warn(m.key, "", fmt.Sprintf("declares dynamic height and width but runs only at %dx%d: that size is used", h, w))
	}
}

// Detect runs the model on one picture. The result is the caller's.
func (m *Model) Detect(ctx context.Context, f *camera.Frame) (*Result, error) {
	if err := m.rt.use(); err != nil {
		return nil, err
	}
	defer m.rt.users.Done()
	s, err := m.take(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Put()
	if err := s.Fill(f); err != nil {
		return nil, err
	}
	found := make([][]decode.Detection, 1)
	if err := m.look(ctx, s, found); err != nil {
		return nil, err
	}
	res := header(f)
	m.finish(&look{found[0], Timing{Pre: s.Pre, Infer: s.Infer, Post: s.Post, Batch: 1}}, &res)
	return &res, nil
}

// Detect runs the one model of the runtime on one picture. The result is the caller's. With several
// models use Model(key).Detect.
func (rt *Runtime) Detect(ctx context.Context, f *camera.Frame) (*Result, error) {
	if len(rt.models) != 1 {
		return nil, as(ErrConfig, fmt.Errorf("detect: %d models are open: choose one with Model", len(rt.models)))
	}
	return rt.models[0].Detect(ctx, f)
}

// header returns a result with what the frame says of itself. The frame may be released after that.
func header(f *camera.Frame) Result {
	return Result{
		Source: f.Source, Frame: f.Seq, Captured: f.Captured, CapturedBy: f.CapturedBy,
		PTS: f.PTS, HasPTS: f.HasPTS, Width: f.Width, Height: f.Height,
	}
}

// look is what a run found in one picture, kept when the set has been given back.
type look struct {
	found  []decode.Detection
	timing Timing
}

// look runs the model on the pictures in a set, and puts what was found in each at the end of found's. It allocates only where
// more is found than before.
func (m *Model) look(ctx context.Context, s *lane.Set, found [][]decode.Detection) error {
	stats, err := s.Detect(ctx, found, m.options)
	if errors.Is(err, ort.ErrQuota) {
		return as(ErrBudget, err)
	}
	if err != nil {
		return err
	}
	m.count(stats, len(found))
	return nil
}

// finish completes a result with what a run has found.
func (m *Model) finish(l *look, res *Result) {
	res.Model = m.key
	res.Timing = l.timing
	if !res.Captured.IsZero() {
		res.Age = time.Since(res.Captured)
	}
	for _, d := range l.found {
		res.Detections = append(res.Detections, Detection{
			Class: m.info.Label(d.ClassID), ClassID: d.ClassID, Score: d.Score, Box: d.Box,
		})
	}
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/machine"
	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/memplan"
	"github.com/eyas-edge/eyas/models"
	"github.com/eyas-edge/eyas/models/prep"
	eyas "github.com/eyas-edge/eyas/runtime"
	"github.com/eyas-edge/eyas/runtime/lane"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// runner is a model at one batch size. Those of one candidate take turns: Fill begins one.
type runner interface {
	Fill(ctx context.Context, picture []byte) error // puts the whole batch into the input
	Run() error
	Outputs() []*tensor.Tensor // of the last run, until another's turn
	Close() error
}

// candidate is models that are open in one of the two ways.
type candidate interface {
	runner(key string, batch int) (runner, error)
	usage() *memplan.Usage // nil where nobody knows
	Close() error
}

// setup is what a child has before anything is open: the library, and what the models are.
type setup struct {
	cfg    eyas.Config
	lib    *ort.Library
	models map[string]*models.Model
	// How long it took to load the library, and to find out what the models are.
	loading, reading time.Duration
}

func load(cfg eyas.Config) (*setup, error) {
	start := time.Now()
	lib, err := ort.Load(cfg.ORT)
	if err != nil {
		return nil, kind{err, eyas.ErrLibrary}
	}
	loaded := time.Now()
	s := &setup{cfg: cfg, lib: lib, models: map[string]*models.Model{}, loading: loaded.Sub(start)}
	for key, m := range cfg.Models {
		if s.models[key], err = eyas.Inspect(m); err != nil {
			return nil, err
		}
	}
	s.reading = time.Since(loaded)
	return s, nil
}

func (s *setup) ladder(key string) []int { return lane.Batches(s.models[key], s.cfg.Batch) }

// options are those of the plain session. Both candidates stop idle pools or neither: one that spins slows the other's
// run where they stand in one process, and every model's where models take turns.
func (s *setup) options(stopSpinning bool) ort.Options {
	return ort.Options{
		EP: s.cfg.EP, Device: s.cfg.Device, Threads: s.threads(), ForceSpinningStop: stopSpinning || len(s.models) > 1,
	}
}

func (s *setup) threads() int {
	if s.cfg.Threads > 0 {
		return s.cfg.Threads
	}
	return machine.CPUs()
}

// open opens the models as one of the candidates.
func (s *setup) open(ctx context.Context, name string, stopSpinning bool) (candidate, error) {
	switch name {
	case standard:
		return openStandard(s, s.options(stopSpinning))
	case planned:
		return openPlanned(ctx, s, s.cfg, stopSpinning)
	case shared:
		cfg := s.cfg
		cfg.Placement = "shared"
		return openPlanned(ctx, s, cfg, stopSpinning)
	}
	return nil, fmt.Errorf("candidate %q is not known", name)
}

// plain is the models as most programs run them: sessions with the library's allocator and its memory pattern, the
// outputs allocated by the library, an input for each batch size.
type plain struct {
	setup    *setup
	sessions map[string]*ort.Session
}

func openStandard(s *setup, o ort.Options) (candidate, error) {
	p := &plain{setup: s, sessions: map[string]*ort.Session{}}
	for _, key := range sortedKeys(s.models) {
		session, err := s.lib.OpenFile(s.models[key].Path, o)
		if err != nil {
			return nil, errors.Join(fromEngine(err), p.Close())
		}
		p.sessions[key] = session
	}
	return p, nil
}

// fromEngine gives an error of runtime/ort the kind that it has for users.
func fromEngine(err error) error {
	for from, to := range map[error]error{ort.ErrModel: eyas.ErrModel, ort.ErrProvider: eyas.ErrProvider, ort.ErrLibrary: eyas.ErrLibrary} {
		if errors.Is(err, from) {
			return kind{err, to}
		}
	}
	return err
}

func (p *plain) usage() *memplan.Usage { return nil } // the library does not say

func (p *plain) Close() error {
	var err error
	for _, s := range p.sessions {
		err = errors.Join(err, s.Close())
	}
	return err
}

func (p *plain) runner(key string, batch int) (runner, error) {
	r := &bound{image: p.setup.models[key].Input.Index}
	if err := r.inputs(p.setup.models[key], p.sessions[key], batch); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	var err error
	if r.Binding, err = p.sessions[key].Bind(r.in, nil); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// bound is a binding with tensors of its own.
type bound struct {
	*ort.Binding
	in    []*tensor.Tensor
	image int // the pictures, among in
}

func (r *bound) Fill(_ context.Context, picture []byte) error {
	if in := r.in[r.image].Data; len(in) != len(picture) {
		return fmt.Errorf("the input has %d bytes, the picture %d", len(in), len(picture))
	}
	copy(r.in[r.image].Data, picture)
	return nil
}

func (r *bound) Close() error {
	var err error
	if r.Binding != nil {
		err = r.Binding.Close()
	}
	for _, t := range r.in {
		err = errors.Join(err, ort.FreeTensor(t))
	}
	return err
}

// inputs makes the input tensors.
func (r *bound) inputs(m *models.Model, session *ort.Session, batch int) error {
	shapes := m.InputShapes(batch, m.H, m.W)
	for i, info := range session.Inputs() {
		shape, ok := shapes[info.Name]
		if !ok {
			return fmt.Errorf("model %s: input %s is neither the picture nor its size", m.Name, info)
		}
		t, err := ort.NewTensor(info.Name, info.Type, shape...)
		if err != nil {
			return err
		}
		r.in = append(r.in, t)
		if i == m.SizeInput {
			fillSize(m, t)
		}
	}
	return nil
}

// fillSize writes the input's own width and height for each picture.
func fillSize(m *models.Model, t *tensor.Tensor) {
	for i := range t.Len() {
		side := m.W
		if i%2 == 1 {
			side = m.H
		}
		if wide := t.Int64s(); wide != nil {
			wide[i] = int64(side)
		} else if narrow := t.Int32s(); narrow != nil {
			narrow[i] = int32(side)
		} else if real := t.Float32s(); real != nil {
			real[i] = float32(side)
		}
	}
}

const streetWidth, streetHeight = 640, 480

// streetPixels are the shapes and colours of a street, in which detectors see a little, without a file.
var streetPixels = sync.OnceValue(func() []byte {
	const w, h = streetWidth, streetHeight
	pix := make([]byte, 0, 3*w*h)
	for y := range h {
		for x := range w {
			block := byte((x/40*7 + y/60*13) % 11 * 12)
			pix = append(pix, byte(x*120/w)+block, byte(y*120/h)+block, byte((x^y)&63)+block)
		}
	}
	return pix
})

// street returns a frame of it.
func street(captured time.Time) (*frame.Frame, error) {
	planes := []frame.Plane{{Data: streetPixels(), Stride: 3 * streetWidth}}
	return frame.New(frame.RGB24, streetWidth, streetHeight, planes, captured, nil)
}

// picture returns the input of a batch: the street in each place.
func picture(m *models.Model, batch int) ([]byte, error) {
	f, err := street(time.Time{})
	if err != nil {
		return nil, err
	}
	t, err := tensor.New(m.Input.Name, m.Input.Type, m.InputShape(batch, m.H, m.W)...)
	if err != nil {
		return nil, err
	}
	filler, err := prep.NewFiller(m.Recipe, m.W, m.H)
	if err != nil {
		return nil, err
	}
	for i := range batch {
		if _, err := filler.Fill(t, i, f); err != nil {
			return nil, err
		}
	}
	return t.Data, nil
}

// ready returns a runner that is warm.
func (s *setup) ready(ctx context.Context, c candidate, key string, batch int) (runner, error) {
	r, err := c.runner(key, batch)
	if err != nil {
		return nil, err
	}
	if err := s.warm(ctx, r, key, batch); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// warm puts a picture in and runs twice: in a first run a session allocates what it keeps, and traces its memory pattern.
func (s *setup) warm(ctx context.Context, r runner, key string, batch int) error {
	data, err := picture(s.models[key], batch)
	if err == nil {
		err = r.Fill(ctx, data)
	}
	for range 2 {
		if err == nil {
			err = r.Run()
		}
	}
	if err != nil {
		return fmt.Errorf("model %s at batch %d: %w", key, batch, err)
	}
	return nil
}

// same says where the outputs of two runners differ.
func same(key string, batch int, a, b runner) error {
	x, y := a.Outputs(), b.Outputs()
	if len(x) != len(y) {
		return fmt.Errorf("model %s at batch %d: %d outputs by default, %d planned", key, batch, len(x), len(y))
	}
	for i := range x {
		if !slices.Equal(x[i].Shape, y[i].Shape) {
			return fmt.Errorf("model %s at batch %d: output %s is %v by default and %v planned", key, batch, x[i].Name, x[i].Shape, y[i].Shape)
		}
		for at := range x[i].Data {
			if x[i].Data[at] != y[i].Data[at] {
				return fmt.Errorf("model %s at batch %d: output %s differs between default and planned memory from byte %d on: this is a bug, please report it",
					key, batch, x[i].Name, at)
			}
		}
	}
	return nil
}

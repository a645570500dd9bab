package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/memplan"
	"github.com/eyas-edge/eyas/models"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// plans is the models with planned memory: weights in place, one arena for all models and batch sizes, tensors that
// the sizes of a ladder share.
type plans struct {
	setup *setup
	all   map[string]*plan
	arena *ort.Arena
}

// plan is one model.
type plan struct {
	model   *models.Model
	weights *ort.Weights
	session *ort.Session
	in, out []*tensor.Tensor // for the largest batch
	runs    map[int]*planRun
}

type planRun struct {
	*ort.Binding
	in       []*tensor.Tensor
	image    int
	schedule *ort.Schedule
	solution memplan.Solution
}

func (r *planRun) Input() []byte { return r.in[r.image].Data }
func (r *planRun) Close() error  { return nil } // the plan keeps it

func openPlanned(ctx context.Context, s *setup, o ort.Options) (candidate, error) {
	p := &plans{setup: s, all: map[string]*plan{}}
	o.OwnAllocator = true
	var height, spill int64
	for _, key := range sortedKeys(s.models) {
		m := &plan{model: s.models[key], runs: map[int]*planRun{}}
		p.all[key] = m
		if err := m.open(ctx, s, key, o); err != nil {
			return nil, errors.Join(err, p.Close())
		}
		for _, r := range m.runs {
			height = max(height, r.solution.Height)
			spill += 2 * r.schedule.Spill()
		}
	}
	var err error
	if p.arena, err = ort.NewArena(height, spill, s.cfg.Placement == "shared"); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	for _, m := range p.all {
		for _, r := range m.runs {
			if err := r.Replay(p.arena, r.schedule, r.solution.Offsets); err != nil {
				return nil, errors.Join(err, p.Close())
			}
		}
	}
	return p, nil
}

func (m *plan) open(ctx context.Context, s *setup, key string, o ort.Options) error {
	path := filepath.Join(s.cache, key+".ort")
	if _, err := os.Stat(path); err != nil {
		if err := s.lib.SaveORT(path, m.model.Path, o); err != nil {
			return err
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if m.weights, err = ort.ReadWeights(f, st.Size(), nil); err != nil {
		return err
	}
	if m.session, err = s.lib.OpenORT(m.model.Path, m.weights.Bytes(), o); err != nil {
		return err
	}
	ladder := s.ladder(key)
	for i := len(ladder) - 1; i >= 0; i-- {
		if err := m.record(ctx, s, ladder[i]); err != nil {
			return fmt.Errorf("model %s at batch %d: %w", key, ladder[i], err)
		}
	}
	return nil
}

// record plans one batch size; the largest comes first.
func (m *plan) record(ctx context.Context, s *setup, batch int) error {
	shapes := m.model.InputShapes(batch, m.model.H, m.model.W)
	in, err := prefixes(&m.in, m.session.Inputs(), shapes)
	if err != nil {
		return err
	}
	if m.model.SizeInput >= 0 {
		fillSize(m.model, in[m.model.SizeInput])
	}
	inferred, err := m.model.ONNX.Infer(shapes)
	if err != nil {
		return err
	}
	out, err := prefixes(&m.out, m.session.Outputs(), inferred)
	if err != nil {
		return err
	}
	r := &planRun{in: in, image: m.model.Input.Index}
	if r.Binding, err = m.session.Bind(in, out); err != nil {
		return err
	}
	m.runs[batch] = r
	if err := fill(m.model, batch, r.Input()); err != nil {
		return err
	}
	if err := r.Run(); err != nil {
		return err
	}
	recording, err := r.Record()
	if err != nil {
		return err
	}
	if r.schedule, err = ort.NewSchedule(s.cfg.CheckArena, recording); err != nil {
		return err
	}
	r.solution, err = memplan.Solve(ctx, r.schedule.Problem(), memplan.MaxNodes(50_000))
	return err
}

// prefixes returns tensors of so many shapes in the memory of all, which is made for the first call. One whose shape
// is not known is nil.
func prefixes(all *[]*tensor.Tensor, infos []ort.Info, shapes map[string][]int) ([]*tensor.Tensor, error) {
	first := *all == nil
	list := make([]*tensor.Tensor, len(infos))
	for i, info := range infos {
		shape := shapes[info.Name]
		if tensor.Elements(shape) < 1 || len(shape) != len(info.Shape) {
			if first {
				*all = append(*all, nil)
			}
			continue
		}
		if first {
			t, err := ort.NewTensor(info.Name, info.Type, shape...)
			if err != nil {
				return nil, err
			}
			*all = append(*all, t)
		}
		if whole := (*all)[i]; whole != nil {
			n := info.Type.Bytes(tensor.Elements(shape))
			list[i] = &tensor.Tensor{Name: info.Name, Type: info.Type, Shape: shape, Data: whole.Data[:n]}
		}
	}
	return list, nil
}

func (p *plans) runner(key string, batch int) (runner, error) {
	r, ok := p.all[key].runs[batch]
	if !ok {
		return nil, fmt.Errorf("model %s: batch %d is not in the ladder", key, batch)
	}
	return r, nil
}

func (p *plans) counts() Requests {
	var n Requests
	for _, m := range p.all {
		for _, r := range m.runs {
			c := r.Counts()
			n.Arena += c.Arena
			n.Spill += c.Spill
			n.Heap += c.Heap
		}
	}
	return n
}

func (p *plans) Close() error {
	var err error
	for _, m := range p.all {
		if m.session != nil {
			err = errors.Join(err, m.session.Close())
		}
		for _, t := range append(m.in, m.out...) {
			err = errors.Join(err, ort.FreeTensor(t))
		}
		if m.weights != nil {
			err = errors.Join(err, m.weights.Close())
		}
	}
	if p.arena != nil {
		err = errors.Join(err, p.arena.Close())
	}
	return err
}

package bench

import (
	"context"
	"fmt"

	"github.com/eyas-edge/eyas/memplan"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// ours is the models in a runtime of Eyas.
type ours struct {
	rt   *eyas.Runtime
	turn *turn // whose input buffer is taken; nil for nobody's
}

// twin is the key of a second copy of a model, which never runs.
const twin = " twin"

func openPlanned(ctx context.Context, s *setup, cfg eyas.Config, stopSpinning bool) (candidate, error) {
	if stopSpinning && len(cfg.Models) == 1 { // the runtime stops idle pools where models take turns
		cfg.Models = map[string]eyas.ModelConfig{}
		for key, m := range s.cfg.Models {
			cfg.Models[key], cfg.Models[key+twin] = m, m
		}
	}
	rt, err := eyas.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &ours{rt: rt}, nil
}

func (o *ours) runner(key string, batch int) (runner, error) {
	m := o.rt.Model(key)
	if m == nil {
		return nil, fmt.Errorf("model %s is not open", key)
	}
	return &turn{ours: o, model: m, batch: batch}, nil
}

func (o *ours) usage() *memplan.Usage {
	u := o.rt.Memory()
	return &u
}

func (o *ours) Close() error {
	o.release()
	return o.rt.Close()
}

// release gives the input buffer back.
func (o *ours) release() {
	if o.turn != nil {
		o.turn.Runner.Close()
		o.turn = nil
	}
}

// turn is a model at one batch size. The sizes of a ladder share the lane's input buffers: Fill takes one.
type turn struct {
	*eyas.Runner // while it is ours.turn
	ours         *ours
	model        *eyas.Model
	batch        int
}

func (t *turn) Fill(ctx context.Context, picture []byte) error {
	if t.ours.turn != t {
		t.ours.release()
		var err error
		if t.Runner, err = t.model.Runner(ctx, t.batch); err != nil {
			return err
		}
		t.ours.turn = t
	}
	if in := t.Input(); len(in) != len(picture) {
		return fmt.Errorf("the input has %d bytes, the picture %d", len(in), len(picture))
	}
	copy(t.Input(), picture)
	return nil
}

func (t *turn) Close() error {
	if t.ours.turn == t {
		t.ours.release()
	}
	return nil
}

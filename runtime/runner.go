package runtime

import (
	"context"
	"fmt"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/runtime/lane"
)

// Runner runs a model at one batch size on whatever bytes its input holds: for measuring, without pictures
// and boxes. One goroutine uses it. It holds one of the lane's two input buffers until Close: open two and no stream
// runs there.
type Runner struct {
	model *Model
	set   *lane.Set
}

// Runner returns a runner on the first lane for a batch size that the model is ready for.
func (m *Model) Runner(ctx context.Context, batch int) (*Runner, error) {
	return m.RunnerOn(ctx, 0, batch)
}

// RunnerOn is Runner on a lane, which the Choice has that many of.
func (m *Model) RunnerOn(ctx context.Context, lane, batch int) (*Runner, error) {
	if lane < 0 || lane >= m.rt.setting.Lanes {
		return nil, fmt.Errorf("model %s: there is no lane %d: there are %d", m.key, lane, m.rt.setting.Lanes)
	}
	if err := m.rt.use(); err != nil {
		return nil, err
	}
	set, err := m.programs[lane].Take(ctx)
	if err == nil {
		if err = set.Blank(batch); err == nil {
			return &Runner{m, set}, nil
		}
		set.Put()
	}
	m.rt.users.Done()
	return nil, fmt.Errorf("model %s: run %d at once: %w", m.key, batch, err)
}

// Input returns the bytes of the bound input: batch times a grey picture as the model is fed it, until the caller
// writes something else.
func (r *Runner) Input() []byte { return r.set.Input() }

// Run runs the model once. It waits for its turn where others run, and allocates nothing.
func (r *Runner) Run() error { return r.set.Run(context.Background()) }

// Outputs returns what the last Run gave. The next run of any model overwrites it.
func (r *Runner) Outputs() []*tensor.Tensor { return r.set.Outputs() }

// Close gives the input buffer back. Closing the runtime waits for it. A second Close does nothing; any other
// method may not be called any more.
func (r *Runner) Close() {
	if r.set == nil {
		return
	}
	r.set.Put()
	r.set = nil
	r.model.rt.users.Done()
}

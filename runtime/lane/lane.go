// Package lane is one executor: the memory that runs need, planned before the first one, and the order in
// which models use it.
//
// A Lane has two input buffers, so that one is filled while the other runs, one block for outputs and one
// arena for intermediate tensors. The models on it, each a Program, take turns and share all of these: what
// a lane takes is the largest need of its models, not the sum. Several lanes of the same models run at the same
// time: they share sessions and plans, and no memory.
package lane

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/memplan"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// Inputs is the number of input buffers: one runs, one is filled.
const Inputs = 2

// Options of a lane.
type Options struct {
	// Longest ends a ladder at the first batch size whose first run takes longer, if it is not 0. A model keeps its
	// smallest size.
	Longest time.Duration
	// Check has every run verify the guards behind each buffer of the arena.
	Check bool
	// Warn is told what a user should know of a model, in one line each. It may be nil.
	Warn func(p *Program, text string)
}

// Lane runs one model at a time. Its methods may be called from several goroutines, those that build it
// (Add, Record, Place) from one, in this order, before any other.
type Lane struct {
	options  Options
	programs []*Program
	turn     sync.Mutex // held during a run and while its outputs are read
	free     chan int   // indices of free input buffers
	inputs   [Inputs]*tensor.Tensor
	outputs  *tensor.Tensor
	arena    *ort.Arena // nil where the library allocates
	room     int64      // of the arena, for planned buffers
	shared   bool       // the arena lies in shared memory
	placed   bool       // Place has returned

	aborted atomic.Bool
	mu      sync.Mutex // guards running
	running *ort.Binding
}

// New returns an empty lane.
func New(o Options) *Lane {
	l := &Lane{options: o, free: make(chan int, Inputs)}
	for i := range Inputs {
		l.free <- i
	}
	return l
}

// Beside returns one more lane with the models of a lane that has recorded them. It shares their sessions and what is
// known of their runs; its memory is its own, and is taken by Place. It is to be closed before the other.
func Beside(first *Lane) (*Lane, error) {
	l := New(first.options)
	for _, p := range first.programs {
		if err := l.join(p); err != nil {
			return nil, err
		}
	}
	if err := l.mapBlocks(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Need is the memory of a lane in bytes, each figure the largest of its models'.
type Need struct {
	Slots   int64 // of the arena, for planned buffers
	Spill   int64 // of the arena, for what is not planned
	Inputs  int64 // of both buffers
	Outputs int64 // of fixed shape
}

// Need returns what the lane takes for batches up to largest, known once Record has returned.
func (l *Lane) Need(largest int) Need {
	needs := make([]Need, len(l.programs))
	for i, p := range l.programs {
		needs[i] = p.Need(largest)
	}
	return Together(needs...)
}

// NeedOf returns the need of a program whose runs nobody has recorded: planned buffers of so many bytes, and the
// bytes of its pictures and of its outputs of fixed shape.
func NeedOf(slots int64, pictures, outputs int) Need {
	return Need{Slots: slots, Spill: minSpill, Inputs: Inputs * pages(pictures), Outputs: pages(outputs)}
}

// Together returns the need of programs that take turns.
func Together(needs ...Need) Need {
	var n Need
	for _, own := range needs {
		n.Slots = max(n.Slots, own.Slots)
		n.Spill = max(n.Spill, own.Spill)
		n.Inputs = max(n.Inputs, own.Inputs)
		n.Outputs = max(n.Outputs, own.Outputs)
	}
	if n.Spill > 0 { // what is left of the last page is of use here
		n.Spill = pages(int(n.Slots+n.Spill)+ort.Overrun) - ort.Overrun - n.Slots
	}
	return n
}

// Record gets to know every model of the lane: it binds tensors for each batch size and runs it where no
// saved plan says what a run allocates. Memory for these runs comes from the heap, for a moment.
func (l *Lane) Record(ctx context.Context) error {
	defer l.endWith(ctx)()
	if err := l.mapBlocks(); err != nil {
		return err
	}
	for _, p := range l.programs {
		if err := p.open(ctx); err != nil {
			return err
		}
	}
	ort.Trim() // what the recorded runs took
	return nil
}

// mapBlocks maps the blocks of all tensors, in shared memory. Their pages come as they are touched, since the
// models may not be able to run the largest batch.
func (l *Lane) mapBlocks() error {
	var in, out int
	for _, p := range l.programs {
		in = max(in, p.inputBytes(p.model.H, p.model.W, p.Largest()))
		out = max(out, p.outputBytes(p.Largest()))
	}
	var err error
	for i := range l.inputs {
		if l.inputs[i], err = ort.NewSharedTensor("inputs", tensor.Uint8, int(pages(in))); err != nil {
			return err
		}
	}
	l.outputs, err = ort.NewSharedTensor("outputs", tensor.Uint8, int(pages(out)))
	return err
}

// Place takes the arena that the plans need and runs every model at every batch size once, so that the
// first frame finds everything in place. A saved plan that does not hold is made anew. shared takes shared memory
// for the arena instead of private. Where another lane of the same models has found since that more is needed it is
// called again.
func (l *Lane) Place(ctx context.Context, shared bool) error {
	defer l.endWith(ctx)()
	if err := l.dropArena(); err != nil {
		return err
	}
	if err := l.takeArena(shared); err != nil {
		return err
	}
	l.lockTensors() // after the arena: it comes first where locked memory is short
	for {
		settled := true
		for _, p := range l.programs {
			held, err := p.verify(ctx)
			if err != nil {
				return err
			}
			settled = settled && held
		}
		if settled || l.holds() {
			l.placed = true
			return nil
		}
		if err := l.dropArena(); err != nil {
			return err
		}
		if err := l.takeArena(shared); err != nil {
			return err
		}
	}
}

// Placed says whether the lane has its memory, as much as the plans need by now.
func (l *Lane) Placed() bool { return l.placed && l.holds() }

// holds says whether the lane's arena, if it has one, is as large as the plans need by now.
func (l *Lane) holds() bool {
	n := l.Need(math.MaxInt)
	return l.arena == nil || n.Slots <= l.arena.Slots() && n.Spill <= l.arena.Spill()
}

// Programs returns the lane's models in the order in which they were added. The slice must not be changed.
func (l *Lane) Programs() []*Program { return l.programs }

// Cut takes the batches above n off all ladders, but for the smallest of each. It is to be called before Place.
func (l *Lane) Cut(n int) {
	for _, p := range l.programs {
		p.cut(n)
	}
}

// lockTensors makes the pages of the tensors present, and keeps them so where that is allowed.
func (l *Lane) lockTensors() {
	for _, used := range l.Tensors() {
		_ = ort.LockTensor(&tensor.Tensor{Data: used})
	}
}

func (l *Lane) takeArena(shared bool) (err error) {
	n := l.Need(math.MaxInt)
	if n.Slots+n.Spill == 0 {
		return nil // no session that uses our allocator
	}
	if l.arena, err = ort.NewArena(n.Slots, n.Spill, shared); err != nil {
		return err
	}
	l.room, l.shared = l.arena.Slots(), shared
	for _, p := range l.programs {
		p.plans.place(l.room)
	}
	return nil
}

func (l *Lane) dropArena() error {
	if l.arena == nil {
		return nil
	}
	for _, p := range l.programs {
		p.plain()
		p.plans.place(0)
	}
	err := l.arena.Close()
	l.arena, l.room = nil, 0
	return err
}

// Decisive returns the plan that the arena owes its size to; false where there is none.
func (l *Lane) Decisive() (memplan.Problem, memplan.Solution, bool) {
	var top *plan
	for _, p := range l.programs {
		if t := p.plans.highest(p.Largest()); top == nil || t != nil && t.solution.Height > top.solution.Height {
			top = t
		}
	}
	if top == nil {
		return memplan.Problem{}, memplan.Solution{}, false
	}
	return top.schedule.Problem(), top.solution, true
}

// Arena returns the lane's arena, nil before Place and where the library allocates.
func (l *Lane) Arena() *ort.Arena { return l.arena }

// Tensors returns the memory of all tensors as far as the models use it: the input buffers and the block of
// outputs.
func (l *Lane) Tensors() [][]byte {
	n := l.Need(math.MaxInt)
	var used [][]byte
	for i, t := range []*tensor.Tensor{l.inputs[0], l.inputs[1], l.outputs} {
		bytes := n.Inputs / Inputs
		if i == Inputs {
			bytes = n.Outputs
		}
		if t != nil {
			used = append(used, t.Data[:min(bytes, int64(len(t.Data)))])
		}
	}
	return used
}

// endWith lets ctx end the run that is under way. What it returns calls that off.
func (l *Lane) endWith(ctx context.Context) func() bool { return context.AfterFunc(ctx, l.Abort) }

// Abort makes the run that is under way return soon, and every later one fail.
func (l *Lane) Abort() {
	l.aborted.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running != nil {
		l.running.Terminate()
	}
}

// run runs a binding for the owner of turn.
func (l *Lane) run(b *ort.Binding, name string) error {
	if err := l.begin(b, name); err != nil {
		return err
	}
	defer l.setRunning(nil)
	return b.Run()
}

// record records a run in the arena, from the heap if there is none, for the owner of turn.
func (l *Lane) record(b *ort.Binding, name string) (ort.Recording, error) {
	if err := l.begin(b, name); err != nil {
		return nil, err
	}
	defer l.setRunning(nil)
	if l.arena == nil {
		return b.Record()
	}
	return b.RecordIn(l.arena)
}

// begin makes b the binding that Abort ends; setRunning(nil) ends that.
func (l *Lane) begin(b *ort.Binding, name string) error {
	l.setRunning(b)
	if l.aborted.Load() { // looked at after setRunning: Abort sees the one or the other
		l.setRunning(nil)
		return fmt.Errorf("model %s: %w", name, ort.ErrTerminated)
	}
	return nil
}

func (l *Lane) setRunning(b *ort.Binding) {
	l.mu.Lock()
	l.running = b
	l.mu.Unlock()
}

// Close frees the tensors, the arena and, on the lane that models were added to, their sessions. All sets must have
// been given back.
func (l *Lane) Close() error {
	l.turn.Lock()
	defer l.turn.Unlock()
	for _, p := range l.programs {
		p.close()
	}
	l.programs = nil
	err := l.dropArena()
	for _, t := range append(l.inputs[:], l.outputs) {
		ort.FreeTensor(t)
	}
	return err
}

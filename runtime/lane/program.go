package lane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/memplan"
	"github.com/eyas-edge/eyas/models"
	"github.com/eyas-edge/eyas/models/decode"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// Program is one model on a lane.
type Program struct {
	lane     *Lane
	model    *models.Model
	session  *ort.Session
	guest    bool // the session belongs to another lane's program
	decoder  *decode.Decoder
	sets     [Inputs]*Set
	ladder   []int // batch sizes, ascending
	inferred bool  // bind outputs whose shape was inferred
	quota    *ort.Quota
	plans    *plans
	outgrown bool         // was told
	recorded atomic.Int64 // runs

	mu    sync.Mutex
	past  ort.Counts // of bindings that were closed
	bound map[*bound]struct{}
	sizes map[int]int // of the outputs, by batch size
}

// Add puts a model on the lane. The batch sizes of ladder are those that it is to be ready for; one that
// fixes its batch has that one only. saved may be nil. The lane owns the session from then on.
func (l *Lane) Add(m *models.Model, s *ort.Session, ladder []int, saved *Saved) (*Program, error) {
	p := &Program{lane: l, model: m, session: s, plans: newPlans(l.options.Check, saved), ladder: Batches(m, ladder), inferred: true}
	return p, l.add(p)
}

// join puts the model of another lane's program on this one.
func (l *Lane) join(o *Program) error {
	return l.add(&Program{lane: l, model: o.model, session: o.session, guest: true, plans: o.plans, ladder: slices.Clone(o.ladder), inferred: o.inferred})
}

func (l *Lane) add(p *Program) (err error) {
	p.bound, p.sizes = map[*bound]struct{}{}, map[int]int{}
	l.programs = append(l.programs, p)
	for i := range p.sets {
		p.sets[i] = &Set{program: p, index: i, at: make([]transform, p.Largest())}
	}
	p.decoder, err = decode.New(p.model.Head)
	return err
}

// Ladder returns the batch sizes that the model is ready for, ascending.
func (p *Program) Ladder() []int { return slices.Clone(p.ladder) }

// Known says whether earlier runs tell what each batch size allocates, or nothing is planned.
func (p *Program) Known() bool {
	for _, n := range p.ladder {
		if plan, _ := p.plans.get(Shape{p.model.H, p.model.W, n}); plan == nil && p.planned() {
			return false
		}
	}
	return true
}

// cut takes the batches above n off the ladder.
func (p *Program) cut(n int) {
	kept := p.ladder[:1]
	for _, b := range p.ladder[1:] {
		if b <= n {
			kept = append(kept, b)
		}
	}
	p.ladder = kept
}

// Largest returns the largest batch size.
func (p *Program) Largest() int { return p.ladder[len(p.ladder)-1] }

// Model returns what the model is.
func (p *Program) Model() *models.Model { return p.model }

// Session returns the model's session.
func (p *Program) Session() *ort.Session { return p.session }

// fit returns the smallest batch size of the ladder that holds n pictures.
func (p *Program) fit(n int) int {
	for _, b := range p.ladder {
		if b >= n {
			return b
		}
	}
	return p.Largest()
}

// planned says whether the model's runs are served from the arena.
func (p *Program) planned() bool { return p.session.Own() }

// Limit charges what the model's runs take beside the arena to q, from Place on.
func (p *Program) Limit(q *ort.Quota) { p.quota = q }

// Saved returns what the next start is to know.
func (p *Program) Saved(ctx context.Context) (*Saved, error) { return p.plans.saved(ctx) }

// Recordings returns how many runs were recorded: before the first frame, for sizes of pictures that were not
// met before, and after runs that left their plan.
func (p *Program) Recordings() int64 { return p.recorded.Load() }

// open binds and runs every batch size. One that the model declares and cannot run is taken off the ladder.
func (p *Program) open(ctx context.Context) error {
	var able []int
	for _, n := range p.ladder {
		took, err := p.learn(ctx, n)
		if err != nil && len(able) == 0 && p.inferred && !errors.Is(err, ctx.Err()) {
			// The library is the judge of output shapes: without what was inferred it may run.
			p.inferred = false
			clear(p.sizes)
			p.forget()
			if _, again := p.learn(ctx, n); again == nil {
				err = nil
			}
		}
		switch longest := p.lane.options.Longest; {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && longest > 0 && took > longest && len(able) > 0:
			p.ladder = able
			return nil
		case err == nil:
			able = append(able, n)
		case len(able) == 0:
			return err
		default:
			p.warn(fmt.Sprintf("declares any batch size but does not run %d pictures at once: batches end at %d", n, able[len(able)-1]))
			p.ladder = able
			return nil
		}
	}
	return nil
}

func (p *Program) warn(text string) {
	if p.lane.options.Warn != nil {
		p.lane.options.Warn(p, text)
	}
}

// learn gets to know what a run of n pictures allocates, from the saved plan or by running. It returns how long the
// first run took, 0 without one.
func (p *Program) learn(ctx context.Context, n int) (time.Duration, error) {
	s := p.sets[0]
	if err := s.choose(p.model.H, p.model.W); err != nil {
		return 0, fmt.Errorf("model %s: %w", p.model.Name, err)
	}
	b, err := s.now.at(n)
	if err != nil {
		return 0, err
	}
	if plan, _ := p.plans.get(b.shape); p.planned() && plan != nil {
		return 0, nil // no page of the tensors is touched: whether there is memory for them is checked after this
	}
	if err := s.fill(greyPicture, n); err != nil {
		return 0, err
	}
	p.lane.turn.Lock()
	defer p.lane.turn.Unlock()
	start := time.Now()
	// In its first run a session also allocates what it keeps.
	if err := p.lane.run(b.binding, p.model.Name); err != nil || !p.planned() {
		return time.Since(start), err
	}
	took := time.Since(start)
	return took, s.record(ctx, b)
}

// verify runs every batch size from the arena, and touches the tensors of all sets. It returns false if a
// saved plan did not hold, and was made anew: its run is not charged, since the plan of another may need all the
// memory of a run beside the arena.
func (p *Program) verify(ctx context.Context) (held bool, err error) {
	if err := p.charge(nil); err != nil {
		return false, err
	}
	held = true
	for _, n := range p.ladder {
		for _, s := range p.sets {
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			if err := s.fill(greyPicture, n); err != nil {
				return false, err
			}
			if s.index > 0 {
				if _, err := s.now.at(n); err != nil { // bound; what a first run sets up belongs to the session
					return false, err
				}
				continue
			}
			ok, err := s.verify(ctx)
			if err != nil {
				return false, err
			}
			held = held && ok
		}
	}
	return held, p.charge(p.quota)
}

// charge charges what the bindings that are there take beside the arena to q, nil for nobody.
func (p *Program) charge(q *ort.Quota) error {
	if !p.planned() {
		return nil
	}
	for b := range p.bound {
		if err := b.binding.Limit(q); err != nil {
			return err
		}
	}
	return nil
}

// Probe says whether the model runs at another input size of h x w pixels. It is to be called between
// Record and Place.
func (p *Program) Probe(h, w int) error {
	s := p.sets[0]
	v, err := newVariant(s, h, w)
	if err != nil {
		return err
	}
	defer v.close()
	b, err := v.at(p.ladder[0])
	if err != nil {
		return err
	}
	p.lane.turn.Lock()
	defer p.lane.turn.Unlock()
	return p.lane.run(b.binding, p.model.Name)
}

// Take waits for a free input buffer of the lane, for this model. The caller gives it back with Put.
func (p *Program) Take(ctx context.Context) (*Set, error) {
	select {
	case i := <-p.lane.free:
		return p.take(i), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TryTake is Take if a buffer is free now, else nil.
func (p *Program) TryTake() *Set {
	select {
	case i := <-p.lane.free:
		return p.take(i)
	default:
		return nil
	}
}

func (p *Program) take(i int) *Set {
	s := p.sets[i]
	s.filled = 0
	return s
}

// exec runs a binding for the owner of the turn, from the arena where the model is planned.
func (p *Program) exec(ctx context.Context, b *bound) error {
	if !p.planned() || p.lane.arena == nil {
		return p.lane.run(b.binding, p.model.Name)
	}
	if plan, room := p.plans.get(b.shape); plan == nil && room { // a size that was not met before
		// By the plan of a larger one the recorded run needs no more of the arena than that.
		if larger := p.plans.above(b.shape, p.lane.room); larger != nil {
			if err := b.binding.Replay(p.lane.arena, larger.schedule, larger.solution.Offsets); err != nil {
				return err
			}
		}
		if err := p.retake(ctx, b); err != nil {
			return err
		}
	}
	if err := p.replay(b); err != nil {
		return err
	}
	if err := p.lane.run(b.binding, p.model.Name); err != nil {
		return err
	}
	before := b.counts
	b.counts = b.binding.Counts()
	if !b.plan.fits(p.lane.room) {
		return nil // it came from the heap, as another recorded run would find
	}
	if b.counts.Mismatches == before.Mismatches && b.counts.Heap == before.Heap {
		if b.plan.recalled {
			p.plans.confirm(b.shape)
		}
		return nil
	}
	if !p.plans.leave(b.shape) {
		return nil
	}
	// The run asked for other memory than was planned. Its input is still there: the plan learns from it. Where
	// there is no memory for that, things stay as they are.
	if err := p.retake(ctx, b); err != nil && !errors.Is(err, ort.ErrQuota) {
		return err
	}
	if err := p.replay(b); err != nil {
		return err
	}
	defer func() { b.counts = b.binding.Counts() }()
	return p.lane.run(b.binding, p.model.Name) // recording has overwritten what the run gave
}

// retake records the run of what is bound, within the arena, which is idle meanwhile, and plans for it.
func (p *Program) retake(ctx context.Context, b *bound) error {
	r, err := p.lane.record(b.binding, p.model.Name)
	if err != nil {
		return err
	}
	p.recorded.Add(1)
	if err := p.plans.add(ctx, b.shape, r); err != nil {
		return err
	}
	if plan, _ := p.plans.get(b.shape); plan != nil && (plan.outgrown || !plan.fits(p.lane.room)) && !p.outgrown {
		p.outgrown = true
		p.warn("asks for more memory than was planned: what is missing comes out of its headroom, and the next start plans for it")
	}
	return nil
}

// replay makes a binding replay the plan of its shape.
func (p *Program) replay(b *bound) error {
	plan, _ := p.plans.get(b.shape)
	switch {
	case plan == b.plan:
		return nil
	case !plan.fits(p.lane.room):
		b.binding.Plain()
	default:
		if err := b.binding.Replay(p.lane.arena, plan.schedule, plan.solution.Offsets); err != nil {
			return err
		}
	}
	b.plan, b.counts = plan, b.binding.Counts()
	return nil
}

// limit charges what a new binding takes beside the arena to the model's quota.
func (p *Program) limit(b *ort.Binding) error {
	if p.quota == nil || !p.planned() {
		return nil
	}
	return b.Limit(p.quota)
}

// Need returns what the model takes of the lane for batches up to n: of its input size, and of every other
// that was met.
func (p *Program) Need(n int) Need {
	n = min(n, p.Largest())
	h, w := p.model.H, p.model.W
	need := NeedOf(0, p.inputBytes(h, w, n), p.outputBytes(n))
	need.Slots, need.Spill = p.plans.need(n)
	return need
}

// Decisive returns the plan for batches up to n that needs the most of the arena; false where there is none.
func (p *Program) Decisive(n int) (memplan.Problem, memplan.Solution, bool) {
	top := p.plans.highest(n)
	if top == nil {
		return memplan.Problem{}, memplan.Solution{}, false
	}
	return top.schedule.Problem(), top.solution, true
}

// Counts says where the memory of the model's runs came from.
func (p *Program) Counts() ort.Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := p.past
	for b := range p.bound {
		sum = sum.Plus(b.binding.Counts())
	}
	return sum
}

func (p *Program) opened(b *bound) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bound[b] = struct{}{}
}

func (p *Program) closed(b *bound) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past = p.past.Plus(b.binding.Counts())
	delete(p.bound, b)
}

// plain ends the replay of all bindings.
func (p *Program) plain() {
	for b := range p.bound {
		b.binding.Plain()
		b.plan = nil
	}
}

// forget closes all bindings.
func (p *Program) forget() {
	for _, s := range p.sets {
		if s == nil {
			continue
		}
		for _, v := range s.variants {
			v.close()
		}
		s.variants, s.now = nil, nil
	}
}

func (p *Program) close() {
	p.forget()
	if !p.guest {
		p.session.Close()
	}
}

// The pictures of warm-up, scaled to any input size.
var greyPicture, noisePicture = warmPicture(func(int) byte { return 114 }), warmPicture(Noise)

// Noise returns the ith byte of a fixed picture in which a detector may see anything.
func Noise(i int) byte {
	x := uint32(i+1) * 2654435761
	return byte(x ^ x>>15>>3 ^ x>>24)
}

func warmPicture(level func(i int) byte) *frame.Frame {
	const side = 64
	data := make([]byte, side*side*3)
	for i := range data {
		data[i] = level(i)
	}
	f, err := frame.New(frame.RGB24, side, side, []frame.Plane{{Data: data, Stride: side * 3}}, time.Time{}, nil)
	if err != nil {
		panic(err) // a constant
	}
	return f
}

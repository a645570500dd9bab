package ort

import (
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// Binding is a session with the tensors it reads and writes. One goroutine at a
// time runs it; Terminate and Close may be called from any.
type Binding struct {
	session *Session
	call    call
	pinner  goruntime.Pinner
	in, out []*tensor.Tensor // in keeps the memory reachable; out holds views where later says so
	later   []int            // outputs that the library allocates

	arena *Arena // nil without Replay
	slots []slot // of the arena
	check bool   // their guards are verified
	quota *Quota // nil for no limit

	terminated atomic.Bool
	mu         sync.Mutex // held by Run, and while the call is freed
	end        sync.Mutex // guards call against Terminate after Close
	closed     bool       // guarded by both
}

// Bind fixes the tensors of a run, in the order of Inputs and Outputs. Types and
// fixed dimensions have to be those of the model; an open dimension may have any
// size that the model takes, a batch for example. out[i] is nil where the shape
// depends on the data: the library then allocates that output in each run. out may
// be shorter than Outputs; what is missing counts as nil. Errors are ErrRun.
//
// The memory of the tensors is used in place until Close: as NewTensor makes it, or
// Go memory, which is pinned meanwhile.
func (s *Session) Bind(in, out []*tensor.Tensor) (*Binding, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fail(ErrRun, "%s: the session is closed", s.name)
	}
	if len(in) != len(s.inputs) || len(out) > len(s.outputs) {
		return nil, fail(ErrRun, "%s: bind %d inputs and %d outputs: the model has %d and %d",
			s.name, len(in), len(out), len(s.inputs), len(s.outputs))
	}
	b := &Binding{session: s, out: make([]*tensor.Tensor, len(s.outputs))}
	var err error
	if b.call, err = newCall(s.c, len(s.inputs), len(s.outputs), s.own); err == nil {
		err = b.bindAll(in, out)
	}
	if err != nil {
		b.free()
		return nil, fail(ErrRun, "%s: %v", s.name, err)
	}
	s.bindings[b] = struct{}{}
	return b, nil
}

func (b *Binding) bindAll(in, out []*tensor.Tensor) error {
	for i, info := range b.session.inputs {
		if err := check(info, in[i]); err != nil {
			return err
		}
		if err := b.bind(false, i, info, in[i]); err != nil {
			return err
		}
		b.in = append(b.in, in[i])
	}
	for i, info := range b.session.outputs {
		if i >= len(out) || out[i] == nil {
			if info.Type.Bits() == 0 {
				return fail(ErrRun, "output %s: elements of type %s are not supported", info.Name, info.Type)
			}
			b.call.bindLater(i, info.Name)
			b.out[i] = &tensor.Tensor{Name: info.Name, Type: info.Type, Shape: make([]int, 0, MaxRank)}
			b.later = append(b.later, i)
			continue
		}
		if err := check(info, out[i]); err != nil {
			return err
		}
		if err := b.bind(true, i, info, out[i]); err != nil {
			return err
		}
		b.out[i] = out[i]
	}
	return nil
}

func (b *Binding) bind(output bool, i int, info Info, t *tensor.Tensor) error {
	if len(t.Data) > 0 {
		b.pinner.Pin(unsafe.SliceData(t.Data))
	}
	if err := b.call.bind(output, i, info.Name, t); err != nil {
		return fail(ErrRun, "bind %s: %v", info.Name, err)
	}
	return nil
}

// check compares a tensor with what the model wants.
func check(want Info, t *tensor.Tensor) error {
	if t == nil {
		return fail(ErrRun, "input %s is missing", want.Name)
	}
	ok := t.Type == want.Type && len(t.Shape) == len(want.Shape)
	for i := 0; ok && i < len(want.Shape); i++ {
		ok = want.Shape[i] < 0 || t.Shape[i] == want.Shape[i]
	}
	if !ok {
		return fail(ErrRun, "bind %s%v: the model wants %s", t.Type, t.Shape, want)
	}
	return t.Check()
}

// Run runs the model once. It allocates no Go memory unless it fails. Errors are
// ErrRun, and of these ErrTerminated after Terminate and ErrQuota beyond its Limit.
func (b *Binding) Run() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return fail(ErrRun, "%s: run: the binding is closed", b.session.name)
	}
	return b.run()
}

// run is Run for the owner of b.mu.
func (b *Binding) run() error {
	if b.arena != nil {
		b.arena.turn.Lock()
		defer b.arena.turn.Unlock()
	}
	return b.runInTurn()
}

// runInTurn is run where nobody else uses the arena.
func (b *Binding) runInTurn() error {
	b.endViews() // also if this run fails
	err := b.call.run()
	if b.check {
		if id := b.call.broken(); id >= 0 {
			return b.overwritten(id)
		}
	}
	switch {
	case err == nil:
	case b.terminated.Load():
		return fail(ErrTerminated, "%s: run: terminated", b.session.name)
	case b.session.own && b.call.refused():
		return b.shortage()
	default:
		return fail(ErrRun, "%s: run: %v%s", b.session.name, err, whatToDo(b.session.ep))
	}
	for _, i := range b.later {
		if err := b.call.view(i, b.out[i]); err != nil {
			return fail(ErrRun, "%s: run: %v", b.session.name, err)
		}
	}
	return nil
}

// endViews ends the views of the last run.
func (b *Binding) endViews() {
	for _, i := range b.later {
		b.out[i].Shape, b.out[i].Data = b.out[i].Shape[:0], nil
	}
}

// Outputs returns the outputs of the last Run in the order of Session.Outputs: the
// tensors that were bound, and views of what the library allocated, which are valid
// until the next Run or Close.
func (b *Binding) Outputs() []*tensor.Tensor { return b.out }

// Terminate ends a run under way as soon as the operator that it is in is done, and
// makes every later one fail.
func (b *Binding) Terminate() {
	b.end.Lock()
	defer b.end.Unlock()
	if b.closed {
		return
	}
	b.terminated.Store(true)
	_ = b.call.terminate() // cannot fail: it sets a flag
}

// Close gives the bound memory back to its owner. It waits for a run under way; a
// second Close does nothing.
func (b *Binding) Close() error {
	s := b.session
	s.mu.Lock()
	delete(s.bindings, b)
	s.mu.Unlock()
	b.free()
	return nil
}

func (b *Binding) free() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end.Lock()
	defer b.end.Unlock()
	if b.closed {
		return
	}
	b.closed = true
	for _, i := range b.later {
		b.out[i].Data = nil
	}
	b.call.close() // which frees outputs in the arena
	if b.arena != nil {
		b.arena.leave()
		b.arena = nil
	}
	b.pinner.Unpin()
}

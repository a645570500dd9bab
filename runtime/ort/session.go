package ort

import (
	"cmp"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/eyas-edge/eyas/internal/machine"
	"github.com/eyas-edge/eyas/internal/tensor"
)

// Options say how a session runs. The zero value is the best provider that loads,
// with as many threads as the process may use.
type Options struct {
	// EP is auto, cpu, cuda or tensorrt. It defaults to auto: CUDA where it loads,
	// else the CPU. A named provider is a contract: it is had, or Open fails.
	EP string
	// Device is the GPU by number ("0") or UUID ("GPU-...", "MIG-..."), or "dla0"
	// for TensorRT. It defaults to the first GPU.
	Device string
	// Threads run one operator, the caller's included. It defaults to the CPUs that
	// the process is allowed.
	Threads int
	// ForceSpinningStop parks the threads at the end of each run instead of letting
	// them spin for the next one. It is for models that take turns on the same cores.
	ForceSpinningStop bool
	// Fixed gives open dimensions of the inputs a size, by their names. The session takes no other then, and
	// need not find out in each run what follows from them.
	Fixed map[string]int
	// Folder is where external data lies of a model that comes as bytes. It defaults to nowhere.
	Folder string
	// OwnAllocator takes the memory of tensors on the host from Eyas' allocator instead of
	// the library's: bindings can then Record and Replay, and their memory is counted.
	OwnAllocator bool
	// Pattern keeps the library's memory pattern on with OwnAllocator. It is for measuring what
	// the library would take by itself: a Record after two runs shows it.
	Pattern bool
	// Warn is told, in one line, when auto falls back on a machine with an NVIDIA GPU.
	Warn func(string)
}

// Info describes an input or output. A dimension of Shape is -1 where the model
// leaves it open.
type Info struct {
	Name  string
	Type  tensor.Type
	Shape []int
}

func (i Info) String() string { return fmt.Sprintf("%s %s%v", i.Name, i.Type, i.Shape) }

// Session is a loaded model. It may be used by several goroutines.
type Session struct {
	s       *ort.DynamicAdvancedSession
	c       unsafe.Pointer // the OrtSession of s
	name    string         // what errors call the model
	ep      string
	inputs  []Info
	outputs []Info
	own     bool  // uses our allocator
	held    int64 // bytes of it that the session took for itself

	weights []byte // of OpenORT, kept reachable and pinned
	pinner  *goruntime.Pinner

	mu       sync.Mutex
	bindings map[*Binding]struct{}
	closed   bool
}

// Open makes a session of the model's bytes, which are not used after it returns.
// name stands for the model in errors. A model with external data needs Options.Folder, or OpenFile.
// Errors are ErrModel, or ErrProvider where the provider cannot be had.
func (l *Library) Open(name string, model []byte, o Options) (*Session, error) {
	return l.openBytes(name, model, o, func(*ort.SessionOptions) error { return nil })
}

func (l *Library) openBytes(name string, model []byte, o Options, set func(*ort.SessionOptions) error) (*Session, error) {
	if len(model) == 0 {
		return nil, fail(ErrModel, "%s: the model is empty", name)
	}
	return l.open(name, o, func(so *ort.SessionOptions) (*ort.DynamicAdvancedSession, error) {
		if err := set(so); err != nil {
			return nil, err
		}
		// Without a folder the library would take external data from the working
		// directory, which has nothing to do with the model.
		if err := so.AddSessionConfigEntry("session.model_external_initializers_file_folder_path", cmp.Or(o.Folder, "/dev/null")); err != nil {
			return nil, err
		}
		return ort.NewDynamicAdvancedSessionWithONNXData(model, nil, nil, so)
	})
}

// OpenFile makes a session of the model at path; external data is looked for in its
// folder. Errors are those of Open and name the path.
func (l *Library) OpenFile(path string, o Options) (*Session, error) {
	return l.openFile(path, o, func(*ort.SessionOptions) error { return nil })
}

func (l *Library) openFile(path string, o Options, set func(*ort.SessionOptions) error) (*Session, error) {
	return l.open(path, o, func(so *ort.SessionOptions) (*ort.DynamicAdvancedSession, error) {
		if err := set(so); err != nil {
			return nil, err
		}
		return ort.NewDynamicAdvancedSession(path, nil, nil, so)
	})
}

// maker creates the session with the options that were set up for it.
type maker func(*ort.SessionOptions) (*ort.DynamicAdvancedSession, error)

// useAllocator registers our allocator, the first time.
func (l *Library) useAllocator() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.allocator == nil {
		err := useAllocator()
		l.allocator = &err
	}
	if err := *l.allocator; err != nil {
		return fail(ErrLibrary, "onnx runtime: %s: use an allocator of our own: %v", l.path, err)
	}
	return nil
}

// try makes a session on one provider.
func (l *Library) try(o Options, ep string, dev device, make maker) (*ort.DynamicAdvancedSession, error) {
	if o.OwnAllocator {
		if err := l.useAllocator(); err != nil {
			return nil, err
		}
	}
	so, err := ort.NewSessionOptions()
	if err != nil {
		return nil, fail(ErrProvider, "%s", short(err.Error()))
	}
	defer so.Destroy()
	if err := configure(so, o); err != nil {
		return nil, fail(ErrProvider, "%s", short(err.Error()))
	}
	if err := l.appendProvider(so, ep, dev); err != nil {
		return nil, err
	}
	s, err := make(so)
	if err != nil {
		return nil, fail(ErrModel, "%s", short(err.Error()))
	}
	return s, nil
}

// configure sets what does not depend on the provider.
func configure(so *ort.SessionOptions, o Options) error {
	threads := o.Threads
	if threads <= 0 {
		threads = machine.CPUs()
	}
	steps := []func() error{
		func() error { return so.SetLogSeverityLevel(ort.LoggingLevelFatal) }, // see load
		// Parallel execution would make the order of allocations a matter of chance.
		func() error { return so.SetExecutionMode(ort.ExecutionModeSequential) },
		func() error { return so.SetGraphOptimizationLevel(ort.GraphOptimizationLevelEnableAll) },
		func() error { return so.SetIntraOpNumThreads(threads) },
		func() error { return so.SetInterOpNumThreads(1) },
		func() error { return so.SetMemPattern(!o.OwnAllocator || o.Pattern) },
		// On x86 without VNNI the int8 kernels saturate sums of products at 16 bits and detectors see
		// things that are not there (QDQ YOLOv8n: classes change, scores move by 0.2). This takes the exact
		// kernels there, and changes nothing on other processors.
		func() error { return so.AddSessionConfigEntry("session.x64quantprecision", "1") },
	}
	if o.ForceSpinningStop {
		steps = append(steps, func() error { return so.AddSessionConfigEntry("session.force_spinning_stop", "1") })
	}
	if o.OwnAllocator {
		steps = append(steps, func() error { return so.AddSessionConfigEntry("session.use_env_allocators", "1") })
	}
	for name, size := range o.Fixed {
		steps = append(steps, func() error { return fixDimension(so, name, size) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// newSession wraps what was made and reads its inputs and outputs.
func newSession(name, ep string, made *ort.DynamicAdvancedSession) (*Session, error) {
	s := &Session{s: made, c: pointerIn(made, "s", "ortSession"), name: name, ep: ep, bindings: map[*Binding]struct{}{}}
	var err error
	if s.inputs, err = describe(s.c, false); err == nil {
		s.outputs, err = describe(s.c, true)
	}
	if err != nil {
		made.Destroy()
		return nil, fail(ErrModel, "%s: %v", name, err)
	}
	return s, nil
}

// Inputs returns the model's inputs in its order, which is the order of Bind.
func (s *Session) Inputs() []Info { return slices.Clone(s.inputs) }

// Outputs returns the model's outputs in its order, which is the order of Bind.
func (s *Session) Outputs() []Info { return slices.Clone(s.outputs) }

// EP returns the provider in effect: cpu, cuda or tensorrt.
func (s *Session) EP() string { return s.ep }

// Held returns the bytes that the session took from our allocator when it was made
// and keeps: mostly weights in the order that its kernels want. It is 0 without
// Options.OwnAllocator, and leaves out what the library keeps elsewhere.
func (s *Session) Held() int64 { return s.held }

// Close closes the session and its bindings, and gives their memory back to the system.
// It waits for runs under way; a second Close does nothing.
func (s *Session) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	open := s.bindings
	s.bindings = nil
	s.mu.Unlock()
	for b := range open {
		b.free()
	}
	err := s.s.Destroy()
	if s.pinner != nil {
		s.pinner.Unpin()
		s.weights = nil
	}
	// A session leaves holes all over the heap. Without this, sessions that come and go add up
	// to some 30 MB of pages that nobody uses.
	trim()
	return err
}

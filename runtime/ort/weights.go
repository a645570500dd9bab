package ort

import (
	"errors"
	"fmt"
	"io"
	goruntime "runtime"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"
	"golang.org/x/sys/unix"
)

// SaveORT optimises the model at path for the CPU, as OpenFile would, and writes it to
// out in ONNX Runtime's own format, for OpenORT. The file is good for this processor,
// this version of the library and these options, and for inputs of the dimensions that they fix. A failed write leaves what it
// wrote so far. Errors are ErrModel.
func (l *Library) SaveORT(out, path string, o Options) error {
	o.EP = EPCPU
	return closed(l.openFile(path, o, saveTo(out)))
}

// SaveORTBytes is SaveORT for a model that comes as bytes, as Open takes it.
func (l *Library) SaveORTBytes(out, name string, model []byte, o Options) error {
	o.EP = EPCPU
	return closed(l.openBytes(name, model, o, saveTo(out)))
}

// saveTo has a session write its model once it is optimised.
func saveTo(out string) func(*ort.SessionOptions) error {
	return func(so *ort.SessionOptions) error {
		if err := so.AddSessionConfigEntry("session.save_model_format", "ORT"); err != nil {
			return err
		}
		return so.SetOptimizedModelFilePath(out)
	}
}

func closed(s *Session, err error) error {
	if err != nil {
		return err
	}
	return s.Close()
}

// spinTime is how long, in microseconds, a session's threads wait for work before they sleep. By default they
// spin for as long as it takes to make most sessions, and after each run: with both cores of a small
// machine in use that is time taken from the one thread that works. YOLO26n is made in 117 ms instead of 178 then, and runs
// took as long as before in measurements: within one, work comes sooner than that.
const spinTime = "5000"

// OpenORT makes a session on the CPU of a model that SaveORT wrote. The session has its
// weights in place: model is only read, and stays as it is until the session is
// closed. Dimensions are fixed as SaveORT was told, not by o. Several sessions may share it. It should be Weights.Bytes; Go memory is pinned.
//
// The bytes are trusted: the library does not expect damaged ones, so a file that may have
// been touched is to be checked by its hash before. Errors are ErrModel.
func (l *Library) OpenORT(name string, model []byte, o Options) (*Session, error) {
	if len(model) == 0 {
		return nil, fail(ErrModel, "%s: the model is empty", name)
	}
	o.EP, o.Fixed = EPCPU, nil // what is fixed is so in the model
	pinner := new(goruntime.Pinner)
	pinner.Pin(unsafe.SliceData(model))
	s, err := l.open(name, o, func(so *ort.SessionOptions) (*ort.DynamicAdvancedSession, error) {
		for _, key := range []string{"session.use_ort_model_bytes_directly", "session.use_ort_model_bytes_for_initializers"} {
			if err := so.AddSessionConfigEntry(key, "1"); err != nil {
				return nil, err
			}
		}
		for key, value := range map[string]string{"session.load_model_format": "ORT", "session.intra_op.spin_duration_us": spinTime} {
			if err := so.AddSessionConfigEntry(key, value); err != nil {
				return nil, err
			}
		}
		return ort.NewDynamicAdvancedSessionWithONNXData(model, nil, nil, so)
	})
	if err != nil {
		pinner.Unpin()
		return nil, err
	}
	s.weights = model
	s.pinner = pinner
	return s, nil
}

// Weights is a model's bytes in memory of their own: read-only, and locked where
// that is allowed.
type Weights struct {
	mem      []byte // whole pages; nil when closed
	size     int
	unlocked error
}

// ReadWeights takes size bytes from r. sum, if not nil, is told the bytes as they lie in
// memory, for a hash: nothing can change them between that and their use.
func ReadWeights(r io.Reader, size int64, sum io.Writer) (*Weights, error) {
	return readWeights(r, size, sum, unix.MAP_PRIVATE)
}

// ReadSharedWeights is ReadWeights into shared memory: the process's RssShmem instead of
// its RssAnon.
func ReadSharedWeights(r io.Reader, size int64, sum io.Writer) (*Weights, error) {
	return readWeights(r, size, sum, unix.MAP_SHARED)
}

func readWeights(r io.Reader, size int64, sum io.Writer, kind int) (*Weights, error) {
	if size <= 0 || size > maxBytes {
		return nil, fmt.Errorf("weights: cannot hold %d bytes", size)
	}
	mem, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|kind)
	if err != nil {
		return nil, fmt.Errorf("weights: map %d bytes: %w", size, err)
	}
	w := &Weights{mem: mem, size: int(size)}
	_, err = io.ReadFull(r, w.Bytes())
	if err == nil {
		err = unix.Mprotect(mem, unix.PROT_READ)
	}
	if err == nil && sum != nil {
		_, err = sum.Write(w.Bytes())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("weights: read %d bytes: %w", size, err), w.Close())
	}
	w.unlocked = unix.Mlock(mem)
	return w, nil
}

// Bytes returns the model, which begins at a page. Writing to it ends the process.
func (w *Weights) Bytes() []byte { return w.mem[:w.size] }

// Locked returns nil if the bytes cannot be swapped out, else why they could not be locked.
func (w *Weights) Locked() error { return w.unlocked }

// Close gives the memory back; no session may use it any more. A second Close does nothing.
func (w *Weights) Close() error {
	if w.mem == nil {
		return nil
	}
	mem := w.mem
	w.mem, w.size = nil, 0
	return unix.Munmap(mem)
}

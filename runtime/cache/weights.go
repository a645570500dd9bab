package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/models/onnx"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// Origin says where weights come from: found in the cache; or built, and kept or not.
type Origin struct {
	Found   bool  // they were kept by an earlier run; else they were built
	Kept    bool  // they are in the cache now
	Warning error // one line for the user: what was thrown away, or why nothing is kept; mostly nil
}

// Weights returns the optimised model of a key, in dedicated memory: from the cache if it is there
// and whole, else built. build writes the file at the path that it is given, which is not in the cache
// and ends with the call; SaveWeights makes one. The caller closes the weights.
//
// Who finds another process, or another goroutine, building the same waits for it, at most
// a minute. Errors are those of build, of memory that cannot be had, and of ctx, which ends the wait.
func (c *Cache) Weights(ctx context.Context, key Key, build func(path string) error) (*ort.Weights, Origin, error) {
	if c.root == nil {
		w, err := c.built(build)
		return w, Origin{Warning: c.why}, err
	}
	if w, err := c.find(key); err == nil {
		return w, Origin{Found: true, Kept: true}, nil
	}
	unlock, err := c.lock(ctx, key)
	if err != nil {
		return nil, Origin{}, err
	}
	defer unlock()
	w, err := c.find(key) // which the one that was waited for may have built
	if err == nil {
		return w, Origin{Found: true, Kept: true}, nil
	}
	var origin Origin
	if !errors.Is(err, fs.ErrNotExist) {
		origin.Warning = c.discard(weightsKind, key, err)
	}
	if w, err = c.built(build); err != nil {
		return nil, origin, err
	}
	if err := c.write(describe(weightsKind, key, w.Bytes()), w.Bytes()); err != nil {
		if err = c.unkept("optimised model", err); origin.Warning != nil {
			err = fmt.Errorf("%v; %w", origin.Warning, err)
		}
		origin.Warning = err
	} else {
		origin.Kept = true
	}
	return w, origin, nil
}

// hold reads weights into the kind of memory that was asked for.
func (c *Cache) hold(r io.Reader, size int64) (*ort.Weights, error) {
	if c.shared {
		return ort.ReadSharedWeights(r, size, nil)
	}
	return ort.ReadWeights(r, size, nil)
}

// find reads weights that are kept. The hash is computed from the memory that is used: read-only by
// then, so that nothing can change between the check and the use.
func (c *Cache) find(key Key) (*ort.Weights, error) {
	f, h, err := c.open(weightsKind, key)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	w, err := c.readWeights(f, h)
	if err == nil {
		c.used(weightsKind, key)
	}
	return w, err
}

// readWeights reads the content that h describes.
func (c *Cache) readWeights(r io.Reader, h header) (*ort.Weights, error) {
	w, err := c.hold(r, h.size)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	if err := h.verify(w.Bytes()); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// built builds into memory, not into the cache: so it works without one, and what is kept is what this
// package wrote and hashed, not what ONNX Runtime may have left of a file on a full disk. It costs a copy.
func (c *Cache) built(build func(path string) error) (*ort.Weights, error) {
	fd, err := unix.MemfdCreate("eyas-model", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // a kernel before 6.3
		fd, err = unix.MemfdCreate("eyas-model", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, fmt.Errorf("memory for the optimised model: %w", err)
	}
	f := os.NewFile(uintptr(fd), "eyas-model")
	defer f.Close()
	if err := build(fmt.Sprintf("/proc/self/fd/%d", fd)); err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > weightsKind.limit() {
		return nil, fmt.Errorf("the optimised model has %d bytes, at most %d can be used", info.Size(), weightsKind.limit())
	}
	w, err := c.hold(io.NewSectionReader(f, 0, info.Size()), info.Size())
	if err != nil {
		return nil, fmt.Errorf("the optimised model: %w", err)
	}
	return w, nil
}

// SaveWeights returns the build function of a model whose HashModel is sum. It fails
// if the model's files have changed since: what was optimised would be kept as another model's. A rewritten model needs the bytes
// of its weights.
func SaveWeights(l *ort.Library, m *onnx.Model, sum Digest, o ort.Options) func(path string) error {
	return func(path string) error {
		if err := saveORT(l, path, m, o); err != nil {
			return err
		}
		now, err := HashModel(m)
		if err == nil && now != sum {
			err = fmt.Errorf("%s: the file has changed while it was read: start again", m.Path)
		}
		return err
	}
}

// saveORT optimises what the model is now, which need not be what its file says.
func saveORT(l *ort.Library, path string, m *onnx.Model, o ort.Options) error {
	if !m.Rewritten {
		return l.SaveORT(path, m.Path, o)
	}
	data, err := m.Marshal()
	if err != nil {
		return err
	}
	o.Folder = filepath.Dir(m.Path)
	return l.SaveORTBytes(path, m.Path, data, o)
}

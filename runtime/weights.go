package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/eyas-edge/eyas/internal/places"
	"github.com/eyas-edge/eyas/memplan"
	"github.com/eyas-edge/eyas/runtime/cache"
	"github.com/eyas-edge/eyas/runtime/lane"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// openCache opens the cache of optimised models and plans. A cache that cannot be used costs time at the
// next start, and a warning.
func (rt *Runtime) openCache() {
	rt.cache = cache.None()
	if !rt.cfg.NoCache {
		dir, err := places.Here().Cache()
		if err == nil {
			var c *cache.Cache
			if c, err = cache.Open(dir); err == nil {
				rt.cache = c
			}
		}
		if err != nil {
			rt.warn("", "", err.Error())
		}
	}
	if rt.force() == memplan.Shared {
		rt.cache = rt.cache.Shared()
	}
}

// open makes the session of a model: on the CPU of its optimised form in memory of ours, elsewhere of its file or of what that
// was rewritten to.
func (m *Model) open(ctx context.Context, o ort.Options) (*ort.Session, error) {
	if m.rt.ep != ort.EPCPU || m.plain {
		return m.openPlain(m.info, o)
	}
	session, err := m.openOptimised(ctx, o)
	if err == nil || ctx.Err() != nil {
		return session, err
	}
	// The model may be one that the library runs and cannot write.
	session, plain := m.openPlain(m.info, o)
	if plain != nil {
		return nil, plain // says what is wrong with the model
	}
	m.plain, m.hash, m.fixed = true, cache.Digest{}, nil // what runs of this session take is not what those of the optimised model do
	m.rt.warn(m.key, "", fmt.Sprintf("its weights lie in ONNX Runtime's memory, not in memory of their own: %v", err))
	return session, nil
}

func (m *Model) openOptimised(ctx context.Context, o ort.Options) (*ort.Session, error) {
	if m.weights != nil { // of other lanes, which are gone
		return m.rt.library.OpenORT(m.key, m.weights.Bytes(), o)
	}
	if !m.hashed() {
		_, err := cache.HashModel(m.info.ONNX)
		return nil, cmp.Or(err, errors.New("it has no place in the cache"))
	}
	m.fixed = lane.Fixed(m.info, m.asked)
	key := cache.WeightsKey(m.rt.library, m.hash, append(cache.Dimensions(m.fixed), m.rewrite()...)...)
	build := m.optimise(ctx, o)
	for {
		weights, origin, err := m.rt.cache.Weights(ctx, key, build)
		if err != nil {
			return nil, err
		}
		if origin.Warning != nil && !m.rt.cacheTold {
			m.rt.cacheTold = true
			m.rt.warn("", "", origin.Warning.Error())
		}
		session, err := m.rt.library.OpenORT(m.key, weights.Bytes(), o)
		if err == nil {
			m.weights, m.built = weights, !origin.Found
			m.rt.cold = m.rt.cold || m.built
			return session, nil
		}
		if err = errors.Join(err, weights.Close()); !origin.Found {
			return nil, err
		}
		m.rt.cache.Forget(key) // whole, and yet not what this library takes: built anew, once
	}
}

// optimise returns what builds the optimised model, for inputs as they are in every run. Should the library
// not take them fixed, though it takes the same ones open, they stay open.
func (m *Model) optimise(ctx context.Context, o ort.Options) func(path string) error {
	open := cache.SaveWeights(m.rt.library, m.info.ONNX, m.hash, o)
	if len(m.fixed) == 0 {
		return open
	}
	o.Fixed = m.fixed
	fixed := cache.SaveWeights(m.rt.library, m.info.ONNX, m.hash, o)
	return func(path string) error {
		err := fixed(path)
		if err == nil {
			err = m.try(ctx, path, o)
		}
		if err == nil || ctx.Err() != nil {
			return cmp.Or(ctx.Err(), err)
		}
		return open(path)
	}
}

// try runs an optimised model once, on a lane of its own.
func (m *Model) try(ctx context.Context, path string, o ort.Options) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	o.OwnAllocator = false
	session, err := m.rt.library.OpenORT(m.key, data, o)
	if err != nil {
		return err
	}
	alone := lane.New(lane.Options{})
	defer alone.Close() // and the session
	if _, err := alone.Add(m.info, session, lane.Batches(m.info, m.asked)[:1], nil); err != nil {
		return err
	}
	return alone.Record(ctx)
}

// hashed says whether the model has a place in the cache.
func (m *Model) hashed() bool { return m.hash != cache.Digest{} }

// close frees what the model has beside the lane, which is closed by then.
func (m *Model) close() {
	if m.quota != nil {
		m.quota.Close()
	}
	if m.weights != nil {
		m.weights.Close()
	}
}

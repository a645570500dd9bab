package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/eyas-edge/eyas/internal/places"
	"github.com/eyas-edge/eyas/memplan"
	"github.com/eyas-edge/eyas/runtime/cache"
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

// open makes the session of a model: on the CPU of its optimised form in memory of ours, elsewhere of its file.
func (m *Model) open(ctx context.Context, o ort.Options) (*ort.Session, error) {
	if m.rt.ep != ort.EPCPU {
		return m.rt.library.OpenFile(m.info.Path, o)
	}
	session, err := m.openOptimised(ctx, o)
	if err == nil || ctx.Err() != nil {
		return session, err
	}
	// The model may be one that the library runs and cannot write.
	session, plain := m.rt.library.OpenFile(m.info.Path, o)
	if plain != nil {
		return nil, plain // says what is wrong with the model
	}
	m.rt.warn(m.key, "", fmt.Sprintf("its weights lie in ONNX Runtime's memory, not in memory of their own: %v", err))
	return session, nil
}

func (m *Model) openOptimised(ctx context.Context, o ort.Options) (*ort.Session, error) {
	var err error
	if m.hash, err = cache.HashModel(m.info.ONNX); err != nil {
		return nil, err
	}
	key := cache.WeightsKey(m.rt.library, m.hash)
	build := cache.SaveWeights(m.rt.library, m.info.ONNX, m.hash, o)
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
			m.weights = weights
			m.rt.cold = m.rt.cold || !origin.Found
			return session, nil
		}
		if err = errors.Join(err, weights.Close()); !origin.Found {
			return nil, err
		}
		m.rt.cache.Forget(key) // whole, and yet not what this library takes: built anew, once
	}
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

package runtime

import (
	"fmt"
	"slices"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/memplan"
)

// expectRings plans the frames of the configuration's live sources: of the size that their text asks for, and as many as
// batches up to most have wait. What is wrong with a source is for whoever opens it to say.
func (rt *Runtime) expectRings(most int) {
	rt.rings = nil
	sources, _ := rt.cfg.OpenSources()
	for _, s := range sources {
		m, ok := s.(camera.Monitored)
		if !ok || !s.Live() {
			continue
		}
		slo := rt.cfg.SLO
		if slo == 0 {
			slo = DefaultSLO
		}
		m.Wait(max(slo, 0), most)
		rt.rings = append(rt.rings, memplan.Region{
			Kind: memplan.Frames, Owner: s.Name(), Bytes: m.RingBytes(), Basis: "as configured, or 1920x1080 in nv12", Placement: memplan.Shared,
		})
	}
}

// replan plans more frames to wait once it is known what batches there are.
func (rt *Runtime) replan() error {
	if most := rt.largest(); most > 1 && len(rt.rings) > 0 {
		rt.expectRings(most)
		return rt.place()
	}
	return nil
}

// largest returns the largest batch of all models.
func (rt *Runtime) largest() int {
	most := 1
	for _, m := range rt.models {
		most = max(most, m.program.Largest())
	}
	return most
}

// reserve makes room in the plan for the frames of a source, once their shape is known. The error, which wraps ErrBudget,
// says that the plan cannot be extended so far.
func (rt *Runtime) reserve(source string, bytes int64) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rings := slices.Clone(rt.rings)
	i := slices.IndexFunc(rings, func(r memplan.Region) bool { return r.Owner == source })
	if i < 0 {
		i = len(rings)
		rings = append(rings, memplan.Region{Kind: memplan.Frames, Owner: source, Placement: memplan.Shared})
	}
	larger := bytes > rings[i].Bytes
	rings[i].Bytes, rings[i].Basis = bytes, "as the source gives them"

	p := *rt.laid
	p.Regions = slices.DeleteFunc(slices.Clone(p.Regions), func(r memplan.Region) bool { return r.Kind == memplan.Frames })
	p.Regions = append(p.Regions, rings...)
	if larger {
		// What is there already is in the capacity, too: only what comes on top can be too much.
		_, err := rt.neighbours.claim(func() (*memplan.Plan, error) { return &p, p.Place(rt.capacity(), rt.force()) })
		if err = rt.neighbours.explain(err); err != nil {
			return as(ErrBudget, fmt.Errorf("its frames take %s, more than was planned: %w", memplan.FormatBytes(bytes), err))
		}
	}
	rt.rings, rt.laid = rings, &p
	return nil
}

// ringBytes returns what the rings of all sources take that the runtime knows: those that are there now, or, once a
// call of Stream has ended, those that it had.
func (rt *Runtime) ringBytes(now bool) (bytes int64) {
	rt.mu.Lock()
	tracks := rt.tracks
	rt.mu.Unlock()
	for _, t := range tracks {
		if m, ok := t.source.(camera.Monitored); ok && !(now && t.over.Load()) {
			bytes += m.Stats().Memory
		}
	}
	return bytes
}

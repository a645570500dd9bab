package runtime

import (
	"fmt"
	"math"
	goruntime "runtime"
	gometrics "runtime/metrics"
	"sync/atomic"

	"github.com/eyas-edge/eyas/internal/machine"
	"github.com/eyas-edge/eyas/memplan"
	"github.com/eyas-edge/eyas/runtime/lane"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// DefaultHeadroom is the headroom where the configuration names none, as a share of a model's weights.
const DefaultHeadroom = 0.2

// measuredNow is the basis of a figure that no earlier run has measured.
const measuredNow = "measured at this start"

// planFor lays out the memory of all models, from what their recorded runs need, for batches up to n.
func (rt *Runtime) planFor(n int) memplan.Plan {
	p := rt.layOut(rt.need(n), (*Model).weightBytes)
	p.Regions = append(append(p.Regions, rt.rings...), rt.others...)
	return p
}

// layOut lists the regions of all models, whose weights take what bytes says, and of the lanes, each of which has a need.
func (rt *Runtime) layOut(need lane.Need, bytes func(*Model) int64) memplan.Plan {
	var p memplan.Plan
	for _, m := range rt.models {
		p.Add(memplan.Weights, m.key, bytes(m))
		p.Add(memplan.Headroom, m.key, rt.cfg.headroom(bytes(m)))
	}
	for i := range rt.setting.Lanes {
		if need.Slots > 0 {
			p.Add(memplan.Arena, rt.laneName(i), need.Slots)
			p.Add(memplan.Spill, rt.laneName(i), need.Spill)
		}
		p.Add(memplan.Tensors, rt.laneName(i), need.Inputs+need.Outputs)
	}
	return p
}

// weightBytes returns the bytes of the model's weights: those of ours, and what the session's kernels copied
// of them.
func (m *Model) weightBytes() int64 {
	if m.weights != nil {
		return int64(len(m.weights.Bytes())) + m.program.Session().Held()
	}
	var n int64
	for _, bytes := range m.info.ONNX.Stats(nil).WeightBytes {
		n += bytes
	}
	return n
}

// headroom returns the bytes reserved beside a model's weights for what cannot be planned.
func (rt *Runtime) headroom(m *Model) int64 {
	return rt.cfg.headroom(m.weightBytes())
}

// headroom returns the bytes reserved beside so many bytes of weights.
func (c *Config) headroom(weights int64) int64 {
	if c.Headroom > 0 {
		return int64(c.Headroom)
	}
	share := DefaultHeadroom
	if c.Headroom < 0 {
		share = c.Headroom.share()
	}
	return int64(float64(weights) * share)
}

// capacity returns the memory that the plan may take.
func (rt *Runtime) capacity() memplan.Capacity {
	facts, used := rt.neighbours.memory(), machine.ReadProcess("/")
	c := memplan.Capacity{Budget: max(int64(rt.cfg.Budget), 0), Dedicated: memplan.Unlimited}
	if usable := facts.Usable(); usable > 0 { // what this process has already is in the plan, too
		c.Machine = int64(usable + used.RSSAnon + used.RSSShmem)
	}
	if rt.cfg.Budget < 0 {
		total := facts.Total
		if facts.Limit > 0 {
			total = min(total, facts.Limit)
		}
		c.Budget = int64(float64(total) * rt.cfg.Budget.share())
	}
	if locked := machine.ReadLocked(); locked.Known && !locked.Unlimited && rt.ep == ort.EPCPU {
		c.Dedicated = int64(min(locked.Soft, math.MaxInt64))
	}
	return c
}

// place decides where each region lies. The error wraps ErrBudget if the plan does not fit, or a model its
// quota.
func (rt *Runtime) place() error {
	p, err := rt.neighbours.claim(rt.fit)
	if err == nil {
		rt.laid = p
	}
	return as(ErrBudget, err)
}

// fit returns the plan as it is to be, and says whether it fits, and the models their quotas.
func (rt *Runtime) fit() (*memplan.Plan, error) {
	p := rt.planFor(math.MaxInt)
	err := p.Place(rt.capacity(), rt.force())
	for _, m := range rt.models {
		if err == nil {
			err = p.CheckQuota(m.key, m.laneBytes(), int64(m.cfg.Quota))
		}
	}
	return &p, err
}

// checkLocks says where dedicated memory could not be locked although the limit has room for it: other parts of the
// process have taken it. Where dedicated memory was asked for that is an error.
func (rt *Runtime) checkLocks() error {
	unlocked := func(what string, err error) error {
		if err == nil {
			return nil
		}
		err = fmt.Errorf("%s cannot be locked and may be swapped out (%w): raise the limit on locked memory (ulimit -l, LimitMEMLOCK)", what, err)
		if rt.force() == memplan.Dedicated {
			return as(ErrBudget, err)
		}
		rt.warn("", "", err.Error())
		return nil
	}
	for i, l := range rt.lanes {
		if a := l.Arena(); a != nil && rt.laid.Where(memplan.Arena, rt.laneName(i)) == memplan.Dedicated {
			if err := unlocked("the arena", a.Locked()); err != nil {
				return err
			}
		}
	}
	for _, r := range rt.laid.Regions {
		m := rt.byKey[r.Owner]
		if r.Kind == memplan.Weights && r.Placement == memplan.Dedicated && m != nil && m.weights != nil {
			if err := unlocked("the weights of model "+m.key, m.weights.Locked()); err != nil {
				return err
			}
		}
	}
	return nil
}

// force returns the one kind of memory that the configuration asks for, "" for none.
func (rt *Runtime) force() memplan.Placement {
	if rt.cfg.Placement == "auto" {
		return ""
	}
	return memplan.Placement(rt.cfg.Placement)
}

// laneBytes returns what the model needs of the lanes' memory, which it shares with the others.
func (m *Model) laneBytes() int64 {
	n := m.program.Need(math.MaxInt)
	return int64(m.rt.setting.Lanes) * (n.Slots + n.Spill + n.Inputs + n.Outputs)
}

// limit charges what a model takes beside the plan to its headroom, and to what its quota leaves.
func (m *Model) limit() {
	if m.program.Session().Own() {
		left := int64(m.cfg.Quota) - m.weightBytes() - m.laneBytes()
		m.quota = ort.NewQuota(max(m.rt.headroom(m), left))
		for _, p := range m.programs {
			p.Limit(m.quota)
		}
	}
}

// Plan returns the memory that everything takes, fixed before the first frame: what changes later is the frames of sources
// that give others than expected, in a plan of its own. It must not be changed.
func (rt *Runtime) Plan() *memplan.Plan {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.laid
}

// meter measures what frames cost beside time.
type meter struct {
	frames  atomic.Int64
	started atomic.Pointer[costs] // when the frames of warm-up were done
}

// costs only grow.
type costs struct {
	frames                 int64
	goAllocs, minor, major uint64
}

// warmFrames are left out of the means per frame: sources fill their pools with them.
const warmFrames = 16

func readCosts(frames int64) *costs {
	p := machine.ReadProcess("/")
	s := []gometrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	gometrics.Read(s)
	return &costs{frames, s[0].Value.Uint64(), p.MinorFaults, p.MajorFaults}
}

// frame counts one.
func (m *meter) frame() {
	if n := m.frames.Add(1); n == warmFrames {
		m.started.Store(readCosts(n))
	}
}

// Memory says what the runtime takes, against what was planned. Requests for tensors are those since Open returned.
// Means are over the frames that streams have yielded, and count what their sources and the program do as well. Once the
// runtime is being closed there are only the frames.
func (rt *Runtime) Memory() memplan.Usage {
	u := memplan.Usage{Frames: rt.meter.frames.Load()}
	if rt.use() != nil {
		return u // what would be looked at is freed
	}
	defer rt.users.Done()
	now := readCosts(u.Frames) // before what is measured here adds to it
	rt.measureRegions(&u)
	for _, m := range rt.models {
		c := m.counts().Minus(m.before)
		u.Arena.Count += c.Arena
		u.Arena.Bytes += c.ArenaBytes
		u.Spill.Count += c.Spill
		u.Spill.Bytes += c.SpillBytes
		u.Heap.Count += c.Heap
		u.Heap.Bytes += c.HeapBytes
		u.Mismatches += c.Mismatches
		u.Recordings += m.recordings()
	}
	if p, s, ok := rt.lanes[0].Decisive(); ok {
		u.Fragmentation = s.Fragmentation()
		if fit, err := memplan.BestFit(p); err == nil {
			u.BestFit = fit.Fragmentation()
		}
	}
	if from := rt.meter.started.Load(); from != nil && u.Frames > from.frames {
		n := now.frames - from.frames
		u.GoAllocs = memplan.PerFrame(int64(now.goAllocs-from.goAllocs), n)
		u.MinorFaults = memplan.PerFrame(int64(now.minor-from.minor), n)
		u.MajorFaults = memplan.PerFrame(int64(now.major-from.major), n)
	}
	return u
}

// measureRegions compares every kind of region with what is in memory of it.
func (rt *Runtime) measureRegions(u *memplan.Usage) {
	measured := map[memplan.Kind]int64{
		memplan.Weights:  rt.weightsPresent(),
		memplan.Headroom: 0,
		memplan.Tensors:  rt.tensorsPresent(),
		memplan.Frames:   rt.ringBytes(false),
		memplan.Engine:   rt.engineBytes(),
		memplan.Go:       goBytes(),
	}
	for _, l := range rt.lanes {
		a := l.Arena()
		if a == nil {
			continue
		}
		all := present(a.Bytes())
		if all < 0 {
			measured[memplan.Arena], measured[memplan.Spill] = unknown, unknown
			break
		}
		slots := min(all, a.Slots())
		measured[memplan.Arena] += slots
		measured[memplan.Spill] += min(all-slots, a.Spill())
	}
	for _, m := range rt.models {
		if m.quota != nil {
			_, peak := m.quota.Used()
			measured[memplan.Headroom] += peak
		}
	}
	laid := rt.Plan()
	for _, kind := range []memplan.Kind{memplan.Weights, memplan.Headroom, memplan.Arena, memplan.Spill, memplan.Tensors, memplan.Frames, memplan.Engine, memplan.Go} {
		if planned := laid.Of(kind); planned > 0 || measured[kind] != 0 {
			u.Regions = append(u.Regions, memplan.RegionUsage{Kind: kind, Planned: planned, Measured: measured[kind]})
		}
	}
}

// unknown is what could not be measured.
const unknown = -1

// weightsPresent returns the bytes of all weights that are in memory; what kernels have copied always is.
func (rt *Runtime) weightsPresent() int64 {
	var sum int64
	for _, m := range rt.models {
		if m.weights == nil {
			sum += m.weightBytes()
			continue
		}
		n := present(m.weights.Bytes())
		if n < 0 {
			return unknown
		}
		sum += n + m.program.Session().Held()
	}
	return sum
}

// engineBytes returns what the inference library holds: all of the process's memory but what is ours and Go's.
func (rt *Runtime) engineBytes() int64 {
	p := machine.ReadProcess("/")
	n := int64(p.RSSAnon+p.RSSShmem) - goBytes() - rt.ringBytes(true) - max(rt.weightsPresent(), 0) - max(rt.tensorsPresent(), 0)
	for _, l := range rt.lanes {
		if a := l.Arena(); a != nil {
			n -= max(present(a.Bytes()), 0)
		}
	}
	return max(n, 0)
}

// tensorsPresent returns the bytes of all lanes' tensors that are in memory.
func (rt *Runtime) tensorsPresent() int64 {
	var all [][]byte
	for _, l := range rt.lanes {
		all = append(all, l.Tensors()...)
	}
	return present(all...)
}

// goBytes returns the memory that the Go runtime has from the system.
func goBytes() int64 {
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return int64(m.Sys - m.HeapReleased)
}

// present returns the bytes of mappings that are in memory.
func present(mem ...[]byte) int64 {
	var sum int64
	for _, m := range mem {
		n, err := machine.Present(m)
		if err != nil {
			return unknown
		}
		sum += n
	}
	return sum
}

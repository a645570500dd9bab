package runtime

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eyas-edge/eyas/internal/machine"
)

// Setting is how runs share the CPUs.
type Setting struct {
	Lanes   int `json:"lanes"`
	Threads int `json:"threads"` // of a lane
}

// String writes "2 lanes of 1 thread".
func (s Setting) String() string {
	return fmt.Sprintf("%s of %s", plural(s.Lanes, "lane"), plural(s.Threads, "thread"))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// pool returns the threads of a session that all lanes share: one of each lane's is its own, the others are the
// session's.
func (s Setting) pool() int { return 1 + s.Lanes*(s.Threads-1) }

// maxLanes and maxThreads bound a configuration, chosenLanes bounds those that are chosen, and maxTrials how many settings
// are tried.
const (
	maxLanes    = 64
	maxThreads  = 1024
	chosenLanes = 16
	maxTrials   = 5
)

// mostThreads bounds the threads of all lanes together: of many times as many as there are CPUs each waits for the others,
// and a process of thousands does not even end in time.
func mostThreads() int { return max(16*machine.CPUs(), maxLanes) }

// settingsFor returns the settings to choose from: what was set by hand stays, and where both are free the lanes share
// the CPUs evenly. The first has the fewest lanes. Without a choice it is the only one.
func settingsFor(cpus, lanes, threads int, choice bool) []Setting {
	switch {
	case lanes > 0 && threads > 0:
		return []Setting{{lanes, threads}}
	case lanes > 0:
		return []Setting{{lanes, max(cpus/lanes, 1)}}
	case !choice && threads > 0:
		return []Setting{{1, threads}}
	case !choice:
		return []Setting{{1, cpus}}
	case threads > 0:
		list := []Setting{{1, threads}}
		if n := min(cpus/threads, chosenLanes); n > 1 {
			list = append(list, Setting{n, threads})
		}
		return list
	}
	var list []Setting
	for n := 1; n <= min(cpus, chosenLanes); n++ {
		if cpus%n == 0 {
			list = append(list, Setting{n, cpus / n})
		}
	}
	for len(list) > maxTrials {
		list = slices.Delete(list, len(list)/2, len(list)/2+1)
	}
	return list
}

// autoLadder is what a ladder is cut out of where none is set: by what the model runs, what the memory holds and what
// the SLO leaves time for.
var autoLadder = []int{1, 2, 4, 8, 16}

// worthwhile is by how much more pictures a second have to be served for a larger batch or for more lanes, both of
// which cost memory and latency.
const worthwhile = 1.03

// contended is the share of another setting's pictures a second from which on one of more lanes with fewer threads each is taken.
// Threads of one lane wait for each other: what else there is to do stops all of them. The search has the machine to
// itself and does not see that; cameras and consumers, other programs and decoders come later.
const contended = 0.93

// enough returns the share of the pictures a second of a setting that another has to serve to be taken instead, and in the same
// way that of its speed where latency decides.
func (s Setting) enough(instead Setting) float64 {
	if instead.Threads < s.Threads {
		return contended
	}
	return worthwhile
}

// point is how a trial works with batches up to one size.
type point struct {
	batch int
	fps   float64       // pictures a second that go through every model
	p99   time.Duration // from a picture's arrival to its last result, waits for runs under way included
	p95   time.Duration
}

// at returns how batches up to n work. A picture that comes when a run has just begun waits for that and for the turn of
// every model. Those take their usual time: that they are at their longest, too, just when its own run is, is rarer than one
// picture in a hundred.
func (t *trial) at(n int) point {
	p := point{batch: n}
	var wait time.Duration
	var perPicture float64
	for _, ladder := range t.models {
		rung := upTo(ladder, n)
		wait += rung.Busy.P50
		p.p95, p.p99 = max(p.p95, rung.Fill.P95+rung.Busy.P95+rung.Read.P95), max(p.p99, rung.busy())
		perPicture += 1 / rung.FPS
	}
	p.p95, p.p99, p.fps = wait+p.p95, wait+p.p99, 1/perPicture
	return p
}

// upTo returns the largest profile of a batch up to n, the smallest of all where there is none.
func upTo(ladder []Profile, n int) *Profile {
	at := 0
	for i := range ladder {
		if ladder[i].Batch <= n {
			at = i
		}
	}
	return &ladder[at]
}

// batches returns the batch sizes that were measured, of all models, ascending.
func (t *trial) batches() (all []int) {
	for _, ladder := range t.models {
		for _, rung := range ladder {
			all = append(all, rung.Batch)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// best returns the point with the most pictures a second that keeps the SLO, if one does, else the first.
func (t *trial) best(slo time.Duration) (p point, fits bool) {
	for i, n := range t.batches() {
		next := t.at(n)
		ok := next.p99 <= slo
		if i == 0 || ok && (!fits || next.fps > worthwhile*p.fps) {
			p, fits = next, ok
		}
	}
	return p, fits
}

// fastest returns the shortest measured p99 of a picture that finds the machine idle.
func (t *trial) fastest() time.Duration {
	var longest time.Duration
	for _, ladder := range t.models {
		longest = max(longest, ladder[0].Latency.P99)
	}
	return longest
}

// choose returns the index of the trial to take under an SLO, -1 where nothing was measured, how it works, and why in a
// sentence: the most pictures a second whose p99 keeps the SLO, else the lowest latency, by its p95, since the few longest runs
// of a measurement are chance.
func choose(slo time.Duration, trials []trial) (best int, p point, why string) {
	best = -1
	var fits bool
	for i := range trials {
		t := &trials[i]
		if t.short != nil {
			continue
		}
		next, ok := t.best(slo)
		switch {
		case best < 0, ok && !fits:
		case ok == fits && ok && next.fps > trials[best].enough(t.Setting)*p.fps:
		case !ok && !fits && trials[best].enough(t.Setting)*float64(next.p95) < float64(p.p95):
		default:
			continue
		}
		best, p, fits = i, next, ok
	}
	if best < 0 {
		return best, p, ""
	}
	return best, p, reason(slo, trials, best, p, fits)
}

// reason says why a trial was taken.
func reason(slo time.Duration, trials []trial, best int, p point, fits bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %.0f fps", trials[best].Setting, p.fps)
	var others []string
	for i := range trials {
		if t := &trials[i]; i != best && t.short == nil {
			other, ok := t.best(slo)
			text := fmt.Sprintf("%.0f with %v", other.fps, t.Setting)
			switch {
			case fits && !ok:
				text += fmt.Sprintf(" (p99 %s, too long)", millis(other.p99))
			case fits && other.fps > p.fps && t.Threads > trials[best].Threads:
				text += " (more, but threads that wait for each other lose that beside other work)"
			}
			others = append(others, text)
		}
	}
	if len(others) > 0 {
		fmt.Fprintf(&b, " against %s", strings.Join(others, " and "))
	}
	relation := "within"
	if !fits {
		relation = "over"
	}
	fmt.Fprintf(&b, ", p99 %s %s the SLO of %s", millis(p.p99), relation, millis(slo))
	for i := range trials {
		if t := &trials[i]; t.short != nil {
			fmt.Fprintf(&b, "; %v: %v", t.Setting, t.short)
		}
	}
	return b.String()
}

// millis writes a time in milliseconds: "18 ms", "4.2 ms".
func millis(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	if ms < 0.01 {
		return d.String()
	}
	if ms < 10 {
		return fmt.Sprintf("%.2g ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}

// exhausted says that larger batches than those that were measured are of no use: they take longer than the SLO, or
// two steps in a row have brought nothing.
func exhausted(slo time.Duration, ladder []Profile) bool {
	n := len(ladder)
	if ladder[n-1].Busy.P50 > slo {
		return true
	}
	if n < 3 {
		return false
	}
	best := max(ladder[n-1].FPS, ladder[n-2].FPS)
	return slices.ContainsFunc(ladder[:n-2], func(p Profile) bool { return best <= worthwhile*p.FPS })
}

// ladderFor returns the batches of a measured ladder that keep the SLO by themselves, but always the smallest. Larger ones that serve
// hardly more than a smaller one are left out: they cost memory and latency for nothing.
func ladderFor(slo time.Duration, ladder []Profile) []int {
	kept := ladder[:1]
	for i := 1; i < len(ladder) && ladder[i].busy() <= slo; i++ {
		kept = ladder[:i+1]
	}
	for len(kept) > 1 {
		last := kept[len(kept)-1]
		if !slices.ContainsFunc(kept[:len(kept)-1], func(p Profile) bool { return last.FPS <= worthwhile*p.FPS }) {
			break
		}
		kept = kept[:len(kept)-1]
	}
	batches := make([]int, len(kept))
	for i, p := range kept {
		batches[i] = p.Batch
	}
	return batches
}

package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	eyas "github.com/eyas-edge/eyas/runtime"
	"github.com/eyas-edge/eyas/runtime/batch"
)

// What the policies of the comparison are set to.
const (
	fixedSize  = 4
	dropWindow = 8

	briefDelay = 5 * time.Millisecond
	longDelay  = 20 * time.Millisecond
)

// The policies.
const (
	ownPolicy   = "eyas"
	fixedPolicy = "fixed 4"
)

// policies make batches, each in its way, out of the same frames on the same lanes. The batcher begins with a new one in
// every run.
var policies = map[string]func() batch.Policy{
	ownPolicy:       nil,
	fixedPolicy:     func() batch.Policy { return batch.Fixed(fixedSize) },
	"timeout 5 ms":  func() batch.Policy { return batch.Timeout(fixedSize, briefDelay) },
	"timeout 20 ms": func() batch.Policy { return batch.Timeout(fixedSize, longDelay) },
	"aimd":          batch.AIMD,
	"early drop 8":  func() batch.Policy { return batch.EarlyDrop(dropWindow) },
}

// contest is who takes part, in the order in which they take turns.
var contest = []struct{ candidate, policy string }{
	{planned, ownPolicy}, {planned, fixedPolicy}, {planned, "timeout 5 ms"}, {planned, "timeout 20 ms"},
	{planned, "aimd"}, {planned, "early drop 8"}, {standard, fixedPolicy},
}

// PolicyResult is one way to make batches, on the cameras that all of them served.
type PolicyResult struct {
	Model     string   `json:"model"`
	Candidate string   `json:"candidate"` // planned: on the lanes that the SLO picks; default: one plain session
	Policy    string   `json:"policy"`
	Rounds    []Served `json:"rounds"`
}

// policyRounds is how often everybody takes a turn.
const policyRounds = 3

func (b *bench) policies(ctx context.Context) error {
	for _, m := range b.report.Models {
		c, err := b.choice(ctx, m.Key)
		if err != nil {
			return err
		}
		at := len(b.report.Policies)
		for _, who := range contest {
			b.report.Policies = append(b.report.Policies, PolicyResult{Model: m.Key, Candidate: who.candidate, Policy: who.policy})
		}
		results := b.report.Policies[at:]
		for range policyRounds {
			for i, who := range contest {
				b.say(fmt.Sprintf("policies on %s: %s, %s", m.Key, who.candidate, who.policy))
				rep, err := b.ask(ctx, request{
					Job: jobServe, Model: m.Key, Candidate: who.candidate, Policy: who.policy,
					Cameras: b.Cameras, FPS: b.FPS, Duration: b.timed(defaultDuration), Runs: b.Runs,
				}, b.under, b.equip(who.candidate, who.policy, &c.Choice))
				if err != nil {
					return err
				}
				results[i].Rounds = append(results[i].Rounds, *rep.Served)
			}
		}
	}
	return nil
}

// equip gives everybody the ladder that its policy wants: ours is that which the SLO picked. A plain session has the fixed
// size only, and every thread.
func (b *bench) equip(candidate, policy string, c *eyas.Choice) func(*eyas.Config) {
	if candidate == standard {
		return func(cfg *eyas.Config) { cfg.Batch = []int{fixedSize} }
	}
	ladder := c.Models[0].Ladder
	if policy != ownPolicy {
		ladder = slices.Concat(ladder, []int{1, 2, fixedSize})
	}
	slices.Sort(ladder)
	return fixed(c.Setting, slices.Compact(ladder))
}

func (r *Report) policiesText(w io.Writer) {
	var first float64
	var s *Served
	for _, p := range r.Policies {
		if len(p.Rounds) == 0 { // a signal came before
			continue
		}
		if s == nil {
			fmt.Fprintf(w, "\npolicies\ton\tin time\tof eyas\tmissed\tdropped\tp50\tp99\tbatch\tlanes\n")
		}
		s = &p.Rounds[0]
		fps := medianOf(p.Rounds, inTimeFPS)
		if p.Policy == ownPolicy {
			first = fps
		}
		figure := func(of func(Served) float64) float64 { return medianOf(p.Rounds, of) }
		fmt.Fprintf(w, "%s\t%s %s\t%.1f fps\t%.3f\t%s\t%s\t%.1f ms\t%.1f\t%.2f\t%v\n", p.Policy, p.Model, p.Candidate, fps, ratio(fps, first),
			percent(figure(missed)),
			percent(figure(func(s Served) float64 { return ratio(float64(s.dropped()), float64(s.Offered)) })),
			figure(func(s Served) float64 { return s.Capture.P50 }), figure(captureP99),
			figure(func(s Served) float64 { return s.Batch }), eyas.Setting{Lanes: s.Lanes, Threads: s.Threads})
	}
	if s != nil {
		fmt.Fprintf(w, "%d cameras of %.0f fps, SLO %.0f ms; medians of rounds in turns. Missed: of the delivered; dropped: of the captured.\n", s.Cameras, s.FPS, s.SLO)
	}
}

func (r *Report) policiesFigures(each func(string, float64)) {
	for _, p := range r.Policies {
		name := fmt.Sprintf("policy %s %s %s ", p.Model, p.Candidate, p.Policy)
		each(name+"in time, fps", medianOf(p.Rounds, inTimeFPS))
		each(name+"missed", medianOf(p.Rounds, missed))
		each(name+"p99, ms", medianOf(p.Rounds, captureP99))
	}
}

func inTimeFPS(s Served) float64  { return s.InTimeFPS }
func missed(s Served) float64     { return s.Missed }
func captureP99(s Served) float64 { return s.Capture.P99 }

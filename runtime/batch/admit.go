package batch

import (
	"fmt"
	"time"
)

// SLOError says that a latency cannot be kept whatever the load.
type SLOError struct {
	SLO   time.Duration // what was asked for
	P99   time.Duration // of the fastest batch size, as measured
	Batch int           // that size
}

func (e *SLOError) Error() string {
	return fmt.Sprintf("slo %v: the fastest run, a batch of %d, takes up to %v (p99): ask for more than that, or use a faster model or machine",
		e.SLO, e.Batch, e.P99)
}

// CheckSLO refuses, with an *SLOError, a latency that is under the fastest measured p99.
func (p Profile) CheckSLO(slo time.Duration) error {
	if err := p.Check(); err != nil {
		return err
	}
	best := p[0]
	for _, t := range p {
		if t.P99 < best.P99 {
			best = t
		}
	}
	if slo < best.P99 {
		return &SLOError{SLO: slo, P99: best.P99, Batch: best.Batch}
	}
	return nil
}

// Demand is what is asked of a machine beside what it does, in frames per second.
type Demand struct{ Needs, Does float64 }

// String is what users are told: "needs 120 fps, this machine does 96 in time".
func (d Demand) String() string {
	return fmt.Sprintf("needs %.0f fps, this machine does %.0f in time", d.Needs, d.Does)
}

// HoldError says that a run of one model, which nothing interrupts, takes longer than another can wait.
type HoldError struct {
	Heavy, Light string        // the models
	Hold         time.Duration // p99 of the heavy one's shortest run
	Slack        time.Duration // of the light one: its SLO less the p99 of its shortest run
}

func (e *HoldError) Error() string {
	return fmt.Sprintf("model %s holds a lane for %v, model %s can wait for %v: give %s a lane of its own or a longer slo",
		e.Heavy, e.Hold, e.Light, e.Slack, e.Light)
}

package runtime

import (
	"math"
	"time"
)

const (
	lateShare = 1.0 / 200 // of the batches may come later than the SLO: half of what users are to see at most
	leadStep  = 1.0 / 50  // of the SLO, for a batch that does
	leadMost  = 1.0 / 4   // of the SLO
)

// lead is how much earlier than the SLO asks a batcher has to be done. Batchers plan for as many frames in time as can be, so that
// under overload the oldest frame of each batch is done in the last moment: whatever they do not see (a thread that has to wait for its turn, a run of
// the distribution's tail, the way to the consumer) makes it late. The lead follows the share of late batches: each late one
// lengthens it by a step, each other one shortens it by as much of one as keeps it where lateShare of them are late (the
// Robbins-Monro estimate of a quantile).
type lead struct {
	now, step, most time.Duration
}

// newLead returns the lead that a stream begins with: by how much the shortest runs of warm-up's tail took longer than usual.
func (f *flow) newLead() lead {
	if f.slo == 0 {
		return lead{}
	}
	l := lead{step: time.Duration(leadStep * float64(f.slo)), most: time.Duration(leadMost * float64(f.slo))}
	// Half of what the SLO leaves beyond the shortest run is the batchers'.
	for i := range f.rt.choice.Models {
		shortest := f.rt.choice.Models[i].Timings()[0]
		l.most = min(l.most, max((f.slo-f.fillTime[i]-shortest.P99)/2, 0))
		l.now = max(l.now, shortest.P99-shortest.P50)
	}
	l.now = min(l.now, l.most)
	return l
}

// result learns from one of the results of a batch.
func (l *lead) result(late bool, batch int) {
	step := -lateShare
	if late {
		step = 1 - lateShare
	}
	l.now += time.Duration(math.Round(step * float64(l.step) / float64(max(batch, 1))))
	l.now = min(max(l.now, 0), l.most)
}

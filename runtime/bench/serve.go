package bench

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/eyas-edge/eyas/camera"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// Served is what became of the frames of some cameras that one set-up served.
type Served struct {
	Lanes   int     `json:"lanes"`
	Threads int     `json:"threads"`
	Ladder  []int   `json:"ladder"`
	Cameras int     `json:"cameras"`
	FPS     float64 `json:"fps"` // of each camera
	SLO     float64 `json:"slo_ms"`
	Seconds float64 `json:"seconds"` // from the first frame's capture to the last one's end

	Offered   int               `json:"offered"`   // frames that the cameras captured
	Delivered int               `json:"delivered"` // with a result
	InTime    int               `json:"in_time"`   // of those, within the SLO
	Dropped   map[string]uint64 `json:"dropped"`   // the others, by cause
	InTimeFPS float64           `json:"in_time_fps"`
	Missed    float64           `json:"missed"` // share of the delivered frames that were late

	Capture Distribution `json:"capture"` // from capture to result
	Queue   Distribution `json:"queue"`   // of that, waiting
	Pre     Distribution `json:"pre"`     // pre-processing
	Infer   Distribution `json:"infer"`   // the run of the batch
	Post    Distribution `json:"post"`    // boxes and suppression of the batch

	Batch    float64 `json:"batch"`          // mean frames of a run
	Busy     float64 `json:"busy"`           // share of the lanes' time in which they ran or read
	Resident int64   `json:"resident_bytes"` // of the process, at the end
}

// mostFrames bounds the samples of one measurement.
const mostFrames = 1 << 21

// serve lets one set-up serve cameras for a while.
func (q request) serve(ctx context.Context, s *setup) (reply, error) {
	n := min(max(int(math.Ceil(q.Duration.Seconds()*q.FPS)), 1), max(mostFrames/max(q.Cameras, 1), 1))
	if q.Runs > 0 {
		n = min(n, q.Runs)
	}
	r := &record{slo: s.cfg.SLO, served: Served{Cameras: q.Cameras, FPS: q.FPS, SLO: milliseconds(s.cfg.SLO), Dropped: map[string]uint64{}}}
	open := func() []*paced { return newCameras(q.Cameras, q.FPS, n) }
	var err error
	if q.Candidate == standard {
		err = s.serveStandard(ctx, q, open, r)
	} else {
		err = s.serveStream(ctx, q, open, r)
	}
	if err != nil {
		return reply{}, err
	}
	return reply{Served: r.sum()}, nil
}

// serveStream is Eyas as programs use it.
func (s *setup) serveStream(ctx context.Context, q request, open func() []*paced, r *record) error {
	cfg := s.cfg
	cfg.Policy = policies[q.Policy]
	rt, err := eyas.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer rt.Close()
	c := rt.Choice()
	r.served.Lanes, r.served.Threads, r.served.Ladder = c.Lanes, c.Threads, c.Models[0].Ladder
	cameras := open()
	var sources []camera.Source
	for _, c := range cameras {
		sources = append(sources, c)
	}
	for res, err := range rt.Stream(ctx, sources...) {
		if err != nil {
			return err
		}
		r.add(res.Captured, &res.Timing)
	}
	for _, st := range rt.Status() {
		st.Dropped.Each(r.drop)
	}
	r.served.Offered = offered(cameras)
	r.began = cameras[0].start
	return ctx.Err()
}

// record writes down results as they come.
type record struct {
	slo    time.Duration
	served Served
	began  time.Time
	last   time.Time

	capture, queue, pre, infer, post []float64

	runs, busy float64 // a frame of a batch of n counts as 1/n of its run
}

// add takes a result in, which came just now.
func (r *record) add(captured time.Time, t *eyas.Timing) {
	r.last = time.Now()
	took := r.last.Sub(captured)
	r.served.Delivered++
	if took <= r.slo {
		r.served.InTime++
	}
	for _, v := range []struct {
		to *[]float64
		d  time.Duration
	}{{&r.capture, took}, {&r.queue, t.Queue}, {&r.pre, t.Pre}, {&r.infer, t.Infer}, {&r.post, t.Post}} {
		*v.to = append(*v.to, milliseconds(v.d))
	}
	share := 1 / float64(max(t.Batch, 1))
	r.runs += share
	r.busy += share * (t.Infer + t.Post).Seconds()
}

// drop counts frames that were given up.
func (r *record) drop(cause string, n uint64) {
	if n > 0 {
		r.served.Dropped[cause] += n
	}
}

// sum returns the figures.
func (r *record) sum() *Served {
	s := &r.served
	s.Capture, s.Queue, s.Pre = distribution(r.capture), distribution(r.queue), distribution(r.pre)
	s.Infer, s.Post = distribution(r.infer), distribution(r.post)
	if s.Delivered > 0 {
		s.Seconds = r.last.Sub(r.began).Seconds()
	}
	s.InTimeFPS = ratio(float64(s.InTime), s.Seconds)
	s.Missed = ratio(float64(s.Delivered-s.InTime), float64(s.Delivered))
	s.Batch = ratio(float64(s.Delivered), r.runs)
	s.Busy = ratio(r.busy, s.Seconds*float64(max(s.Lanes, 1)))
	if st, err := status(); err == nil { // kernels that do not say leave it out
		s.Resident = st.Resident
	}
	return s
}

// dropped returns the frames of all causes.
func (s *Served) dropped() (n uint64) {
	for _, k := range s.Dropped {
		n += k
	}
	return n
}

// String says what a set-up is.
func (s *Served) String() string {
	return fmt.Sprintf("%v, batch %s", eyas.Setting{Lanes: s.Lanes, Threads: s.Threads}, list(s.Ladder))
}

package bench

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/eyas-edge/eyas/camera"
)

// slow takes as long as it likes for each frame, and notes when frames were captured.
type slow struct {
	took     time.Duration
	captured []time.Duration
	start    time.Time
}

func (s *slow) Frame(ctx context.Context, f *camera.Frame) error {
	s.captured = append(s.captured, f.Captured.Sub(s.start))
	f.Release()
	time.Sleep(s.took)
	return ctx.Err()
}
func (s *slow) Fault(error)               {}
func (s *slow) Reclaim() bool             { return false }
func (s *slow) State(camera.State, error) {}

// A receiver that is late does not move the schedule: the frames that it kept waiting were captured when they were due.
func TestScheduleDoesNotSlip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now().Add(lead)
		cameras := newCameras(2, 10, 4)
		for i, took := range []time.Duration{0, 350 * time.Millisecond} {
			s := &slow{took: took, start: start}
			if err := cameras[i].Run(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			var want []time.Duration
			for n := range 4 {
				want = append(want, time.Duration(100*n+50*i)*time.Millisecond)
			}
			if d := cmp.Diff(want, s.captured); d != "" {
				t.Errorf("camera %d: %s", i, d)
			}
		}
		if n := offered(cameras); n != 8 {
			t.Errorf("%d frames offered", n)
		}
	})
}

func TestDistribution(t *testing.T) {
	var samples []float64
	for i := range 1000 {
		samples = append(samples, float64(1000-i))
	}
	want := Distribution{1000, 1, 500.5, 288.675, 500, 900, 950, 990, 999, 1000}
	if d := cmp.Diff(want, distribution(samples), cmpopts.EquateApprox(0, 0.001)); d != "" {
		t.Error(d)
	}
	if d := distribution(nil); d != (Distribution{}) {
		t.Errorf("%+v", d)
	}
}

func TestDrift(t *testing.T) {
	took := make([]uint32, 400)
	for i := range took {
		took[i] = uint32(1000 * (1 + i/300))
	}
	if d := drift(took); d == nil || *d != (Drift{1, 2, 2}) {
		t.Errorf("%+v", d)
	}
	if d := drift(took[:leastDrift-1]); d != nil {
		t.Errorf("%+v", d)
	}
}

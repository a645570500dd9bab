package bench

import (
	"context"
	"fmt"
	"io"
)

// Capture is how Eyas serves cameras under the SLO, at the rate that was asked for and at twice what it can do.
type Capture struct {
	Model string `json:"model"`
	Served
	Overload Served `json:"overload"`
}

// overload is what cameras are to give more than the machine can do, so that lanes never wait for them.
const overload = 2

// most returns the most pictures a second that any point of the frontier gives.
func (b *bench) most(model string) (fps float64) {
	for _, f := range b.report.Latency {
		for _, p := range f.Points {
			if f.Model == model {
				fps = max(fps, p.FPS)
			}
		}
	}
	return fps
}

func (b *bench) captures(ctx context.Context) error {
	for _, m := range b.report.Models {
		c, err := b.choice(ctx, m.Key)
		if err != nil {
			return err
		}
		ladder := c.Choice.Models[0].Ladder
		serve := func(fps float64) (*Served, error) {
			b.say(fmt.Sprintf("capture to result of %s, %d cameras of %.0f fps", m.Key, b.Cameras, fps))
			rep, err := b.ask(ctx, request{
				Job: jobServe, Model: m.Key, Candidate: planned, Policy: ownPolicy, Cameras: b.Cameras, FPS: fps, Duration: b.timed(defaultDuration), Runs: b.Runs,
			}, b.under, fixed(c.Choice.Setting, ladder))
			return rep.Served, err
		}
		normal, err := serve(b.FPS)
		if err != nil {
			return err
		}
		over, err := serve(min(max(overload*b.most(m.Key)/float64(b.Cameras), b.FPS), maxFPS))
		if err != nil {
			return err
		}
		b.report.Capture = append(b.report.Capture, Capture{m.Key, *normal, *over})
	}
	return nil
}

func (r *Report) captureText(w io.Writer) {
	for i := range r.Capture {
		c := &r.Capture[i]
		fmt.Fprintf(w, "\ncapture to result of %s\toffered\tdelivered\tin time\tmissed\tdropped\tp50\tp95\tp99\tp99.9\tmax\tbatch\tlanes busy\n", c.Model)
		for _, s := range []*Served{&c.Served, &c.Overload} {
			fmt.Fprintf(w, "%d cameras of %.0f fps\t%d\t%d\t%.1f fps\t%s\t%s\t%.2f ms\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%s\n", s.Cameras, s.FPS,
				s.Offered, s.Delivered, s.InTimeFPS, percent(s.Missed), causes(s.Dropped),
				s.Capture.P50, s.Capture.P95, s.Capture.P99, s.Capture.P999, s.Capture.Max, s.Batch, percent(s.Busy))
		}
		c.summaryText(w)
	}
}

// summaryText writes the lines that trtexec ends with, as far as they exist here: filling takes the place of the copy to
// the device, reading the boxes that of the copy back.
func (c *Capture) summaryText(w io.Writer) {
	fmt.Fprintf(w, "%s\n", &c.Served)
	fmt.Fprintf(w, "Throughput: %.5g qps\n", ratio(float64(c.Delivered), c.Seconds))
	for _, line := range []struct {
		name string
		d    Distribution
	}{{"Latency", c.Served.Capture}, {"Queue Time", c.Queue}, {"Fill Latency", c.Pre}, {"Compute Time", c.Infer}, {"Read Latency", c.Post}} {
		fmt.Fprintf(w, "%s: min = %.5g ms, max = %.5g ms, mean = %.5g ms, median = %.5g ms, percentile(90%%) = %.5g ms, percentile(95%%) = %.5g ms, percentile(99%%) = %.5g ms\n",
			line.name, line.d.Min, line.d.Max, line.d.Mean, line.d.P50, line.d.P90, line.d.P95, line.d.P99)
	}
	fmt.Fprintf(w, "Total Host Walltime: %.5g s\n", c.Seconds)
}

func (r *Report) captureFigures(each func(string, float64)) {
	for _, c := range r.Capture {
		c.Served.figures("capture "+c.Model+" ", each)
		c.Overload.figures("overload "+c.Model+" ", each)
	}
}

// figures names what is worth a comparison.
func (s *Served) figures(name string, each func(string, float64)) {
	each(name+"in time, fps", s.InTimeFPS)
	each(name+"missed", s.Missed)
	each(name+"p50, ms", s.Capture.P50)
	each(name+"p99, ms", s.Capture.P99)
	each(name+"lanes busy", s.Busy)
}

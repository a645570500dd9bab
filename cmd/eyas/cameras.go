package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/eyas-edge/eyas/internal/shown"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// cameras returns the live ones of some sources.
func cameras(all []eyas.SourceStatus) []eyas.SourceStatus {
	return slices.DeleteFunc(all, func(s eyas.SourceStatus) bool { return !s.Live })
}

// cameraLine says in one line how a camera does.
func cameraLine(s *eyas.SourceStatus) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", s.Name, s.State)
	if s.Error != "" { // before the numbers, which then say little: a narrow terminal cuts the line off
		fmt.Fprintf(&b, " (%s)", s.Error)
	}
	if s.Width > 0 {
		fmt.Fprintf(&b, " %dx%d %s", s.Width, s.Height, s.Format)
	}
	fmt.Fprintf(&b, ", in %.1f/s, out %.1f/s, age %.0f ms, %s", s.FPSIn, s.FPSOut, s.Age.Seconds()*1000, dropsText(s))
	return b.String()
}

// dropsText says how many frames a camera lost, and why.
func dropsText(s *eyas.SourceStatus) string {
	total := s.Dropped.Total()
	if total == 0 {
		return "0 dropped"
	}
	var causes []string
	s.Dropped.Each(func(cause string, n uint64) {
		if n > 0 {
			causes = append(causes, fmt.Sprintf("%d %s", n, cause))
		}
	})
	return fmt.Sprintf("%d dropped: %s", total, strings.Join(causes, ", "))
}

// reportCameras says what became of the frames of each camera; after a short run without an SLO only of those that are not well.
func (s *session) reportCameras(all []eyas.SourceStatus, choice *eyas.Choice) {
	for i := range all {
		c := &all[i]
		if s.frames < reportFrames && choice.Why == "" && c.State != "lost" {
			continue
		}
		text := fmt.Sprintf("%s: %d frames captured, %d delivered", c.Name, c.Captured, c.Delivered)
		if c.Delivered > 0 {
			text += fmt.Sprintf(", %d of them late, age p50 %s, p95 %s, p99 %s ms", c.Missed, tenths(c.Ages.P50), tenths(c.Ages.P95), tenths(c.Ages.P99))
		}
		text += ", " + dropsText(c)
		if c.State == "lost" { // what failed has said so already
			text += fmt.Sprintf("; lost: %s", c.Error)
		}
		s.cfg.Logger.Info(text)
	}
}

// tenths writes a time in milliseconds.
func tenths(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()*1000) }

// reportChoice says how the models were run under an SLO, and why so.
func (s *session) reportChoice(c *eyas.Choice) {
	if c.Why == "" {
		return
	}
	s.cfg.Logger.Info(c.Why)
	for _, m := range c.Models {
		s.cfg.Logger.Info(fmt.Sprintf("model %s: batches of %v, all of them warm before the first frame", m.Model, m.Ladder))
	}
}

// cameraLines are the lines of a terminal that show how cameras do, one each, while a run lasts.
type cameraLines struct {
	e    *env
	bars *mpb.Progress
	each []*mpb.Bar

	mu   sync.Mutex
	ask  func() []eyas.SourceStatus
	last []eyas.SourceStatus
	at   time.Time
}

// linesPeriod is how often the lines change; faster cannot be read.
const linesPeriod = 500 * time.Millisecond

func newCameraLines(e *env, n int, ask func() []eyas.SourceStatus) *cameraLines {
	c := &cameraLines{e: e, ask: ask, bars: mpb.New(mpb.WithOutput(e.stderr), mpb.WithRefreshRate(linesPeriod))}
	for i := range n {
		show := decor.Any(func(decor.Statistics) string { return c.line(i) })
		c.each = append(c.each, c.bars.New(0, mpb.NopStyle(), mpb.PrependDecorators(show)))
	}
	e.lines.to(c.bars)
	return c
}

// line returns the line of camera i, from one look at all of them for each refresh.
func (c *cameraLines) line(i int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.at) > linesPeriod/2 {
		c.last, c.at = cameras(c.ask()), now
	}
	if i >= len(c.last) {
		return ""
	}
	return shown.Text(cameraLine(&c.last[i]))
}

func (c *cameraLines) close() {
	for _, b := range c.each {
		b.SetTotal(0, true)
		b.Abort(false)
	}
	c.bars.Wait()
	c.e.lines.to(c.e.stderr)
}

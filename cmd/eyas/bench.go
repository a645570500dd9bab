package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"time"

	eyas "github.com/eyas-edge/eyas/runtime"
	"github.com/eyas-edge/eyas/runtime/bench"
)

type benchCmd struct {
	JSON    bool     `name:"json" help:"One JSON document."`
	Suite   []string `placeholder:"NAME" help:"What to measure: latency, start, policies, memory (the default), contention, placement, soak."`
	Compare string   `placeholder:"A.json" help:"Print the figures of two reports side by side: --compare A.json B.json."`
	Config  string   `short:"c" placeholder:"FILE" help:"Configuration file; flags win over it."`
	Model   []string `short:"m" sep:"none" placeholder:"MODEL" help:"As MODEL."`
	identityFlags
	engineFlags
	memoryFlags
	Cameras   int      `group:"bench" placeholder:"4" help:"Cameras that latency and policies serve."`
	FPS       float64  `name:"fps" placeholder:"30" help:"Frames a second of each camera."`
	Idle      span     `group:"bench" placeholder:"10s" help:"How long start leaves a model alone before its next first frame."`
	SLO       span     `name:"slo" group:"time" placeholder:"100ms" help:"Limit on the time from capture to result that latency, policies and contention keep."`
	Frames    int      `group:"time" placeholder:"N" help:"Runs in the steady state, frames of a camera (default: what fits into the duration)."`
	Duration  span     `group:"time" placeholder:"4s" help:"About how long each timed part takes for one model (soak: 1m)."`
	LogFormat string   `group:"out" enum:"text,json" default:"text" help:"text or json."`
	Quiet     bool     `short:"q" group:"out" help:"Only errors on standard error."`
	Models    []string `arg:"" optional:"" name:"model" help:"An .onnx file or a pulled model; repeats. It defaults to face. With --compare the other report."`
}

func (c *benchCmd) Run(e *env) error {
	e.setLog(c.LogFormat, c.Quiet)
	if c.Compare != "" {
		return c.compare(e)
	}
	cfg, err := c.config()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	report, err := bench.Run(e.ctx, bench.Options{
		Config: cfg, Suites: c.Suite, Runs: c.Frames, Duration: time.Duration(c.Duration),
		Cameras: c.Cameras, FPS: c.FPS, Idle: time.Duration(c.Idle),
		Self:     []string{self, benchChild},
		Progress: func(text string) { e.log.Info("bench: " + text) },
	})
	if sig := e.signals.received(); sig != 0 && err != nil {
		stopped := exitError{128 + int(sig), "bench: stopped before the end"}
		if report != nil {
			return cmp.Or(c.print(e, report), error(stopped))
		}
		return stopped
	}
	if err != nil {
		return err
	}
	return c.print(e, report)
}

// config returns what is measured: the file's models unless others are named, the flags over the file.
func (c *benchCmd) config() (cfg eyas.Config, err error) {
	cfg, _, err = planned(c.Config, append(c.Models, c.Model...), c.identityFlags, c.engineFlags, c.memoryFlags)
	set(&cfg.SLO, time.Duration(c.SLO))
	return cfg, err
}

func (c *benchCmd) compare(e *env) error {
	if len(c.Models) != 1 {
		return exitError{exitUsage, "bench: --compare takes two reports: --compare A.json B.json"}
	}
	a, err := bench.ReadReport(c.Compare)
	if err != nil {
		return exitError{exitUsage, "bench: " + err.Error()}
	}
	b, err := bench.ReadReport(c.Models[0])
	if err != nil {
		return exitError{exitUsage, "bench: " + err.Error()}
	}
	return c.print(e, bench.Compare(a, b))
}

func (c *benchCmd) print(e *env, what interface {
	Text(io.Writer) error
	JSON(io.Writer) error
}) error {
	if c.JSON {
		return what.JSON(e.stdout)
	}
	return what.Text(e.stdout)
}

// benchChild is the hidden command that a measurement runs in a process of its own.
const benchChild = "bench-child"

type benchChildCmd struct{}

func (*benchChildCmd) Run(e *env) error { return bench.Child(e.ctx, e.stdin, e.stdout) }

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/eyas-edge/eyas/internal/atomicfile"
	"github.com/eyas-edge/eyas/memplan"
	eyas "github.com/eyas-edge/eyas/runtime"
)

type planCmd struct {
	JSON     bool              `name:"json" help:"One JSON document."`
	SVG      string            `name:"svg" placeholder:"FILE" help:"Draw the arena: lifetime across, offset up."`
	Estimate bool              `help:"Plan from the model's graph: without ONNX Runtime, nothing is run."`
	CPU      string            `name:"cpu" placeholder:"KIND" help:"Processor that --estimate is for: x86, x86-avx512 or arm64 (default: this machine's)."`
	Camera   []eyas.CameraPlan `sep:"none" placeholder:"4x1920x1080:nv12" help:"Plan for so many cameras of that size and format, at 30 frames a second or those behind an @; repeats."`
	Board    string            `placeholder:"NAME" help:"Plan for another board; not yet in this version."`
	Config   string            `short:"c" placeholder:"FILE" help:"Configuration file; flags win over it. Its sources are not looked at."`
	Model    []string          `short:"m" sep:"none" placeholder:"MODEL" help:"As MODEL."`
	identityFlags
	engineFlags
	memoryFlags
	SLO       span     `name:"slo" group:"time" placeholder:"50ms|none" help:"Time for which frames of a --camera may wait (default: none, the newest wins)."`
	LogFormat string   `group:"out" enum:"text,json" default:"text" help:"text or json."`
	Quiet     bool     `short:"q" group:"out" help:"Only errors on standard error."`
	Problem   string   `placeholder:"FILE.csv" help:"Plan the buffers of a file in MiniMalloc's format instead: id,lower,upper,size."`
	Nodes     int64    `placeholder:"N" help:"Placements that --problem tries at most (default: 6000000, fewer for more than 256 buffers)."`
	Models    []string `arg:"" optional:"" name:"model" help:"An .onnx file or a pulled model; repeats. It defaults to face."`
}

func (c *planCmd) Run(e *env) error {
	e.setLog(c.LogFormat, c.Quiet)
	switch {
	case c.Problem != "" && (len(c.Models) > 0 || len(c.Model) > 0 || c.Config != ""):
		return exitError{exitUsage, "plan: --problem is a list of buffers: leave the models out"}
	case c.Problem != "":
		return c.solve(e)
	case c.Nodes != 0:
		return exitError{exitUsage, "plan: --nodes is for --problem"}
	case c.Board != "":
		return exitError{exitUsage, fmt.Sprintf("plan: --board %s: not yet in this version: give the board's memory with --budget and its processor with --estimate --cpu", c.Board)}
	}
	return c.models(e)
}

// models plans for models and cameras.
func (c *planCmd) models(e *env) error {
	cfg, byDefault, err := planned(c.Config, append(c.Models, c.Model...), c.identityFlags, c.engineFlags, c.memoryFlags)
	if err != nil {
		return err
	}
	set(&cfg.SLO, time.Duration(c.SLO))
	cfg.Logger = e.log
	if byDefault {
		e.log.Info(faceOnly)
	}
	doc, err := eyas.Plan(e.ctx, cfg, eyas.PlanOptions{Estimate: c.Estimate, CPU: c.CPU, Cameras: c.Camera})
	if sig := e.signals.received(); sig != 0 {
		return exitError{128 + int(sig), "plan: stopped before the end"}
	}
	if doc == nil {
		return err
	}
	short := err // what does not fit is printed all the same
	if c.SVG != "" {
		if err := drawArena(c.SVG, doc); err != nil {
			return err
		}
	}
	if c.JSON {
		enc := json.NewEncoder(e.stdout)
		enc.SetIndent("", "  ")
		err = enc.Encode(doc)
	} else {
		err = doc.WriteTable(e.stdout)
	}
	if err != nil {
		return err
	}
	return short
}

// drawArena draws the plan that the arena owes its size to.
func drawArena(file string, doc *memplan.Document) error {
	arena, batch, ok := doc.Decisive()
	if !ok {
		return exitError{exitUsage, "plan: --svg: there is no arena to draw: on this execution provider the library places tensors"}
	}
	return draw(file, fmt.Sprintf("%s, batch %d", arena.Model, batch), arena.Problem(), arena.Solution)
}

func draw(file, title string, p memplan.Problem, s memplan.Solution) error {
	if err := atomicfile.Write(file, func(w io.Writer) error { return memplan.Drawing(w, title, p, s) }); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	return nil
}

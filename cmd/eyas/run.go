package main

import (
	"context"
	"errors"
	"time"

	"github.com/eyas-edge/eyas/camera"
	eyas "github.com/eyas-edge/eyas/runtime"
	"github.com/eyas-edge/eyas/runtime/sink"
)

type runCmd struct {
	configFlags
	Check       bool     `help:"Validate the configuration and end."`
	PrintConfig bool     `help:"Print the effective configuration and end."`
	Sources     []string `arg:"" optional:"" name:"source" help:"[NAME=]WHAT: a picture, folder, glob, clip, raw:FILE?format=nv12&size=320x240 or test:pattern."`
}

const faceOnly = "no model given: face is used, which finds faces only; -m MODEL takes another"

func (c *runCmd) Run(e *env) error {
	cfg, err := c.config(c.Sources)
	if err != nil {
		return err
	}
	byDefault := len(cfg.Models) == 0
	if byDefault {
		addModel(&cfg, "face")
		m := cfg.Models["face"]
		c.modelFlags.apply(&m)
		cfg.Models["face"] = m
	}
	cfg.Logger = e.logger(c.LogFormat, c.Quiet)
	if c.Check || c.PrintConfig {
		return c.show(e, &cfg)
	}
	if len(cfg.Sources) == 0 {
		return exitError{exitUsage, "no source: name a picture, folder or clip, for example eyas run photo.jpg"}
	}
	if byDefault {
		cfg.Logger.Info(faceOnly)
	}
	return detect(e, cfg, c.Quiet)
}

// show validates the configuration and prints it if asked.
func (c *runCmd) show(e *env, cfg *eyas.Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	if !c.PrintConfig {
		return nil
	}
	text, err := cfg.YAML()
	if err == nil {
		_, err = e.stdout.Write(text)
	}
	return err
}

// session is one eyas run.
type session struct {
	e       *env
	cfg     eyas.Config
	lines   *sink.Lines
	saver   *sink.Saver // nil without --save
	status  *status
	failed  uint64
	frames  uint64
	objects uint64
}

func detect(e *env, cfg eyas.Config, quiet bool) (err error) {
	start := time.Now()
	if err := cfg.Validate(); err != nil {
		return err
	}
	sources, bad := cfg.OpenSources()
	for _, err := range unjoin(bad) {
		if len(sources) == 0 || exitCode(err) != exitFailed {
			return err // nothing to do, or bad usage: before anything is loaded
		}
		e.say("%v", err)
	}
	s := &session{e: e, cfg: cfg, failed: uint64(len(unjoin(bad))), status: newStatus(e, sources, quiet)}
	if err := s.openSinks(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.closeSinks()) }()

	s.cfg.Pictures = s.saver != nil
	if s.cfg.Output.Events {
		s.cfg.OnEvent = s.event
	}
	rt, err := eyas.Open(e.ctx, s.cfg)
	if err != nil {
		return s.end(sources, err)
	}
	ctx := e.ctx
	if cfg.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.Duration)
		defer cancel()
	}
	err = s.stream(ctx, rt, sources)
	s.status.close()
	rt.Close() // says what only the end of a run shows
	s.event(eyas.Event{Kind: "summary", Time: time.Now(), Frames: s.frames, Detections: s.objects, Failed: s.failed, Took: time.Since(start)})
	return s.end(sources, err)
}

func (s *session) openSinks() (err error) {
	s.lines = sink.NewLines(s.e.stdout)
	if s.cfg.Output.File != "" {
		if s.lines, err = sink.OpenLines(s.cfg.Output.File, int64(s.cfg.Output.MaxSize)); err != nil {
			return err
		}
	}
	if s.cfg.Output.Save != "" {
		s.saver, err = sink.NewSaver(s.cfg.Output.Save, s.cfg.Logger)
	}
	return err
}

func (s *session) closeSinks() error {
	err := s.lines.Close()
	if s.saver != nil {
		err = errors.Join(err, s.saver.Close())
	}
	return err
}

// stream writes all results. It returns an error only if the results themselves cannot be written.
func (s *session) stream(ctx context.Context, rt *eyas.Runtime, sources []camera.Source) error {
	for res, err := range rt.Stream(ctx, sources...) {
		if err != nil {
			s.fail(err)
			continue
		}
		s.frames++
		s.objects += uint64(len(res.Detections))
		if err := s.lines.Result(res); err != nil {
			if s.cfg.Output.File == "" {
				return err // nobody reads standard output any more
			}
			s.fail(err)
		}
		if s.saver != nil {
			if err := s.saver.Result(res); err != nil {
				s.fail(err)
			}
		}
		s.status.result(res)
	}
	return nil
}

func (s *session) fail(err error) {
	s.failed++
	s.status.line("eyas: %v", err)
}

func (s *session) event(e eyas.Event) {
	if !s.cfg.Output.Events {
		return
	}
	if err := s.lines.Event(&e); err != nil {
		s.fail(err)
	}
}

// end says how the run went, as an exit code.
func (s *session) end(sources []camera.Source, err error) error {
	live := true
	for _, source := range sources {
		live = live && source.Live()
	}
	switch sig := s.e.signals.received(); {
	case sig != 0 && !live:
		return exitError{code: 128 + int(sig)}
	case sig != 0 && errors.Is(err, context.Canceled):
		return nil
	case err == nil && s.failed > 0:
		return exitError{code: exitFailed} // each was said when it happened
	}
	return err
}

// unjoin splits what errors.Join has joined.
func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

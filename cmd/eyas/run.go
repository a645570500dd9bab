package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/memplan"
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
	e.setLog(c.LogFormat, c.Quiet)
	cfg.Logger = e.log
	if err := cfg.Validate(); err != nil {
		return err
	}
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

// show checks or prints the valid configuration, as asked. The texts of the sources are part of it, the files that they name
// are not.
func (c *runCmd) show(e *env, cfg *eyas.Config) error {
	if c.Check {
		cfg.SourceOptions = sourceOptions
		_, bad := cfg.OpenSources()
		if err := usageError(bad); err != nil {
			return err
		}
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
	e        *env
	cfg      eyas.Config
	saver    *sink.Saver // nil without --save
	pages    *pages      // nil without --http
	sequence sink.Sequence
	frames   uint64
	objects  uint64

	mu     sync.Mutex   // guards what follows: cameras tell of themselves beside the results
	lines  *sink.Lines  // nil before there is somewhere to write
	early  []eyas.Event // from then
	failed uint64
	short  bool  // the machine cannot do what a source asks for
	deaf   error // nobody reads standard output any more
}

func detect(e *env, cfg eyas.Config, quiet bool) (err error) {
	start := time.Now()
	cfg.Pictures = cfg.Output.Save != ""
	cfg.SourceOptions = sourceOptions
	sources, bad := cfg.OpenSources()
	if err := usageError(bad); err != nil { // before anything is loaded
		return err
	}
	missing := unjoin(bad)
	s := &session{e: e, cfg: cfg}
	for _, err := range missing {
		s.fail(err)
	}
	if len(sources) == 0 {
		return s.end(sources, nil)
	}
	s.cfg.OnEvent = s.event
	if s.pages, err = servePages(&s.cfg); err != nil {
		return s.end(sources, err)
	}
	defer s.pages.close()
	rt, err := eyas.Open(e.ctx, s.cfg)
	if err != nil {
		return s.end(sources, err)
	}
	defer rt.Close()
	defer abortLate(e.ctx, rt)()
	if err := s.openSinks(sources); err != nil { // only now: a run that cannot be leaves the last one's results alone
		return err
	}
	defer func() {
		if e := s.closeSinks(); e != nil {
			s.fail(e)
			if err == nil {
				err = exitError{code: exitFailed}
			}
		}
	}()
	for _, err := range missing {
		s.event(eyas.Event{Kind: "source", Time: time.Now(), State: "failed", Text: err.Error()})
	}
	ctx := e.ctx
	if cfg.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.Duration)
		defer cancel()
	}
	s.pages.ready(rt)
	s.stream(ctx, rt, sources, newStatus(e, s.terminal(), sources, rt.Status, quiet))
	memory, cameras := rt.Memory(), cameras(rt.Status())
	rt.Close() // says what only the end of a run shows
	s.event(eyas.Event{Kind: "summary", Time: time.Now(), Frames: s.frames, Detections: s.objects, Failed: s.failed,
		Took: time.Since(start), Memory: &memory, Sources: cameras})
	s.reportChoice(rt.Choice())
	s.reportCameras(cameras, rt.Choice())
	s.report(&memory)
	return s.end(sources, s.unheard())
}

// abortAfter is how long a run that was told to stop may take for the frames in flight, so that the
// process ends within two seconds.
const abortAfter = 1200 * time.Millisecond

// abortLate ends runs that go on for too long after ctx. The function that it returns calls that off.
func abortLate(ctx context.Context, rt *eyas.Runtime) func() {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-done:
		case <-time.After(abortAfter):
			rt.Abort()
		}
	})
	return func() {
		stop()
		close(done)
	}
}

func (s *session) openSinks(sources []camera.Source) (err error) {
	lines := sink.NewLines(newStdout(s.e.ctx, s.e.stdout))
	if file := s.cfg.Output.File; file != "" && file != "-" {
		if err := notASource(file, sources); err != nil {
			return err
		}
		if lines, err = sink.OpenLines(file, int64(s.cfg.Output.MaxSize)); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.lines = lines
	early := s.early
	s.mu.Unlock()
	for _, event := range early {
		s.event(event)
	}
	if s.cfg.Output.Save != "" {
		s.saver, err = sink.NewSaver(s.cfg.Output.Save, sources, s.cfg.Logger)
	}
	return err
}

// terminal returns where results go if a person may be reading them there, nil for a file.
func (s *session) terminal() io.Writer {
	if file := s.cfg.Output.File; file != "" && file != "-" {
		return nil
	}
	return s.e.stdout
}

// notASource refuses to write results over a source.
func notASource(file string, sources []camera.Source) error {
	out, err := os.Stat(file)
	if err != nil {
		return nil // it is not there yet
	}
	for _, source := range sources {
		for _, path := range camera.Files(source) {
			if in, err := os.Stat(path); err == nil && os.SameFile(out, in) {
				return exitError{exitUsage, fmt.Sprintf("write results: %s is a source of this run: name another file with -o", file)}
			}
		}
	}
	return nil
}

func (s *session) closeSinks() error {
	if n := s.lines.Lost(); n > 0 && s.unheard() == nil {
		s.e.log.Warn(fmt.Sprintf("write results: %d lines are lost", n))
	}
	err := s.lines.Close()
	if s.saver != nil {
		err = errors.Join(err, s.saver.Close(s.e.ctx))
	}
	return err
}

// stream writes all results, until nobody reads them any more.
func (s *session) stream(ctx context.Context, rt *eyas.Runtime, sources []camera.Source, status *status) {
	defer status.close()
	for res, err := range rt.Stream(ctx, sources...) {
		if err != nil {
			s.fail(err)
			continue
		}
		first := s.sequence.Begins(res)
		if first {
			s.frames++
		}
		s.objects += uint64(len(res.Detections))
		s.write(func(l *sink.Lines) error { return l.Result(res) })
		if s.saver != nil {
			if err := s.saver.Result(s.e.ctx, res); err != nil {
				s.fail(err)
			}
		}
		s.pages.result(res)
		status.result(res, first)
		if s.unheard() != nil {
			return
		}
	}
}

// fail counts and says that something went wrong while the run goes on.
func (s *session) fail(err error) {
	s.mu.Lock()
	s.failed++
	s.short = s.short || exitCode(err) == exitMachine
	s.mu.Unlock()
	s.e.say(err)
}

// write writes a line.
func (s *session) write(line func(*sink.Lines) error) {
	s.mu.Lock()
	err := line(s.lines)
	if err != nil && s.e.closedStdout(err) {
		s.deaf, err = err, nil
	}
	s.mu.Unlock()
	if errors.Is(err, errUnread) { // only a run that ends gives up: it does not go on
		err = fmt.Errorf("write results: %w", errUnread)
	}
	if err != nil {
		s.fail(err)
	}
}

// unheard returns the error of a standard output that nobody reads any more.
func (s *session) unheard() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deaf
}

// event writes what happened, or keeps it until there is somewhere to write.
func (s *session) event(e eyas.Event) {
	if !s.cfg.Output.Events {
		return
	}
	s.mu.Lock()
	if s.lines == nil {
		s.early = append(s.early, e)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.write(func(l *sink.Lines) error { return l.Event(&e) })
}

// reportFrames is the length of a run that ends with a report of its memory: for a few pictures, means per
// frame say nothing.
const reportFrames = 30

// report says what the run took against what was planned.
func (s *session) report(u *memplan.Usage) {
	if u.Frames < reportFrames {
		return
	}
	var text strings.Builder
	_ = u.WriteText(&text) // a Builder never fails
	for line := range strings.Lines(text.String()) {
		s.cfg.Logger.Info(strings.TrimRight(line, "\n"))
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
	case err == nil && s.short:
		return exitError{code: exitMachine} // each was said when it happened
	case err == nil && s.failed > 0:
		return exitError{code: exitFailed}
	}
	return err
}

// usageError returns the first of some sources' errors that is the user's.
func usageError(sources error) error {
	for _, err := range unjoin(sources) {
		if exitCode(err) != exitFailed {
			return err
		}
	}
	return nil
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

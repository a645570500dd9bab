package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/eyas-edge/eyas/camera"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// Exit codes, as docs/cli.md lists them.
const (
	exitFailed  = 1
	exitUsage   = 2
	exitModel   = 3
	exitMachine = 4
)

// commands is the command line.
type commands struct {
	Run     runCmd     `cmd:"" help:"Detect objects in pictures, folders and clips."`
	Inspect inspectCmd `cmd:"" help:"Say what a model is and what it would be fed."`
	Eval    evalCmd    `cmd:"" help:"Measure a model's average precision on a labelled data set."`
	Doctor  doctorCmd  `cmd:"" help:"Say what this machine can do, and what is missing."`
	Pull    pullCmd    `cmd:"" help:"Fetch models and ONNX Runtime builds, checked."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

// env is what a command works with.
type env struct {
	ctx            context.Context
	stdin          io.Reader
	stdout, stderr io.Writer
	signals        *signals
}

// say writes one line for people.
func (e *env) say(format string, args ...any) {
	fmt.Fprintf(e.stderr, "eyas: "+format+"\n", args...)
}

// exitError is an error whose exit code is not that of its kind. An empty text prints nothing.
type exitError struct {
	code int
	text string
}

func (e exitError) Error() string { return e.text }

func newParser(cli *commands, stdout, stderr io.Writer, exit func(int)) (*kong.Kong, error) {
	return kong.New(cli,
		kong.Name("eyas"),
		kong.Description("Runs YOLO-class detectors on pictures, clips and cameras."),
		kong.Writers(stdout, stderr),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true}),
		kong.ExplicitGroups([]kong.Group{
			{Key: "model", Title: "Model:"}, {Key: "engine", Title: "Engine:"}, {Key: "memory", Title: "Memory:"},
			{Key: "time", Title: "Time:"}, {Key: "out", Title: "Output:"},
		}))
}

// run parses the arguments, runs one command and returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var cli commands
	exited := -1 // set when kong has answered by itself: --help
	parser, err := newParser(&cli, stdout, stderr, func(code int) { exited = code })
	if err != nil {
		fmt.Fprintln(stderr, "eyas:", err)
		return exitUsage
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		fmt.Fprintf(stderr, "eyas: %v; see eyas --help\n", err)
		return exitUsage
	}
	s := watchSignals()
	defer s.stop()
	e := &env{ctx: s.ctx, stdin: stdin, stdout: stdout, stderr: stderr, signals: s}
	err = command.Run(e)
	if err != nil && err.Error() != "" {
		e.say("%s", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return exitCode(err)
}

func exitCode(err error) int {
	var exit exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.code
	case errors.Is(err, eyas.ErrConfig), errors.Is(err, eyas.ErrNotYet), errors.Is(err, camera.ErrNotYet), errors.Is(err, camera.ErrSpec):
		return exitUsage
	case errors.Is(err, eyas.ErrModel):
		return exitModel
	case errors.Is(err, eyas.ErrLibrary), errors.Is(err, eyas.ErrProvider), errors.Is(err, eyas.ErrBudget), errors.Is(err, eyas.ErrSLO):
		return exitMachine
	}
	return exitFailed
}

// logger writes warnings to stderr in the format asked for.
func (e *env) logger(format string, quiet bool) *slog.Logger {
	level := slog.LevelInfo
	if quiet {
		level = slog.LevelError
	}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(e.stderr, &slog.HandlerOptions{Level: level}))
	}
	return slog.New(&textHandler{w: e.stderr, level: level})
}

// textHandler writes a record as one plain line, as errors are written.
type textHandler struct {
	w     io.Writer
	level slog.Level
	attrs []slog.Attr
}

func (h *textHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

func (h *textHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString("eyas: ")
	if r.Level == slog.LevelWarn {
		b.WriteString("warning: ")
	}
	b.WriteString(strings.ReplaceAll(r.Message, "\n", " "))
	attr := func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	}
	for _, a := range h.attrs {
		attr(a)
	}
	r.Attrs(attr)
	b.WriteByte('\n')
	_, err := io.WriteString(h.w, b.String())
	return err
}

func (h *textHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &textHandler{w: h.w, level: h.level, attrs: append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)}
}

func (h *textHandler) WithGroup(string) slog.Handler { return h }

// terminal says whether w is a terminal.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && info.Mode()&os.ModeDevice != 0 && f.Name() != os.DevNull
}

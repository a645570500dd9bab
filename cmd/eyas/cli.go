package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"
	"golang.org/x/sys/unix"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/camera/ring"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// Exit codes, as docs/cli.md lists them.
const (
	exitFailed  = 1
	exitUsage   = 2
	exitModel   = 3
	exitMachine = 4
	exitPipe    = 128 + int(syscall.SIGPIPE)
)

// commands is the command line.
type commands struct {
	Run     runCmd     `cmd:"" help:"Detect objects in pictures, folders and clips."`
	Plan    planCmd    `cmd:"" help:"Say what models and cameras take of the memory, before they run."`
	Inspect inspectCmd `cmd:"" help:"Say what a model is and what it would be fed."`
	Eval    evalCmd    `cmd:"" help:"Measure a model's average precision on a labelled data set."`
	Bench   benchCmd   `cmd:"" help:"Measure models by suites: latency, start, policies, memory, placement, contention, soak."`
	Doctor  doctorCmd  `cmd:"" help:"Say what this machine can do, and what is missing."`
	Ring    ringCmd    `cmd:"" help:"Look at the rings, the cameras' frames in shared memory."`
	Pull    pullCmd    `cmd:"" help:"Fetch models and ONNX Runtime builds, checked."`
	Version versionCmd `cmd:"" help:"Print the version."`

	BenchChild benchChildCmd `cmd:"" hidden:""`
}

// later are the commands of the contract that this version does not have.
var later = []string{"jetson"}

// env is what a command works with.
type env struct {
	ctx            context.Context
	stdin          io.Reader
	stdout, stderr io.Writer
	signals        *signals
	lines          *lineWriter  // stderr, for lines
	log            *slog.Logger // writes to lines; text until a command sets it up otherwise
}

// say writes an error as one line.
func (e *env) say(err error) { e.log.Error(withLimit(err)) }

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
	e := &env{stdin: stdin, stdout: stdout, stderr: stderr, lines: &lineWriter{w: stderr}}
	e.setLog("text", false)
	if len(args) == 0 {
		args = []string{"--help"}
	}
	switch args[0] { // as people try first
	case "help":
		args[0] = "--help"
	case "--version":
		args[0] = "version"
	}
	if slices.Contains(later, args[0]) {
		e.say(fmt.Errorf("%s: not yet in this version; eyas --help lists the commands", args[0]))
		return exitUsage
	}
	command, err := parser.Parse(flagsFirst(parser.Model, args))
	if exited >= 0 {
		return exited
	}
	if err != nil {
		e.say(fmt.Errorf("%w; see eyas --help", err))
		return exitUsage
	}
	if err := enoughFiles(); err != nil {
		e.say(err)
		return exitMachine
	}
	s := watchSignals()
	defer s.stop()
	e.ctx, e.signals = s.ctx, s
	err = command.Run(e)
	if e.closedStdout(err) {
		return exitPipe
	}
	if err != nil && err.Error() != "" {
		e.say(err)
	}
	return exitCode(err)
}

// closedStdout says whether err is that nobody reads standard output any more, as after `| head`. That is
// no fault to tell of.
func (e *env) closedStdout(err error) bool {
	var file *fs.PathError
	out, ok := e.stdout.(*os.File)
	return ok && errors.As(err, &file) && file.Path == out.Name() && errors.Is(file.Err, syscall.EPIPE)
}

func exitCode(err error) int {
	var exit exitError
	var space *ring.SpaceError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.code
	case errors.Is(err, eyas.ErrConfig), errors.Is(err, eyas.ErrNotYet), errors.Is(err, camera.ErrSpec):
		return exitUsage
	case errors.Is(err, eyas.ErrModel):
		return exitModel
	case errors.Is(err, eyas.ErrLibrary), errors.Is(err, eyas.ErrProvider), errors.Is(err, eyas.ErrBudget), errors.Is(err, eyas.ErrSLO), errors.As(err, &space):
		return exitMachine
	}
	return exitFailed
}

// terminal says whether w is a terminal.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/eyas-edge/eyas/internal/testenv"
)

var update = flag.Bool("update", false, "write the documentation anew")

const cliHead = `# Commands

MODEL is an ` + "`.onnx`" + ` file or the name of a pulled model. SOURCE is ` + "`[NAME=]WHAT`" + `: see [sources.md](sources.md). Results go to standard
output, everything else to standard error; ` + "`--json`" + ` prints one document. A flag has the same name and meaning in every command
that has it, and sets the same field of the configuration.

An error is one line: what failed, on what, what to do. A second SIGINT or SIGTERM ends the process at once.

| exit code | meaning |
|---|---|
| 0 | done, or stopped by a signal while all sources were live |
| 1 | a source or run failed; everything else was processed |
| 2 | bad usage or configuration, or a part that this version does not have yet |
| 3 | the model cannot be used |
| 4 | the machine cannot do what was asked: execution provider, memory, library |
| 129, 130, 143 | stopped by SIGHUP, SIGINT or SIGTERM with files left |
| 141 | whoever read standard output has closed it, as head does |

This page is written by ` + "`go test ./cmd/eyas -run TestCommandsAreDocumented -update`" + `.
`

// renderCLI writes the commands and flags as the parser knows them.
func renderCLI(w io.Writer, root *kong.Application) {
	fmt.Fprint(w, cliHead)
	for _, cmd := range root.Leaves(true) {
		fmt.Fprintf(w, "\n## eyas %s\n\n%s\n", cmd.Path(), cmd.Help)
		for _, p := range cmd.Positional {
			fmt.Fprintf(w, "\n`%s`: %s\n", p.Summary(), p.Help)
		}
		var rows strings.Builder
		for _, group := range cmd.AllFlags(true) {
			for _, f := range group {
				if f.Name == "help" {
					continue
				}
				name := "--" + f.Name
				if f.Short != 0 {
					name = "-" + string(f.Short) + ", " + name
				}
				if !f.IsBool() {
					name += "=" + f.FormatPlaceHolder()
				}
				fmt.Fprintf(&rows, "| `%s` | %s |\n", strings.ReplaceAll(name, "|", "\\|"), f.Help)
			}
		}
		if rows.Len() > 0 {
			fmt.Fprintf(w, "\n| flag | meaning |\n|---|---|\n%s", rows.String())
		}
	}
}

func TestCommandsAreDocumented(t *testing.T) {
	var cli commands
	parser, err := newParser(&cli, io.Discard, io.Discard, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	renderCLI(&got, parser.Model)
	path := filepath.Join(testenv.Root(), "docs", "cli.md")
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("%s is not what the parser knows: run this test with -update", path)
	}
}
